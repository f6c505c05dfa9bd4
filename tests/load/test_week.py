"""Bursts over a week of seconds: the same as the formula on the whole series, whatever has been folded meanwhile."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from capwatch.capacity.bursts import bursts
from capwatch.keep.codec import pack, unpack
from capwatch.ledger import Sums
from capwatch.load.week import HOUR, Week
from capwatch.record import Floats
from tests.spine import NOW, Spine, request

BEGIN = 492_000 * HOUR + 1234


def told(week: Week, counts: Floats, cost: Floats, *, kept: int = 1560) -> None:
    """Close all but the last ``kept`` seconds; seconds without anything close nothing."""
    for second, (count, work) in enumerate(zip(counts[:-kept].tolist(), cost[:-kept].tolist(), strict=True)):
        if count or work:
            sums = Sums(3)
            sums.add(np.array([5]), np.array([[count, count, work]]))
            week.close(BEGIN + second, sums)


def series(hours: float, seed: int = 1) -> tuple[Floats, Floats]:
    """Requests and their work by second: Poisson of 8/s, with bursts that pass an hour's end."""
    draw = np.random.default_rng(seed)
    rate = np.full(int(hours * HOUR), 8.0)
    end = HOUR - 1234
    rate[end - 30 : end + 45] = 60  # over the end of the first hour
    rate[9000:9020] = 80
    counts = draw.poisson(rate).astype(np.float64)
    return counts, counts * draw.gamma(4.0, 0.25, len(counts))


@pytest.mark.parametrize("hours", [0.3, 0.9, 3.2])
def test_folded_hours_tell_what_the_whole_series_tells(hours: float) -> None:
    """Counts exactly; work within the grid's 0.55 %, twice that for a ratio."""
    counts, cost = series(hours)
    week = Week()
    kept = min(1560, len(counts) - 60)
    told(week, counts, cost, kept=kept)
    tail = {"arrivals": counts[-kept:], "cost": cost[-kept:]}
    found = week.bursts(5, tail, BEGIN + len(counts) - kept)
    whole = bursts(counts)
    assert whole is not None
    assert found["arrivals"] == whole
    work = bursts(cost)
    assert work is not None
    assert found["cost"].p99_to_usual == pytest.approx(work.p99_to_usual, rel=0.011)
    assert found["cost"].longest_s == work.longest_s
    assert found["cost"].max_ramp == pytest.approx(work.max_ramp)


def test_a_silent_night_counts_as_zeros() -> None:
    """Five hours without a request close no slot, yet are seconds: the median of such a week is 0, its mean is used."""
    counts, cost = series(9)
    counts[2 * HOUR : 7 * HOUR] = cost[2 * HOUR : 7 * HOUR] = 0.0
    week = Week()
    told(week, counts, cost)
    found = week.bursts(5, {"arrivals": counts[-1560:], "cost": cost[-1560:]}, BEGIN + len(counts) - 1560)["arrivals"]
    whole = bursts(counts)
    assert whole is not None
    assert whole.by_mean
    assert found.by_mean
    assert found.usual == pytest.approx(whole.usual, rel=0.01)
    assert found.p99_to_usual == pytest.approx(whole.p99_to_usual, rel=0.01)


def test_saved_and_loaded_it_goes_on() -> None:
    """Through the state's own form, and further seconds make no difference."""
    counts, cost = series(3.2)
    one, other = Week(), Week()
    told(one, counts[:8000], cost[:8000], kept=1)
    other.load({name: unpack(pack(part)) for name, part in one.save().items()})
    tail = {"arrivals": counts[7999:9999], "cost": cost[7999:9999]}
    at = BEGIN + 7999
    assert other.bursts(5, tail, at)["arrivals"] == one.bursts(5, tail, at)["arrivals"]
    assert msgspec.json.encode(sorted(other.save())) == msgspec.json.encode(sorted(one.save()))


def test_a_week_is_kept_and_no_more() -> None:
    """After nine days the first two are gone, and an hour takes some hundred numbers."""
    week = Week()
    sums = Sums(3)
    sums.add(np.array([5]), np.array([[8.0, 8.0, 8.0]]))
    for hour in range(9 * 24):
        for second in (0, 1800, 3599):
            week.close(BEGIN - 1234 + hour * HOUR + second, sums)
    hours = [name for name in week.save() if "/" in name]
    assert len(hours) == 168


def test_the_page_shows_the_golden_burst() -> None:
    """G7: five minutes at 40/s with 20 s at 400/s: ratio 10, longest 20 s, ramp 360."""
    spine = Spine()
    rates = [400 if 100 <= second < 120 else 40 for second in range(300)]
    for second, rate in enumerate(rates):
        at = NOW + second
        spine.feed(*(request(started_at=at, finished_at=at + n / rate / 2) for n in range(rate)))
    found = [spine.value(name, pool="default") for name in ("burst_p99_to_median_ratio", "burst_longest_seconds")]
    assert found == [10.0, 20.0]
    assert spine.value("burst_max_ramp_rps", pool="default") == 360


def test_no_cost_is_no_burst_of_it() -> None:
    """Of a log without tokens the bursts of cost are absent, those of requests are there."""
    spine = Spine()
    spine.feed(*(request(finished_at=NOW + second) for second in range(100)))
    assert [name for name in ("p99_to_median_ratio", "longest_seconds") if spine.values(f"cost_burst_{name}")] == []
    assert spine.value("cost_burst_max_ramp_replica_seconds") is None
    assert spine.value("burst_longest_seconds", pool="default") == 0


def test_the_page_shows_what_has_left_the_open_seconds() -> None:
    """A second with thirty requests is told for a week, not for the 26 minutes in which its second is open."""
    spine = Spine()
    for second in range(60):
        spine.feed(*(request(finished_at=NOW + second) for _ in range(30 if second == 40 else 2)))
    for later, ramp in ((0, 28), (HOUR, 28), (6 * 24 * HOUR, 28), (8 * 24 * HOUR, 1)):
        at = NOW + 60 + later
        spine.feed(request(finished_at=at), request(finished_at=at + 3), now=at + 3)
        assert spine.value("burst_max_ramp_rps", pool="default") == ramp


def test_a_pool_silent_for_more_than_a_week_has_no_bursts() -> None:
    """What it had before is of no week any more, and the silence costs nothing to tell."""
    counts, cost = series(0.9)
    week = Week()
    told(week, counts, cost, kept=1)
    silent = {"arrivals": np.zeros(1560), "cost": np.zeros(1560)}
    assert week.bursts(5, silent, BEGIN + 6 * 24 * HOUR)["arrivals"].max_ramp > 20
    found = week.bursts(5, silent, BEGIN + 400 * 24 * HOUR)["arrivals"]
    assert (found.p99_to_usual, found.longest_s, found.max_ramp) == (None, 0, 0.0)
