"""YAML text as a small bounded tree: scalars stay text, every node knows its file and line, nothing is executed.

What a scalar means is for the schema to say, so the traps of YAML 1.1 (`on`, `no`, `12:30`, `010`) do not exist here.
Promise: at most `MAX_BYTES` of text, `MAX_DEPTH` levels, `MAX_NODES` values and `MAX_ALIASES` aliases, both counted
after expansion; tags, duplicate keys and second documents are errors. Every error is a `ConfigError`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from capwatch.config.units import found
from capwatch.errors import ConfigError
from capwatch.redact import redacted

MAX_BYTES: Final = 1 << 20  # thousands of pools; more is a wrong file
MAX_DEPTH: Final = 32  # the schema is 5 deep
MAX_NODES: Final = 100_000  # what 1 MiB holds when it is written by people; keeps the worst file under a second
MAX_ALIASES: Final = 100  # a bomb of nine tens needs ten times as many before it hurts

# The C parser is twenty times as fast where PyYAML was built with it; both give the same events.
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_SIMPLE_KEY: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")

Path = tuple[str | int, ...]
"""Where a value lies: keys and list indices from the root."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A text, quoted or plain. ``line`` counts from 1; None where the text came from no file."""

    text: str
    plain: bool
    file: str
    line: int | None

    @property
    def null(self) -> bool:
        """Whether nothing is given here."""
        return self.plain and self.text in _NULLS

    def __str__(self) -> str:
        return "nothing" if self.null else found(self.text)


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple[Node, ...]
    file: str
    line: int | None

    def __str__(self) -> str:
        return "a list"


@dataclass(frozen=True, slots=True)
class Entries:
    """A mapping, in the order of the text. ``keys`` are the places where the keys are written."""

    values: Mapping[str, Node]
    keys: Mapping[str, Scalar]
    file: str
    line: int | None

    def __str__(self) -> str:
        return "a mapping"


Node = Scalar | Items | Entries


def dotted(path: Path) -> str:
    """Write a path as errors show it, a key that looks like a secret as stars.

    >>> dotted(("sources", 0, "format")), dotted(("budgets", "a.b", "rate"))
    ('sources[0].format', "budgets['a.b'].rate")
    """
    parts = (
        f".{redacted(part)}" if isinstance(part, str) and _SIMPLE_KEY.fullmatch(part) else f"[{_index(part)}]"
        for part in path
    )
    return "".join(parts).removeprefix(".")


def fail(text: str, path: Path, at: Node) -> NoReturn:
    """Raise the `ConfigError` that names ``path`` and the place of ``at``."""
    raise ConfigError(text, at.file, dotted(path), at.line)


def locate(root: Node, path: Path) -> Node:
    """The node at ``path``, or its nearest ancestor that is written."""
    node = root
    for part in path:
        if isinstance(node, Entries) and part in node.values:
            node = node.values[str(part)]
        elif isinstance(node, Items) and isinstance(part, int) and part < len(node.items):
            node = node.items[part]
        else:
            break
    return node


def compose(text: str, file: str, *, lines: bool = True) -> Node:
    """Build the tree of one YAML document; an empty text is a null scalar.

    Args:
        text: the YAML.
        file: what errors call it.
        lines: whether errors name a line.
    """
    try:
        length = len(text.encode())
    except UnicodeEncodeError:
        raise ConfigError("not a text that can be written as UTF-8", file) from None
    if length > MAX_BYTES:
        raise ConfigError(f"larger than {MAX_BYTES // 1024} KiB, which no configuration is", file)
    try:
        return _Composer(yaml.parse(text, Loader=_LOADER), file, lines=lines).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ConfigError(f"not YAML: {error.problem}", file, line=mark.line + 1 if mark and lines else None) from None
    except yaml.YAMLError as error:
        reason = str(getattr(error, "reason", "unreadable text"))
        raise ConfigError(f"not YAML: {reason}", file) from None


class _Composer:
    """Events into nodes. Counters run over everything expanded so far."""

    def __init__(self, events: Iterator[Event], file: str, *, lines: bool) -> None:
        self._events = events
        self._file = file
        self._lines = lines
        self._nodes = 0
        self._aliases = 0
        self._anchors: dict[str, tuple[Node, int, int]] = {}  # node, and how many nodes and aliases it expands to

    def document(self) -> Node:
        documents = 0
        root: Node = Scalar("", plain=True, file=self._file, line=None)
        for event in self._events:
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self._fail("a second YAML document; one is possible", (), event)
                root = self._node(next(self._events), ())
        return root

    def _node(self, event: Event, path: Path) -> Node:
        self._count(1, 0, path, event)
        if len(path) > MAX_DEPTH:
            self._fail(f"deeper than {MAX_DEPTH} levels", (), event)
        if isinstance(event, AliasEvent):
            return self._alias(event, path)
        if getattr(event, "tag", None) is not None:
            self._fail(f"the tag {found(str(getattr(event, 'tag', '')))} is not allowed; remove it", path, event)
        before = self._nodes, self._aliases
        node: Node
        if isinstance(event, SequenceStartEvent):
            node = Items(tuple(self._items(path)), self._file, self._line(event))
        elif isinstance(event, MappingStartEvent):
            node = self._entries(event, path)
        else:
            node = self._scalar(event)
        anchor: str | None = getattr(event, "anchor", None)
        if anchor is not None:
            self._anchors[anchor] = node, self._nodes - before[0], self._aliases - before[1]
        return node

    def _scalar(self, event: Event) -> Scalar:
        plain = isinstance(event, ScalarEvent) and not event.style
        return Scalar(str(getattr(event, "value", "")), plain, self._file, self._line(event))

    def _items(self, path: Path) -> Iterator[Node]:
        index = 0
        while not isinstance(event := next(self._events), SequenceEndEvent):
            yield self._node(event, (*path, index))
            index += 1

    def _entries(self, start: Event, path: Path) -> Entries:
        values: dict[str, Node] = {}
        keys: dict[str, Scalar] = {}
        while not isinstance(event := next(self._events), MappingEndEvent):
            key = self._node(event, path)
            if not isinstance(key, Scalar):
                fail(f"found {key} as a key; possible is a text", path, key)
            if key.text in values:
                first = keys[key.text].line
                fail("duplicate key" + (f"; first in line {first}" if first else ""), (*path, key.text), key)
            keys[key.text] = key
            values[key.text] = self._node(next(self._events), (*path, key.text))
        return Entries(values, keys, self._file, self._line(start))

    def _alias(self, event: AliasEvent, path: Path) -> Node:
        name = str(event.anchor)
        if name not in self._anchors:
            self._fail(f"the alias {found('*' + name)} stands before the end of its anchor", path, event)
        node, nodes, aliases = self._anchors[name]
        self._count(nodes, aliases + 1, path, event)
        return node

    def _count(self, nodes: int, aliases: int, path: Path, event: Event) -> None:
        self._nodes += nodes
        self._aliases += aliases
        if self._nodes > MAX_NODES:
            self._fail(f"more than {MAX_NODES} values", path[:1], event)
        if self._aliases > MAX_ALIASES:
            self._fail(f"more than {MAX_ALIASES} aliases once expanded", path[:1], event)

    def _line(self, event: Event) -> int | None:
        return event.start_mark.line + 1 if self._lines and event.start_mark else None

    def _fail(self, text: str, path: Path, event: Event) -> NoReturn:
        raise ConfigError(text, self._file, dotted(path), self._line(event))


def _index(part: str | int) -> str:
    return str(part) if isinstance(part, int) else found(part)
