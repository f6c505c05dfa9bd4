"""What a request asked for in a stretch of hours: means, their error, and the mix by class, tenant and route."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from capwatch import metrics as m
from capwatch.capacity import work
from capwatch.capacity.effects import Cells, effects
from capwatch.config.schema import Pool
from capwatch.drift.event import DIMENSIONS, EFFECTS
from capwatch.record import Floats
from capwatch.review.calendar import HOUR
from capwatch.review.hours import PLACE, Hours

NAMED: Final = 10
SILENT: Final = 30
"""Usual requests of an hour from which one without any is a gap of the log, not chance."""
PHASES: Final = m.PHASES[:-1]
IN_ENGINE: Final = ("queue", "prefill", "decode")
RUNNING: Final = ("prefill", "decode")


@dataclass(frozen=True)
class Stretch:
    """Hours of one pool from ``since`` to before ``until`` (s, epoch), with a cost per request above 0."""

    hours: Hours
    pool: Pool
    since: float
    until: float

    @property
    def seconds(self) -> float:
        """Its length, without the hours in which the log was silent against all chance."""
        told = len(np.unique(self.hours.at)) * HOUR
        whole = self.until - self.since
        return float(told if self.hours.requests / max(told, 1) * HOUR > SILENT else whole)

    @property
    def rate(self) -> float:
        """Requests/s that reach the replicas: those of the response cache do not."""
        return (self.hours.requests - self.hours.hits) / self.seconds

    @property
    def charged_rate(self) -> float:
        """Requests/s that tell tokens."""
        return self.hours.charged / self.seconds

    @cached_property
    def tokens_by_row(self) -> tuple[Floats, Floats, Floats]:
        """(prompt, cached, output) tokens of the charged requests in each row."""
        values, pool = self.hours.values, self.pool
        computed, cached, output = (values[:, PLACE[name]] for name in m.TOKEN_KINDS)
        if self.hours.hits:  # answers from the response cache tell tokens, too; what was charged is in the cost
            computed = values[:, PLACE["cost_prefill"]] * pool.prefill_tokens_per_second
            cached = values[:, PLACE["cost_saved"]] * pool.prefill_tokens_per_second
            output = values[:, PLACE["cost_decode"]] * pool.decode_tokens_per_second
        return computed + cached, cached, output

    @cached_property
    def lengths(self) -> tuple[float, float, float]:
        """Mean prompt, cached and output tokens of a request."""
        prompt, cached, output = (float(one.sum()) / self.hours.charged for one in self.tokens_by_row)
        return prompt, cached, output

    def cost_of(self, prompt: float, cached: float, output: float) -> float:
        """Replica-seconds of such a request, at the rates in force."""
        rates = self.pool.prefill_tokens_per_second, self.pool.decode_tokens_per_second
        return work.cost(prompt, output, *rates, cached)

    @property
    def cost(self) -> float:
        """Mean replica-seconds of a request."""
        return self.cost_of(*self.lengths)

    @property
    def error(self) -> float | None:
        """Standard error of that mean, from its ups and downs between hours; None with fewer than three hours."""
        hours, of = np.unique(self.hours.at, return_inverse=True)
        if len(hours) < 3:
            return None
        prompt, cached, output = self.tokens_by_row
        rates = self.pool.prefill_tokens_per_second, self.pool.decode_tokens_per_second
        spent = np.bincount(of, work.cost(prompt, output, *rates, cached))
        n = np.bincount(of, self.hours.charged_by_row)
        off = spent - n * spent.sum() / n.sum()
        return float(np.sqrt(len(hours) / (len(hours) - 1) * (off**2).sum()) / n.sum())

    @property
    def prefill(self) -> float:
        """Of the cost, that of prompts."""
        prompt, cached, _ = self.lengths
        return work.prefill(prompt, cached, self.pool.prefill_tokens_per_second)

    @property
    def demand(self) -> float:
        """λ c̄, replica-seconds a second."""
        return self.charged_rate * self.cost

    @property
    def in_flight(self) -> Mapping[str, float] | None:
        """Requests in each phase by Little's law; None where no duration is told."""
        told = self.hours.told("duration_s")
        if not told:
            return None
        return {name: self.rate * self.hours.sum(name) / told for name in PHASES}

    @property
    def inside(self) -> float | None:
        """Requests in the engines, waiting or running; where phases are not told, all that are in flight."""
        phases = self.in_flight
        if phases is None:
            return None
        found = sum(phases[name] for name in IN_ENGINE)
        return found or self.rate * (self.hours.mean("duration_s") or 0.0)

    @property
    def running(self) -> float | None:
        """Sequences that hold KV memory; None where prefill and decode are not told apart from the rest."""
        phases = self.in_flight
        return (sum(phases[name] for name in RUNNING) or None) if phases is not None else None

    @property
    def live_tokens(self) -> float:
        """Mean tokens of a running sequence, prompt + output: rows whose requests run longer are running more often."""
        prompt, _, output = self.tokens_by_row
        columns = [PLACE[name] for name in RUNNING]
        told, ran = self.hours.charged_by_row, self.hours.values[:, columns].sum(axis=1)
        known = told > 0
        if not ran[known].sum():
            return float((prompt + output).sum()) / self.hours.charged
        return float(np.average((prompt + output)[known] / told[known], weights=ran[known]))

    @property
    def goodput(self) -> float | None:
        """Good requests over those that could be judged; None where none could."""
        good = self.hours.sum("goodput_good")
        missed = self.hours.sum(*(f"goodput_{reason}" for reason in m.MISSED_REASONS))
        return good / (good + missed) if good + missed else None

    def cells(self, label: str, names: Sequence[str]) -> Cells:
        """The mix by the values of a label."""
        column = self.hours.labels[label]
        place = {name: number for number, name in enumerate(names)}
        of = np.array([place.get(str(name), -1) for name in column.names], np.int64)[column.codes]
        kept = of >= 0
        charged = np.bincount(of[kept], self.hours.charged_by_row[kept], len(names))
        means = [
            np.divide(
                np.bincount(of[kept], tokens[kept], len(names)), charged, out=np.zeros(len(names)), where=charged > 0
            )
            for tokens in self.tokens_by_row
        ]
        return Cells(charged / max(charged.sum(), 1e-12), *means)


