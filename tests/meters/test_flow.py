"""In flight by Little's law: phases add up to residence, and the law says when it may be trusted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.config.schema import Config, Match, Pool
from tests.spine import NOW, Spine, request

POOLS = Config(pools=(Pool("chat", Match(model=("chat-*",))), Pool("idle", Match(model=("none",)))))
SECONDS = st.one_of(st.none(), st.sampled_from([0.0, 0.1, 2.5, 40.0]))
TIMES = st.fixed_dictionaries(
    dict.fromkeys(("duration_s", "ttft_s", "gateway_s", "retrieval_s", "tool_s", "queue_s", "prefill_s"), SECONDS)
    | {"decode_s": SECONDS, "output_tokens": st.sampled_from([None, 1, 50]), "stream": st.sampled_from([True, None])}
)
PHASES = ("gateway", "retrieval", "tool", "queue", "prefill", "decode", "other")


def served(start: float, until: float, rate: float = 20.0, **told: Any) -> list[dict[str, Any]]:
    """Requests that arrive at a steady rate from ``start`` on and finish by ``until``, in the order of their ends."""
    rows = []
    for number in range(int((until - start) * rate)):
        tool = 2.0 if number % 20 < 3 else 0.0
        phases = {"gateway_s": 0.1, "retrieval_s": 0.4, "tool_s": tool, "decode_s": 4.2} | told
        arrival, duration = start + number / rate, sum(phases.values())
        if arrival + duration <= until:
            rows.append(request(started_at=arrival, finished_at=arrival + duration, duration_s=duration, **phases))
    return sorted(rows, key=lambda row: row["finished_at"])


def law(spine: Spine, pool: str = "chat") -> dict[str, float]:
    """λW by phase."""
    return {dict(key)["phase"]: value for key, value in spine.values("inflight_littles_law", pool=pool).items()}


@given(st.lists(TIMES, min_size=1, max_size=20))
def test_phases_add_up_to_residence(told: list[dict[str, Any]]) -> None:
    """Law 5, with phases missing, overshooting the duration, or told without one."""
    spine = Spine(POOLS)
    spine.feed(*(request(**one) for one in told))
    residence = spine.total("route_duration_seconds_sum", pool="chat")
    assert spine.total("phase_seconds_total", pool="chat") == pytest.approx(residence, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"duration_s": 3.0}, {"other": 3.0}),
        ({"duration_s": 3.0, "queue_s": 1.0}, {"queue": 1.0, "other": 2.0}),
        ({"duration_s": 3.0, "ttft_s": 1.0, "gateway_s": 0.25}, {"gateway": 0.25, "prefill": 0.75, "decode": 2.0}),
        ({"duration_s": 2.0, "queue_s": 1.0, "decode_s": 3.0}, {"queue": 0.5, "decode": 1.5}),
        ({"queue_s": 1.0}, {}),
    ],
)
def test_what_the_log_leaves_unexplained_is_other(told: dict[str, float], expected: dict[str, float]) -> None:
    """And what it overstates is scaled down to the duration."""
    spine = Spine(POOLS)
    spine.feed(request(**told))
    seconds = {dict(key)["phase"]: value for key, value in spine.values("phase_seconds_total", pool="chat").items()}
    assert seconds == {phase: expected.get(phase, 0.0) for phase in PHASES}


def test_the_published_numbers_in_flight() -> None:
    """20/s through 0.1 s, 0.4 s, 2 s in 15 % and 4.2 s are 2, 8, 6 and 84 in flight, and the law holds."""
    spine = Spine(POOLS)
    spine.feed(*served(NOW, NOW + 660))
    found = law(spine)
    expected = {"gateway": 2, "retrieval": 8, "tool": 6, "decode": 84}
    assert {phase: found[phase] for phase in expected} == pytest.approx(expected, rel=0.05)
    assert found["other"] == pytest.approx(0, abs=1e-6)
    assert spine.value("littles_law_valid", pool="chat") == 1.0


def test_a_young_log_counts_for_as_long_as_it_is() -> None:
    """Two minutes after the first end the rate is that of two minutes; the law is not trusted yet."""
    spine = Spine(POOLS)
    spine.feed(*served(NOW, NOW + 125))
    assert sum(law(spine).values()) == pytest.approx(100, rel=0.05)
    assert spine.value("littles_law_valid", pool="chat") == 0.0


def test_the_law_is_not_trusted_while_arrivals_outrun_departures() -> None:
    """A queue that grows: each request takes longer than the one before, so more come than go."""
    spine, rows = Spine(POOLS), []
    for number in range(6000):
        arrival = NOW + number / 10
        rows.append(request(started_at=arrival, finished_at=arrival + 1 + (arrival - NOW) * 0.4, tenant="a"))
    spine.feed(*rows)
    assert spine.value("littles_law_valid", pool="chat") == 0.0


def test_a_steady_long_residence_is_no_imbalance() -> None:
    """Both are counted over five minutes that end one p99 residence ago, since rows are written at the end."""
    spine = Spine(POOLS)
    spine.feed(*served(NOW, NOW + 1200, rate=2.0, decode_s=200.0))
    assert spine.value("littles_law_valid", pool="chat") == 1.0


def test_few_requests_are_not_trusted() -> None:
    """29 in five minutes are too few, 30 enough."""
    trusted = []
    for spacing in (10.4, 9.9):
        spine = Spine(POOLS)
        spine.feed(*(request(finished_at=NOW + i * spacing, duration_s=0.5) for i in range(100)))
        trusted.append(spine.value("littles_law_valid", pool="chat"))
    assert trusted == [0.0, 1.0]


def test_an_idle_pool_has_nothing_in_flight() -> None:
    """No arrival is 0 in flight, and too few to be trusted; a pool whose log tells no duration has no number."""
    spine = Spine(POOLS)
    spine.feed(request())
    assert (set(law(spine, "idle").values()), law(spine)) == ({0.0}, {})
    assert spine.value("littles_law_valid", pool="idle") == 0.0


def test_silence_empties_the_window() -> None:
    """Six minutes after the last end nothing is in flight any more; the counters stay."""
    spine = Spine(POOLS)
    spine.feed(request(duration_s=5.0), now=NOW)
    spine.tick(NOW + 360)
    assert set(law(spine).values()) == {0.0}
    assert [spine.value(f"{name}_total", pool="chat") for name in ("arrivals", "departures")] == [1, 1]


def test_a_very_long_request_arrives_in_a_second_that_is_still_open() -> None:
    """The seconds of the history close after 26 minutes and open never again."""
    spine = Spine(POOLS)
    spine.feed(*(request(finished_at=NOW + i) for i in range(0, 4000, 10)))
    closed = {one.slot for one in spine.totals.closed if one.table == "seconds"}
    spine.feed(request(finished_at=NOW + 4000, duration_s=3900.0))
    spine.feed(request(finished_at=NOW + 8000))
    again = [one.slot for one in spine.totals.closed if one.table == "seconds"]
    assert (len(closed) > 0, len(again)) == (True, len(set(again)))
