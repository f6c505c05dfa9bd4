"""The protobuf page says what the text page says, and the native histograms besides."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from capwatch import metrics as m
from capwatch.exporters import protobuf, text
from capwatch.ledger import ROUTE, TENANT, Keys, Names
from capwatch.ledger.native import FINEST, MOST, Native, native
from capwatch.ledger.series import alone, plain
from capwatch.meters.latency import natives
from capwatch.metrics import CATALOGUE, Kind
from capwatch.sketch import Cells, index, pack

from . import wire
from .replayed import rows, totals

ROWS = rows(2000)
PAIR = Keys((TENANT, ROUTE))
MEASURES = {
    m.TENANT_PROMPT_TOKENS: "prompt_tokens",
    m.TENANT_OUTPUT_TOKENS: "output_tokens",
    m.TENANT_TTFT_SECONDS: "ttft_s",
    m.TENANT_DURATION_SECONDS: "duration_s",
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, wire.Page]:
    """The same totals as text and as protobuf."""
    found, shown = totals(tmp_path_factory.mktemp("log"), ROWS)
    page = protobuf.Writer(found.names).page(shown, natives(found))
    return text.Writer(found.names).page(shown).decode(), wire.read(page)


def one(values: list[float], zeros: int = 0) -> Native:
    """A native histogram of these values and zeros."""
    buckets = index(np.array([*values, *[0.0] * zeros]))
    cells = Cells(pack(np.zeros(len(buckets), np.int64), buckets), np.ones(len(buckets), np.int64))
    keys = PAIR.pack(np.array([0]), np.array([1]))
    return native(m.TENANT_TTFT_SECONDS, PAIR, keys, np.array([math.fsum(values)]), cells)


def decoded(histogram: Native) -> wire.Histogram:
    """The same after the way over the wire."""
    (found,) = wire.read(protobuf.Writer(Names()).page((), [histogram])).natives.values()
    return found


def test_both_pages_say_the_same(pages: tuple[str, wire.Page]) -> None:
    """Every sample of the text page is in the protobuf page with the very same value, and no other."""
    printed, page = pages
    said = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(printed)
        for sample in family.samples
    }
    assert page.samples == said
    assert len(said) > 500


def test_families_are_those_of_the_catalogue(pages: tuple[str, wire.Page]) -> None:
    """A family has the metric's full name (a server takes it as it is), its help and its type."""
    types = {Kind.COUNTER: 0, Kind.GAUGE: 1, Kind.SUMMARY: 2, Kind.HISTOGRAM: 4, Kind.NATIVE: 4}
    page = pages[1]
    assert page.types == {name: types[CATALOGUE[name].kind] for name in page.types}
    assert page.helps == {name: CATALOGUE[name].help for name in page.types}
    assert len(page.types) > 20


@pytest.mark.parametrize("metric", MEASURES, ids=lambda metric: metric.name)
def test_native_histograms_hold_every_value(pages: tuple[str, wire.Page], metric: m.Metric) -> None:
    """Each tenant and route has exactly its values, in the buckets of the schema, with their sum."""
    found = {labels: one for (name, labels), one in pages[1].natives.items() if name == metric.name}
    told: defaultdict[wire.Labels, list[float]] = defaultdict(list)
    for row in ROWS:
        value = row.get(MEASURES[metric])
        if isinstance(value, int | float):
            told[("route", str(row["route"])), ("tenant", str(row["tenant"]))].append(value)
    assert found.keys() == told.keys()
    for labels, histogram in found.items():
        values = told[labels]
        wanted = Counter(math.ceil(math.log2(value) * 2**FINEST) for value in values if value)
        assert (histogram.schema, histogram.buckets) == (FINEST, dict(wanted))
        assert (histogram.count, histogram.zeros) == (len(values), values.count(0))
        assert histogram.sum == pytest.approx(math.fsum(values), rel=1e-12)


def test_histograms_of_routes_stay_classic(pages: tuple[str, wire.Page]) -> None:
    """Only the metrics that the catalogue calls native are."""
    wanted = {metric.name for metric in CATALOGUE.values() if metric.kind is Kind.NATIVE}
    assert {name for name, _ in pages[1].natives} == wanted


