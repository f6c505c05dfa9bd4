"""What we SEE: one finished request, one engine statistic, one GPU's reading, and many requests as columns.

`Request` is what one log tells about one finished request (contract, section 3); absent is ``None``, never 0.
`Batch` is many of them as numpy columns: a number that the log does not tell is NaN, a text is ``None``.
Decoders make batches and nothing else, so that one line and a million lines travel the same road. The file may exceed
the usual length, since the row and its columns are one description.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

OUTCOMES: Final = (
    "ok",
    "client_abort",
    "rate_limited",
    "overload",
    "timeout",
    "client_error",
    "content_filter",
    "upstream_error",
    "gateway_error",
)
USAGES: Final = ("provider", "estimated", "missing")
LIMITERS: Final = ("gateway", "upstream")
PHASE_FIELDS: Final = ("gateway_s", "retrieval_s", "tool_s", "queue_s", "prefill_s", "decode_s")
TIMES: Final = ("started_at", "finished_at")
DURATIONS: Final = ("duration_s", "ttft_s", *PHASE_FIELDS)
TOKENS: Final = ("prompt_tokens", "cached_tokens", "output_tokens", "max_output_tokens")
VISITS: Final = ("retrieval_visits", "tool_visits", "model_visits")
COUNTS: Final = ("retries", *VISITS)
NUMBERS: Final = (*TIMES, *DURATIONS, *TOKENS, *COUNTS)
LABELS: Final = ("tenant", "route", "model", "engine", "priority")
IDS: Final = ("request_id", "attempt_group")
MISSING: Final = frozenset({"", "-", "null", "None", "none", "nil", "undefined", "N/A"})
"""Texts by which logs say that they have nothing to say."""


class Request(msgspec.Struct, omit_defaults=True):
    """One finished request, as one log tells it (contract, section 3). ``None`` is absent.

    A decoder may put in what it found; `capwatch.dialect.settle` completes it (the other time from the duration,
    phases from TTFT, outcome from status) and takes out what cannot be. A number that was given but is no usable
    number is set to infinity, so that settling can count it as refused.
    """

    request_id: str | None = None
    attempt_group: str | None = None
    started_at: float | None = None
    finished_at: float | None = None
    tenant: str | None = None
    route: str | None = None
    model: str | None = None
    stream: bool | None = None
    engine: str | None = None
    priority: str | None = None
    max_output_tokens: float | None = None
    prompt_tokens: float | None = None
    cached_tokens: float | None = None
    output_tokens: float | None = None
    usage: str | None = None
    duration_s: float | None = None
    ttft_s: float | None = None
    gateway_s: float | None = None
    retrieval_s: float | None = None
    tool_s: float | None = None
    queue_s: float | None = None
    prefill_s: float | None = None
    decode_s: float | None = None
    outcome: str | None = None
    status: int | None = None
    rate_limited_by: str | None = None
    retries: float | None = None
    retrieval_visits: float | None = None
    tool_visits: float | None = None
    model_visits: float | None = None
    cache_hit: bool = False
    uncapped: bool = False
    """True where the log tells output caps and this request asked for none."""
    dedupe_key: str | None = None
    """What a duplicate row shares with this one, where that is not the request_id alone."""
    part: bool = False
    """True where this is no request: it tells phases of one that other rows tell of, such as a tool's span."""


class EngineSample(msgspec.Struct, omit_defaults=True):
    """One statistic line or page of one engine replica. Shares are 0..1; ``preemptions`` is a count since the last."""

    at: float | None = None
    engine: str | None = None
    running: float | None = None
    waiting: float | None = None
    kv_utilisation: float | None = None
    preemptions: float | None = None
    prompt_tokens_per_s: float | None = None
    output_tokens_per_s: float | None = None
    prefix_hit_ratio: float | None = None
    kv_capacity_tokens: float | None = None
    starts: float | None = None
    """How often the engine was seen to start since its last sample; a start of a known engine is a restart."""


class Reached(msgspec.Struct, omit_defaults=True):
    """How far the start of an engine has come, as a line of its log tells: no record of its own."""

    phase: str
    """`start`, or one of `capwatch.metrics.START_PHASES`."""
    seconds: float
    """Since the start."""
    at: float | None = None
    """s, epoch."""


class Note(NamedTuple):
    """A deploy or another change that somebody noted."""

    at: float
    """s, epoch."""
    pool: str | None
    """None: about all."""
    text: str


class GpuSample(msgspec.Struct, omit_defaults=True):
    """One reading of one GPU, or of one MIG instance of it (``gpu`` is then `index:instance`).

    What the card does not tell is None. Counts are those of the driver since it was loaded.
    """

    gpu: str
    uuid: str
    name: str | None = None
    driver: str | None = None
    busy: float | None = None
    """Share 0..1 of the driver's last interval in which some kernel was resident."""
    memory_busy: float | None = None
    """Share 0..1 of that interval in which memory was read or written."""
    memory_used: float | None = None
    """Bytes."""
    memory_total: float | None = None
    """Bytes."""
    power: float | None = None
    """Watts."""
    temperature: float | None = None
    """Degrees Celsius."""
    sm_clock: float | None = None
    """Hertz."""
    throttled: frozenset[str] | None = None
    """What slows the card down now: some of `capwatch.metrics.THROTTLE_REASONS`."""
    energy: float | None = None
    """Joules."""
    ecc_corrected: float | None = None
    ecc_uncorrected: float | None = None


