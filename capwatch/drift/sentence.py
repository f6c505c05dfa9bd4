"""A drift in one breath, for people on call; the same words wherever a drift is told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from capwatch.capacity import sizing, work
from capwatch.drift.event import DIMENSIONS, EFFECTS, Contribution, Event
from capwatch.record import Note

WORDS: Final = {"mix": "the mix", "prompt": "longer prompts", "output": "longer answers", "cache": "fewer cache hits"}
LESS: Final = {"mix": "the mix", "prompt": "shorter prompts", "output": "shorter answers", "cache": "more cache hits"}
_PLENTY: Final = 0.5
"""A value is named while it explains at least that part of the largest contribution of its dimension."""
_OUT_OF_PROPORTION: Final = 1.5
"""Of what all requests have more of, a value brings about its share: it is named from so many times that on."""
_NEARLY_ALL: Final = 0.9
"""Or where it brings that part of the effect: then it is true of it, whatever its share."""
_LONGEST: Final = 100
"""Characters of a deploy note that are told."""


@dataclass(frozen=True, slots=True)
class Pool:
    """What a pool's sentence also tells, where it is configured."""

    replicas: int
    target: float
    """Utilisation that is planned for, in (0, 1]."""


def sentence(event: Event, pool: Pool | None = None, deploy: Note | None = None) -> str:
    """The text of an event; ``deploy`` is the note that came shortly before it began.

    >>> long = Contribution("class", "long", "mix", 0.26, 0.01, 0.08)
    >>> effects = {"mix": 0.2565, "prompt": 0.0, "output": 0.0, "cache": 0.0}
    >>> drift = Event("raised", "up", 1767606120.0, 1767606060.0, 0.992, 1.2485, None, effects, (long,), None, 8.0, 8.0)
    >>> print(sentence(drift, Pool(12, 0.7)))
    Cost per request +26 % since 09:41 UTC at flat 8.0 req/s: class long 1 % → 8 % of requests. Utilisation 66 % → \
83 %; 15 replicas needed at 70 %, 12 there.
    >>> print(sentence(drift, deploy=Note(1767605820.0, None, "retrieval 4 → 8 chunks")))
    Cost per request +26 % since 09:41 UTC at flat 8.0 req/s: class long 1 % → 8 % of requests. It began 4 min after \
the deploy note "retrieval 4 → 8 chunks".
    """
    since = datetime.fromtimestamp(event.started_at, UTC)
    if event.event == "cleared":
        why = f": {event.note}" if event.note else ""
        return f"Over: cost per request {_signed(event.change)} since {since:%H:%M} UTC{why}."
    parts = [f"Cost per request {_signed(event.change)} since {since:%H:%M} UTC at {_rate(event)}: {_cause(event)}."]
    if deploy is not None:
        parts.append(f"It began {_after(event.started_at - deploy.at)} the deploy note {_quoted(deploy.text)}.")
    if pool is not None and pool.replicas > 0:
        before, after = (
            work.utilisation(rate, cost, pool.replicas)
            for rate, cost in ((event.rate_after, event.cost_before), (event.rate_after, event.cost_after))
        )
        needed = sizing.needed(event.rate_after * event.cost_after, 1.0, pool.target)
        parts.append(
            f"Utilisation {_percent(before)} → {_percent(after)}; {needed} replicas needed at {_percent(pool.target)}, "
            f"{pool.replicas} there."
        )
    if event.verdict in ("queueing", "both"):
        parts.append("Requests also wait longer." if event.verdict == "both" else "Requests wait longer.")
    return " ".join(parts)


def _rate(event: Event) -> str:
    """The request rate beside it: a change of the mix is no change of the rate."""
    change = event.rate_change
    if abs(change) < 0.15:
        return f"flat {_number(event.rate_after)} req/s"
    return f"{_number(event.rate_before)} → {_number(event.rate_after)} req/s"


def _cause(event: Event) -> str:
    """Who and through what: the largest named contributions of the largest effect, else the effect alone."""
    sign = 1 if event.cost_after >= event.cost_before else -1
    kind = max(EFFECTS, key=lambda effect: sign * event.effects[effect])
    words = (WORDS if sign > 0 else LESS)[kind]
    named = [one for one in event.contributions if one.effect == kind and sign * one.replica_seconds > 0]
    who = [one for dimension in DIMENSIONS for one in _leading(named, dimension)]
    if kind == "mix" and who:
        return f"{', '.join(f'{_name(one)} {_shares(one)}' for one in who)} of requests"
    out = [_name(one) for one in who if _stands_out(one, event.effects[kind])]
    return words + (f" of {', '.join(out)}" if out else "")


def _leading(named: list[Contribution], dimension: str) -> list[Contribution]:
    """The values of a dimension that bring most."""
    mine = [one for one in named if one.dimension == dimension]
    told = [one for one in mine if abs(one.replica_seconds) >= _PLENTY * abs(mine[0].replica_seconds)]
    return told if len(told) <= 2 else []  # it is all of them, so it is none of them


def _stands_out(one: Contribution, effect: float) -> bool:
    """Whether a value brings more of an effect than its share of the requests, so that it is not just a large one."""
    part = one.replica_seconds / effect
    return part >= min(_OUT_OF_PROPORTION * one.share_after, _NEARLY_ALL)


def _name(one: Contribution) -> str:
    return f"{one.dimension} {one.value}"


def _shares(one: Contribution) -> str:
    return f"{_percent(one.share_before)} → {_percent(one.share_after)}"


def _after(seconds: float) -> str:
    """How long after; an estimate is right after what it comes a moment before."""
    return f"{seconds / 60:.0f} min after" if seconds >= 60 else "right after"


def _quoted(text: str) -> str:
    line = " ".join(text.split())
    return f'"{line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"}"'


def _percent(share: float) -> str:
    text = f"{100 * share:.1f}" if 0 < share < 0.0095 else f"{100 * share:.0f}"
    return f"{text} %"


def _signed(change: float) -> str:
    return f"{100 * change:+.0f} %"


def _number(value: float) -> str:
    return f"{value:.1f}" if value >= 1 else f"{value:.2g}"
