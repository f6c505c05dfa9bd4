"""The daemon's pipeline over the demo's logs: λW, cost and utilisation against the simulation's own truth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from capwatch.demo import truth
from capwatch.demo.draw import LIMIT, Rows
from capwatch.demo.scene import Scene
from capwatch.demo.simulation import Simulation
from capwatch.demo.workload import KINDS, MODEL, REPLICAS, TENANTS
from capwatch.demo.writers import Writers
from tests.end_to_end.command import Page, printed

BEGIN = 1_767_225_600.0
LENGTH = 900.0
END = BEGIN + LENGTH
WINDOW_S = 300.0
"""The window of λW ends with the newest event, and is at most a slice of 30 s longer."""


class Shown(NamedTuple):
    """What happened, what was still under way at the end, and the page that `replay` prints of it."""

    rows: Rows
    later: Rows
    page: Page


@pytest.fixture(scope="module", params=["new-tenant", "retrieval-depth"])
def shown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """A quarter of an hour, the second half after the change, written as the demo writes them, with rotation."""
    scene = Scene(tmp_path_factory.mktemp("demo"))
    scene.set_up("127.0.0.1:0")
    simulation = Simulation(request.param, 11, BEGIN, LENGTH / 2)
    writers = Writers(scene.gateway, scene.engines, seed=11, max_bytes=1 << 20, kept=99)
    writers.begin(BEGIN)
    parts = []
    for at in np.arange(BEGIN + 10, END + 1, 10).tolist():
        parts.append(simulation.until(at))
        writers.write(parts[-1], simulation.statistics(at), at)
    writers.close()
    assert len(list(scene.gateway.parent.iterdir())) > 3
    page = Page(printed("replay", "--config.file", scene.configuration, cwd=scene.folder))
    return Shown(Rows.join(*parts), simulation.until(END + 600), page)


def test_every_request_is_counted(shown: Shown) -> None:
    """Requests by tenant and route are those that ended, and no line is dropped."""
    meant: dict[tuple[str, ...], float] = {}
    for tenant, kind in zip(shown.rows.tenant.tolist(), shown.rows.kind.tolist(), strict=True):
        key = (TENANTS[tenant], KINDS[kind].route)
        meant[key] = meant.get(key, 0.0) + 1
    assert shown.page.values("requests_total", "tenant", "route") == meant
    assert (shown.page.value("lines_dropped_total"), shown.page.value("late_records_total")) == (0.0, 0.0)


def test_cost_is_the_simulation_s(shown: Shown) -> None:
    """Replica-seconds by class are those of the simulated tokens, to the last float."""
    cost = np.nan_to_num(truth.cost(shown.rows))
    meant = {(kind.name,): float(cost[shown.rows.kind == k].sum()) for k, kind in enumerate(KINDS)}
    told = shown.page.values("class_cost_replica_seconds_total", "class", pool=MODEL)
    assert {key: value for key, value in told.items() if value} == pytest.approx(meant, rel=1e-9)


def test_utilisation_is_the_simulation_s(shown: Shown) -> None:
    """λ·cost/replicas from the counters is the work that was done, before and after the change together."""
    told = shown.page.value("class_cost_replica_seconds_total", pool=MODEL) / LENGTH / REPLICAS
    assert told == pytest.approx(truth.utilisation(shown.rows, LENGTH), rel=1e-9)


def test_residence_is_the_simulation_s(shown: Shown) -> None:
    """Seconds by phase are those of the requests that ended; waiting that no log tells apart is in prefill."""
    spans = {name: float((end - begin).sum()) for name, (begin, end) in truth.phases(shown.rows).items()}
    told = shown.page.values("phase_seconds_total", "phase", pool=MODEL)
    meant = (spans["gateway"], spans["queue"] + spans["prefill"], spans["decode"])
    assert (told[("gateway",)], told[("prefill",)], told[("decode",)]) == pytest.approx(meant, rel=1e-6)


def test_lambda_w_is_what_was_in_flight(shown: Shown) -> None:
    """λW over the last five minutes is what a sweep over the same time finds in flight, by phase.

    λW counts a request when it has ended, the sweep while it lasts: what is under way at both edges of the window
    makes the difference, residence over window, 5 %.
    """
    everything = Rows.join(shown.rows, shown.later)
    last = float(shown.rows.ended.max())
    begun = (np.floor(last / 30) - 10) * 30
    swept = truth.in_flight(everything, begun, last)
    told = shown.page.values("inflight_littles_law", "phase", pool=MODEL)
    meant = (swept["gateway"], swept["queue"] + swept["prefill"], swept["decode"])
    assert (told[("gateway",)], told[("prefill",)], told[("decode",)]) == pytest.approx(meant, rel=0.05)


def test_engines_agree_with_lambda_w(shown: Shown) -> None:
    """What the replicas counted, the mean over their last five minutes, is λW up to what is under way at its edges."""
    assert shown.page.value("littles_law_residual_ratio", pool=MODEL) == pytest.approx(0.0, abs=0.05)
    assert shown.page.value("littles_law_valid", pool=MODEL) == 1.0


def test_engines_show_their_cache(shown: Shown) -> None:
    """Every replica shows the size of its KV cache, and how full it is."""
    assert shown.page.values("engine_kv_cache_capacity_tokens", "pool") == {(MODEL,): 30_496.0 * REPLICAS}
    full = shown.page.values("engine_kv_cache_utilisation_ratio", "engine")
    assert len(full) == REPLICAS
    assert 0 < min(full.values()) <= max(full.values()) <= 1


def test_limited_requests_cost_nothing(shown: Shown) -> None:
    """Requests that the gateway turned away are counted, by the gateway's own limit, and cost nothing."""
    limited = float((shown.rows.fate == LIMIT).sum())
    assert limited > 0
    assert shown.page.value("requests_total", outcome="rate_limited") == limited
