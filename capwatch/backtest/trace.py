"""A trace file as requests: in order of time, without what no clock can have written.

The columns are those of the contract, section 1a; all but `t` may be missing. A row up to 60 s behind the newest is
late and goes to its time. One further behind is counted and left out, and so are few that are far ahead of all that
follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from capwatch.backtest.table import Block, Table, Texts
from capwatch.drift.rows import FAILED, Rows
from capwatch.errors import UsageError
from capwatch.record import Bools, Floats, Ints

NUMBERS: Final = ("t", "prompt_tokens", "cached_tokens", "output_tokens", "duration_s", "ttft_s")
NAMES: Final = ("tenant", "route", "class", "model", "outcome", "attempt_group")
LATE_S: Final = 60.0
FEW: Final = 0.01
"""Part of the rows of a block that may be ahead of what follows; more than that is a clock that was set back."""
MOST_TENANTS: Final = 2000
"""Tenants, routes and classes beyond that share one name: hostile labels must not grow the memory."""


@dataclass(slots=True)
class Seen:
    """What was read and what of it could not be used."""

    rows: int = 0
    used: int = 0
    no_time: int = 0
    out_of_order: int = 0
    no_tokens: int = 0
    resent: int = 0

    def words(self) -> str:
        """For people."""
        left_out = {
            "without a time": self.no_time,
            "out of order by more than 60 s": self.out_of_order,
            "without token counts": self.no_tokens,
            "resent after a failure": self.resent,
        }
        told = [f"{n:,} {why}" for why, n in left_out.items() if n]
        return f"{self.rows:,} rows read" + (f"; left out: {', '.join(told)}" if told else "")


@dataclass(slots=True)
class Trace:
    """A file of requests."""

    path: str
    prefill_rate: float
    seen: Seen = field(default_factory=Seen)
    texts: dict[str, Texts] = field(default_factory=lambda: {name: Texts() for name in NAMES})
    newest: float = -np.inf

    def name(self, dimension: str, code: int) -> str:
        """The name of a code of `tenant`, `route` or `class`."""
        return "unknown" if code < 0 else "other" if code >= MOST_TENANTS else self.texts[dimension].names[code]

    def rows(self) -> Iterator[tuple[Rows, int, int]]:
        """(requests, bytes read so far, size of the file), some at a time.

        Raises:
            UsageError: the file is no trace; the text names the line.
        """
        with closing(Table(self.path, NUMBERS, self.texts)) as table:
            if "t" not in table.columns:
                raise UsageError(f"{self.path}:1: no column t, the time of a request in s since the epoch")
            for block in table.blocks():
                rows = self._ordered(_rows(block, self.texts, self.prefill_rate))
                if len(rows):
                    yield rows, block.done, table.size

    def _ordered(self, rows: Rows) -> Rows:
        self.seen.rows += len(rows)
        timed = np.isfinite(rows.at) & (rows.at >= 0)
        self.seen.no_time += int((~timed).sum())
        rows = rows.take(timed) if not timed.all() else rows
        good = _orderly(rows.at, self.newest)
        self.seen.out_of_order += int((~good).sum())
        rows = rows.take(good) if not good.all() else rows
        if len(rows):
            if (np.diff(rows.at) < 0).any():
                rows = rows.take(np.argsort(rows.at, kind="stable"))
            self.newest = max(self.newest, float(rows.at[-1]))
        self.seen.used += len(rows)
        self.seen.no_tokens += int((~rows.known).sum())
        return rows


def _orderly(at: Floats, newest: float) -> Bools:
    """Which rows are neither far behind what came before nor, if they are few, far ahead of what follows."""
    if not len(at) or (at[0] >= newest and (np.diff(at) >= 0).all()):
        return np.ones(len(at), np.bool_)
    following = np.minimum.accumulate(at[::-1])[::-1]
    ahead = at > following + LATE_S
    if ahead.sum() > FEW * len(at):
        ahead[:] = False
    reached = np.maximum(newest, np.maximum.accumulate(np.where(ahead, -np.inf, at)))
    return ~ahead & (at >= reached - LATE_S)


def _rows(block: Block, texts: dict[str, Texts], prefill_rate: float) -> Rows:
    n = len(block.numbers["t"])

    def number(name: str) -> Floats:
        values = block.numbers.get(name)
        return np.full(n, np.nan) if values is None else np.where(np.isfinite(values) & (values >= 0), values, np.nan)

    def code(name: str) -> Ints:
        codes = block.codes.get(name)
        return np.full(n, -1) if codes is None else codes

    prompt, cached, ttft = number("prompt_tokens"), number("cached_tokens"), number("ttft_s")
    failed = np.array([*(name in FAILED for name in texts["outcome"].names), False])
    computed = np.maximum(1.0, prompt - np.where(np.isnan(cached), 0.0, cached))
    return Rows(
        at=block.numbers["t"],
        tenant=np.minimum(code("tenant"), MOST_TENANTS),
        route=np.minimum(code("route"), MOST_TENANTS),
        klass=np.minimum(code("class"), MOST_TENANTS),
        model=code("model"),
        group=code("attempt_group"),
        prompt=prompt,
        cached=np.minimum(cached, prompt),
        output=number("output_tokens"),
        failed=failed[code("outcome")],
        wait=np.maximum(0.0, ttft - computed / prefill_rate),
    )
