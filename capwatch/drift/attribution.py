"""What moved the cost, and who: the window since the change point against what the reference expects of it.

For each dimension (tenant, route, class) the change is split by the shift-share of `capwatch.capacity.effects`, so each
table adds up to the whole change. A cell is named only where the interval of its effect, from resampled ticks, leaves
out 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from capwatch.capacity.effects import Cells, Effects, effects
from capwatch.drift.event import EFFECTS, Contribution
from capwatch.drift.frame import Frame
from capwatch.drift.model import Settings
from capwatch.drift.reference import Reference
from capwatch.drift.ticks import TICK_S, Ticks, added
from capwatch.record import Bools, Floats, Ints

RESAMPLES: Final = 200
NAMED: Final = 10
SURE: Final = 2.0
"""Standard errors by which lengths differ from history where they are named."""
MUCH: Final = 0.25
"""Part of the change that makes a name worth telling which history does not have."""
LITTLE: Final = 0.01
"""Part of the change under which nothing is told, however sure."""
_PIECE: Final = 6
"""Ticks that are resampled together where the window allows it: neighbours are alike."""

Names = Callable[[str, int], str]
"""(dimension, code) → the name to show."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a window says. Costs in replica-seconds per request."""

    cost_before: float
    cost_after: float
    interval: tuple[float, float] | None
    effects: dict[str, float]
    contributions: tuple[Contribution, ...]
    rate_before: float
    rate_after: float


class _Grouped(NamedTuple):
    """The values of a dimension: which one each cell of the window has, and what was expected of each."""

    group: Ints
    labels: list[str]
    share: Floats
    sums: dict[str, Floats]
    """Expected tokens of each value, per request of all."""


@dataclass(frozen=True, slots=True)
class _Table:
    dimension: str
    labels: list[str]
    before: Cells
    after: Cells
    parts: Effects
    drawn: Effects
    """The same for each resample: float64[RESAMPLES, cells]."""
    surely: dict[str, Bools]
    """Whether the lengths behind an effect differ from history by more than its own ups and downs explain."""


def explain(ticks: Ticks, frame: Frame, reference: Reference, settings: Settings, names: Names) -> Found:
    """Explain a window.

    Args:
        ticks: the cells of the window.
        frame: the same ticks, laid out.
        reference: what is usual.
        settings: the pool's rates.
        names: names of codes.
    """
    n = max(1.0, frame.n.sum())
    joint = np.einsum("t,tsk->sk", frame.n, frame.joint) / n
    scaled = np.einsum("t,tsk->sk", frame.n * reference.factor[frame.cell], frame.joint) / n
    usual = {name: scaled * reference.level[name] for name in ("prompt", "computed", "output")}
    window = ticks, frame, _resamples(len(frame))
    tables = [
        _table("class", _by_class(ticks, reference, joint, usual, names), window, reference, settings),
        _table("tenant", _by_tenant(ticks, reference, joint, usual, names), window, reference, settings),
        _table("route", _by_route(ticks, frame, reference, usual, names), window, reference, settings),
    ]
    told = [table for table in tables if _several(table)] or tables[:1]
    chosen = max(told, key=lambda table: abs(float(table.parts.mix.sum())))
    before = (
        sum(usual["computed"].ravel()) / settings.prefill_rate + sum(usual["output"].ravel()) / settings.decode_rate
    )
    total = {name: float(getattr(chosen.parts, name).sum()) for name in EFFECTS}
    after = before + sum(total.values())
    drawn = 1 + chosen.drawn.total.sum(axis=1) / max(before, 1e-12) - 1
    seconds = max(1, len(frame)) * TICK_S
    expected = float(reference.rates(frame.tick, np.ones((len(frame), 1), np.bool_)).sum())
    return Found(
        cost_before=float(before),
        cost_after=float(after),
        interval=(float(np.quantile(drawn, 0.05)), float(np.quantile(drawn, 0.95))) if len(frame) > 2 else None,
        effects=total,
        contributions=_largest([one for table in told for one in _named(table)]),
        rate_before=expected / seconds,
        rate_after=float(frame.n.sum()) / seconds,
    )


def _by_class(ticks: Ticks, reference: Reference, joint: Floats, usual: dict[str, Floats], names: Names) -> _Grouped:
    layout = reference.layout
    labels = [*(names("class", code) for code in layout.classes), "other"]
    sums = {name: part.sum(axis=0) for name, part in usual.items()}
    return _Grouped(layout.class_places(ticks), labels, joint.sum(axis=0), sums)


def _by_tenant(ticks: Ticks, reference: Reference, joint: Floats, usual: dict[str, Floats], names: Names) -> _Grouped:
    layout = reference.layout
    owner = layout.owners[layout.slots(ticks)]
    size = layout.unseen + 1
    strangers = np.unique(ticks.tenant[owner == layout.unseen])
    group = np.where(owner == layout.unseen, size + np.searchsorted(strangers, ticks.tenant), owner)
    labels = [*(names("tenant", code) for code in layout.tenants), "other", "unseen"]
    labels += [names("tenant", int(code)) for code in strangers]

    def owned(part: Floats) -> Floats:
        return added(layout.owners, part, size + len(strangers))

    return _Grouped(
        group, labels, owned(joint.sum(axis=1)), {name: owned(part.sum(axis=1)) for name, part in usual.items()}
    )


