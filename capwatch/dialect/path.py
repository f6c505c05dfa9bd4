"""Paths into a decoded JSON object, as `fields:` of the configuration spells them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

import msgspec


def walk(value: object, path: str) -> object:
    """What ``value`` holds at ``path``, or None.

    The path is tried as one flat key first (`gen_ai.usage.input_tokens` is one key), then split at its dots, the
    longest flat key first; a JSON text met on the way is decoded; a number indexes a list.

    >>> walk({"a.b": 1, "a": {"b": 2}}, "a.b"), walk({"a": '{"b": [5]}'}, "a.b.0"), walk({"a": 1}, "a.b")
    (1, 5, None)
    """
    if isinstance(value, str):
        value = _decoded(value)
    if isinstance(value, list):
        head, _, rest = path.partition(".")
        if not head.isdecimal() or int(head) >= len(value):
            return None
        return walk(value[int(head)], rest) if rest else value[int(head)]
    if not isinstance(value, dict):
        return None
    if value.get(path) is not None:
        return cast("object", value[path])
    cut = path.rfind(".")
    while cut > 0:
        found = walk(value.get(path[:cut]), path[cut + 1 :])
        if found is not None:
            return found
        cut = path.rfind(".", 0, cut)
    return None


def first(value: object, *paths: str) -> object:
    """What the first of ``paths`` finds that is not None.

    >>> first({"b": 0, "a": None}, "a", "b")
    0
    """
    for path in paths:
        found = walk(value, path)
        if found is not None:
            return found
    return None


def object_of(line: str) -> Mapping[str, object] | None:
    """The JSON object that a line is; None where it is broken, or no object.

    >>> object_of('{"a": 1}'), object_of('{"a": '), object_of("[1]")
    ({'a': 1}, None, None)
    """
    try:
        found = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return None
    return found if isinstance(found, dict) else None


def _decoded(text: str) -> object:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return cast("object", json.loads(text))
    except (ValueError, RecursionError):
        return None