class GpuReading(msgspec.Struct):
    """All cards that answered at one moment, and the XID events since the moment before."""

    cards: list[GpuSample]
    xids: list[tuple[str, str, int]] = []
    """Index and UUID of the card, number of the event."""
    whole: bool = True
    """False where a card did not answer that should have."""


@dataclass(slots=True)
class Texts:
    """A text column: ``codes[n]`` index into ``names``; the vocabulary belongs to this batch alone.

    >>> Texts.of(["a", None, "a"]).names
    ['a', None]
    """

    codes: Ints
    names: list[str | None]

    @classmethod
    def of(cls, values: Sequence[str | None]) -> Texts:
        """Code a sequence of texts in order of first appearance; texts in `MISSING` are ``None``."""
        if _silent(values):
            return cls(np.zeros(len(values), np.int64), [None])
        vocabulary = {name: code for code, name in enumerate(dict.fromkeys(values))}
        codes = np.fromiter(map(vocabulary.__getitem__, values), np.int64, len(values))
        return cls(codes, [_told(name) for name in vocabulary])

    @classmethod
    def join(cls, parts: Sequence[Texts]) -> Texts:
        """One column after the other, with one vocabulary."""
        vocabulary: dict[str | None, int] = {}
        codes = []
        for part in parts:
            places = [vocabulary.setdefault(name, len(vocabulary)) for name in part.names]
            codes.append(np.array(places, np.int64)[part.codes])
        return cls(np.concatenate(codes), list(vocabulary))

    def __getitem__(self, row: int) -> str | None:
        return self.names[int(self.codes[row])]


