"""The made-up two weeks: what they leave in a state is what the long road would have left."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from capwatch.config.load import load
from capwatch.config.schema import Config
from capwatch.daemon.start import begin
from capwatch.demo import history, truth
from capwatch.demo.columns import columns
from capwatch.demo.scene import GATEWAY, Scene
from capwatch.demo.simulation import Simulation
from capwatch.demo.workload import MODEL, RATE
from capwatch.dialect import Decoded
from capwatch.drift.resend import ResendFilter
from capwatch.exporters.text import Writer
from capwatch.meters.drift import TICKS
from capwatch.origin import Origin
from capwatch.pipeline import Pipeline
from capwatch.sourcing import names
from capwatch.view import view
from tests.end_to_end.command import Page

NOW = 1_767_225_600.0


def configured(folder: Path) -> Config:
    """The demo's configuration."""
    scene = Scene(folder)
    scene.set_up("127.0.0.1:0")
    return load(str(scene.configuration), {}, formats=names(), is_root=False)


def warmed() -> Simulation:
    """The live simulation, which begins before the end of history."""
    return Simulation("quiet", 1, NOW - history.WARM_S, history.WARM_S + 120)


def shown(pipeline: Pipeline) -> Page:
    """What a pipeline's increments show."""
    totals = pipeline.totals()
    totals.apply(pipeline.freeze())
    return Page(Writer(totals.names).page(view(pipeline.meters, totals)).decode())


def test_the_peak_is_now() -> None:
    """The rate is the live one at this time of day, falls to 15 % at night, and to half of that on free days."""
    at = np.array([0.0, 0.5, 1.0, 3.0, 3.5, 7.0, 10.0]) * history.DAY_S
    assert history.rate(at).tolist() == pytest.approx([RATE, 1.2, RATE, RATE / 2, 0.6, RATE, RATE / 2])


def test_long_ago_counts_for_life_alone(tmp_path: Path) -> None:
    """The short road gives the counters of the long one, and nothing in windows or by second."""
    rows = Simulation("quiet", 1, NOW, 600.0).until(NOW + 600)
    batch = columns(rows)
    pages = []
    for short in (False, True):
        pipeline = Pipeline(configured(tmp_path))
        if short:
            pipeline.meters = [history.ForLife(meter) for meter in pipeline.meters]
        pipeline.take(Origin(GATEWAY), Decoded(batch, np.arange(len(batch)), [], 0, 0, 0, Counter()), NOW + 600)
        pages.append(shown(pipeline))
    counters = [{n: v for n, v in page.samples.items() if n.endswith(("_total", "_bucket", "_sum"))} for page in pages]
    assert counters[0] == counters[1]
    quantiles = [sum("quantile" in labels for labels, _ in page.samples["capwatch_ttft_seconds"]) for page in pages]
    assert (quantiles[0] > 0, quantiles[1]) == (True, 0)


def test_ticks_are_those_of_the_pipeline(tmp_path: Path) -> None:
    """The detector's ticks of made-up requests are what the daemon's own road makes of them, waits among them."""
    rows = Simulation("quiet", 1, NOW, 600.0).until(NOW + 600)
    batch = columns(rows)
    pipeline = Pipeline(configured(tmp_path))
    pipeline.take(Origin(GATEWAY), Decoded(batch, np.arange(len(batch)), [], 0, 0, 0, Counter()), NOW + 600)
    totals = pipeline.totals()
    totals.apply(pipeline.freeze())
    expected = {tick: sums.values.sum(axis=0) for tick, sums in totals.slots(TICKS).items()}
    made = history.ticks(rows, ResendFilter())
    assert len(expected) == 59
    for tick, sums in expected.items():
        np.testing.assert_allclose(made.between(tick, tick + 1).sums.sum(axis=0), sums, rtol=1e-9, err_msg=str(tick))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Config, Simulation, list[float]]:
    """A configuration whose state holds a day, the simulation that goes on from there, and the progress heard."""
    config, live, heard = configured(tmp_path_factory.mktemp("day")), warmed(), list[float]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "DAYS", 1)
        history.fill(config, live, heard.append)
    return config, live, heard


def test_a_day_fills_a_state(filled: tuple[Config, Simulation, list[float]]) -> None:
    """What a daemon finds: a day of requests at the usual cost, no lines, and windows that are full up to now."""
    config, _, heard = filled
    begun = begin(config, reset=False)
    page = Page(Writer(begun.totals.names).page(view(begun.pipeline.meters, begun.totals)).decode())
    begun.state.close()
    requests, cost = (page.value(f"class_{name}_total", pool=MODEL) for name in ("requests", "cost_replica_seconds"))
    drawn = float(history.rate(np.arange(0.0, history.DAY_S, 300.0)).mean() * history.DAY_S)
    assert requests == pytest.approx(drawn, rel=0.01)
    assert cost / requests == pytest.approx(0.992, rel=0.01)
    assert NOW - 1 < begun.totals.clock <= NOW
    assert page.value("littles_law_valid", pool=MODEL) == 1.0
    assert page.value("lines_read_total") == 0.0
    assert (heard == sorted(heard), heard[-1] <= 1) == (True, True)


def test_the_history_has_its_rollups(filled: tuple[Config, Simulation, list[float]]) -> None:
    """Five-minute rollups lie in the history up to a quarter of an hour ago, one for each five minutes."""
    with closing(sqlite3.connect(f"{filled[0].state_dir}/history.db")) as database:
        kept = [at for (at,) in database.execute("SELECT at FROM slot WHERE name = 'rollup' ORDER BY at")]
    assert (set(np.diff(kept)), NOW - 1800 < kept[-1] <= NOW - 900) == ({300}, True)


def test_the_live_part_goes_on_where_history_ends(filled: tuple[Config, Simulation, list[float]]) -> None:
    """Requests under way at the end of history end in the live part: in flight then is what it always is."""
    rows = filled[1].until(NOW + 600)
    assert float(rows.ended.min()) > NOW
    under_way = sum(truth.in_flight(rows, NOW, NOW + 1e-3).values())
    assert (rows.arrived < NOW).sum() == pytest.approx(under_way, abs=1)