@given(st.lists(st.floats(1e-9, 4e9), max_size=60), st.integers(0, 3))
def test_any_values_arrive(values: list[float], zeros: int) -> None:
    """Whatever lies between them, buckets come through: each holds what its edges say, and all are counted."""
    if not values and not zeros:
        assert len(one(values).keys) == 0
        return
    found = decoded(one(values, zeros))
    edges = {j: (2.0 ** ((j - 1) / 2**found.schema), 2.0 ** (j / 2**found.schema)) for j in found.buckets}
    inside = {j: sum(low < value <= high for value in values) for j, (low, high) in edges.items()}
    assert (found.buckets, found.zeros, found.count) == (inside, zeros, len(values) + zeros)


def test_a_wide_distribution_gets_wider_buckets() -> None:
    """Where the finest schema needs too many buckets the next that does not is taken, for that series alone."""
    wide = [2.0 ** (eighth / 8) for eighth in range(-100, 101)]
    found = decoded(one(wide))
    assert (found.schema, len(found.buckets), sum(found.buckets.values())) == (FINEST - 1, 101, len(wide))
    everything = [2.0 ** (number / 64) for number in range(-2040, 2041)]
    found = decoded(one(everything))
    assert (found.schema, len(found.buckets) <= MOST, sum(found.buckets.values())) == (1, True, len(everything))


def test_a_series_keeps_to_itself() -> None:
    """Series beside each other, one of them of zeros only and one of nothing, have their own buckets and schemas."""
    wide = index(np.array([2.0 ** (eighth / 8) for eighth in range(-100, 101)]))
    parts = [(0, wide), (1, index(np.zeros(2))), (3, index(np.array([3.0])))]
    cells = Cells()
    for place, buckets in parts:
        cells.add(pack(np.full(len(buckets), place), buckets), np.ones(len(buckets), np.int64))
    keys = PAIR.pack(np.zeros(4, np.int64), np.array([0, 1, 1 << 8, 1 << 9]))
    names = Names()
    names.put([("route", 1 << 8, "none"), ("route", 1 << 9, "last")])
    histograms = native(m.TENANT_TTFT_SECONDS, PAIR, keys, np.array([9.0, 0.0, 0.0, 3.0]), cells)
    page = wire.read(protobuf.Writer(names).page((), [histograms]))
    found = {dict(labels)["route"]: one for (_, labels), one in page.natives.items()}
    assert {route: (one.schema, one.count, one.zeros) for route, one in found.items()} == {
        "unknown": (FINEST - 1, 201, 0),
        "other": (FINEST, 2, 2),
        "last": (FINEST, 1, 0),
    }
    assert found["last"].buckets == {math.ceil(math.log2(3.0) * 8): 1}


def test_zeros_alone_are_a_histogram() -> None:
    """A histogram of zeros has them in the bucket for exact zeros, and no other bucket."""
    assert decoded(one([], zeros=2)) == wire.Histogram(2, 0.0, FINEST, 0.0, 2, {})


def test_what_does_not_change_is_not_encoded_again() -> None:
    """A page after a page costs only the series that have changed, and says what a first page would say."""
    names = Names()
    keys = np.arange(3)
    axes = Keys((TENANT,))
    names.put([("tenant", 2, "acme")])
    series = [plain(m.SERIES, axes, keys, np.array(values)) for values in ([1.0, 2.0, 3.0], [1.0, 5.0, 3.0])]
    writer = protobuf.Writer(names)
    writer.page([series[0]], [one([1.0])])
    assert writer.encoded == 4
    assert writer.page([series[0]], [one([1.0])]) == protobuf.Writer(names).page([series[0]], [one([1.0])])
    assert writer.encoded == 4
    assert writer.page([series[1]], [one([1.0, 1.0])]) == protobuf.Writer(names).page([series[1]], [one([1.0, 1.0])])
    assert writer.encoded == 6


def test_absent_samples_are_absent() -> None:
    """A NaN is no sample; a metric without samples has no family."""
    page = wire.read(protobuf.Writer(Names()).page([alone(m.SERIES, math.nan), alone(m.NVML_UP, 1.0)]))
    assert page.samples == {("capwatch_nvml_up", ()): 1.0}
    assert list(page.types) == ["capwatch_nvml_up"]


def test_families_from_elsewhere() -> None:
    """What another library measures is written as a family beside the catalogue's."""
    extra = protobuf.family("process_open_fds", "Open files.", Kind.GAUGE, [({}, 7.0), ({"of": "a"}, 1.0)])
    page = wire.read(protobuf.Writer(Names()).page([alone(m.NVML_UP, 1.0)], extra=extra))
    assert page.samples["process_open_fds", ()] == 7.0
    assert page.samples["process_open_fds", (("of", "a"),)] == 1.0
    assert (page.types["process_open_fds"], page.helps["process_open_fds"]) == (1, "Open files.")
