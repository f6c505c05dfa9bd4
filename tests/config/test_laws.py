"""Laws of the configuration over made-up documents: one kind of error, round trip, and a schema that does not lie."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, get_args, get_type_hints

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from capwatch.config import Config, check, json_schema, parse
from capwatch.config.kinds import Kind
from capwatch.config.load import read
from capwatch.config.shape import Either, Key, Listing, Record, Shape, Table, Words, record
from capwatch.config.tree import compose
from capwatch.errors import ConfigError

EXAMPLE = Path(__file__).with_name("contract_example.yml")
VALIDATOR = jsonschema.Draft202012Validator(json_schema())

# Texts and numbers that are right somewhere, and those that are right nowhere.
TEXTS = ["a", "no", "12:30", "null", "~", "café", "observed", "a b: c # d", "x" * 150]
GOOD: Mapping[str, list[object]] = {
    "a text": [*TEXTS],
    "a date": ["2026-11-01"],
    "an address": [":1", "[::1]:10077", "host.example:80"],
    "a URL": ["http://10.0.0.7:8000/metrics", "https://h/?q=1"],
    "a whole number": [1, 12, 10**15],
    "a number": [1, 2.5, 1e-7, 1e300],
    "true or false": [True, False],
    "a duration": ["1s", "1500ms", "1.25s"],
    "a size": ["16MiB", 12, "0.5kB"],
    "a share": [0.5, "1%", "0.25"],
    "a rate": [2, "2/s", "0.5/min"],
    "a stage": [60, "12*0.7", "10@0.15", "10*2@15%"],
}
# Texts in the shape of a number are left out: the schema cannot bound them, which its docstring says.
JUNK = st.sampled_from([None, "", "x", 0, -1, 1.5, True, "on", "5 x", [], {}, ["x"], {"x": 1}, "\x00"])


def documents(shape: Shape, junk: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """Documents of a shape, with ``junk`` here and there."""
    match shape:
        case Record():
            return record_documents(shape, junk)
        case Table():
            return st.dictionaries(st.sampled_from(TEXTS), documents(shape.item, junk), max_size=2) | junk
        case Listing():
            items = st.lists(documents(shape.item, junk), min_size=int(shape.filled), max_size=2)
            return (items | documents(shape.item, junk) if isinstance(shape.item, Kind) else items) | junk
        case Either():
            return st.one_of([documents(option, junk) for option in shape.options])
        case Words():
            return st.sampled_from(shape.words) | junk
        case Kind():
            return st.sampled_from([each for each in GOOD[shape.noun] if fits(shape, each)]) | junk


def fits(shape: Kind, value: object) -> bool:
    """Whether a value lies in the bounds of its key; the texts do."""
    return isinstance(value, str) or (isinstance(value, int | float) and shape.limits.holds(value))


def record_documents(shape: Record, junk: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """Documents of a record: the required keys and some of the others."""

    def of(key: Key) -> st.SearchStrategy[object]:
        return st.deferred(lambda: documents(key.shape, junk))

    required = {name: of(key) for name, key in shape.keys.items() if key.required}
    optional = {name: of(key) for name, key in shape.keys.items() if not key.required}
    return st.fixed_dictionaries(required, optional=optional) | junk


def records(shape: Shape) -> list[Record]:
    """A shape and every record below it."""
    match shape:
        case Record():
            return [shape, *(inner for key in shape.keys.values() for inner in records(key.shape))]
        case Table() | Listing():
            return records(shape.item)
    return []


RECORDS = list({shape.made: shape for shape in records(record(Config))}.values())
RIGHT = documents(record(Config), st.nothing())
MIXED = documents(record(Config), JUNK)


def understood(document: object) -> Config:
    """The configuration of a document, apart from rules between keys."""
    config = read(record(Config), compose(yaml.safe_dump(document, allow_unicode=True), "f"), ())
    assert isinstance(config, Config)
    return config


@given(RIGHT)
def test_right_documents_are_read_and_printed(document: object) -> None:
    """What keeps to the shapes is read, and what is printed of it reads as the same."""
    config = understood(document)
    assert understood(yaml.safe_load(check.effective(config))) == config


@given(MIXED)
def test_only_config_errors(document: object) -> None:
    """Whatever a document holds, it is a configuration or one printable line."""
    try:
        parse(yaml.safe_dump(document), "f", {}, formats=frozenset({"a"}), is_root=True)
    except ConfigError as error:
        line = str(error)
        assert line.isprintable()


@given(st.text() | st.text(st.sampled_from("ab:-[]{},&*!|>'\"%@`#?~<= \n\t\r\x85\u2028\ufeff\x00")))
def test_only_config_errors_from_texts(text: str) -> None:
    """Whatever a text holds, it is a configuration or one printable line."""
    try:
        parse(text, "f", {}, formats=frozenset({"a"}), is_root=True)
    except ConfigError as error:
        line = str(error)
        assert line.isprintable()


@given(st.binary())
def test_only_config_errors_from_variables(value: bytes) -> None:
    """Whatever a variable holds, it is a configuration or one printable line."""
    environ = {"CAPWATCH__GPU": value.decode("utf-8", "surrogateescape")}
    try:
        parse("", "f", environ, formats=frozenset({"a"}), is_root=True)
    except ConfigError as error:
        line = str(error)
        assert line.isprintable()


@given(RIGHT)
def test_schema_accepts_what_is_right(document: object) -> None:
    """The JSON Schema accepts what keeps to the shapes."""
    VALIDATOR.validate(document)


@given(MIXED)
def test_schema_accepts_nothing_wrong(document: object) -> None:
    """What the JSON Schema accepts is read."""
    if VALIDATOR.is_valid(document):
        understood(document)


def test_schema_is_one() -> None:
    """The JSON Schema is itself valid."""
    jsonschema.Draft202012Validator.check_schema(json_schema())


def test_schema_is_json() -> None:
    """The JSON Schema is plain JSON, without NaN and infinity."""
    assert json.loads(json.dumps(json_schema(), allow_nan=False)) == json_schema()


def test_schema_accepts_the_contract() -> None:
    """The contract's example validates (dates as JSON has them, as texts)."""
    document = json.loads(json.dumps(yaml.safe_load(EXAMPLE.read_text()), default=str))
    VALIDATOR.validate(document)


