"""What `capwatch check-config` says beyond "valid": the effective configuration, warnings, and what the paths hold."""

from __future__ import annotations

import glob
import ipaddress
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast

import yaml

from capwatch.config.kinds import Kind
from capwatch.config.nearest import nearest
from capwatch.config.rules import roles
from capwatch.config.schema import Config, Limits
from capwatch.config.shape import Either, Listing, Record, Shape, Table, Words, record
from capwatch.metrics import CATALOGUE
from capwatch.redact import redacted

# What one pair of tenant and route shows at least (contract, 4.1): requests, 3 kinds of tokens, 5 summaries of
# 5 samples each, cost in 2 phases, cost saved, goodput.
SERIES_PER_PAIR: Final = 1 + 3 + 5 * 5 + 2 + 1 + 1


@dataclass(frozen=True, slots=True)
class Finding:
    """What a test of a path found.

    Attributes:
        level: `ok`, `warning` (works, but perhaps not as meant) or `error` (cannot work).
        key: the key of the configuration, such as ``sources[0].path``.
        text: the finding, one line.
    """

    level: Literal["ok", "warning", "error"]
    key: str
    text: str


def effective(config: Config) -> str:
    """The configuration as YAML with every default, in the order of the schema; what looks like a secret is
    masked, and passwords in URLs are.

    Keys without a value and without a default are left out. Where nothing is masked, loading the text gives an equal
    configuration.
    """
    return yaml.safe_dump(
        _shown(record(Config), config), sort_keys=False, allow_unicode=True, default_flow_style=False, width=120
    )


def warnings(config: Config, engine_formats: frozenset[str]) -> list[str]:
    """What is allowed but probably not meant, one line each.

    Args:
        config: a valid configuration.
        engine_formats: names of the formats that are engine logs.
    """
    return [
        *_of_nothing(config),
        *_of_counting(config, engine_formats),
        *_of_pools(config),
        *_of_limits(config.limits),
        *_of_families(config),
    ]


def test_paths(config: Config) -> list[Finding]:
    """Look at the files: expands globs, opens what they find, tells whether the state can be written."""
    findings = [
        _of_glob(pattern, pattern, f"sources[{index}].path", source.path)
        for index, source in enumerate(config.sources)
        for pattern in source.path
    ]
    if config.deploys is not None:
        findings.append(_of_glob(glob.escape(config.deploys), config.deploys, "deploys"))
    return [*findings, _of_state_dir(config.state_dir)]


def _shown(shape: Shape, value: object) -> object:
    match shape:
        case Record():
            parts = ((name, key.shape, getattr(value, name)) for name, key in shape.keys.items())
            return {name: _shown(inner, part) for name, inner, part in parts if part is not None}
        case Table():
            entries = cast("dict[str, object]", value).items()
            return {redacted(key): _shown(shape.item, item) for key, item in entries}
        case Listing():
            return [_shown(shape.item, item) for item in cast("tuple[object, ...]", value)]
        case Either() | Words():
            return value
        case Kind():
            shown = shape.show(value)
            return redacted(shown) if isinstance(shown, str) else shown


def of_reach(listen: str, *, auth: bool) -> Iterator[str]:
    """A warning where others can reach an address, and come in.

    Args:
        listen: host and port.
        auth: whether a web configuration asks for a password or a client certificate.
    """
    host = listen.rpartition(":")[0].strip("[]")
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, or nothing, which means every address
        local = host == "localhost"
    if not local and not auth:
        yield f"listen: {listen} can be reached from outside without a password; give --web.config.file"


def _of_nothing(config: Config) -> Iterator[str]:
    if not config.sources and not config.engines:
        yield "sources: none, and no engines; there is nothing to watch"


def _of_counting(config: Config, engine_formats: frozenset[str]) -> Iterator[str]:
    role = roles(config, engine_formats)
    counting = [source for source in config.sources if role[source.name] == "count"]
    told: set[tuple[str, ...]] = set()
    for pool in config.pools:
        names = tuple(source.name for source in counting if source.pool in (None, pool.name))
        if len(names) > 1 and names not in told:
            told.add(names)
            yield (
                f"sources: {', '.join(names)} all count requests of pool {pool.name}; a request in two of them counts"
                " twice unless one is role: times"
            )


def _of_pools(config: Config) -> Iterator[str]:
    assumed = [pool.name for pool in config.pools if pool.assumed]
    if assumed:
        yield (
            f"pools: {', '.join(assumed)}: prefill_tokens_per_second and decode_tokens_per_second are assumed, so costs"
            " are guesses; set them to what one replica does"
        )
    for index, engine in enumerate(config.engines):
        if engine.patience < engine.interval:
            yield f"engines[{index}].patience: shorter than interval; every value is withdrawn before the next comes"


def _of_limits(limits: Limits) -> Iterator[str]:
    # `other` and `unknown` come on top of the names.
    pairs = (limits.tenants + 2) * (limits.routes + 2)
    if limits.tenant_routes > pairs:
        yield f"limits.tenant_routes: {limits.tenant_routes} is more than the {pairs} pairs that there can be"
    if limits.tenant_routes < limits.tenants:
        yield f"limits.tenant_routes: fewer than the {limits.tenants} tenants; some have no series of their own"
    if limits.series < limits.tenant_routes * SERIES_PER_PAIR:
        yield (
            f"limits.series: {limits.series} is too few for {limits.tenant_routes} pairs of tenant and route with"
            f" {SERIES_PER_PAIR} series each"
        )


def _of_families(config: Config) -> Iterator[str]:
    for name in config.metrics.disable:
        if ":" not in name and name not in CATALOGUE:
            yield f"metrics.disable: no family {name}; {nearest(name, CATALOGUE)}"


def _of_glob(pattern: str, written: str, key: str, beside: Sequence[str] = ()) -> Finding:
    """What a glob finds; that a live file, itself named ``beside`` it, has not been rotated yet is nothing to mend."""
    files = [path for path in sorted(glob.glob(pattern, recursive=True)) if not os.path.isdir(path)]
    unreadable = [path for path in files if not _opens(path)]
    count = f"{len(files)} file{'s' * (len(files) != 1)}"
    if unreadable:
        return Finding("error", key, f"{written}: {count}, not readable: {', '.join(unreadable[:3])}")
    if files:
        return Finding("ok", key, f"{written}: {count}")
    folder = _existing(pattern)
    if not os.access(folder, os.R_OK | os.X_OK):
        return Finding("error", key, f"{written}: no permission to look into {folder}")
    if any(pattern.startswith((f"{live}.", f"{live}-")) and glob.glob(live, recursive=True) for live in beside):
        return Finding("ok", key, f"{written}: no rotated file yet")
    return Finding("warning", key, f"{written}: no file yet")


def _of_state_dir(state_dir: str) -> Finding:
    folder = state_dir if os.path.lexists(state_dir) else _existing(state_dir)
    if not os.path.isdir(folder):
        return Finding("error", "state_dir", f"{folder} is no directory")
    if not os.access(folder, os.W_OK | os.X_OK):
        return Finding("error", "state_dir", f"no permission to write into {folder}")
    return Finding("ok", "state_dir", state_dir if folder == state_dir else f"{state_dir} will be created")


def _existing(path: str) -> str:
    """The nearest folder above ``path`` that exists and holds no wildcard."""
    folder = os.path.dirname(os.path.abspath(path))
    while glob.has_magic(folder) or not os.path.exists(folder):
        folder = os.path.dirname(folder)
    return folder


def _opens(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))  # a pipe without a writer must not block
    except OSError:
        return False
    return True
