"""From symptoms to a cause: what moved (rate, lengths, decode speed, in flight, KV) and what that means.

Reading rule: rate flat and decode speed unchanged means it is not an output story; look at the prompt lengths first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from capwatch.drift.event import EFFECTS
from capwatch.review.change import Change
from capwatch.review.facts import Facts
from capwatch.review.remedies import of_change
from capwatch.review.section import Finding
from capwatch.review.stretch import Stretch
from capwatch.review.text import added, day, exact, number, percent, seconds, signed
from capwatch.review.week import Week

MOVED: Final = 0.05
"""Relative change of a mean from which it is a symptom."""
NEAR_S: Final = 2 * 3600
"""A note that close to a change point is told beside it."""
CAUSES: Final = {
    "prompt": "longer prompts",
    "cache": "fewer prefix cache hits",
    "output": "longer answers",
    "mix": "another mix of requests",
}
LESS: Final = {
    "prompt": "shorter prompts",
    "cache": "more prefix cache hits",
    "output": "shorter answers",
    "mix": "another mix of requests",
}


@dataclass(frozen=True, slots=True)
class Symptom:
    """One measure before and after; None is not told."""

    name: str
    unit: str
    before: float | None
    after: float | None

    @property
    def change(self) -> float | None:
        """Relative change; None where one of both is not known or nothing was there before."""
        if self.before is None or self.after is None or self.before <= 0:
            return None
        return self.after / self.before - 1

    @property
    def moved(self) -> bool:
        """Whether it is a symptom."""
        return self.change is not None and abs(self.change) >= MOVED


def symptoms(facts: Facts, before: Stretch, after: Stretch) -> list[Symptom]:
    """The symptom vector of a change."""
    pair = (before, after)
    found = [Symptom("requests", "/s", before.rate, after.rate)]
    tpot = [some.hours.mean("tpot_s") for some in pair]
    found.append(Symptom("time per output token, mean", "s", *tpot))
    for measure, what in (("prompt_tokens", "prompt"), ("output_tokens", "output")):
        for q in (50, 95):
            told = [_quantile(some, measure, q) for some in pair]
            found.append(Symptom(f"{what} p{q}", "tokens", *told))
    hits = [cached / prompt if prompt else None for prompt, cached, _ in (some.lengths for some in pair)]
    found.append(Symptom("prefix cache hits", "share", *hits))
    found.append(Symptom("in flight in the engines", "requests", *(some.inside for some in pair)))
    memory = [facts.memory(some) for some in pair]
    found.append(Symptom("KV demand, upper bound", "share", *(None if one is None else one.bound for one in memory)))
    found.append(
        Symptom("KV demand, running sequences", "share", *(None if one is None else one.running for one in memory))
    )
    ttft = [_quantile(some, "ttft_s", 95) for some in pair]
    found.append(Symptom("time to first token p95", "s", *ttft))
    return found


def _quantile(some: Stretch, measure: str, percentile: int) -> float | None:
    found = some.hours.quantiles(measure, (percentile / 100,))
    return None if found is None else found[0]


def cause_of(event: Mapping[str, Any]) -> str:
    """The effect that moved the cost most, in its direction."""
    sign = 1 if event["cost_after"] >= event["cost_before"] else -1
    return max(EFFECTS, key=lambda effect: sign * float(event["effects"][effect]))


def leader(event: Mapping[str, Any], cause: str) -> Mapping[str, Any] | None:
    """Who contributes most through the cause; a tenant before a route or class that is nearly as large."""
    sign = 1 if event["cost_after"] >= event["cost_before"] else -1
    mine = [one for one in event["contributions"] if one["effect"] == cause and sign * one["replica_seconds"] > 0]
    if not mine:
        return None
    largest = max(abs(one["replica_seconds"]) for one in mine)
    near = [one for one in mine if abs(one["replica_seconds"]) >= 0.8 * largest]
    order = {"tenant": 0, "route": 1, "class": 2}
    first: Mapping[str, Any] = min(near, key=lambda one: order.get(str(one["dimension"]), 3))
    return first


def finding(week: Week, facts: Facts, change: Change) -> Finding:
    """What a drift means, with its evidence and its remedies."""
    event = change.event
    cause = cause_of(event)
    rise = event["cost_after"] >= event["cost_before"]
    who = leader(event, cause) if cause == "mix" else None
    used = facts.utilisation(change.after)
    over = used is not None and used > facts.pool.target_utilisation
    words = (CAUSES if rise else LESS)[cause]
    named = f", {who['dimension']} {who['value']}" if who is not None else ""
    remedies = of_change(facts, change, cause, who) if rise else []
    title = (
        f"{facts.one.name}: a request costs {signed(event['cost_change_ratio'])} since "
        f"{day(event['started_at'])} UTC: {words}{named}"
    )
    return Finding(
        title,
        "critical" if used is not None and used >= 1 else "warning" if rise and over else "info",
        [*_evidence(facts, change), *_notes(week, facts, event)],
        [one.told for one in remedies] or ([] if rise else ["nothing to do; fewer replicas may carry it"]),
        {"event": dict(event), "remedies": [one.line() for one in remedies], "symptoms": _vector(facts, change)},
        facts.one.name,
    )


def _vector(facts: Facts, change: Change) -> list[dict[str, Any]]:
    if change.before is None:
        return []
    return [
        {"name": one.name, "unit": one.unit, "before": one.before, "after": one.after, "moved": one.moved}
        for one in symptoms(facts, change.before, change.after)
    ]


def _evidence(facts: Facts, change: Change) -> list[str]:
    event, before, after = change.event, change.before, change.after
    if before is None:
        return [
            (
                f"cost per request {number(event['cost_before'])} → {number(event['cost_after'])} replica-seconds"
                ", as the detector told it; nothing is known of the time before"
            )
        ]
    window = f"{day(after.since)} to {day(after.until)} UTC, {exact(after.hours.charged)} requests"
    against = f"{day(before.since)} to {day(before.until)} UTC, {exact(before.hours.charged)} requests"
    effects = ", ".join(f"{name} {added(event['effects'][name])}" for name in EFFECTS)
    told = [
        (
            f"cost per request {number(before.cost, before.error)} → {number(after.cost, after.error)} replica-seconds"
            f" ({window}; against {against})"
        ),
        f"effects in replica-seconds, adding up to {event['cost_after'] - event['cost_before']:+.3f}: {effects}",
        f"prefill {before.prefill:.3f} → {after.prefill:.3f} replica-seconds ({signed(_ratio(before, after))})",
    ]
    told += [
        f"{one.name}: {_shown(one, one.before)} → {_shown(one, one.after)}{_how(one)}"
        for one in symptoms(facts, before, after)
        if one.before is not None and one.after is not None
    ]
    told += _load(facts, before, after)
    if event.get("verdict"):
        told.append(f"verdict of the detector: {event['verdict']}")
    if event.get("note"):
        told.append(str(event["note"]))
    return told


def _ratio(before: Stretch, after: Stretch) -> float:
    return after.prefill / before.prefill - 1 if before.prefill else 0.0


def _shown(one: Symptom, value: float) -> str:
    if one.unit == "share":
        return percent(value)
    return seconds(value) if one.unit == "s" else f"{number(value)} {one.unit}"


def _how(one: Symptom) -> str:
    change = one.change
    if change is None:
        return ""
    return f" ({signed(change)})" if one.moved else " (unchanged)"


def _load(facts: Facts, before: Stretch, after: Stretch) -> list[str]:
    used = [facts.utilisation(some) for some in (before, after)]
    promises = facts.promises
    if used[0] is None or used[1] is None or promises is None:
        return []
    return [
        (
            f"utilisation {percent(used[0])} → {percent(used[1])} of {facts.one.replicas} replicas; {promises.base} are"
            f" needed at {percent(facts.pool.target_utilisation)}"
        )
    ]


def _notes(week: Week, facts: Facts, event: Mapping[str, Any]) -> list[str]:
    """Deploys around the change point."""
    started = float(event["started_at"])
    near = [note for note in week.notes if note.pool in (None, facts.one.name) and abs(note.at - started) <= NEAR_S]
    return [
        f"noted {seconds(abs(started - note.at))} {'before' if note.at <= started else 'after'} it: {note.text}"
        for note in near
    ]
