"""Gauges of a pool against the truth of the traffic that made them: golden scenarios, and generators of known law."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from capwatch.config.schema import Config, Match, Pool, Quota
from capwatch.config.units import stage
from capwatch.record import EngineSample
from tests.spine import NOW, Spine, request

START = NOW - 1200.0
MIX = ((0.85, 1300, 80), (0.14, 3200, 150), (0.01, 9000, 400))
DEARER = ((0.80, 1300, 80), (0.12, 3200, 150), (0.08, 9000, 400))


def pool(**more: Any) -> Config:
    """One pool of twelve replicas."""
    told = {"replicas": 12, "inflight_target": 3.5, "zones": 3, "kv_pool_tokens": 30_500} | more
    return Config(pools=(Pool("chat", Match(model=("chat-*",)), **told),))


def evenly(
    mix: Iterable[tuple[float, int, int]], rate: float = 8.0, length: float = 1200.0
) -> Iterator[dict[str, Any]]:
    """Requests at a steady rate whose classes come in the exact proportions of a mix of hundredths."""
    shares = [(prompt, output) for share, prompt, output in mix for _ in range(round(share * 100))]
    order = random.Random(7).sample(shares, 100)
    for number in range(int(rate * length)):
        prompt, output = order[number % 100]
        at = START + number / rate
        yield request(started_at=at, finished_at=at, prompt_tokens=prompt, output_tokens=output, duration_s=0.0)


def hyperexponential(draw: random.Random, rate: float, cv2: float) -> float:
    """A gap of a mean of 1/rate and a squared coefficient of variation ≥ 1, with balanced means."""
    share = (1 + ((cv2 - 1) / (cv2 + 1)) ** 0.5) / 2
    return draw.expovariate(2 * rate * (share if draw.random() < share else 1 - share))


def queue(rate: float, cv2: float, servers: int, service: float, seed: int = 3) -> list[dict[str, Any]]:
    """First come first served: what a gateway logs of 20 minutes, in the order of the ends."""
    draw, at, rows = random.Random(seed), START, []
    free = [0.0] * servers
    while (at := at + hyperexponential(draw, rate, cv2)) < NOW:
        begin, works = max(at, heapq.heappop(free)), draw.expovariate(1 / service)
        heapq.heappush(free, begin + works)
        rows.append((at, begin - at, works))
    rows.sort(key=sum)
    return [
        request(
            started_at=at,
            finished_at=at + wait + works,
            duration_s=wait + works,
            queue_s=wait,
            prefill_s=0.0,
            decode_s=works,
            prompt_tokens=0,
            output_tokens=max(1, round(works * 160)),
        )
        for at, wait, works in rows
        if at + wait + works < NOW
    ]


def test_utilisation_and_promises_of_the_first_scenario() -> None:
    """G1: 0.992 replica-seconds a request at 8/s on 12 replicas."""
    spine = Spine(pool(burst=1.5))
    spine.feed(*evenly(MIX))
    assert spine.value("utilisation_ratio", pool="chat") == pytest.approx(8 * 0.992 / 12, rel=0.01)
    assert spine.value("replicas", pool="chat") == 12
    # 7.936/0.7 = 11.3; × 1.5 = 17.0; the survivors of three zones are planned at 0.467: 25.5 → 9 in each
    needed = {dict(key)["promise"]: value for key, value in spine.values("replicas_needed", pool="chat").items()}
    assert needed in ({"base": 12, "burst": 18, "zonal": 27}, {"base": 12, "burst": 17, "zonal": 27})
    spare = {dict(key)["failure"]: value for key, value in spine.values("headroom_replicas", pool="chat").items()}
    assert spare == {"none": 0, "replica": -1, "zone": -4}
    assert spine.value("tokens_per_minute", pool="chat", direction="in") == pytest.approx(8 * 1643 * 60, rel=0.01)
    assert spine.value("tokens_per_minute", pool="chat", direction="out") == pytest.approx(8 * 93 * 60, rel=0.01)


@pytest.mark.parametrize(("mix", "cv2"), [(MIX, 0.247), (DEARER, 0.740)])
def test_service_variation_is_that_of_the_mix(mix: Iterable[tuple[float, int, int]], cv2: float) -> None:
    """Cs² = Σ w c²/c̄² − 1, from the golden numbers."""
    spine = Spine(pool())
    spine.feed(*evenly(mix))
    assert spine.value("service_cv2", pool="chat") == pytest.approx(cv2, abs=0.012)


@pytest.mark.parametrize("cv2", [1.0, 4.0])
def test_arrival_variation_is_that_of_the_generator(cv2: float) -> None:
    """Ca² from gaps between arrivals, of a Poisson and of a bursty renewal process."""
    spine = Spine(pool())
    spine.feed(*queue(40, cv2, 200, 0.5))
    assert spine.value("arrival_cv2", pool="chat") == pytest.approx(cv2, rel=0.12)


def test_whole_seconds_fall_back_on_counts() -> None:
    """Where the log has whole seconds only, gaps are 0 or 1; the counts of a second still tell Poisson from steady."""
    spine = Spine(pool())
    rows = queue(40, 1.0, 200, 0.5)
    spine.feed(*(row | {"started_at": float(int(row["started_at"]))} for row in rows))
    assert spine.value("arrival_cv2", pool="chat") == pytest.approx(1.0, rel=0.25)


def test_predicted_and_measured_waits_stand_side_by_side() -> None:
    """M/M/c at 90 % of 12 servers: mean wait and late share as simulated, within what ten minutes can tell."""
    spine = Spine(pool(slots=1))
    rows = queue(10.8, 1.0, 12, 1.0, seed=11)
    spine.feed(*rows)
    window = [row["queue_s"] for row in rows if row["finished_at"] >= NOW - 330]
    measured = spine.value("late_share_ratio", pool="chat", source="measured")
    assert measured == pytest.approx(sum(wait > 0.5 for wait in window) / len(window), rel=0.05)
    expected = spine.value("expected_wait_seconds", pool="chat")
    assert expected is not None
    # λ is that of the window: between 85 and 95 % of the servers the formula says 0.2 to 1.4 s
    assert 0.15 < expected < 1.5


def test_bursty_arrivals_wait_for_longer() -> None:
    """Ca² 4 at 80 % of 12 servers: Hayward's mean is near the simulated one, Allen and Cunneen's is far below it."""
    truth = [float(row["queue_s"]) for seed in range(4) for row in queue(9.6, 4.0, 12, 1.0, seed=seed)]
    spine = Spine(pool(slots=1))
    spine.feed(*queue(9.6, 4.0, 12, 1.0, seed=2))
    mean = sum(truth) / len(truth)
    peaked, expected = (spine.value(f"expected_wait_{name}seconds", pool="chat") for name in ("peaked_", ""))
    assert peaked is not None
    assert expected is not None
    assert abs(peaked / mean - 1) < abs(expected / mean - 1)
    assert peaked == pytest.approx(mean, rel=0.4)


def test_one_kind_of_tokens_alone() -> None:
    """Where the log tells output alone, prompts a minute are absent and not 0, as is a quota that counts both."""
    spine = Spine(Config(pools=pool().pools, quotas={"chat": Quota(1_000_000)}))
    spine.feed(*(request(started_at=NOW - n, finished_at=NOW - n, output_tokens=60) for n in range(100)))
    told = {dict(key)["direction"] for key in spine.values("tokens_per_minute", pool="chat")}
    assert told == {"out"}
    assert spine.value("quota_headroom_ratio", pool="chat") is None


def test_more_than_the_replicas_can_do_waits_for_ever() -> None:
    """The formula has no finite mean there; every request is late."""
    spine = Spine(pool(replicas=2))
    spine.feed(*evenly(MIX))
    assert spine.value("expected_wait_seconds", pool="chat") == float("inf")
    assert spine.value("late_share_ratio", pool="chat", source="predicted") == 1.0


def test_memory_is_what_running_sequences_need() -> None:
    """G3: 6.92 running × 2,800 tokens on pools of 30,500: 63.5 %, where all in flight would say 97.9 %."""
    spine = Spine(pool(replicas=1))
    spine.feed(*evenly(((1.0, 2700, 100),)))
    spine.pipeline.engines.hear("chat", "e0", EngineSample(at=NOW, running=6.91667, waiting=3.75), patience=1e9)
    spine.commit()
    assert spine.value("kv_demand_tokens", pool="chat") == pytest.approx(19_367, rel=1e-3)
    assert spine.value("kv_demand_ratio", pool="chat") == pytest.approx(0.635, rel=1e-3)
    assert spine.value("backlog_tokens", pool="chat") == pytest.approx(3.75 * 2800, rel=1e-3)


def test_long_requests_are_running_more_often_than_they_finish() -> None:
    """Each second one of 1,000 tokens for 1 s and one of 10,000 for 9 s: at any time 1 × 1,000 + 9 × 10,000."""
    spine = Spine(pool(replicas=1))
    kinds = ((0.1, 0.9, 960, 40), (1.0, 8.0, 9600, 400))
    spine.feed(
        *(
            request(
                started_at=START + second - prefill - decode,
                finished_at=START + second,
                duration_s=prefill + decode,
                prefill_s=prefill,
                decode_s=decode,
                prompt_tokens=prompt,
                output_tokens=output,
            )
            for second in range(1200)
            for prefill, decode, prompt, output in kinds
        )
    )
    assert spine.value("kv_demand_tokens", pool="chat") == pytest.approx(91_000, rel=0.005)


def test_observed_replicas_are_the_engines_that_are_heard_of() -> None:
    """An engine that nobody hears of is no replica; the others' loads are 1, 2 and 3."""
    spine = Spine(pool(replicas="observed"))
    spine.feed(*evenly(MIX))
    for number in (1, 2, 3):
        sample = EngineSample(at=NOW - 1, running=float(number), waiting=2.0)
        spine.pipeline.engines.hear("chat", f"e{number}", sample, patience=1e9)
    spine.pipeline.engines.expect([("chat", "silent")])
    spine.commit()
    assert spine.value("replicas", pool="chat") == 3
    assert spine.value("load_imbalance_ratio", pool="chat") == pytest.approx((2 / 3) ** 0.5 / 2)
    # 12 in the engines on 3 replicas is 4 each: 3 × 4/3.5 → 4
    assert spine.value("hpa_desired_replicas", pool="chat") == 4


