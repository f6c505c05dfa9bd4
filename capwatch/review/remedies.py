"""What to do, ordered by speed, reversibility and cost, each with what it would make of the utilisation.

First cut the work (minutes, free, undone at once), then admission (seconds), overflow (seconds, money), replicas
(minutes, money), the replica's shape (days). The effects are the formulas of `capwatch.capacity` at the measured rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from capwatch.capacity import sizing, work
from capwatch.review.change import Change
from capwatch.review.facts import Facts
from capwatch.review.stretch import Stretch
from capwatch.review.text import number, percent, signed

RUNGS = ("cut the work", "admission", "overflow", "replicas", "shape")
TAKES = ("minutes, undone at once, free", "seconds", "seconds if it is prepared, by the token", "minutes", "days")


@dataclass(frozen=True, slots=True)
class Remedy:
    """One remedy.

    Attributes:
        rung: place in `RUNGS`.
        text: what to do, and what comes of it.
        utilisation: that it leads to; None where that is not computed.
        replicas: that it needs.
    """

    rung: int
    text: str
    utilisation: float | None = None
    replicas: int | None = None

    @property
    def told(self) -> str:
        """In one line."""
        return f"{RUNGS[self.rung]} ({TAKES[self.rung]}): {self.text}"

    def line(self) -> dict[str, Any]:
        """For machines."""
        return {
            "rung": RUNGS[self.rung], "takes": TAKES[self.rung], "text": self.text,
            "utilisation": self.utilisation, "replicas": self.replicas,
        }  # fmt: skip


def of_change(facts: Facts, change: Change, cause: str, who: Mapping[str, Any] | None) -> list[Remedy]:
    """Remedies of a rise: undo its cause, else carry it."""
    after, before = change.after, change.before
    if before is None:
        return of_load(facts, after)
    return [*_undone(facts, after, before, cause, who), *of_load(facts, after)]


def of_load(facts: Facts, now: Stretch) -> list[Remedy]:
    """Remedies of a load over the target, whatever its cause."""
    replicas, used = facts.one.replicas, facts.utilisation(now)
    if replicas is None or used is None:
        return []
    target = facts.pool.target_utilisation
    found = []
    if used > target:
        most = work.capacity(replicas, now.cost) * target
        shed = 1 - target / used
        found.append(
            Remedy(
                1,
                f"admit at most {number(most)} requests/s, lowest priority last, by expected wait and not by queue "
                f"length: refuses {percent(shed)} of {number(now.rate)}/s → utilisation {percent(target)}",
                target,
            )
        )
        found.append(
            Remedy(2, f"send {percent(shed)} of the work elsewhere → utilisation {percent(target)} here", target)
        )
    found += _more(facts, now, replicas, used)
    memory = facts.memory(now)
    if memory is not None and max(memory.bound or 0.0, memory.running or 0.0) > 0.8:
        found.append(
            Remedy(4, "a replica with more KV memory: another shape, parallelism, or prefill and decode apart")
        )
    return found


def _more(facts: Facts, now: Stretch, replicas: int, used: float) -> list[Remedy]:
    needed = sizing.needed(now.demand, 1, facts.pool.target_utilisation)
    if needed <= replicas:
        return []
    then = work.utilisation(now.charged_rate, now.cost, needed)
    price = facts.pool.price.replica_hour_usd
    cost = f", {number((needed - replicas) * price * 24 * 7)} USD a week" if price is not None else ""
    start = facts.pool.cold_start
    lag = f" after {number(start)} s of cold start" if start is not None else ""
    return [
        Remedy(
            3,
            f"+{needed - replicas} replicas ({replicas} → {needed}){lag}{cost} → utilisation {percent(then)}, within "
            f"the target of {percent(facts.pool.target_utilisation)}; now {percent(used)}",
            then,
            needed,
        )
    ]


def _undone(facts: Facts, after: Stretch, before: Stretch, cause: str, who: Mapping[str, Any] | None) -> list[Remedy]:
    """Cut what grew back to what it was."""
    prompt, cached, output = after.lengths
    was_prompt, was_cached, was_output = before.lengths
    hits, had = (part / whole if whole else 0.0 for part, whole in ((cached, prompt), (was_cached, was_prompt)))
    cut: dict[str, tuple[str, float]] = {
        "prompt": (
            (
                f"prompts back to {number(was_prompt)} tokens (retrieval depth, history, system prompt;"
                f" now {number(prompt)})"
            ),
            after.cost_of(was_prompt, was_prompt * hits, output),
        ),
        "cache": (
            (
                f"the prefix cache back to {percent(had)} hits (stable prefixes first, routing by prefix;"
                f" now {percent(hits)})"
            ),
            after.cost_of(prompt, prompt * had, output),
        ),
        "output": (
            f"answers capped so that their mean is {number(was_output)} tokens again (now {number(output)})",
            after.cost_of(prompt, cached, was_output),
        ),
    }
    if cause == "mix" and who is not None:
        return _held(facts, after, who)
    if cause not in cut:
        return []
    text, cost = cut[cause]
    return [_cut(facts, after, text, after.charged_rate, cost)]


def _held(facts: Facts, after: Stretch, who: Mapping[str, Any]) -> list[Remedy]:
    """Hold whoever came to the share that it had."""
    dimension, name = str(who["dimension"]), str(who["value"])
    theirs = after.hours.where(dimension, name)
    rest = after.hours.take(after.hours.labels[dimension].codes != _code(after, dimension, name))
    if not rest.charged:
        return []
    others = Stretch(rest, after.pool, after.since, after.until)
    keep = float(who["share_before"]) / max(1e-9, 1 - float(who["share_before"])) * rest.charged
    demand = others.demand + keep / after.seconds * Stretch(theirs, after.pool, after.since, after.until).cost
    rate = (rest.charged + keep) / after.seconds
    text = (
        f"a budget for {dimension} {name}, {percent(who['share_before'])} of the requests as before (now "
        f"{percent(who['share_after'])}), or shorter requests from it"
    )
    return [_cut(facts, after, text, rate, demand / rate)]


def _code(after: Stretch, dimension: str, name: str) -> int:
    return after.hours.labels[dimension].names.index(name)


def _cut(facts: Facts, after: Stretch, text: str, rate: float, cost: float) -> Remedy:
    if facts.one.replicas is None:
        return Remedy(0, f"{text} → {signed(rate * cost / after.demand - 1)} work")
    then = work.utilisation(rate, cost, facts.one.replicas)
    needed = sizing.needed(rate * cost, 1, facts.pool.target_utilisation)
    return Remedy(0, f"{text} → utilisation {percent(then)}", then, needed)
