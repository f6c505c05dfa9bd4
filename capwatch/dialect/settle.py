"""The rules that settle a record, whatever the dialect: one formula per quantity, on columns.

Order matters: numbers out of range go first, then times complete each other, then what rests on times.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from capwatch.record import (
    COUNTS,
    DURATIONS,
    NUMBERS,
    OUTCOMES,
    TIMES,
    TOKENS,
    USAGES,
    Batch,
    Bools,
    Floats,
    Ints,
    zeroed,
)

MOST_TOKENS: Final = 1e9
"""No request holds more tokens than this; larger numbers are errors of the log."""
LONGEST_S: Final = 1e6
"""No request lasts longer (11 days)."""
LAST_TIME: Final = 4102444800.0
"""2100-01-01. A time beyond it is a wrong unit, such as milliseconds taken as seconds."""
MOST_COUNTED: Final = 1e6
"""No request is retried, or goes to a phase, more often."""
SKEW_S: Final = 1e-6
"""Floats of epoch seconds carry about 0.2 µs; two times closer than this are the same."""

_OK = OUTCOMES.index("ok")


def settle(batch: Batch, near: Floats) -> Ints:
    """Complete and clean the columns of ``batch`` in place.

    Args:
        batch: raw columns, as a decoder found them; a number that was given but is none is infinite.
        near: float64[n], the time (s, epoch) of a record that has no time of its own: of reading, in dialects
            without a clock, or of a wrapper's stamp; NaN where there is none, then such a record cannot be used.

    Returns:
        int64[n]: 0 for a good row, otherwise the reason to drop it, 1 + its index in (`bad_time`, `bad_number`).
    """
    n = batch.numbers
    refused = {name: _clean(n[name], name) for name in NUMBERS}
    useful = np.zeros(len(batch), np.bool_)
    for name in (*TOKENS, *DURATIONS):
        useful |= ~np.isnan(n[name])
    timeless = _times(n, near)
    _tokens(batch, refused["prompt_tokens"])
    _first_token(batch)
    _phases(n)
    _outcome(batch)
    return np.where(timeless, 1, np.where(np.any([*refused.values()], axis=0) & ~useful, 2, 0))


DROPS: Final = ("", "bad_time", "bad_number")
"""The meaning of what `settle` returns."""


def _clean(column: Floats, name: str) -> Bools:
    """Make NaN what is out of range; tell where something was given and refused."""
    highest = LAST_TIME if name in TIMES else LONGEST_S if name in DURATIONS else MOST_TOKENS
    highest = MOST_COUNTED if name in COUNTS else highest
    bad = ~((column >= 0) & (column <= highest))
    if name in TIMES:
        bad |= column == 0
    if name in TOKENS or name in COUNTS:
        bad |= column != np.floor(column)
    given = ~np.isnan(column)
    column[bad] = np.nan
    column += 0.0  # −0 becomes 0
    return bad & given


def _times(n: dict[str, Floats], near: Floats) -> Bools:
    """Let start, end and duration complete each other.

    A request that ends before it starts, or days after anything can last, keeps only its end.
    """
    start, end, duration = n["started_at"], n["finished_at"], n["duration_s"]
    np.copyto(end, near, where=np.isnan(start) & np.isnan(end))
    impossible = (start > end + SKEW_S) | (end - start > LONGEST_S)
    start[impossible] = np.nan
    duration[impossible] = np.nan
    np.copyto(duration, np.maximum(end - start, 0), where=np.isnan(duration) & ~np.isnan(end - start))
    np.copyto(start, end - duration, where=np.isnan(start) & ~impossible)
    np.copyto(end, start + duration, where=np.isnan(end))
    return np.isnan(start) & np.isnan(end)


def _tokens(batch: Batch, refused: Bools) -> None:
    """Zero prompt tokens mean unknown; cached is a part of the prompt; usage says what is left.

    Zero output tokens beside no prompt are a usage that nobody sent; beside a refused prompt they are told.
    """
    n = batch.numbers
    prompt, cached, output = n["prompt_tokens"], n["cached_tokens"], n["output_tokens"]
    prompt[prompt == 0] = np.nan
    output[np.isnan(prompt) & ~refused & (output == 0)] = np.nan
    np.copyto(cached, np.minimum(cached, prompt), where=~np.isnan(prompt))
    cached[np.isnan(prompt)] = np.nan
    known = ~np.isnan(prompt) | ~np.isnan(output)
    told = np.where(batch.usage < 0, USAGES.index("provider"), batch.usage)
    batch.usage[:] = np.where(known, told, USAGES.index("missing"))


def _first_token(batch: Batch) -> None:
    """TTFT only of streams, within the duration, and not equal to it when more tokens followed."""
    n = batch.numbers
    ttft, duration = n["ttft_s"], n["duration_s"]
    late = ttft > duration + SKEW_S
    whole = (ttft >= duration - SKEW_S) & (n["output_tokens"] > 1)
    ttft[(batch.stream == 0) | (ttft == 0) | late | whole] = np.nan


def _phases(n: dict[str, Floats]) -> None:
    """Derive what the log does not give: decode = duration − TTFT, prefill = TTFT − what came before it.

    Where the wait in the engine's queue is not told, it is inside prefill.
    """
    ttft = n["ttft_s"]
    before = sum((zeroed(n[name]) for name in ("gateway_s", "retrieval_s", "tool_s", "queue_s")), 0.0)
    np.copyto(n["prefill_s"], np.maximum(ttft - before, 0), where=np.isnan(n["prefill_s"]))
    np.copyto(n["decode_s"], np.maximum(n["duration_s"] - ttft, 0), where=np.isnan(n["decode_s"]))


def _outcome(batch: Batch) -> None:
    """Where only the status is told it gives the outcome; who limited is told only of limited requests."""
    unknown = batch.outcome < 0
    if unknown.any():
        statuses = {int(code): OUTCOMES.index(of_status(int(code))) for code in np.unique(batch.status[unknown])}
        batch.outcome[unknown] = [statuses[int(code)] for code in batch.status[unknown]]
    batch.limiter[batch.outcome != OUTCOMES.index("rate_limited")] = -1


def of_status(status: int) -> str:
    """The outcome that an HTTP status alone tells; −1 (not told) is ok, 0 (nothing was sent) is a client abort.

    >>> [of_status(s) for s in (200, 404, 408, 429, 499, 500, 503, 504, 0)]
    ['ok', 'client_error', 'timeout', 'rate_limited', 'client_abort', 'upstream_error', 'upstream_error', 'timeout', \
'client_abort']
    """
    special = {-1: "ok", 0: "client_abort", 408: "timeout", 429: "rate_limited", 499: "client_abort", 504: "timeout"}
    if status in special:
        return special[status]
    if status >= 500:
        return "upstream_error"
    return "client_error" if status >= 400 else "ok"