def test_stages_are_the_configured_ones_and_the_model() -> None:
    """G1's fleet at 70 %: 12/0.992 × 0.7 = 8.47 requests/s behind a gateway of 60 and tools of 10 for 15 %."""
    spine = Spine(pool(stages={"gateway": stage("60"), "tool": stage("10@0.15")}))
    spine.feed(*evenly(MIX))
    found = {dict(key)["phase"]: value for key, value in spine.values("stage_capacity_rps", pool="chat").items()}
    assert found == pytest.approx({"gateway": 60, "tool": 66.67, "model": 8.47}, rel=0.01)


def test_what_nobody_tells_is_absent() -> None:
    """No tokens, no replicas, no engines: no utilisation, no promise, no wait; never a 0 that is not known."""
    spine = Spine(Config(pools=(Pool("chat", Match(model=("chat-*",))),)))
    spine.feed(*(request(started_at=NOW - n, finished_at=NOW - n) for n in range(100)))
    absent = (
        *("utilisation_ratio", "replicas", "replicas_needed", "headroom_replicas", "expected_wait_seconds"),
        *("kv_demand_tokens", "usable_rps", "load_imbalance_ratio", "backlog_tokens", "hpa_desired_replicas"),
    )
    assert [name for name in absent if spine.values(name, pool="chat")] == []
    assert spine.value("retry_amplification_ratio", pool="chat") == 1.0


