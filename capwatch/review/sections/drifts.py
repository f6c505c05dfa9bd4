"""Drift events: when, how much, through what, who, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from capwatch.drift.event import EFFECTS
from capwatch.review.diagnosis import finding
from capwatch.review.facts import Facts
from capwatch.review.section import Missing, Section, Table
from capwatch.review.text import added, day, percent, signed
from capwatch.review.week import Week

ORDER: Final = 60


def SECTION(week: Week, facts: Mapping[str, Facts]) -> Section:
    """Every drift that was raised in the week, measured over all hours since."""
    found, rows, missing = [], [], []
    for name, one in facts.items():
        found += [finding(week, one, change) for change in one.changes]
        for change in one.changes:
            event = change.event
            rows.append(
                [
                    name, day(event["started_at"]), day(event["at"]), event["direction"],
                    f"{event['cost_before']:.3f} → {event['cost_after']:.3f}", signed(event["cost_change_ratio"]),
                    *(added(event["effects"][effect]) for effect in EFFECTS),
                    signed(event["request_rate_change_ratio"]), event.get("verdict") or "not judged",
                ]
            )  # fmt: skip
        if one.one.unjudged:
            missing.append(
                Missing(f"drift detection of {name}", one.one.unjudged, "three days of history before the week")
            )
    columns = [
        "pool", "since (UTC)", "raised (UTC)", "direction", "replica-s per request", "change", *EFFECTS, "rate",
        "verdict",
    ]  # fmt: skip
    text = [] if rows else [_quiet(facts)]
    return Section(
        "Drift of the mix",
        text,
        [Table("Drifts: cost per request before and after, and its effects in replica-seconds", columns, rows)]
        if rows
        else [],
        findings=found,
        missing=missing,
    )


def _quiet(facts: Mapping[str, Facts]) -> str:
    """No drift: the smallest that would have been seen in the means of two weeks."""
    sizes = []
    for name, one in facts.items():
        if one.before is not None and one.after is not None and one.before.error and one.after.error:
            error = 2 * (one.before.error**2 + one.after.error**2) ** 0.5 / one.before.cost
            change = one.after.cost / one.before.cost - 1
            sizes.append(f"{name} {signed(change)} against the week before (± {percent(error)})")
    return "No drift was raised." + (f" Cost per request: {'; '.join(sizes)}." if sizes else "")
