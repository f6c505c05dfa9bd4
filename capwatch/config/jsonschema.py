"""The JSON Schema of the configuration, for editors and the reference; generated from the dataclasses of `schema`."""

from __future__ import annotations

import math
from typing import Final

from capwatch.config.kinds import Kind, Range
from capwatch.config.schema import Config
from capwatch.config.shape import Either, Key, Listing, Record, Shape, Table, Words, record

Schema = dict[str, object]
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> Schema:
    """The schema (draft 2020-12). What it accepts loads, apart from rules between keys and from bounds on texts."""
    return {"$schema": DIALECT, "title": "capwatch configuration", **_schema(record(Config))}


def _schema(shape: Shape) -> Schema:
    match shape:
        case Record():
            return _of_record(shape)
        case Table():
            return {"type": "object", "additionalProperties": _schema(shape.item)}
        case Listing():
            return _of_listing(shape)
        case Either():
            return {"anyOf": [_schema(option) for option in shape.options]}
        case Words():
            switches = {"on": True, "off": False}  # what editors read for unquoted words
            return {"enum": [*shape.words, *(switches[word] for word in shape.words if word in switches)]}
        case Kind():
            return {**shape.schema, **_bounds(shape.limits)}


def _of_record(shape: Record) -> Schema:
    schema: Schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {name: _of_key(key) for name, key in shape.keys.items()},
    }
    required = [name for name, key in shape.keys.items() if key.required]
    if required:
        schema["required"] = required
    return {"anyOf": [_schema(shape.keys[shape.shorthand].shape), schema]} if shape.shorthand else schema


def _of_key(key: Key) -> Schema:
    schema = {**_schema(key.shape), "description": key.doc}
    if isinstance(key.shape, Kind | Words) and key.default is not None and not key.required:
        schema["default"] = key.shape.show(key.default) if isinstance(key.shape, Kind) else key.default
    return schema


def _of_listing(shape: Listing) -> Schema:
    many: Schema = {"type": "array", "items": _schema(shape.item)}
    if shape.filled:
        many["minItems"] = 1
    return {"anyOf": [_schema(shape.item), many]} if isinstance(shape.item, Kind) else many


def _bounds(limits: Range) -> Schema:
    bounds = {
        "minimum": limits.at_least,
        "exclusiveMinimum": limits.above,
        "maximum": limits.at_most,
        "exclusiveMaximum": limits.below,
    }
    return {word: bound for word, bound in bounds.items() if math.isfinite(bound)}