def stretch(hours: Hours, pool: Pool, since: float, until: float) -> Stretch | None:
    """The stretch of hours that begin in it; None where no request of it tells tokens, or all of them are nought."""
    mine = hours.between(since, until)
    if not len(mine) or mine.charged <= 0:
        return None
    found = Stretch(mine, pool, since, until)
    return found if found.cost > 0 else None


@dataclass(frozen=True, slots=True)
class Split:
    """Why the mean cost of one stretch differs from that of another; replica-seconds per request."""

    effects: Mapping[str, float]
    contributions: tuple[Mapping[str, Any], ...]


def split(before: Stretch, after: Stretch) -> Split:
    """By shift-share (`capwatch.capacity.effects`): the effects add up to the change, by the dimension that sees most.

    Contributions are the ten largest of all dimensions, those below a hundredth of the cost left out.
    """
    rates = after.pool.prefill_tokens_per_second, after.pool.decode_tokens_per_second
    best: dict[str, float] = {}
    named: list[dict[str, Any]] = []
    for dimension in ("class", *(one for one in DIMENSIONS if one != "class")):
        names = sorted({*before.hours.names(dimension), *after.hours.names(dimension)})
        old, new = before.cells(dimension, names), after.cells(dimension, names)
        parts = effects(old, new, *rates, centred=True)
        total = {name: float(getattr(parts, name).sum()) for name in EFFECTS}
        if not best or abs(total["mix"]) > abs(best["mix"]) + 1e-12:
            best = total
        if len(names) > 1:
            named += [
                {
                    "dimension": dimension,
                    "value": name,
                    "effect": effect,
                    "replica_seconds": float(getattr(parts, effect)[i]),
                    "share_before": float(old.share[i]),
                    "share_after": float(new.share[i]),
                }
                for i, name in enumerate(names)
                for effect in EFFECTS
            ]
    seen = [one for one in named if abs(one["replica_seconds"]) >= 0.01 * before.cost]
    seen.sort(key=lambda one: -abs(float(one["replica_seconds"])))
    return Split(best, tuple(seen[:NAMED]))
