"""What a key of the configuration may hold, told once by the annotations of the dataclasses.

Reading (`load`), overriding (`environment`), printing (`check`) and the JSON Schema (`jsonschema`) all follow these
shapes, so that a key is described in one place only. An annotation is
``Annotated[type, refinements…, "what the key means"]``; the refinements are of `kinds` and of this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from datetime import date
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Final, Literal, Union, get_args, get_origin, get_type_hints

from capwatch.config.kinds import DATE, FLAG, NUMBER, STAGE, TEXT, WHOLE, Kind, Range
from capwatch.config.units import Stage


@dataclass(frozen=True, slots=True)
class Words:
    """One of a few words."""

    words: tuple[str, ...]

    @property
    def expected(self) -> str:
        """What is possible, for errors."""
        return ("one of " if len(self.words) > 1 else "") + ", ".join(self.words)


@dataclass(frozen=True, slots=True)
class Either:
    """A scalar of one of several shapes, tried in order."""

    options: tuple[Kind | Words, ...]

    @property
    def expected(self) -> str:
        """What is possible, for errors."""
        return " or ".join(option.expected for option in self.options)


@dataclass(frozen=True, slots=True)
class Listing:
    """A list; a single scalar stands for a list of one where the items are scalars."""

    item: Shape
    filled: bool = False  # whether an empty list is refused
    expected: str = "a list"


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping whose keys the user chooses."""

    item: Shape
    expected: str = "a mapping"


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a record."""

    shape: Shape
    doc: str
    required: bool
    default: object


@dataclass(frozen=True, slots=True)
class Record:
    """A mapping with known keys, read into the dataclass ``made``; a scalar stands for the key ``shorthand`` alone."""

    made: Callable[..., object]
    keys: Mapping[str, Key] = field(repr=False)
    shorthand: str | None = None

    @property
    def expected(self) -> str:
        """What is possible, for errors."""
        return f"a mapping with the keys {', '.join(self.keys)}"


Shape = Kind | Words | Either | Listing | Table | Record


@dataclass(frozen=True, slots=True)
class Filled:
    """Refines a list: at least one item."""


@dataclass(frozen=True, slots=True)
class Shorthand:
    """Refines a record: a scalar stands for this key alone."""

    key: str


DERIVED: Final[Mapping[str, object]] = {"derived": True}
"""Metadata of a field that is no key: it follows from others."""


@cache
def record(made: type) -> Record:
    """The shape of a dataclass.

    >>> from capwatch.config.schema import Dedupe
    >>> record(Dedupe).keys["window"].doc
    'how long a request id is remembered; 0 switches deduplication off'
    """
    hints = get_type_hints(made, include_extras=True)
    return Record(
        made,
        {
            each.name: _key(hints[each.name], each.default, each.default_factory)
            for each in fields(made)
            if not each.metadata.get("derived")
        },
    )


def _key(annotation: object, default: object, factory: object) -> Key:
    docs = [extra for extra in get_args(annotation)[1:] if isinstance(extra, str)]
    if callable(factory):
        default = factory()
    return Key(_shape(annotation), docs[-1], default is MISSING, default)


def _shape(annotation: object) -> Shape:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _refined(_shape(arguments[0]), arguments[1:])
    if origin in (Union, UnionType):
        options = [_shape(option) for option in arguments if option is not NoneType]
        return options[0] if len(options) == 1 else Either(tuple(o for o in options if isinstance(o, Kind | Words)))
    if origin is Literal:
        return Words(arguments)
    if origin is tuple:
        return Listing(_shape(arguments[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return Table(_shape(arguments[1]))
    if isinstance(annotation, type):
        return _BY_TYPE.get(annotation) or record(annotation)
    raise TypeError(f"no shape for {annotation}")


def _refined(shape: Shape, refinements: tuple[object, ...]) -> Shape:
    for refinement in refinements:
        match refinement, shape:
            case Kind(), _:
                shape = refinement
            case Range(), Kind():
                shape = replace(shape, limits=refinement)
            case Filled(), Listing():
                shape = replace(shape, filled=True)
            case Shorthand(), Record():
                shape = replace(shape, shorthand=refinement.key)
    return shape


_BY_TYPE: Final[Mapping[type, Kind]] = {
    str: TEXT,
    int: WHOLE,
    float: NUMBER,
    bool: FLAG,
    date: DATE,
    Stage: STAGE,
}
