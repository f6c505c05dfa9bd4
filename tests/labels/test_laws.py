"""The series budget as seen from outside, whatever comes in whatever order (contract, section 5; laws 3 and 4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capwatch.config.schema import Config, Limits, Match, Pool
from capwatch.keep.codec import pack, unpack
from capwatch.labels import own
from capwatch.ledger import Delta
from capwatch.origin import Origin
from capwatch.pipeline import Pipeline
from tests.spine import NOW, Labels, Spine, decoded, request

DAY = 86400.0
PAIR = ("tenant", "route")
CAPPED = Limits(tenants=4, routes=4, models=3, tenant_routes=6)
POOLS = (Pool("large", Match(model=("m0", "m1"))),)
VERDICTS = ("goodput_requests_total", "goodput_missed_total", "goodput_unclassified_total")


@dataclass(frozen=True)
class Step:
    """A batch, and how long after the one before."""

    pause: float
    rows: Sequence[tuple[int, int, int, int]]
    """(tenant, route, model, prompt tokens)"""


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from([0.0, 10.0, 4000.0, 3 * DAY, 8 * DAY]),
        st.lists(
            st.tuples(st.integers(0, 9), st.integers(0, 6), st.integers(0, 4), st.sampled_from([1, 1000, 90000])),
            max_size=8,
        ),
    ),
    min_size=1,
    max_size=8,
)


def fed(spine: Spine, steps: Sequence[Step], since: float = NOW) -> float:
    """Let a spine take batches, their times one after the other from ``since`` on; the time of the last."""
    for step in steps:
        since += step.pause
        spine.feed(*rows(step, since), now=since)
    return since


def rows(step: Step, at: float) -> list[dict[str, object]]:
    """The requests of a batch."""
    return [
        request(tenant=f"t{t}", route=f"/r{r}", model=f"m{m}", prompt_tokens=p, finished_at=at)
        for t, r, m, p in step.rows
    ]


def counts(spine: Spine, name: str, *labels: str) -> Counter[tuple[str, ...]]:
    """A metric summed over all but some labels."""
    found: Counter[tuple[str, ...]] = Counter()
    for key, value in spine.values(name).items():
        found[tuple(dict(key)[label] for label in labels)] += value  # type: ignore[assignment]
    return found


@given(STEPS)
@settings(max_examples=25)
def test_nothing_falls_but_by_retirement_and_nothing_leaps(steps: Sequence[Step]) -> None:
    """Of each commit: what grew are its requests, and what is gone went to the retired totals, whole."""
    spine, at = Spine(Config(limits=CAPPED)), NOW
    before: dict[Labels, float] = {}
    retired = 0.0
    for step in steps:
        at = fed(spine, [step], at)
        after, gone = spine.values("requests_total"), spine.total("retired_requests_total") - retired
        fallen = {key for key, value in before.items() if after.get(key, 0.0) < value}
        grown = [value - before.get(key, 0.0) for key, value in after.items() if key not in fallen]
        # A name that was retired and came back in one commit begins again, perhaps where it was.
        assert sum(before[key] for key in fallen) <= gone <= sum(before.values()) * (at > NOW + 7 * DAY)
        assert max(grown, default=0.0) <= len(step.rows)
        assert sum(after.values()) + gone == sum(before.values()) + len(step.rows)
        before, retired = after, retired + gone


@given(STEPS)
@settings(max_examples=25)
def test_sums_and_retired_are_exact(steps: Sequence[Step]) -> None:
    """Law 3 for requests, tokens and cost."""
    spine = Spine(Config(limits=CAPPED))
    fed(spine, steps)
    prompts = [prompt for step in steps for *_, prompt in step.rows]
    tokens = sum(prompts)
    assert spine.total("requests_total") + spine.total("retired_requests_total") == len(prompts)
    assert spine.total("tokens_total") + spine.total("retired_tokens_total") == tokens
    cost = spine.total("cost_replica_seconds_total") + spine.total("retired_cost_replica_seconds_total")
    assert cost == pytest.approx(tokens / 4000, rel=1e-9, abs=1e-12)


@given(STEPS)
@settings(max_examples=25)
def test_names_stay_within_their_limits(steps: Sequence[Step]) -> None:
    """`other` and `unknown` come on top; a pair with `other` as its route is none of the pairs."""
    spine = Spine(Config(limits=CAPPED))
    at = NOW
    for step in steps:
        at = fed(spine, [step], at)
        found = [dict(key) for key in spine.values("requests_total")]
        named = {label: {one[label] for one in found} - {"other", "unknown"} for label in ("tenant", "route", "model")}
        pairs = {(one["tenant"], one["route"]) for one in found if one["route"] != "other"}
        assert [len(named["tenant"]) <= 4, len(named["route"]) <= 4, len(named["model"]) <= 3] == [True] * 3
        assert len(pairs) <= 6


@given(STEPS, st.integers(0, 3000))
@settings(max_examples=25)
def test_series_stay_within_their_limit(steps: Sequence[Step], room: int) -> None:
    """However small the limit, as long as what is there without names fits into it."""
    least = own(sources=0, pools=2, classes=1, bounds=0)
    limits = Limits(tenants=4, routes=4, models=3, tenant_routes=6, series=least + room)
    spine = Spine(Config(limits=limits, pools=POOLS))
    at = NOW
    for step in steps:
        at = fed(spine, [step], at)
        assert spine.value("series") == len(spine.samples()) <= limits.series


@given(STEPS)
@settings(max_examples=25)
def test_verdicts_are_requests_also_across_retirement(steps: Sequence[Step]) -> None:
    """Law 4, per tenant and route."""
    spine = Spine(Config(limits=CAPPED))
    fed(spine, steps)
    judged: Counter[tuple[str, ...]] = Counter()
    for name in VERDICTS:
        judged.update(counts(spine, name, *PAIR))
    assert judged == counts(spine, "requests_total", *PAIR)


@given(STEPS)
@settings(max_examples=25)
def test_overflow_counts_each_request_of_a_capped_name(steps: Sequence[Step]) -> None:
    """Requests whose tenant is `other` are those that the limit of tenants turned into it."""
    spine = Spine(Config(limits=Limits(tenants=4, routes=100, models=50)))
    fed(spine, steps)
    other = spine.total("requests_total", tenant="other")
    assert spine.total("label_overflow_total", label="tenant") >= other
    if not spine.total("retired_requests_total"):
        assert spine.total("label_overflow_total", label="tenant") == other


@given(STEPS, st.integers(0, 8))
@settings(max_examples=25)
def test_a_restart_in_the_middle_changes_nothing(steps: Sequence[Step], cut: int) -> None:
    """What is saved is all there is: the same names, the same series, the same totals."""
    whole, begun = Spine(Config(limits=CAPPED)), Spine(Config(limits=CAPPED))
    fed(whole, steps)
    begun.commit()
    at = fed(begun, steps[:cut])
    again = restarted(begun)
    fed(again, steps[cut:], at)
    assert again.samples() == pytest.approx(whole.samples(), rel=1e-9)


@given(STEPS, st.integers(0, 8), st.integers(0, 8))
@settings(max_examples=25)
def test_deltas_after_a_checkpoint_are_as_good_as_the_checkpoint(steps: Sequence[Step], one: int, more: int) -> None:
    """After a crash, names and series are what they were; only what late names weigh is judged anew."""
    begun = Spine(Config(limits=CAPPED))
    begun.commit()
    at = fed(begun, steps[:one])
    kept = pack([begun.totals.save(), begun.pipeline.save()])
    deltas = []
    for step in steps[one : one + more]:
        at += step.pause
        begun.pipeline.take(Origin("log"), decoded(*rows(step, at)), at)
        delta = begun.pipeline.freeze()
        begun.totals.apply(delta)
        deltas.append((delta, dict(begun.pipeline.news())))
    again = restarted(begun, kept, deltas)
    assert again.samples() == pytest.approx(begun.samples(), rel=1e-9)
    if begun.values("requests_total", tenant="t0", route="/r0", model="m0"):
        for spine in (begun, again):
            spine.feed(request(tenant="t0", route="/r0", model="m0", finished_at=at), now=at)
        assert again.samples() == pytest.approx(begun.samples(), rel=1e-9)


def restarted(spine: Spine, kept: bytes | None = None, deltas: Sequence[tuple[Delta, dict[str, Any]]] = ()) -> Spine:
    """A spine made from what another one saved, as bytes, and from deltas after that."""
    totals, pipeline = unpack(kept or pack([spine.totals.save(), spine.pipeline.save()]))
    again = Spine(spine.config)
    again.totals.load(totals)
    for delta, _ in deltas:
        again.totals.apply(delta)
    again.pipeline = Pipeline(spine.config, again.totals.names.copy())
    again.pipeline.load(pipeline)
    for delta, news in deltas:
        again.pipeline.absorb(delta, news)
    return again
