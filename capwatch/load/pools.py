"""The pools as the configuration has them, with the load of the last five minutes beside each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from capwatch import metrics as m
from capwatch.capacity import queueing
from capwatch.config.schema import DEFAULT_POOL, Config, Pool
from capwatch.fleet import GAUGES
from capwatch.ledger import POOL, Totals
from capwatch.load import arrivals, flight
from capwatch.load.flight import Seconds
from capwatch.load.tables import ENGINES, WORK
from capwatch.record import Floats

FEWEST: Final = 30
"""Requests below which a variance says nothing."""
_UNKNOWN: Final = m.ENGINE_STATES.index("unknown")
_RUNNING: Final = [m.PHASES.index(name) for name in ("prefill", "decode")]


@dataclass(frozen=True, slots=True)
class Load:
    """What one pool carries: means of the window, and its engines as they last told. None is not known."""

    number: int
    """Id of the pool's name."""
    pool: Pool
    length: float
    """Seconds of the window."""
    work: Mapping[str, float]
    """The columns of `WORK`, summed over the window."""
    engines: Mapping[str, Floats]
    """What the replicas that are heard of last told, by `GAUGES`: float64[replicas], NaN where one does not tell it."""
    in_flight: Floats
    """λW by `m.PHASES`, NaN where no duration is told."""
    measured: float | None
    """Requests waiting or running in the replicas, the mean over the window."""
    arrival_cv2: float | None
    """Ca², see `capwatch.load.arrivals`."""
    by_second: Seconds
    """The last 26 minutes by second, of this pool."""
    settled: float
    """s, epoch: until then nearly all that arrived has finished."""

    @property
    def replicas(self) -> int | None:
        """Replicas: configured, or those engines that are heard of."""
        if self.pool.replicas == "observed":
            return len(self.engines["running"]) or None
        return self.pool.replicas

    @property
    def demand(self) -> float | None:
        """λ c̄, replica-seconds a second; 0 in a window without requests, None where none tells tokens."""
        return self._told_a_second("cost")

    def _told_a_second(self, column: str) -> float | None:
        if not self.work["charged"] and self.work["requests"]:
            return None
        return self.work[column] / self.length

    @property
    def rate(self) -> float:
        """λ, requests a second that reach the replicas."""
        return self.work["requests"] / self.length

    @property
    def mean_cost(self) -> float | None:
        """c̄, replica-seconds a request."""
        return self.work["cost"] / self.work["charged"] if self.work["charged"] else None

    @property
    def service_cv2(self) -> float | None:
        """Cs² of the cost per request."""
        charged, cost = self.work["charged"], self.work["cost"]
        if charged < FEWEST or not cost:
            return None
        return max(0.0, self.work["cost_squared"] * charged / cost**2 - 1)

    @property
    def stretch(self) -> float:
        """F of Allen and Cunneen from what is measured; what cannot be is taken as 1, as in M/M/c."""
        ca2, cs2 = self.arrival_cv2, self.service_cv2
        return queueing.variability(1.0 if ca2 is None else ca2, 1.0 if cs2 is None else cs2)

    @property
    def tokens_per_minute(self) -> tuple[float, float] | None:
        """Prompt and output tokens a minute, NaN for prompts that no request tells; None where it tells neither."""
        prompt, output = (self._told_a_second(name) for name in ("prompt_tokens", "output_tokens"))
        if prompt is None or output is None:
            return None
        silent = self.work["requests"] > 0 and not prompt  # no request has a prompt of no tokens
        return (math.nan if silent else prompt * 60), output * 60

    @property
    def tokens(self) -> float | None:
        """Mean tokens of a request, prompt + output."""
        charged = self.work["charged"]
        return (self.work["prompt_tokens"] + self.work["output_tokens"]) / charged if charged else None

    @property
    def live_tokens(self) -> float | None:
        """Mean tokens of a running sequence, prompt + output: who runs longer is running more often.

        Of all requests alike where none tells how long it ran.
        """
        held = self.work["held_s"]
        return self.work["held_token_s"] / held if held else self.tokens

    @property
    def running(self) -> float | None:
        """Sequences that hold KV memory: as the engines tell it, else λW of prefill and decode, else of all phases."""
        told = self.told("running")
        if told is not None:
            return told
        if np.isnan(self.in_flight).any():
            return None
        working = float(self.in_flight[_RUNNING].sum())
        return working or float(self.in_flight[flight.IN_ENGINE].sum())

    @property
    def inside(self) -> float | None:
        """Requests in the engines, waiting or running, by the engines' own count, else by λW."""
        if self.measured is not None:
            return self.measured
        law = float(self.in_flight[flight.IN_ENGINE].sum())
        return None if np.isnan(law) else law

    def told(self, gauge: str) -> float | None:
        """The sum over replicas of what they told; None where none did."""
        values = self.engines[gauge]
        return None if np.isnan(values).all() else float(np.nansum(values))


def of(config: Config) -> list[Pool]:
    """The configured pools, and the implicit one."""
    named = any(pool.name == DEFAULT_POOL for pool in config.pools)
    return [*config.pools, *([] if named else [Pool(DEFAULT_POOL, assumed=True)])]


def loads(config: Config, totals: Totals) -> Iterator[Load]:
    """The load of each pool of a configuration."""
    by_second = flight.seconds(totals)
    known, inflight = flight.in_flight(totals, by_second)
    measured = dict(zip(*(column.tolist() for column in flight.measured_in_flight(totals)), strict=True))
    keys, sums = totals.window(WORK)
    replicas, told = totals.rows(ENGINES)
    heard = told[:, -1] != _UNKNOWN
    lengths = flight.lengths(totals, known, by_second)
    settled = flight.settled(totals, known)
    for pool in of(config):
        number = totals.names.find(POOL.name, pool.name)
        if number is None or number not in known:
            continue
        place = int(np.searchsorted(known, number))
        row = sums[keys == number].sum(axis=0)
        mine = told[heard & (ENGINES.ids(replicas, POOL) == number)]
        yield Load(
            number,
            pool,
            float(lengths[place]),
            dict(zip(WORK.columns, row.tolist(), strict=True)),
            dict(zip(GAUGES, mine.T, strict=False)),
            inflight[place],
            measured.get(number),
            arrivals.cv2(totals, number, float(settled[place]), by_second.of(number)),
            by_second.of(number),
            float(settled[place]),
        )
