"""The agreed scenarios G1 to G14 through the live pipeline: rows go in, what a page shows comes out.

Their arithmetic stands in tests/capacity/test_scenarios.py; the alarms of G2 and G11 to G14 in
tests/drifting/test_golden.py. `SCENARIOS` says where each is looked at.
"""

from __future__ import annotations

import ast
import heapq
import random
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from capwatch.config.schema import Class, Config, Match, Pool
from capwatch.record import EngineSample
from tests.spine import NOW, Spine, request

HERE: Final = "tests/load/test_golden.py"
SCENARIOS: Final = {
    **{f"G{number}": HERE for number in (1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13)},
    "G7": "tests/load/test_week.py",
    "G8": "tests/load/test_limits.py",
    "G14": "tests/drifting/test_golden.py",
}
KINDS: Final = {"policy": (1300, 80), "order": (3200, 150), "long": (9000, 400)}
BEFORE: Final = {"policy": 0.85, "order": 0.14, "long": 0.01}
AFTER: Final = {"policy": 0.80, "order": 0.12, "long": 0.08}
PREFILL, DECODE = 4000.0, 160.0
LENGTH_S: Final = 360.0
"""Of the traffic: more than a window of five minutes."""


def config(**more: Any) -> Config:
    """One pool, and a class for each kind."""
    pool = Pool("chat", Match(model=("chat-*",)), **({"replicas": 12, "zones": 3, "burst": 1.5} | more))
    return Config(pools=(pool,), classes=tuple(Class(kind, Match(route=(f"/{kind}",))) for kind in KINDS))


def evenly(rate: float, **told: Any) -> Iterator[dict[str, Any]]:
    """Requests of one kind at a steady rate, whose ends are evenly apart."""
    for number in range(int(rate * LENGTH_S)):
        at = NOW - LENGTH_S + number / rate
        seconds = told.get("duration_s", 0.0)
        yield request(**({"started_at": at - seconds, "finished_at": at, "duration_s": seconds} | told))


@cache
def queued(mix: tuple[tuple[str, float], ...], rate: float, replicas: int, length: float) -> list[dict[str, Any]]:
    """Poisson arrivals of a mix, first come first served by replicas that take as long as the work is."""
    draw, at, free, rows = random.Random(7), NOW - length, [0.0] * replicas, []
    kinds, shares = zip(*mix, strict=True)
    while (at := at + draw.expovariate(rate)) < NOW:
        kind = draw.choices(kinds, shares)[0]
        prompt, output = KINDS[kind]
        begin = max(at, heapq.heappop(free))
        end = begin + prompt / PREFILL + output / DECODE
        heapq.heappush(free, end)
        rows.append(
            request(
                started_at=at, finished_at=end, duration_s=end - at, queue_s=begin - at, prefill_s=prompt / PREFILL,
                decode_s=output / DECODE, prompt_tokens=prompt, output_tokens=output, route=f"/{kind}",
            )
        )  # fmt: skip
    return sorted((row for row in rows if row["finished_at"] < NOW), key=lambda row: float(row["finished_at"]))


def shown(rows: Iterable[dict[str, Any]], **more: Any) -> Spine:
    """A pipeline that has seen them."""
    spine = Spine(config(**more))
    spine.feed(*rows)
    return spine


def gauges(spine: Spine, name: str) -> dict[str, float]:
    """The values of a gauge of the pool, by its other label."""
    return {dict(key).popitem()[1]: value for key, value in spine.values(name, pool="chat").items()}


def per_request(spine: Spine, **where: str) -> float:
    """Cost of a request, replica-seconds, by the counters."""
    return spine.total("cost_replica_seconds_total", **where) / spine.total("departures_total", pool="chat")


def p95(spine: Spine, kind: str) -> float:
    """Of a class's durations."""
    found = spine.value("class_duration_seconds", pool="chat", quantile="0.95", **{"class": kind})
    assert found is not None
    return found


def mean_wait(spine: Spine) -> float:
    """Of all requests."""
    return spine.total("phase_seconds_total", phase="queue") / spine.total("departures_total", pool="chat")


def test_g1_the_usual_mix() -> None:
    """G1: cost 0.992, 66 % busy, nearly no wait; what ends in a second is what came in it."""
    spine = shown(queued(tuple(BEFORE.items()), 8.0, 12, 900.0))
    assert per_request(spine) == pytest.approx(0.992, rel=0.02)
    assert spine.value("utilisation_ratio", pool="chat") == pytest.approx(0.661, rel=0.05)
    assert [p95(spine, "policy"), p95(spine, "order")] == pytest.approx([1.02, 1.91], abs=0.2)
    assert mean_wait(spine) == pytest.approx(0.024, abs=0.012)
    assert spine.total("departures_total", pool="chat") / 900 == pytest.approx(8.05, rel=0.03)


