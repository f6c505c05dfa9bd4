"""The first lines: what changed and what to do first, each with a number and its error."""

from __future__ import annotations

from capwatch.review.document import Document
from capwatch.review.text import number, percent, signed

MOST = 5


def lines(document: Document) -> list[str]:
    """At most five."""
    found = [
        one.title + (f". First: {one.remedies[0].partition(': ')[2] or one.remedies[0]}" if one.remedies else "")
        for one in document.findings
        if one.severity != "info"
    ]
    for name, one in document.facts.items():
        if one.week is None:
            continue
        text = f"{name}: {number(one.week.rate)} requests/s at {number(one.week.cost, one.week.error)} replica-seconds"
        if one.utilisation(one.week) is not None:
            text += f", utilisation {percent(one.utilisation(one.week))} of {one.one.replicas} replicas"
        if one.headroom is not None and one.promises is not None:
            text += f", {one.promises.base} needed at the busy hour"
        if one.last is not None and one.last.cost:
            text += f"; cost {signed(one.week.cost / one.last.cost - 1)} against the week before"
        found.append(text)
    if len(document.missing) > 0:
        found = found[: MOST - 1]
        whats = [one.what for one in document.missing]
        found.append(f"{len(whats)} parts could not be judged, see the end: {', '.join(whats[:3])} …")
    return found[:MOST] or ["No request of this week is told."]