def _by_route(ticks: Ticks, frame: Frame, reference: Reference, usual: dict[str, Floats], names: Names) -> _Grouped:
    layout = reference.layout
    share = np.asarray(frame.n @ reference.route[frame.cell]) / max(1.0, frame.n.sum())
    share = share / share.sum()
    place = layout.route_places(ticks)
    unseen = len(layout.routes) + 1
    strangers = np.unique(ticks.route[place == unseen])
    group = np.where(place == unseen, unseen + 1 + np.searchsorted(strangers, ticks.route), place)
    labels = [*(names("route", code) for code in layout.routes), "other", "unseen"]
    labels += [names("route", int(code)) for code in strangers]
    sums = {}
    for name, part in usual.items():
        raw = share * reference.route_level[name]
        # The routes' means of history, brought to what is expected of this window's hours and tenants.
        sums[name] = np.append(raw * part.sum() / max(1e-12, raw.sum()), np.zeros(len(strangers)))
    return _Grouped(group, labels, np.append(share, np.zeros(len(strangers))), sums)


def _table(
    dimension: str, cells: _Grouped, window: tuple[Ticks, Frame, Floats], reference: Reference, settings: Settings
) -> _Table:
    """A dimension's effects, and those of each resample of the window (cells, ticks, weights of the resamples)."""
    group, labels, share, sums = cells
    ticks, frame, weights = window
    before = _cells(share, sums["prompt"], sums["computed"], sums["output"])
    place = (ticks.tick - frame.tick[0]) * len(labels) + group
    now = [added(place, ticks[name], len(frame), len(labels)) for name in ("n", "prompt", "computed", "output")]
    rates = settings.prefill_rate, settings.decode_rate

    def compared(weight: Floats) -> tuple[Cells, Effects]:
        n, *rest = (weight @ part for part in now)
        whole = np.maximum(1.0, n.sum(axis=-1, keepdims=True))
        after = _cells(n / whole, *(part / whole for part in rest))
        full = Cells(*(np.broadcast_to(part, n.shape) for part in before))
        return after, effects(full, after, *rates, centred=True)

    after, parts = compared(np.ones(len(frame)))
    surely = _surely(ticks, reference, group, len(labels))
    return _Table(dimension, labels, before, after, parts, _widened(parts, compared(weights)[1], len(frame)), surely)


def _surely(ticks: Ticks, reference: Reference, group: Ints, size: int) -> dict[str, Bools]:
    """Where mean log lengths are two standard errors from what is usual in the same slots and classes: bool[size] each.

    The resamples of a minute know nothing of shocks that last longer; the reference does.
    """
    slot, klass = reference.layout.slots(ticks), reference.layout.class_places(ticks)
    n, found = ticks["n"], {}
    for effect, name in (("prompt", "log_computed"), ("output", "log_output"), ("cache", "log_ratio")):
        excess = ticks[name] - n * reference.level[name][slot, klass]
        variance = n * reference.spread[name][slot, klass] ** 2 * reference.shock[name][slot, klass]
        error = np.sqrt(np.maximum(1e-12, added(group, variance, size)))
        found[effect] = np.abs(added(group, excess, size)) > SURE * error
    # Prompts may grow while what is computed of them stays, and the reverse: either may show either.
    found["prompt"] = found["cache"] = found["prompt"] | found["cache"]
    return found


def _widened(parts: Effects, drawn: Effects, ticks: int) -> Effects:
    """Resamples spread as those of few ticks should be: the bootstrap of T values is narrow by √(T/(T − 1)), and
    their interval is that of Student's t.
    """
    if ticks < 2:
        return drawn
    factor = (1 + 1.2 / (ticks - 1)) * np.sqrt(ticks / (ticks - 1))
    return Effects(*(mean + factor * (one - mean) for mean, one in zip(parts, drawn, strict=True)))


def _cells(share: Floats, prompt: Floats, computed: Floats, output: Floats) -> Cells:
    """Cells from sums per request of all."""
    some = share > 1e-12
    prompt, computed, output = (
        np.divide(part, share, out=np.zeros_like(share), where=some) for part in (prompt, computed, output)
    )
    return Cells(np.where(some, share, 0.0), prompt, prompt - computed, output)


def _resamples(ticks: int) -> Floats:
    """How often each tick is drawn in each resample; the same every time."""
    rng = np.random.default_rng(ticks)
    pieces = max(1, ticks // _PIECE) if ticks > 10 * _PIECE else ticks
    drawn = rng.multinomial(pieces, np.full(pieces, 1 / pieces), RESAMPLES)
    return drawn[:, np.arange(ticks) * pieces // ticks].astype(np.float64)


def _named(table: _Table) -> list[Contribution]:
    """The cells that surely moved the cost, and those that are new and explain much of it, however few their ticks."""
    found = []
    change = float(table.parts.total.sum())
    new = (table.before.share == 0) & (table.after.share > 0)
    for name in EFFECTS:
        low, high = np.quantile(getattr(table.drawn, name), (0.05, 0.95), axis=0)
        size = getattr(table.parts, name)
        outside = (low > 0) | (high < 0)
        if name in table.surely:
            outside &= table.surely[name]
        if name == "mix":
            outside |= new & (size * np.sign(change) > MUCH * abs(change))
        outside &= np.abs(size) > LITTLE * abs(change)
        found += [
            Contribution(
                table.dimension,
                table.labels[i],
                name,
                float(size[i]),
                float(table.before.share[i]),
                float(table.after.share[i]),
            )
            for i in np.flatnonzero(outside).tolist()
        ]
    return found


def _several(table: _Table) -> bool:
    """Whether a dimension has more than one value in this window."""
    return bool(((table.before.share > 1e-3) | (table.after.share > 0)).sum() > 1)


def _largest(all_of_them: Sequence[Contribution]) -> tuple[Contribution, ...]:
    return tuple(sorted(all_of_them, key=lambda one: -abs(one.replica_seconds))[:NAMED])
