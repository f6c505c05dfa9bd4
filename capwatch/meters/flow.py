"""In flight by Little's law: residence per phase, arrivals and departures, and whether the law may be applied."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from capwatch import metrics as m
from capwatch.config.schema import Config
from capwatch.ledger import Gathering, Totals
from capwatch.ledger.series import Series, plain, spread
from capwatch.load import flight
from capwatch.load.tables import FLOW, MEASURED, PHASES, POOLS, RECENT, RESIDENCE, SECONDS
from capwatch.record import PHASE_FIELDS, Batch, Floats, zeroed
from capwatch.seen import Seen
from capwatch.sketch import index, pack

FEWEST_IN_FLIGHT: Final = 2.0
"""Below it engines' gauges undercount (a real vLLM showed 0.13 where 1.21 were in flight), so nothing is compared."""


class Flow:
    """Contract 4.2; law 5: the phases of a pool add up to its residence."""

    tables = (FLOW, PHASES, RECENT, SECONDS, MEASURED)
    sketches = (RESIDENCE,)
    followers = ()

    def measure(self, seen: Seen, into: Gathering) -> None:
        """Add residence by phase; arrivals count when the request finishes."""
        groups = seen.groups
        requests = groups.sums(np.ones(len(seen.batch)))
        into.add(FLOW, groups.pool, requests, requests)
        phases = residence(seen.batch)
        into.add(PHASES, groups.pool, *map(groups.sums, phases))
        known = ~np.isnan(seen.batch["duration_s"])
        timely = known & seen.timely
        pool = seen.pool
        into.add_slots(RECENT, seen.slot[timely], pool[timely], *(column[timely] for column in phases))
        into.observe(RESIDENCE, pack(pool[known], index(seen.batch["duration_s"][known])), seen.slot[known])
        self._seconds(seen, into)

    @staticmethod
    def _seconds(seen: Seen, into: Gathering) -> None:
        pool = seen.pool[seen.timely]
        nothing, one = np.zeros(len(pool)), np.ones(len(pool))
        came, went = (np.floor(times[seen.timely]).astype(np.int64) for times in (seen.arrived_at, seen.event_at))
        into.add_slots(SECONDS, came, pool, one, nothing, seen.cost.total[seen.timely])
        into.add_slots(SECONDS, went, pool, nothing, one, nothing)

    def show(self, totals: Totals) -> Iterable[Series]:
        """See `capwatch.seen.Meter`."""
        keys, values = totals.rows(FLOW)
        yield plain(m.ARRIVALS, FLOW, keys, values[:, 0])
        yield plain(m.DEPARTURES, FLOW, keys, values[:, 1])
        yield spread(m.PHASE_SECONDS, PHASES, *totals.rows(PHASES), m.PHASES)
        by_second = flight.seconds(totals)
        pools, inflight = flight.in_flight(totals, by_second)
        yield spread(m.INFLIGHT_LITTLES_LAW, POOLS, pools, inflight, m.PHASES)
        measured, requests = flight.measured_in_flight(totals)
        law = inflight[np.isin(pools, measured)][:, flight.IN_ENGINE].sum(axis=1)
        told = np.isin(measured, pools)
        enough = np.where(law >= FEWEST_IN_FLIGHT, law, np.nan)
        yield plain(m.LITTLES_LAW_RESIDUAL_RATIO, POOLS, measured[told], requests[told] / enough - 1)
        yield plain(m.LITTLES_LAW_VALID, POOLS, keys, flight.valid(totals, keys, by_second))


def residence(batch: Batch) -> Floats:
    """Seconds in each of `m.PHASES`, float64[7, n], adding up to the duration; all 0 where that is unknown.

    What the log leaves unexplained is `other`; phases that add up to more than the duration are scaled down to it.
    """
    phases = np.zeros((len(m.PHASES), len(batch)))
    for phase, name in zip(phases, PHASE_FIELDS, strict=False):
        np.copyto(phase, batch[name], where=~np.isnan(batch[name]))
    duration = zeroed(batch["duration_s"])
    explained = phases.sum(axis=0)
    over = explained > duration
    if over.any():
        phases[:, over] *= duration[over] / explained[over]
    phases[-1] = np.where(over, 0.0, np.maximum(duration - explained, 0.0))
    return phases


def METER(config: Config) -> Flow:  # noqa: ARG001, N802 - the shelf's word
    """The meter for a configuration."""
    return Flow()
