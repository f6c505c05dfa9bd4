"""Which meters a page of chosen metrics needs: those that show them, whatever has happened."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from capwatch.config.calibration import Calibration
from capwatch.config.schema import Config, Match, Pool
from capwatch.config.units import Stage
from capwatch.ledger.series import Series
from capwatch.metrics import CATALOGUE
from capwatch.view import showing, view
from tests.spine import NOW, Spine, request

MEASURED = Calibration(measured_at=NOW - 86400, prefill=4000.0, decode=160.0, step=0.02, sequence=0.001)


def spine() -> Spine:
    """A quarter of an hour of a pool for which everything is configured."""
    pool = Pool("chat", Match(model=("chat-*",)), replicas=1, stages={"gateway": Stage(60.0)}, measured=MEASURED)
    one = Spine(Config(pools=(pool,)))
    told = {"duration_s": 3.0, "ttft_s": 1.0, "queue_s": 0.5, "prefill_s": 0.5, "decode_s": 2.0}
    tokens = {"prompt_tokens": 1500, "output_tokens": 100, "cached_tokens": 300}
    one.feed(*(request(finished_at=NOW - at, started_at=NOW - at - 3, **told, **tokens) for at in range(900, 0, -1)))
    return one


def plain(found: Sequence[Series]) -> list[tuple[str, list[int], list[list[float]]]]:
    """Names, keys and values; NaN is -1, which is equal to itself."""
    return [(one.metric.name, one.keys.tolist(), np.nan_to_num(one.values, nan=-1.0).tolist()) for one in found]


def test_the_meters_of_a_metric_are_enough() -> None:
    """Each metric of the catalogue alone is shown the same by the meters chosen for it as by all."""
    one = spine()
    meters, empty = one.pipeline.meters, one.pipeline.totals()
    shown = {series.metric.name for series in view(meters, one.totals)}
    assert {"capwatch_stage_capacity_rps", "capwatch_calibration_stale", "capwatch_requests_total"} <= shown
    for name in CATALOGUE:
        families = frozenset({name})
        chosen = showing(meters, empty, families)
        assert plain(view(chosen, one.totals, families=families)) == plain(
            view(meters, one.totals, families=families)
        ), name
        assert (name in shown) <= bool(chosen), name


def test_few_meters_are_asked_for_few_metrics() -> None:
    """One for requests, by either of its names; all for the number of series."""
    one = spine()
    meters, empty = one.pipeline.meters, one.pipeline.totals()
    for name in ("capwatch_requests", "capwatch_requests_total"):
        assert len(showing(meters, empty, frozenset({name}))) == 1
    assert len(showing(meters, empty, frozenset({"capwatch_series"}))) == len(meters)
    assert len(showing(meters, empty, None)) == len(meters)
