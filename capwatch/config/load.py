"""From YAML text and environment to a checked `Config`; every mistake is a `ConfigError` of one line."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import cast

from capwatch.config import calibration
from capwatch.config.environment import overridden
from capwatch.config.kinds import SWITCHES, TEXT, Kind
from capwatch.config.nearest import nearest
from capwatch.config.rules import violations
from capwatch.config.schema import DEFAULT_POOL, Config, Pool
from capwatch.config.shape import Either, Listing, Record, Shape, Table, Words, record
from capwatch.config.tree import MAX_BYTES, Entries, Items, Node, Path, Scalar, compose, fail, locate
from capwatch.errors import ConfigError


def load(path: str, environ: Mapping[str, str], *, formats: frozenset[str], is_root: bool) -> Config:
    """Read the configuration file at ``path``; see `parse`.

    Raises:
        ConfigError: the file cannot be read or used.
    """
    return parse(text_of(path), path, environ, formats=formats, is_root=is_root)


def text_of(path: str) -> str:
    """The text of a file of configuration.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)  # one more than is allowed, so that `compose` sees that it is too large
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", path) from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if len(content) > MAX_BYTES:  # then the cut may have split a character
            return content.decode("utf-8-sig", errors="replace")
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError("not UTF-8", path, line=line) from None


def parse(text: str, file: str, environ: Mapping[str, str], *, formats: frozenset[str], is_root: bool) -> Config:
    """Read a configuration.

    Args:
        text: the YAML document; empty is a configuration of defaults.
        file: what errors call it.
        environ: environment variables; `CAPWATCH__A__B` overrides the key `a.b`, the XDG variables place the state.
        formats: names of the log formats there are.
        is_root: whether the daemon runs as root, which has its own default for `state_dir`.

    Raises:
        ConfigError: the first mistake found, with its place.
    """
    shape = record(Config)
    root = overridden(shape, compose(text, file), environ)
    if isinstance(root, Scalar) and root.null:
        root = Entries({}, {}, root.file, root.line)
    config = cast("Config", read(shape, root, ()))
    if "state_dir" not in cast("Entries", root).values:
        config = replace(config, state_dir=default_state_dir(environ, is_root=is_root))
    config = replace(config, pools=_pools(config.pools, root, os.path.dirname(file)))
    for path, violation in violations(config, formats):
        fail(violation, path, locate(root, path))
    return config


def default_state_dir(environ: Mapping[str, str], *, is_root: bool) -> str:
    """Where the state lies when the configuration does not say: XDG base directory specification for users.

    Raises:
        ConfigError: neither XDG_STATE_HOME nor HOME is set to an absolute path.
    """
    if is_root:
        return "/var/lib/capwatch"
    for variable, below in (("XDG_STATE_HOME", ""), ("HOME", "/.local/state")):
        if environ.get(variable, "").startswith("/"):  # the specification ignores relative paths
            return environ[variable].rstrip("/") + below + "/capwatch"
    raise ConfigError("not given, and neither XDG_STATE_HOME nor HOME says where", "environment", "state_dir")


def read(shape: Shape, node: Node, path: Path) -> object:
    """Read ``node`` as ``shape``: the value that the dataclass of the schema holds.

    Raises:
        ConfigError: what was found is not possible here.
    """
    match shape, node:
        case Record(shorthand=str(key)), Scalar(null=False):
            return _record(shape, Entries({key: node}, {key: node}, node.file, node.line), path)
        case Record(), Entries():
            return _record(shape, node, path)
        case Table(), Entries():
            return _table(shape, node, path)
        case Listing(item=Kind()), Scalar(null=False):
            return (read(shape.item, node, path),)
        case Listing(), Items():
            if shape.filled and not node.items:
                fail("found an empty list; possible is at least one item", path, node)
            return tuple(read(shape.item, item, (*path, index)) for index, item in enumerate(node.items))
        case ((Kind() | Words() | Either()), Scalar(null=False)):
            return _scalar(shape, node, path)
    return fail(f"found {node}; possible is {shape.expected}", path, node)


def _record(shape: Record, node: Entries, path: Path) -> object:
    for written, place in node.keys.items():
        if written not in shape.keys:
            fail(f"unknown key; {nearest(written, shape.keys)}", (*path, written), place)
    given = {}
    for name, key in shape.keys.items():
        value = node.values.get(name)
        if value is not None and not (isinstance(value, Scalar) and value.null):
            given[name] = read(key.shape, value, (*path, name))
        elif key.required:
            fail(f"missing; needed is {key.shape.expected}: {key.doc}", (*path, name), value or node)
    return shape.made(**given)


def _table(shape: Table, node: Entries, path: Path) -> dict[str, object]:
    table = {}
    for key, value in node.values.items():
        try:
            TEXT.read(key)
        except ValueError as error:
            fail(f"as a key: {error}", path, node.keys[key])
        table[key] = read(shape.item, value, (*path, key))
    return table


def _scalar(shape: Kind | Words | Either, node: Scalar, path: Path) -> object:
    match shape:
        case Words():
            word = node.text
            if word not in shape.words:  # `on` may come as yes or True, as YAML 1.1 has it
                word = SWITCHES.get(word.lower(), word)
            if word not in shape.words:
                fail(f"found {node}; {nearest(word, shape.words)}", path, node)
            return word
        case Either():
            for option in shape.options:
                try:
                    return _scalar(option, node, path)
                except ConfigError:
                    continue
            fail(f"found {node}; possible is {shape.expected}", path, node)
    if node.plain or shape.quoted:
        try:
            value = shape.read(node.text)
        except ValueError as error:
            fail(str(error), path, node)
    else:
        fail(f"found the quoted text {node}; possible is {shape.expected} without quotes", path, node)
    if isinstance(value, int | float) and not shape.limits.holds(value):
        fail(f"found {node.text}; must be {shape.limits.told(shape.show)}", path, node)
    return value


def _pools(pools: tuple[Pool, ...], root: Node, folder: str) -> tuple[Pool, ...]:
    """Without pools there is an implicit one; where rates are neither given nor measured they are marked as assumed.

    A calibration's path is one from ``folder``; what it tells holds where the pool does not say otherwise.
    """
    rates = {"prefill_tokens_per_second", "decode_tokens_per_second"}
    marked = []
    for index, pool in enumerate(pools):
        given = {each.name for each in fields(Pool) if _is_given(root, ("pools", index, each.name))}
        if pool.calibration is not None:
            path = os.path.join(folder, pool.calibration)
            measured = calibration.read(path)
            new = {name: value for name, value in calibration.told(measured).items() if name not in given}
            pool = replace(pool, calibration=path, measured=measured, **new)  # type: ignore[arg-type]  # noqa: PLW2901
            given |= rates
        marked.append(pool if "assumed" in given or rates <= given else replace(pool, assumed=True))
    return tuple(marked) or (Pool(DEFAULT_POOL, assumed=True),)


def _is_given(root: Node, path: Path) -> bool:
    holder, node = locate(root, path[:-1]), locate(root, path)
    return node is not holder and not (isinstance(node, Scalar) and node.null)
