"""The workload: prompt and output lengths by tenant and route against last week, classes, cache hits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from capwatch.capacity.profile import distribution_of
from capwatch.meters.lengths import SPANS
from capwatch.review.facts import Facts
from capwatch.review.hours import Hours
from capwatch.review.section import Missing, Section, Table
from capwatch.review.stretch import Stretch
from capwatch.review.text import exact, number, percent, seconds, signed
from capwatch.review.week import Week

ORDER: Final = 40
MOST: Final = 8
MEASURES: Final = {"prompt_tokens": "prompt", "output_tokens": "output"}


def SECTION(week: Week, facts: Mapping[str, Facts]) -> Section:
    """Distributions of lengths, measured and as a lognormal, and who has which."""
    tables, missing, numbers = [], [], {}
    for name, one in facts.items():
        if one.week is None:
            missing.append(Missing(f"lengths of {name}", "no request tells tokens", "a log with token counts"))
            continue
        numbers[name] = {"profile": {measure: _whole(one, measure) for measure in MEASURES}}
        tables.append(_lengths(name, one, numbers[name]["profile"]))
        tables += [table for label in ("tenant", "route") if len((table := _by(name, one, label)).rows) > 1]
        tables.append(_classes(name, one, one.week))
        if any(length.spans for length in one.one.by_length):
            tables.append(_latency(name, one))
        else:
            missing.append(
                Missing(
                    f"latency by prompt length of {name}",
                    "no hour of the week tells it",
                    "a log with times to first token and prompt lengths, or a history that this version wrote",
                )
            )
    if facts:
        missing.append(
            Missing("the share of streams", "the history does not tell it", "the logs, by `capwatch profile`")
        )
    return Section("Workload", (), tables, (), (), missing, numbers)


def _latency(name: str, one: Facts) -> Table:
    rows = []
    for length in one.one.by_length:
        told = [value for span in SPANS for value in length.spans.get(span, (None, None))]
        rows.append([length.prompt, exact(length.requests), *map(seconds, told)])
    columns = ["prompt tokens", "requests", "TTFT p50", "TTFT p95", "per output token p50", "per output token p95"]
    return Table(f"{name}: latency by prompt length, of the week (within 5 %)", columns, rows)


def _whole(one: Facts, measure: str) -> dict[str, Any] | None:
    hours = one.one.hours
    told = hours.quantiles(measure, (0.5, 0.95, 0.99, 1.0))
    mean = hours.mean(measure)
    if told is None or mean is None:
        return None
    notes: dict[str, str] = {}
    return {**distribution_of(mean, (told[0], told[1], told[2], told[3]), measure, notes), "notes": notes}


def _lengths(name: str, one: Facts, profile: Mapping[str, Any]) -> Table:
    rows = []
    for measure, what in MEASURES.items():
        found = profile[measure]
        if found is None:
            continue
        last = one.one.last.mean(measure) if len(one.one.last) else None
        fit = "no lognormal" if found["fit_error"] is None else signed(found["fit_error"])
        rows.append(
            [
                what, *(number(found[key]) for key in ("mean", "p50", "p95", "p99", "max")), fit,
                "not known" if not last else signed(found["mean"] / last - 1),
            ]
        )  # fmt: skip
    columns = ["tokens", "mean", "p50", "p95", "p99", "max", "p99 of a lognormal", "mean against last week"]
    return Table(f"{name}: lengths of the week", columns, rows)


def _by(name: str, one: Facts, label: str) -> Table:
    rows = []
    for who, hours in largest(one.one.hours, label):
        told = [hours.quantiles(measure, (0.5, 0.95)) for measure in MEASURES]
        before = one.one.last.where(label, who)
        change = [_change(hours, before, measure) for measure in MEASURES]
        cells = [number(value) for pair in told for value in (pair or (None, None))]
        rows.append([who, exact(hours.requests), *cells[:2], change[0], *cells[2:], change[1]])
    columns = [label, "requests", "prompt p50", "prompt p95", "mean prompt", "output p50", "output p95", "mean output"]
    return Table(f"{name}: lengths by {label}, means against last week (the most work first)", columns, rows)


def largest(hours: Hours, label: str) -> list[tuple[str, Hours]]:
    """The values of a label with the most cost, or requests where nothing costs anything, each with its rows."""
    column = hours.labels[label]
    weight = hours.cost_by_row if hours.cost else hours.requests_by_row
    sums: dict[str, float] = {}
    for code, value in zip(column.codes.tolist(), weight.tolist(), strict=True):
        name = str(column.names[code])
        sums[name] = sums.get(name, 0.0) + value
    names = sorted(sums, key=lambda one: -sums[one])[:MOST]
    return [(one, hours.where(label, one)) for one in names]


def _change(hours: Hours, before: Hours, measure: str) -> str:
    now, then = hours.mean(measure), before.mean(measure)
    if then is None:
        return "new" if not before.requests else "not known"
    return "not known" if now is None or not then else signed(now / then - 1)


def _classes(name: str, one: Facts, week: Stretch) -> Table:
    names = week.hours.names("class")
    now = week.cells("class", names)
    last = None if one.last is None else one.last.cells("class", names)
    rows = []
    for place, klass in enumerate(names):
        prompt, cached, output = (float(part[place]) for part in (now.prompt, now.cached, now.output))
        before = "not known" if last is None else percent(float(last.share[place]))
        rows.append(
            [
                klass, percent(float(now.share[place])), before, number(prompt), number(output),
                percent(cached / prompt if prompt else 0.0), number(week.cost_of(prompt, cached, output)),
            ]
        )  # fmt: skip
    columns = ["class", "share", "last week", "mean prompt", "mean output", "cache hits", "replica-s each"]
    return Table(f"{name}: classes", columns, rows)