def test_g2_the_drifted_mix() -> None:
    """G2: 83 % busy; policy waits, 1.0 to 2 s, on twelve replicas; on a hundred nobody does, and long takes as long."""
    spine, roomy = (shown(queued(tuple(AFTER.items()), 8.0, n, 900.0), replicas=n) for n in (12, 100))
    assert per_request(spine) == pytest.approx(1.2485, rel=0.03)
    assert spine.value("utilisation_ratio", pool="chat") == pytest.approx(0.832, rel=0.06)
    assert p95(spine, "policy") > 1.5
    assert mean_wait(spine) == pytest.approx(0.286, rel=0.5)
    assert mean_wait(roomy) == 0
    assert [p95(roomy, kind) for kind in KINDS] == pytest.approx([0.825, 1.7375, 4.75], rel=0.006)
    assert 0.05 < spine.total("class_requests_total", **{"class": "long"}) / spine.total("class_requests_total") < 0.11


def test_g3_deeper_retrieval() -> None:
    """G3: 1.0 to 1.3, all of it prefill; 67 to 87 % busy, 15 replicas; KV by what runs 63.5 %, 10.67 in flight each."""
    phases = {"queue_s": 45 / 8, "prefill_s": 2.0, "decode_s": 83 / 8 - 2.0}
    shallow, deep = (
        shown(
            evenly(8.0, prompt_tokens=prompt, output_tokens=100, duration_s=16.0, **phases),
            kv_pool_tokens=30_500, inflight_target=3.5,
        )
        for prompt in (1500, 2700)
    )  # fmt: skip
    for spine, prefill, busy in ((shallow, 0.375, 0.667), (deep, 0.675, 0.867)):
        assert per_request(spine, phase="prefill") == pytest.approx(prefill)
        assert per_request(spine, phase="decode") == pytest.approx(0.625)
        assert spine.value("utilisation_ratio", pool="chat") == pytest.approx(busy, abs=0.01)
    assert gauges(deep, "replicas_needed")["base"] == 15
    assert gauges(deep, "headroom_replicas")["none"] == -3
    assert sum(gauges(deep, "inflight_littles_law").values()) / 12 == pytest.approx(10.67, rel=0.01)
    assert deep.value("kv_demand_ratio", pool="chat") == pytest.approx(0.635, rel=0.01)
    assert deep.value("hpa_desired_replicas", pool="chat") == 37


def test_g4_phases() -> None:
    """G4: 2, 8, 6 and 84 in flight, 100 in all; engines that run 84 leave no residual."""
    rows = [
        row | {"tool_s": 2.0 if number % 20 < 3 else 0.0, "duration_s": 6.7 if number % 20 < 3 else 4.7}
        for number, row in enumerate(evenly(20.0, gateway_s=0.1, retrieval_s=0.4, prefill_s=0.2, decode_s=4.0))
    ]  # fmt: skip
    spine = Spine(config())
    spine.pipeline.engines.hear("chat", "e0", EngineSample(at=NOW - LENGTH_S, running=84.0, waiting=0.0), patience=1e9)
    spine.feed(*(row | {"started_at": row["finished_at"] - row["duration_s"]} for row in rows))
    found = gauges(spine, "inflight_littles_law")
    expected = {"gateway": 2, "retrieval": 8, "tool": 6, "prefill": 4, "decode": 80}
    assert {phase: found[phase] for phase in expected} == pytest.approx(expected, rel=0.015)
    assert sum(found.values()) == pytest.approx(100, rel=0.015)


def test_g5_the_spike() -> None:
    """G5: 8 to 20/s on twelve replicas for 170 s: every second is overloaded, the last waits 113 s, the ramp is 12."""
    rows, free = [], [0.0] * 12
    for second in range(400):
        rate = 20 if 200 <= second < 370 else 8
        for number in range(rate):
            at = NOW - 600 + second + number / rate
            begin = max(at, heapq.heappop(free))
            heapq.heappush(free, begin + 1.0)
            tokens = {"prompt_tokens": 2000, "output_tokens": 80}  # one replica-second
            rows.append(
                request(started_at=at, finished_at=begin + 1.0, queue_s=begin - at, duration_s=begin + 1 - at, **tokens)
            )
    last = max(float(row["queue_s"]) for row in rows)
    assert last == pytest.approx(113.3, abs=1.5)
    spine = Spine(config())
    spine.feed(*sorted(rows, key=lambda one: float(one["finished_at"])))
    spine.tick(NOW + 3600)
    assert spine.total("overload_seconds_total", pool="chat") == 170
    assert spine.value("burst_max_ramp_rps", pool="chat") == 12