def test_a_request_after_a_long_silence_is_one_in_five_minutes() -> None:
    """Only of a pool that is new the window begins with its first request: 0.5 replica-seconds in 300 to 330 s."""
    spine = Spine(pool())
    long_ago = request(finished_at=NOW - 2400, output_tokens=80, duration_s=1.0)
    spine.feed(long_ago)
    assert spine.value("utilisation_ratio", pool="chat") == pytest.approx(0.5 / 12)
    spine.feed(long_ago | {"finished_at": NOW})
    assert spine.value("utilisation_ratio", pool="chat") == pytest.approx(0.5 / 300 / 12)
    assert spine.value("inflight_littles_law", pool="chat", phase="other") == pytest.approx(1 / 300)


def test_retries_multiply_the_load() -> None:
    """A first try and three retries are four attempts; response-cache hits reach no replica."""
    spine = Spine(pool())
    spine.feed(*(request(finished_at=NOW - n, retries=3 * (n % 2), cache_hit=n >= 50) for n in range(100)))
    assert spine.value("retry_amplification_ratio", pool="chat") == pytest.approx(2.5)


def test_attempts_in_rows_of_their_own_multiply_the_load_as_much() -> None:
    """Two failures and a success of one group are three attempts at one request; beside nine others that is 12/10."""
    spine = Spine(pool())
    tries = [
        request(finished_at=NOW + n, attempt_group="g", outcome=one) for n, one in enumerate(["timeout"] * 2 + ["ok"])
    ]
    spine.feed(*tries, *(request(finished_at=NOW + n) for n in range(9)))
    assert spine.value("retry_amplification_ratio", pool="chat") == pytest.approx(1.2)
