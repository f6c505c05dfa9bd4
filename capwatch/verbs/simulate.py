"""Simulate a pool under open and closed loops: what the queue does to each class, row by row.

Requests of classes of fixed work come to identical replicas behind one queue, first come first served. --open is a
rate of Poisson arrivals, however long the queue; --closed is workers that send the next request when the last is
answered, which hides what a queue does. Throughput is completions: arrivals go on rising past capacity. Capacity is
the highest open rate whose p95 meets the objective. The same arguments give the same bytes.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import asdict

from capwatch.capacity import work
from capwatch.capacity.simulate import Figures, Pool, Row
from capwatch.config import units
from capwatch.console.answer import as_json, bars, columns, number, percent
from capwatch.console.options import (
    PART,
    POSITIVE,
    RATE_ABOVE_0,
    SEED,
    Option,
    asked,
    by_name,
    capped,
    declare,
    named,
    whole_mix,
)
from capwatch.console.progress import Progress
from capwatch.errors import UsageError

EXAMPLE = (
    "capwatch simulate --mix policy=0.85:0.825 --mix order=0.14:1.7375 --mix long=0.01:4.75 --replicas 12 "
    "--open 8 --open 12.5 --closed 12 --requests 60000 --seed 7"
)
FORM = "NAME=SHARE:SECONDS"


def _class(text: str) -> tuple[float, float]:
    share, colon, seconds = text.partition(":")
    if not colon:
        raise ValueError(f"found {units.found(text)}")
    return PART(share), POSITIVE(seconds)


OPTIONS = (
    Option("--mix", named(_class, FORM), FORM, "a class: its share of the requests, and its work", many=True),
    Option("--replicas", capped(1e6), "N", "identical ones behind one queue"),
    Option("--open", RATE_ABOVE_0, "RATE", "Poisson arrivals, requests/s", optional=True, many=True),
    Option("--closed", capped(1e6), "N", "workers, each with one request at a time", optional=True, many=True),
    Option("--requests", capped(1e7), "N", "in each row", "60000"),
    Option("--seed", SEED, "N", "of all chance, the same for each row", "7"),
)


def describe(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    declare(parser, OPTIONS)


def run(arguments: argparse.Namespace) -> int:
    """Print a row for each load."""
    given = asked(OPTIONS, arguments)
    mix = by_name("--mix", given.mix)
    whole_mix("--mix", [share for share, _ in mix.values()])
    if not given.open and not given.closed:
        raise UsageError("--open: is missing; give a rate, or workers with --closed")
    pool = Pool(mix, given.replicas)
    progress = Progress(len(given.open) + len(given.closed), "simulate")
    rows = []
    for row in _rows(pool, given):
        rows.append(row)
        progress.show(len(rows))
    progress.end()
    if arguments.json:
        print(as_json([_told(row) for row in rows]))
    else:
        inputs = columns([(option.name, text, option.help) for option in OPTIONS for text in option.texts(arguments)])
        print("\n".join(["capwatch simulate", "", "given", *inputs, "", *_text(rows, mix, given.replicas)]))
    return 0


def _rows(pool: Pool, given: argparse.Namespace) -> Iterator[Row]:
    for rate in given.open:
        yield pool.open(rate, given.requests, given.seed)
    for workers in given.closed:
        yield pool.closed(workers, given.requests, given.seed)


def _told(row: Row) -> dict[str, object]:
    """A row for machines."""
    return {
        "loop": "closed" if row.closed else "open",
        "offered": row.offered,
        "arrival_rate": row.arrival_rate,
        "completion_rate": row.completion_rate,
        **asdict(row.all),
        "per_class": {name: figures and asdict(figures) for name, figures in row.classes.items()},
    }


def _text(rows: list[Row], mix: dict[str, tuple[float, float]], replicas: int) -> list[str]:
    """The rows for people: all requests, each class, and the knee."""
    cost = work.mean(*zip(*mix.values(), strict=True))
    head = (
        f"mean work {number(cost)} s per request; {replicas} replicas are all busy at replicas/work = "
        f"{number(work.capacity(replicas, cost))} requests/s"
    )
    table: list[tuple[str, ...]] = [("load", "utilisation", "arrivals/s", "completions/s", *COLUMNS)]
    table += [
        (
            _load(row),
            percent(min(1.0, work.utilisation(row.offered, cost, replicas))) if not row.closed else "",
            number(row.arrival_rate) if row.arrival_rate is not None else "",
            number(row.completion_rate),
            *_cells(row.all),
        )
        for row in rows
    ]
    classes: list[tuple[str, ...]] = [("load", "class", *COLUMNS)]
    classes += [(_load(row), name, *_cells(figures)) for row in rows for name, figures in row.classes.items()]
    least = min(seconds for _, seconds in mix.values())
    knee = bars([(_load(row), math.log1p(row.all.p95 / least), f"{number(row.all.p95)} s") for row in rows])
    return [head, "", *columns(table), "", *columns(classes), "", KNEE, *(f"  {line}" for line in knee)]


KNEE = "p95 by load, on a logarithmic scale"
COLUMNS = ("p50 s", "p95 s", "p99 s", "mean wait s")


def _cells(figures: Figures | None) -> tuple[str, ...]:
    if figures is None:
        return ("none",) * len(COLUMNS)
    return tuple(number(one) for one in (figures.p50, figures.p95, figures.p99, figures.mean_wait))


def _load(row: Row) -> str:
    return f"closed {number(row.offered)}" if row.closed else f"open {number(row.offered)}/s"
