"""What the page says first: the worst that is true, and what to do about it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from capwatch.metrics import WATCHES
from capwatch.web import Commit, Lines
from capwatch.web.findings import ahead, findings
from capwatch.web.now import DriftNow, Finding, PoolHistory, PoolNow
from capwatch.web.status import Drifts

from .talk import SOURCE, STATUS

POOL = PoolNow(
    name="chat",
    assumed=False,
    rate=8.0,
    cost=1.0,
    cost_reference=1.0,
    drift=None,
    learning=False,
    score=0.1,
    utilisation=0.66,
    target=0.7,
    replicas=12.0,
    needed={"base": 12.0, "burst": 17.0, "zonal": None},
    headroom={"none": 0.0, "replica": -1.0, "zone": None},
    expected_wait_s=0.001,
    wait_budget_s=0.5,
    late_predicted=0.0,
    late_measured=None,
    kv_demand_ratio=0.2,
    kv_room=366_000.0,
    in_flight={},
    engines=[],
)
CLEAN = replace(STATUS, sources=[replace(SOURCE, lines=Lines(read=100, counted=100))])
DRIFT: dict[str, Any] = {
    "pool": "chat",
    "direction": "up",
    "sentence": "Cost per request +26 % since 09:41 UTC.",
    "verdict": "composition",
    "cost_after": 1.25,
    "cost_change_ratio": 0.26,
    "effects": {"mix": 0.25, "prompt": 0.01, "output": 0.0, "cache": 0.0},
    "contributions": [
        {"dimension": "tenant", "value": "acme", "effect": "mix", "replica_seconds": 0.2},
        {"dimension": "tenant", "value": "bolt", "effect": "mix", "replica_seconds": 0.05},
        {"dimension": "route", "value": "/v1/summaries", "effect": "mix", "replica_seconds": 0.22},
        {"dimension": "class", "value": "long", "effect": "prompt", "replica_seconds": 0.9},
    ],
}


def first(pool: PoolNow = POOL, *events: dict[str, Any]) -> Finding:
    """The worst finding of a clean capwatch."""
    return findings(CLEAN, Drifts(active=events), [pool])[0]


def test_nothing_has_changed_is_said_too() -> None:
    """Silence is an answer, with the figures that it rests on."""
    assert first() == Finding(
        kind="quiet",
        severity="good",
        text="Nothing has changed: cost per request is as expected (1 replica-seconds at 8 requests/s).",
    )


def test_learning_is_not_quiet() -> None:
    """A pool whose history is too short is not said to be as usual."""
    found = findings(CLEAN, Drifts(), [replace(POOL, learning=True)])
    assert [one.kind for one in found] == ["learning"]


def test_a_drift_says_who_and_what_to_do_first() -> None:
    """The remedies stand in the order of the runbook and name who brings the largest effect."""
    found = first(POOL, DRIFT)
    assert (found.kind, found.severity, found.text) == ("drift", "warn", DRIFT["sentence"])
    assert found.why.startswith("Composition, not queueing: ")
    assert [step.split()[0] for step in found.todo] == ["Cut", "Tighten", "Add", "Change", "If"]
    assert found.todo[0].startswith("Cut the work of tenant acme, route /v1/summaries:")
    assert found.todo[2] == "Add replicas: the present load needs 15 for 70 %, 12 are there. Minutes and money."


@pytest.mark.parametrize(
    ("pool", "event", "severity"),
    [
        (replace(POOL, utilisation=0.83), DRIFT, "bad"),
        (POOL, {**DRIFT, "verdict": "both"}, "bad"),
        (replace(POOL, utilisation=0.83), {**DRIFT, "direction": "down"}, "note"),
    ],
)
def test_how_bad_a_drift_is(pool: PoolNow, event: dict[str, Any], severity: str) -> None:
    """A drift is bad where the pool is beyond its target or requests wait; one that saves work is only news."""
    drifts = [one for one in findings(CLEAN, Drifts(active=[event]), [pool]) if one.kind == "drift"]
    assert [one.severity for one in drifts] == [severity]


@pytest.mark.parametrize(
    ("change", "kind", "severity"),
    [
        ({"utilisation": 1.02, "expected_wait_s": None}, "wait", "bad"),
        ({"expected_wait_s": 0.6}, "wait", "bad"),
        ({"headroom": {"none": -2.0}}, "headroom", "warn"),
        ({"kv_demand_ratio": 0.95}, "kv", "warn"),
        ({"kv_demand_ratio": 1.2}, "kv", "bad"),
    ],
)
def test_a_pool_that_is_short_says_of_what(change: dict[str, Any], kind: str, severity: str) -> None:
    """Each shortage is a finding of its own."""
    found = first(replace(POOL, **change))
    assert (found.kind, found.severity, found.pool) == (kind, severity, "chat")
    assert found.todo


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (replace(CLEAN, ready=False), "starting"),
        (replace(CLEAN, commit=Commit(timestamp=STATUS.at - 60.0)), "commit"),
        (replace(CLEAN, sources=[replace(SOURCE, up=False)]), "source"),
        (replace(CLEAN, sources=[replace(CLEAN.sources[0], lag_bytes=1 << 30)]), "source"),
        (replace(CLEAN, sources=[replace(SOURCE, lines=Lines(read=100, dropped={"malformed": 2}))]), "source"),
        (replace(CLEAN, sources=[]), "source"),
    ],
)
def test_blindness_is_never_taken_for_quiet(status: Any, kind: str) -> None:
    """Where capwatch does not see everything, that is what it says."""
    found = findings(status, Drifts(), [POOL])
    assert found[0].kind == kind
    assert "good" not in {one.severity for one in found}


@pytest.mark.parametrize(("after", "end"), [(1.27, ""), (1.4, " By now +40 %.")])
def test_a_drift_that_has_grown_says_so(after: float, end: str) -> None:
    """The sentence is that of the alarm; where the drift is another by now, that is added."""
    grown = DriftNow(cost_before=1.0, cost_after=after, effects={"mix": after - 1.0})
    assert first(replace(POOL, drift=grown), DRIFT).text == f"{DRIFT['sentence']}{end}"


def watch(name: str, until: float | None = None) -> dict[str, Any]:
    """What a watcher has found, as the API tells it."""
    who = [{"tenant": "acme", "part": 0.8}]
    return {"pool": "chat", "watch": name, "until": until, "tenants": who, "sentence": "Attempts 1.00 → 1.50."}


@pytest.mark.parametrize("name", WATCHES)
def test_a_watch_is_told_with_its_first_remedy_while_it_holds(name: str) -> None:
    """Each watcher's sentence stands on the page in its own words, and what is over takes no room."""
    (found,) = findings(CLEAN, Drifts(watches=[watch(name), watch(name, until=5.0)]), [POOL])
    assert (found.kind, found.severity, found.text) == ("watch", "warn", "Attempts 1.00 → 1.50.")
    (step,) = found.todo
    assert ("acme" in step) == (name not in ("decode_step", "in_flight"))  # for those it is not a tenant that can help