@dataclass(slots=True)
class Batch:
    """Many requests as columns of equal length n. Numbers are float64 with NaN for absent (whole up to 2^53)."""

    numbers: dict[str, Floats]
    """A column for each name in `NUMBERS`."""
    labels: dict[str, Texts]
    """A column for each name in `LABELS`."""
    request_id: Sequence[str | None]
    attempt_group: Sequence[str | None]
    dedupe_key: Sequence[str | None]
    """What a duplicate row shares with the row; the request_id where the dialect says nothing else."""
    outcome: Ints
    """Index into `OUTCOMES`, −1 where neither outcome nor status was told."""
    usage: Ints
    """Index into `USAGES`, −1 where not told."""
    status: Ints
    """HTTP status to the client; 0 if none was sent, −1 where the log has no status."""
    stream: Ints
    """1, 0, or −1 where not told."""
    limiter: Ints
    """Index into `LIMITERS`, −1 where not told."""
    cache_hit: Bools
    uncapped: Bools
    part: Bools
    """Rows that are no requests, see `Request.part`."""

    def __len__(self) -> int:
        return len(self.outcome)

    def __getitem__(self, name: str) -> Floats:
        """The number column ``name``."""
        return self.numbers[name]

    @classmethod
    def of(cls, requests: Sequence[Request]) -> Batch:
        """Columns from single requests, in order."""
        columns = zip(*map(msgspec.structs.astuple, requests), strict=True) if requests else ()
        return cls.of_columns(dict(zip(Request.__struct_fields__, columns, strict=False)), len(requests))

    @classmethod
    def of_columns(cls, columns: dict[str, Sequence[object]], n: int) -> Batch:
        """Columns from sequences by field name; a missing name or an all-``None`` sequence is absent everywhere."""

        def texts(name: str) -> Sequence[str | None]:
            return columns.get(name) or (None,) * n  # type: ignore[return-value]

        return cls(
            numbers={name: _floats(columns.get(name), n) for name in NUMBERS},
            labels={name: Texts.of(texts(name)) for name in LABELS},
            request_id=texts("request_id"),
            attempt_group=texts("attempt_group"),
            dedupe_key=_either(columns.get("dedupe_key"), texts("request_id")),
            outcome=_codes(columns.get("outcome"), OUTCOMES, n),
            usage=_codes(columns.get("usage"), USAGES, n),
            status=_statuses(_floats(columns.get("status"), n)),
            stream=np.nan_to_num(_floats(columns.get("stream"), n), nan=-1.0).astype(np.int64),
            limiter=_codes(columns.get("rate_limited_by"), LIMITERS, n),
            cache_hit=_flags(columns.get("cache_hit"), n),
            uncapped=_flags(columns.get("uncapped"), n),
            part=_flags(columns.get("part"), n),
        )

    @classmethod
    def join(cls, parts: Sequence[Batch]) -> Batch:
        """One batch after the other, as one."""
        codes = ("outcome", "usage", "status", "stream", "limiter", "cache_hit", "uncapped", "part")
        return cls(
            numbers={name: np.concatenate([part.numbers[name] for part in parts]) for name in NUMBERS},
            labels={name: Texts.join([part.labels[name] for part in parts]) for name in LABELS},
            request_id=list(chain.from_iterable(part.request_id for part in parts)),
            attempt_group=list(chain.from_iterable(part.attempt_group for part in parts)),
            dedupe_key=list(chain.from_iterable(part.dedupe_key for part in parts)),
            **{name: np.concatenate([getattr(part, name) for part in parts]) for name in codes},
        )

    def take(self, rows: Ints | Bools) -> Batch:
        """The batch of some rows, by index or mask, in that order."""
        index = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        if len(index) == len(self) and rows.dtype == np.bool_:
            return self
        chosen = index.tolist()
        return Batch(
            numbers={name: column[index] for name, column in self.numbers.items()},
            labels={name: Texts(column.codes[index], column.names) for name, column in self.labels.items()},
            request_id=[self.request_id[row] for row in chosen],
            attempt_group=[self.attempt_group[row] for row in chosen],
            dedupe_key=[self.dedupe_key[row] for row in chosen],
            outcome=self.outcome[index],
            usage=self.usage[index],
            status=self.status[index],
            stream=self.stream[index],
            limiter=self.limiter[index],
            cache_hit=self.cache_hit[index],
            uncapped=self.uncapped[index],
            part=self.part[index],
        )

    @property
    def event_at(self) -> Floats:
        """Event time: when the request finished; when it started where only that is known."""
        finished = self.numbers["finished_at"]
        return np.where(np.isnan(finished), self.numbers["started_at"], finished)

    @property
    def tpot_s(self) -> Floats:
        """Time per output token after the first, (duration − ttft)/(output − 1); NaN under 2 output tokens."""
        output = self.numbers["output_tokens"]
        gaps = np.where(output >= 2, output - 1, np.nan)
        return (self.numbers["duration_s"] - self.numbers["ttft_s"]) / gaps

    def row(self, row: int) -> Request:
        """The typed view of one row."""

        def number(name: str) -> float | None:
            value = float(self.numbers[name][row])
            return None if np.isnan(value) else value

        def whole(name: str) -> float | None:
            value = number(name)
            return None if value is None else int(value)

        fields: dict[str, Any] = {name: number(name) for name in (*TIMES, *DURATIONS)}
        fields |= {name: whole(name) for name in (*TOKENS, *COUNTS)}
        fields |= {name: column[row] for name, column in self.labels.items()}
        return Request(
            request_id=_told(self.request_id[row]),
            attempt_group=_told(self.attempt_group[row]),
            **fields,
            stream=None if self.stream[row] < 0 else bool(self.stream[row]),
            usage=_name(USAGES, self.usage[row]),
            outcome=_name(OUTCOMES, self.outcome[row]),
            status=None if self.status[row] < 0 else int(self.status[row]),
            rate_limited_by=_name(LIMITERS, self.limiter[row]),
            cache_hit=bool(self.cache_hit[row]),
            uncapped=bool(self.uncapped[row]),
            part=bool(self.part[row]),
        )


def zeroed(values: Floats) -> Floats:
    """The values with 0 where they are absent, for sums.

    >>> zeroed(np.array([1.0, np.nan])).tolist()
    [1.0, 0.0]
    """
    return np.where(np.isnan(values), 0.0, values)


def _name(names: Sequence[str], code: np.int64) -> str | None:
    return None if code < 0 else names[int(code)]


def _told(name: str | None) -> str | None:
    return None if name is None or name.strip() in MISSING else name


def _either(given: Sequence[object] | None, otherwise: Sequence[str | None]) -> Sequence[str | None]:
    if given is None or _silent(given):
        return otherwise
    return [one if key is None else str(key) for key, one in zip(given, otherwise, strict=True)]


def _silent(values: Sequence[object]) -> bool:
    """Whether a column tells nothing; one look is enough where its first row tells something."""
    return not values or (values[0] is None and values.count(None) == len(values))


def _floats(values: Sequence[object] | None, n: int) -> Floats:
    if values is None or _silent(values):
        return np.full(n, np.nan)
    try:  # half the work of an array, where nothing is absent
        return np.frombuffer(bytearray(struct.pack(f"{n}d", *values)), np.float64)
    except struct.error:
        return np.array(values, dtype=np.float64)


def _statuses(told: Floats) -> Ints:
    """HTTP statuses; what has no three digits is none."""
    return np.where((told >= 0) & (told < 1000), told, -1.0).astype(np.int64)


def _flags(values: Sequence[object] | None, n: int) -> Bools:
    return np.zeros(n, np.bool_) if values is None else np.array(values, dtype=np.bool_)


def _codes(values: Sequence[object] | None, names: Sequence[str], n: int) -> Ints:
    if values is None:
        return np.full(n, -1)
    code: dict[object, int] = {name: i for i, name in enumerate(names)}
    return np.fromiter(map(code.get, values, repeat(-1)), np.int64, n)
