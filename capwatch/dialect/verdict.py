"""What a reader may say about a line, and what a format on the shelf has to offer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import Final, Literal, Protocol, runtime_checkable

from capwatch.record import EngineSample, Note, Reached, Request

DROP_REASONS: Final = ("malformed", "too_long", "bad_utf8", "bad_time", "bad_number", "partial")


@dataclass(frozen=True, slots=True)
class Skip:
    """Understood, and not a record: an access line, a banner, a blank line. ``reason`` never quotes the line."""

    reason: str


@dataclass(frozen=True, slots=True)
class Drop:
    """Belongs to the format but cannot be used. ``reason`` is one of `DROP_REASONS`; ``detail`` is for `explain`."""

    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Held:
    """Understood, and waits for a later line; only of a reader that is `Holding`. ``reason`` never quotes the line."""

    reason: str


@dataclass(frozen=True, slots=True)
class Going:
    """A row of a request that goes on; it counts as skipped. ``request`` tells its id, start and duration so far."""

    request: Request
    begun: bool
    """Whether a part of the answer's body has been sent."""


@dataclass(frozen=True, slots=True)
class Aside:
    """A verdict, and beside it how far the start of an engine has come with the line; it counts as the verdict does."""

    verdict: Request | EngineSample | list[Request | EngineSample] | Note | Going | Skip
    reached: Reached


Verdict = Request | EngineSample | list[Request | EngineSample] | Note | Going | Skip | Drop | Held | Aside


@dataclass(frozen=True, slots=True)
class Field:
    """Where the operator's log keeps one record field.

    ``path`` is tried as one flat key first, then split at dots. ``unit`` is `s`, `ms`, `us` or `ns` where the
    value is not in the unit of the format; None leaves the format's own.
    """

    path: str
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """What a source's configuration tells its reader."""

    fields: Mapping[str, Field] = field(default_factory=dict)
    zone: tzinfo = UTC


class Reader(Protocol):
    """Reads the lines of one file in one dialect; remembers between lines only plain values."""

    def read(self, line: str, near: float) -> Verdict:
        """Judge one line, without its line end.

        ``near`` is a time (s, epoch) close to the writing of the line: the time of reading live, the file's mtime
        in replay. It completes times without year or date, and is the event time in dialects without a clock.
        An exception of the kinds that bad data cause is the line's drop as `malformed`.
        """

    def save(self) -> object:
        """What the reader remembers, as plain builtins (None, numbers, texts, lists, dicts): part of the state."""

    def load(self, saved: object) -> None:
        """Remember again what `save` gave."""


@runtime_checkable
class Holding(Protocol):
    """A reader that holds lines back: each becomes a part of a record on a later line, or a record of its own."""

    def released(self) -> int:
        """How many lines held earlier became parts of records on later lines since the last call."""

    def expire(self, now: float) -> Sequence[tuple[int, Request]]:
        """The records of lines that waited too long at ``now``, in their order; infinity gives up all.

        Each comes with how many calls of `read` ago its line was read (0 is the last one); ``now`` is s on any clock
        that runs evenly.
        """


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """A whole inner line, and when the wrapper says it was written (s, epoch; None where it does not say)."""

    line: bytes
    at: float | None = None


class Wrapper(Protocol):
    """Takes off what a container runtime puts around lines, joining partial ones; remembers only plain values."""

    def unwrap(self, line: bytes) -> Unwrapped | Skip | Drop | None:
        """The inner line; None while it is only a part, held back until its record resolves."""

    @property
    def held(self) -> int:
        """Bytes of parts held back."""

    def released(self) -> Mapping[str, int]:
        """Lines held back earlier that resolved since the last call, by fate (`skip` or a reason to drop)."""

    def expire(self, now: float) -> None:
        """Give up parts older than the wrapper's bound, as `partial`; ``now`` in s on any clock that runs evenly."""

    def save(self) -> object:
        """What the wrapper remembers, as plain builtins."""

    def load(self, saved: object) -> None:
        """Remember again what `save` gave."""


class Stateless:
    """A reader that remembers nothing between lines."""

    def save(self) -> None:
        """Nothing to remember."""

    def load(self, saved: object) -> None:
        """Nothing to remember again."""


Columns = dict[str, Sequence[object]]
"""Sequences by the field names of `Request`, all of the same length."""


class Scanner(Protocol):
    """A fast decoder of whole blocks for a format with heavy traffic."""

    def whole(self, data: bytes) -> tuple[Columns, int] | None:
        """Columns of all lines and their number, if no line has anything unusual; otherwise they are to be scanned."""

    def scan(self, lines: Sequence[bytes], *, clean: bool) -> tuple[Columns, Sequence[int], Sequence[int]]:
        """Columns of the lines it took, the indices of those lines, and the indices it leaves to the reader.

        ``clean`` promises that all lines are ASCII without NUL.
        """


@dataclass(frozen=True, slots=True)
class Format:
    """One product's log dialect: an entry on the shelf."""

    name: str
    kind: Literal["gateway", "engine", "notes"]
    title: str
    """Program and versions, for `capwatch formats`."""
    reader: Callable[[Options], Reader]
    scanner: Callable[[Options], Scanner] | None = None
    clock: bool = True
    """False for logs without any time: their records happen when they are read."""
    mappable: bool = True
    """True where `fields:` of the configuration is obeyed."""
    duplicates: str = "the same `request_id`"
    """What rows of one request have in common, for the format's page; differs where readers set a `dedupe_key`."""
