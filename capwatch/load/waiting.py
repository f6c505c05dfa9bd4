"""How long requests wait for a pool: as the queue formulas expect it, as measured, and how much waits now."""

from __future__ import annotations

import math

from capwatch import metrics as m
from capwatch.capacity import queueing
from capwatch.load.pools import Load

_QUEUE = m.PHASES.index("queue")


def servers(load: Load) -> tuple[int, float, float] | None:
    """(servers of a replica, mean seconds in one, requests/s): slots where they are configured and times are told.

    Otherwise a replica is one server, and its service time is the cost.
    """
    work = load.work
    if load.pool.slots and work["served_s"]:
        return load.pool.slots, work["served_s"] / work["served"], max(work["served"], work["charged"]) / load.length
    if load.mean_cost:
        return 1, load.mean_cost, work["charged"] / load.length
    return None


def expected(load: Load) -> float | None:
    """Mean wait by Allen and Cunneen (F18), s; infinite where the load is more than the replicas can do."""
    found, replicas = servers(load), load.replicas
    if found is None or replicas is None:
        return None
    each, service, rate = found
    return queueing.mean_wait(each * replicas, rate, service, load.stretch)


def peaked(load: Load) -> float | None:
    """Mean wait by Hayward, s, where Ca² is measured; below 1 it is taken as 1, since regular arrivals peak nowhere."""
    found, replicas = servers(load), load.replicas
    if found is None or replicas is None or load.arrival_cv2 is None:
        return None
    each, service, rate = found
    peak = queueing.peakedness(max(1.0, load.arrival_cv2))
    return queueing.hayward_mean_wait(each * replicas, rate, service, peak)


def late(load: Load) -> tuple[float, float]:
    """Share of requests that wait longer than the budget: predicted (F19), measured; NaN where not known."""
    found, replicas = servers(load), load.replicas
    predicted = math.nan
    if found is not None and replicas is not None:
        each, service, rate = found
        predicted = queueing.late_share(each * replicas, rate, service, load.pool.wait_budget, load.stretch)
    waited = load.work["waited"]
    return predicted, load.work["late"] / waited if waited else math.nan


def backlog(load: Load) -> float | None:
    """Tokens of the requests that wait: as the engines count them, else λW of the queue; the mean prompt and output."""
    waiting = load.told("waiting")
    if waiting is None:
        waiting = float(load.in_flight[_QUEUE])
    return None if load.tokens is None or math.isnan(waiting) else waiting * load.tokens
