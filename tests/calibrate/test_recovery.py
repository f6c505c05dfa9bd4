"""Known rates come out of traffic that queues, blocks and shares: within 3 %, and within the interval that is told."""

from __future__ import annotations

import numpy as np
import pytest

from capwatch.calibrate.fit import busy_error, fit
from capwatch.calibrate.windows import Observed
from capwatch.errors import CapwatchError

from .engine import Engine, observed, poisson, serve

ENGINES = {
    "blocking, half busy": (Engine(), 1.0),
    "blocking, slots full": (Engine(), 1.68),
    "chunked, half busy": (Engine(chunk=512), 1.0),
    "chunked, queueing": (Engine(chunk=512), 1.5),
    "sequences dear": (Engine(step=0.005, sequence=0.002), 1.2),
    "slow prefill": (Engine(prefill=1500.0), 0.5),
}
REQUESTS = 1500


def jittered(seen: Observed, seed: int, relative: float) -> Observed:
    """The same with times that are not quite those of the replica: a network before the first and after the last."""
    draw = np.random.default_rng(seed)
    late = draw.exponential(relative, (2, len(seen.first)))
    first = seen.first + late[0]
    return Observed(
        seen.began, first, np.maximum(seen.ended + late[1], first), seen.computed, seen.output, seen.replica
    )


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", ENGINES)
def test_both_rates_come_out(name: str, seed: int) -> None:
    """Prefill alone, and decode at 8 and 24 sequences, within 3 % and within their intervals."""
    engine, rate = ENGINES[name]
    done = serve(engine, poisson(rate, REQUESTS, seed))
    found = fit(observed(done))
    pairs = [(found.prefill(), engine.prefill), *((found.decode(n), engine.decode(n)) for n in (8, 24))]
    for estimate, truth in pairs:
        assert estimate is not None
        assert estimate.value == pytest.approx(truth, rel=0.03)
        assert estimate.low <= truth <= estimate.high


def test_waiting_is_no_work() -> None:
    """Traffic in which requests wait for half a minute on average tells the same rates."""
    engine = Engine(slots=8)
    done = serve(engine, poisson(2.0, REQUESTS, 3))
    assert np.mean([one.began - one.at for one in done]) > 30
    found = fit(observed(done))
    prefill, decode = found.prefill(), found.decode(8)
    assert prefill is not None
    assert decode is not None
    assert prefill.value == pytest.approx(engine.prefill, rel=0.03)
    assert decode.value == pytest.approx(engine.decode(8), rel=0.03)


def test_times_that_are_late() -> None:
    """20 ms of network on average, at both ends, leave the rates within 3 %."""
    engine = Engine()
    found = fit(jittered(observed(serve(engine, poisson(1.5, REQUESTS, 4))), 4, 0.020))
    prefill, decode = found.prefill(), found.decode(20)
    assert prefill is not None
    assert decode is not None
    assert prefill.value == pytest.approx(engine.prefill, rel=0.03)
    assert decode.value == pytest.approx(engine.decode(20), rel=0.03)


def test_outliers_count_less() -> None:
    """Two per cent of the requests hang for half a minute after their last token, and the rates stay."""
    engine = Engine()
    seen = observed(serve(engine, poisson(1.2, REQUESTS, 5)))
    stuck = np.random.default_rng(5).random(len(seen.first)) < 0.02
    seen.ended[stuck] += 30
    found = fit(seen)
    prefill, decode = found.prefill(), found.decode(12)
    assert prefill is not None
    assert decode is not None
    assert prefill.value == pytest.approx(engine.prefill, rel=0.05)
    assert decode.value == pytest.approx(engine.decode(12), rel=0.05)


def test_replicas_are_kept_apart() -> None:
    """Three replicas with their own traffic, told apart by the log."""
    engine = Engine()
    parts = [observed(serve(engine, poisson(1.2, 600, seed)), seed) for seed in (1, 2, 3)]
    joined = Observed(
        *(np.concatenate([getattr(one, name) for one in parts]) for name in Observed.__dataclass_fields__)
    )
    prefill = fit(joined).prefill()
    assert prefill is not None
    assert prefill.value == pytest.approx(engine.prefill, rel=0.03)


@pytest.mark.parametrize("workers", [1, 8, 32])
def test_a_closed_loop(workers: int) -> None:
    """Workers that follow answers: occupancy hardly varies, and the rate at it is told."""
    engine = Engine()
    found = fit(observed(serve(engine, poisson(1, 600, 6), workers)))
    prefill, decode = found.prefill(), found.decode(workers)
    assert prefill is not None
    assert decode is not None
    assert prefill.value == pytest.approx(engine.prefill, rel=0.03)
    assert decode.value == pytest.approx(engine.decode(workers), rel=0.03)


def test_a_log_that_is_cut_at_both_ends() -> None:
    """Those who ended before it begins, and those who end after it, are not seen, and the rates stay."""
    engine = Engine()
    seen = observed(serve(engine, poisson(1.5, REQUESTS, 7)))
    begin, end = np.quantile(seen.ended, (0.3, 0.7))
    prefill = fit(seen.take((seen.ended > begin) & (seen.ended < end))).prefill()
    assert prefill is not None
    assert prefill.value == pytest.approx(engine.prefill, rel=0.03)


def test_busy_time_is_predicted() -> None:
    """Each half of the time by the rates of the other, within 1 %; of an engine that became slower, it is not."""
    engine = Engine()
    first = observed(serve(engine, poisson(1.2, 800, 8)))
    assert busy_error(first) == pytest.approx(0, abs=0.01)
    later = observed(serve(Engine(prefill=3000.0, step=0.025), poisson(1.2, 800, 9)))
    shift = first.ended.max() + 60
    moved = Observed(
        later.began + shift, later.first + shift, later.ended + shift, later.computed, later.output, later.replica
    )
    both = Observed(
        *(np.concatenate([getattr(one, name) for one in (first, moved)]) for name in Observed.__dataclass_fields__)
    )
    error = busy_error(both)
    assert error is not None
    assert abs(error) > 0.15


def test_too_few_are_refused() -> None:
    """In words that say how many are needed."""
    with pytest.raises(CapwatchError, match="29 requests tell tokens and times; at least 30 are needed"):
        fit(observed(serve(Engine(), poisson(1, 29, 1))))


def test_what_cannot_be_told_apart_is_refused() -> None:
    """Answers of one token: there is no decode in it."""
    lengths = poisson(1, 100, 1)
    for one in lengths:
        one.prompt, one.output = 1000.0, 1
    with pytest.raises(CapwatchError, match="prefill and decode cannot be told apart"):
        fit(observed(serve(Engine(), lengths, 1)))