@pytest.mark.parametrize(("replicas", "low", "high"), [(16, 0.03, 0.3), (17, 0.0002, 0.01)])
def test_g6_slots(replicas: int, low: float, high: float) -> None:
    """G6: at 40/s and 32 slots of 12.25 s 16 replicas have a tenth late, 17 a thousandth; isolated each does 1.70/s."""
    draw, at, rows = random.Random(5), NOW - LENGTH_S, []
    while (at := at + draw.expovariate(40)) < NOW - 60:
        works = draw.expovariate(1 / 12.25)
        tokens = {"prompt_tokens": 0, "output_tokens": max(1, round(works * 24))}
        rows.append(
            request(started_at=at, finished_at=at + 12.25, duration_s=12.25, prefill_s=0.25, decode_s=12.0, **tokens)
        )
    spine = shown(rows, replicas=replicas, slots=32, wait_budget=0.5, late_share=0.01)
    assert low < (spine.value("late_share_ratio", pool="chat", source="predicted") or 0) < high
    usable = gauges(spine, "usable_rps")
    assert usable["isolated"] / replicas == pytest.approx(1.70, rel=0.03)
    assert (usable["pooled"] > 40) == (replicas == 17)
    allowed = gauges(spine, "allowed_utilisation_ratio")
    assert allowed["isolated"] == pytest.approx(0.652, rel=0.03)
    assert 0.88 < allowed["pooled"] < 0.96


def test_g9_promises_and_regions() -> None:
    """G9: 8 replica-seconds a second need 12, 18 and 27; 6, 13.9 and 0.6 of three regions 9, 20 and 1, one pool 29."""
    work = {"prompt_tokens": 2000, "output_tokens": 80}
    assert gauges(shown(evenly(8.0, **work)), "replicas_needed") == {"base": 12, "burst": 18, "zonal": 27}
    rates = {"eu": 6.0, "us": 13.9, "ap": 0.6}
    pools = tuple(Pool(name, Match(model=(name,)), replicas=10) for name in rates)
    spine = Spine(Config(pools=pools))
    rows = (row for name, rate in rates.items() for row in evenly(rate, model=name, **work))
    spine.feed(*sorted(rows, key=lambda row: float(row["finished_at"])))
    base = {name: spine.value("replicas_needed", pool=name, promise="base") for name in rates}
    assert base == {"eu": 9, "us": 20, "ap": 1}


def test_g10_completions_at_overload() -> None:
    """G10: at 12.5/s offered 12.1 end in a second, and the replicas are busy all the time."""
    rows = queued(tuple(BEFORE.items()), 12.5, 12, 1200.0)
    spine = shown(rows)
    ended = sum(float(row["finished_at"]) >= NOW - 900 for row in rows) / 900
    assert ended == pytest.approx(12.1, rel=0.03)
    assert spine.value("utilisation_ratio", pool="chat") == pytest.approx(1.0, abs=0.04)
    assert sum(gauges(spine, "inflight_littles_law").values()) > 3 * 12


def test_g11_twice_the_rate() -> None:
    """G11: what a request costs stays as it is, and utilisation doubles."""
    work = {"prompt_tokens": 1300, "output_tokens": 80}
    once, twice = shown(evenly(4.0, **work)), shown(evenly(8.0, **work))
    assert [per_request(once), per_request(twice)] == pytest.approx([0.825, 0.825])
    busy = [spine.value("utilisation_ratio", pool="chat") or 0 for spine in (once, twice)]
    assert busy[1] / busy[0] == pytest.approx(2, rel=0.01)


def test_g12_more_hits_of_longer_prompts() -> None:
    """G12: computed tokens flat, cost flat; what the cache saved is what prompts grew by."""
    short, long = (
        shown(evenly(8.0, prompt_tokens=1300 + cached, cached_tokens=cached, output_tokens=80)) for cached in (0, 1700)
    )
    assert [per_request(short), per_request(long)] == pytest.approx([0.825, 0.825])
    saved = long.total("prefill_saved_replica_seconds_total") / long.total("departures_total", pool="chat")
    assert [short.total("prefill_saved_replica_seconds_total"), saved] == pytest.approx([0, 1700 / PREFILL])
    assert long.total("tokens_total", kind="prompt_computed") == short.total("tokens_total", kind="prompt_computed")


def test_g13_one_very_long_prompt() -> None:
    """G13: of a tenant with 20 requests an hour; the pool's cost rises by less than the smallest effect, 4 %."""
    usual = list(evenly(8.0, prompt_tokens=1300, output_tokens=80))
    rare = [row | {"tenant": "rare"} for row in usual[::1440]]
    rare[0] |= {"prompt_tokens": 128_000}
    without, with_it = shown(usual), shown(sorted([*usual, *rare], key=lambda row: float(row["finished_at"])))
    assert per_request(with_it) / per_request(without) < 1.04
    assert with_it.total("cost_replica_seconds_total", tenant="rare", phase="prefill") > 128_000 / PREFILL


@pytest.mark.parametrize("scenario", [f"G{number}" for number in range(1, 15)])
def test_every_scenario_is_looked_at(scenario: str) -> None:
    """A test of the file that `SCENARIOS` names says in its docstring that it is about this one."""
    path = Path(__file__).resolve().parents[2] / SCENARIOS[scenario]
    told = [
        ast.get_docstring(node) or ""
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    names = [node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    assert any(f"{scenario}:" in text for text in told) or any(f"test_{scenario.lower()}_" in name for name in names)