@pytest.mark.parametrize("document", [{"listn": ":1"}, {"pools": [{}]}, {"commit_interval": 5}, {"gpu": {"nvml": "x"}}])
def test_schema_refuses(document: object) -> None:
    """The JSON Schema refuses unknown keys, missing ones, durations without unit and other words."""
    assert not VALIDATOR.is_valid(document)


@pytest.mark.parametrize("shape", RECORDS, ids=lambda shape: shape.made.__name__)
def test_every_key_is_documented(shape: Record) -> None:
    """Every key says what it means, in text of its own."""
    assert [name for name, key in shape.keys.items() if len(key.doc) < 10] == []


@pytest.mark.parametrize("shape", RECORDS, ids=lambda shape: shape.made.__name__)
def test_none_is_the_default(shape: Record) -> None:
    """Where None is possible it is the default, so that leaving a key out and giving it no value say the same."""
    hints = {name: hint for name, hint in get_type_hints(shape.made).items() if name in shape.keys}
    possible = {name for name, hint in hints.items() if type(None) in get_args(hint)}
    assert {name for name, key in shape.keys.items() if not key.required and key.default is None} == possible


def test_no_key_without_a_shape() -> None:
    """A type that no key can be read as is a mistake of the schema, not a key that takes anything."""

    @dataclass
    class Mistaken:
        key: Annotated[list[str], "a list that could change"]

    with pytest.raises(TypeError, match="no shape for list"):
        record(Mistaken)
