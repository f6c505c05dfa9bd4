"""The review as one document: the contract's keys (section 1b), and beside them all that the sections have."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from capwatch.review import facts as of_facts
from capwatch.review.calendar import moment
from capwatch.review.facts import Facts
from capwatch.review.section import SEVERITIES, Finding, Missing, Section
from capwatch.review.sections import shelf
from capwatch.review.text import day
from capwatch.review.week import Week


@dataclass(frozen=True, slots=True)
class Document:
    """A week, its facts, its sections in order."""

    week: Week
    facts: Mapping[str, Facts]
    sections: Sequence[Section]

    @property
    def findings(self) -> list[Finding]:
        """All findings, the gravest first."""
        found = [one for section in self.sections for one in section.findings]
        return sorted(found, key=lambda one: SEVERITIES.index(one.severity))

    @property
    def missing(self) -> list[Missing]:
        """All that could not be told."""
        told = [Missing(*one) for one in self.week.missing]
        if self.week.end <= self.week.begin:
            told.append(
                Missing("the week", "no request of it is told", "the right week, or a source that reaches back so far")
            )
        elif self.week.begin > self.week.week.since or self.week.end < self.week.week.until:
            told.append(
                Missing(
                    "a part of the week",
                    f"requests are told from {day(self.week.begin)} to {day(self.week.end)} UTC only",
                    "logs or a history of the whole week",
                )
            )
        found = [*told, *(one for section in self.sections for one in section.missing)]
        return list(dict.fromkeys(found))


def of(week: Week) -> Document:
    """The review of a week."""
    facts = of_facts.of(week)
    return Document(week, facts, [make(week, facts) for make in shelf()])


def as_plain(document: Document) -> dict[str, Any]:
    """The document for machines: only what JSON knows, what is not finite is null."""
    week = document.week
    pools: dict[str, dict[str, Any]] = {name: _pool(one) for name, one in document.facts.items()}
    for section in document.sections:
        for name, numbers in section.numbers.items():
            for key, value in numbers.items():
                pools[name].setdefault(key, value)
    found: dict[str, Any] = {
        "version": 1,
        "week": str(week.week),
        "from": moment(week.week.since),
        "to": moment(week.week.until),
        "observed": {"from": moment(week.begin), "to": moment(week.end)} if week.end > week.begin else None,
        "source": week.source,
        "pools": pools,
        "drifts": [dict(change.event) for one in document.facts.values() for change in one.changes],
        "findings": [one.line() for one in document.findings],
        "missing": [one.line() for one in document.missing],
        "notes": [{"at": note.at, "pool": note.pool, "text": note.text} for note in week.notes],
        "sections": [_section(one) for one in document.sections],
    }
    plain: dict[str, Any] = _plain(found)
    return plain


def _pool(one: Facts) -> dict[str, Any]:
    """What the contract names."""
    bursts, promises, after = one.bursts, one.promises, one.after
    return {
        "cost_before": None if one.before is None else one.before.cost,
        "cost_after": None if after is None else after.cost,
        "cost_after_error": None if after is None else after.error,
        "utilisation_before": one.utilisation(one.before),
        "utilisation_after": one.utilisation(after),
        "replicas": one.one.replicas,
        "replicas_needed": None if promises is None else promises.base,
        "promises": None if promises is None else {name: getattr(promises, name) for name in promises.__slots__},
        "headroom_replicas": one.headroom,
        "bursts": {
            "p99_to_median_ratio": None if bursts is None else bursts.p99_to_usual,
            "longest_seconds": None if bursts is None else bursts.longest_s,
            "max_ramp_rps": None if bursts is None else bursts.max_ramp,
        },
        "rate_before": None if one.before is None else one.before.rate,
        "rate_after": None if after is None else after.rate,
        "requests": one.one.hours.requests,
        "changed_at": None if one.changed is None else one.changed.event["started_at"],
        "target_utilisation": one.pool.target_utilisation,
        "rates_assumed": one.pool.assumed,
    }


def _section(one: Section) -> dict[str, Any]:
    return {
        "title": one.title,
        "text": list(one.text),
        "tables": [
            {"title": table.title, "columns": list(table.columns), "rows": [list(row) for row in table.rows]}
            for table in one.tables
        ],
    }


def _plain(value: Any) -> Any:
    match value:
        case Mapping():
            return {str(key): _plain(one) for key, one in value.items()}
        case list() | tuple():
            return [_plain(one) for one in value]
        case np.bool_():
            return bool(value)
        case np.integer():
            return int(value)
        case float() | np.floating():
            return float(value) if math.isfinite(value) else None
        case _:
            return value
