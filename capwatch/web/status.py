"""What the daemon tells of itself to people and programs: the document behind the page and `/api/v1/status`.

Counts are for life, times are seconds since the epoch, and None means that it is not known, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


class Lines(msgspec.Struct, frozen=True, kw_only=True):
    """The fate of a source's lines; read = counted + skipped + the sum of dropped."""

    read: int = 0
    counted: int = 0
    skipped: int = 0
    dropped: Mapping[str, int] = {}
    """By reason."""


class Bytes(msgspec.Struct, frozen=True, kw_only=True):
    """The fate of a source's bytes."""

    read: int = 0
    skipped: int = 0
    lost: Mapping[str, int] = {}
    """By reason."""


class SourceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One source of the configuration."""

    name: str
    format: str
    role: str
    """`count` or `times`."""
    up: bool
    files: int
    """Files that are followed at present."""
    lag_bytes: int
    """Written to the files, but not yet read."""
    lines: Lines
    bytes: Bytes
    last_event: float | None = None
    """Newest event time, by the log's own clock."""
    rotations: int = 0
    truncations: int = 0
    problems: Sequence[str] = ()
    """What is wrong at present, one sentence each."""


class PoolStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One pool and the rates that its costs rest on."""

    name: str
    assumed: bool
    """Whether the rates are assumed, not configured."""
    prefill_tokens_per_second: float
    decode_tokens_per_second: float
    replicas: float | None = None


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """The last commit: everything that is shown is as old as that."""

    timestamp: float | None = None
    duration_s: float | None = None
    errors: int = 0
    """Failed commits since the start of the process."""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The daemon as a whole."""

    version: str
    at: float
    """The wall clock when this was said."""
    started_at: float
    ready: bool
    """Whether everything has been read that lay on disk at the start."""
    clock: float | None
    """The newest event time of all sources, which windows go by."""
    commit: Commit
    sources: Sequence[SourceStatus] = ()
    pools: Sequence[PoolStatus] = ()


class Drifts(msgspec.Struct, frozen=True, kw_only=True):
    """The drifts of cost per request; each with the keys of an event of `capwatch backtest`, and its `sentence`."""

    active: Sequence[Mapping[str, Any]] = ()
    events: Sequence[Mapping[str, Any]] = ()
    """The last fifty that were raised or have gone, oldest first."""
    watches: Sequence[Mapping[str, Any]] = ()
    """What the watchers have found in the last minutes, then what is over, the newest first."""
