"""Environment variables `CAPWATCH__A__B` put into the tree of the configuration in place of the key `a.b`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from capwatch.config.nearest import nearest
from capwatch.config.shape import Listing, Record, Shape, Table
from capwatch.config.tree import Entries, Items, Node, Scalar, compose
from capwatch.errors import ConfigError

PREFIX: Final = "CAPWATCH__"


def overridden(shape: Record, root: Node, environ: Mapping[str, str]) -> Node:
    """The tree with every override put in; a value is YAML (a scalar, or a list or mapping in flow style).

    The words after the prefix, parted by double underscores, are keys in capitals or indices of lists; an index one
    past the end appends. In mappings with free keys an override reaches the keys that are there, spelled in capitals
    with `_` for other signs; new ones come in with the whole mapping.

    Raises:
        ConfigError: a variable names no key, or its value is not YAML.
    """
    for variable in sorted((name for name in environ if name.startswith(PREFIX)), key=_order):
        words = variable.removeprefix(PREFIX).split("__")
        root = _put(shape, root, words, compose(environ[variable], variable, lines=False), variable)
    return root


def _put(shape: Shape, node: Node | None, words: list[str], value: Node, variable: str) -> Node:
    """A copy of ``node`` with ``value`` at the place that ``words`` name."""
    if not words:
        return value
    head, *rest = words
    if isinstance(node, Scalar) and node.null:
        node = None
    match shape, node:
        case Record(), _:
            if isinstance(node, Scalar) and shape.shorthand:
                node = Entries({shape.shorthand: node}, {shape.shorthand: node}, node.file, node.line)
            key = _named(head, shape.keys, variable)
            return _with(node, key, _put(shape.keys[key].shape, _child(node, key), rest, value, variable), value)
        case Table(), _:
            key = _named(head, node.values if isinstance(node, Entries) else (), variable)
            return _with(node, key, _put(shape.item, _child(node, key), rest, value, variable), value)
        case Listing(), (None | Items()):
            items = node.items if node else ()
            if not re.fullmatch("[0-9]{1,6}", head) or int(head) > len(items):
                raise ConfigError(f"names no key; after a list comes an index from 0 to {len(items)}", variable)
            at = int(head)
            old = items[at] if at < len(items) else None
            new = _put(shape.item, old, rest, value, variable)
            return Items((*items[:at], new, *items[at + 1 :]), *_place(node or value))
    raise ConfigError(f"names no key; {_spelled(head)} lies below {node or shape.expected}", variable)


def _with(node: Node | None, key: str, child: Node, value: Node) -> Node:
    if node is None:
        node = Entries({}, {}, *_place(value))
    if not isinstance(node, Entries):
        return node  # wrong in the file; reading it says so
    place = node.keys.get(key, Scalar(key, True, *_place(value)))
    return Entries({**node.values, key: child}, {**node.keys, key: place}, node.file, node.line)


def _child(node: Node | None, key: str) -> Node | None:
    return node.values.get(key) if isinstance(node, Entries) else None


def _place(node: Node) -> tuple[str, int | None]:
    return node.file, node.line


def _named(word: str, keys: Iterable[str], variable: str) -> str:
    """The key that ``word`` spells."""
    spelled = {_spelled(key): key for key in keys}
    if _spelled(word) in spelled:
        return spelled[_spelled(word)]
    raise ConfigError(f"names no key; {nearest(_spelled(word), spelled)}", variable)


def _spelled(key: str) -> str:
    return re.sub("[^A-Z0-9]", "_", key.upper())


def _order(variable: str) -> list[tuple[int, str]]:
    """Shorter paths first, so that a part can override in a whole that is overridden; indices in their order."""
    words = variable.split("__")
    return [(len(words), "")] + [(int(word), "") if re.fullmatch("[0-9]{1,6}", word) else (0, word) for word in words]