def test_of_many_pools_each_change_says_its_own() -> None:
    """A sentence about one of two pools begins with its name."""
    drifts = Drifts(active=[DRIFT], watches=[watch("retries")])
    found = findings(CLEAN, drifts, [POOL, replace(POOL, name="small")])
    assert [one.text for one in found] == [f"Pool chat: {DRIFT['sentence']}", "Pool chat: Attempts 1.00 → 1.50."]


def history(full_s: float | None) -> PoolHistory:
    """A pool whose KV memory is full after so many seconds."""
    numbers = dict.fromkeys(PoolHistory.__struct_fields__, ())
    return msgspec.convert(
        {**numbers, "in_flight": {}, "kv_growth": 1.0, "kv_steady": True, "kv_full_s": full_s}, PoolHistory
    )


@pytest.mark.parametrize(
    ("full_s", "told"),
    [
        (2700.0, [("warn", "45 min")]),
        (600.0, [("bad", "10 min")]),
        (0.0, []),  # what is short now is a finding of now
        (None, []),
    ],
)
def test_kv_memory_that_fills_is_told_in_time(full_s: float | None, told: list[tuple[str, str]]) -> None:
    """How long is left is a sentence of its own, and bad where that is less than the trend was watched for."""
    found = ahead([POOL, replace(POOL, name="unknown")], {"chat": history(full_s)})
    assert [(one.severity, one.text) for one in found] == [
        (severity, f"Pool chat: KV memory is full in {left} if it grows on as in the last quarter of an hour.")
        for severity, left in told
    ]
    assert all(one.todo[0].startswith("Cut prompts") for one in found)


def test_the_worst_comes_first() -> None:
    """A silent source does not hide users who wait."""
    silent = replace(CLEAN, sources=[replace(SOURCE, up=False)])
    found = findings(silent, Drifts(active=[DRIFT]), [replace(POOL, expected_wait_s=2.0)])
    assert [one.severity for one in found] == sorted((one.severity for one in found), key=["bad", "warn"].index)
    assert found[0].kind == "wait"
