"""The text pages: every byte of a golden one, and the same numbers for everybody who reads them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import Metric as Parsed
from prometheus_client.openmetrics import parser
from prometheus_client.parser import text_string_to_metric_families as prometheus_families

from capwatch import metrics as m
from capwatch.config.schema import Config, Match, Pool, Slo
from capwatch.exporters.text import Writer
from capwatch.ledger import TENANT, Keys, Names
from capwatch.ledger.series import plain
from capwatch.view import view
from tests.spine import NOW, Spine, request

HERE = Path(__file__).parent
CONFIG = Config(pools=(Pool("chat", Match(model=("chat-*",))),), slo=(Slo(ttft=1.5, tpot=0.06),))
SHOWN = frozenset(
    f"capwatch_{name}"
    for name in (
        *("requests", "tokens", "ttft_seconds", "route_tpot_seconds", "tenant_share_ratio"),
        *("goodput_missed", "phase_seconds", "littles_law_valid", "retired_requests"),
    )
)
HOSTILE = (
    'quo"te',
    "back\\slash",
    "new\nline",
    'x"} 1\ncapwatch_requests_total{tenant="injected"} 1e9',
    "# TYPE capwatch_requests_total gauge",
    "nul\0 bell\a escape\x1b[31m",
    "lone \ud800 surrogate",
    "\u2028separators\u2029",
    "a{} b",
    "x" * 10_000,
    "jane@example.org",
    "sk-0123456789abcdef0123",
    "größe 🦉",
)


def spine() -> Spine:
    """A few requests, one tenant with an awkward name."""
    found = Spine(CONFIG)
    found.feed(
        request(stream=True, ttft_s=0.4, duration_s=2.0, prompt_tokens=1300, cached_tokens=300, output_tokens=81),
        request(stream=True, ttft_s=1.6, duration_s=9.5, prompt_tokens=3200, output_tokens=151, tenant='quo"te\\\n'),
        request(outcome="timeout", status=504, duration_s=60.0, finished_at=NOW + 1),
    )
    return found


def page(of: Spine, *, openmetrics: bool = False, families: frozenset[str] | None = None) -> str:
    """The page of a spine."""
    shown = view(of.pipeline.meters, of.totals, families=families)
    return Writer(of.totals.names).page(shown, openmetrics=openmetrics).decode()


def values(families: Iterable[Parsed]) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """What a parser found, by name and labels; a series twice fails."""
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for family in families:
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found
            found[key] = sample.value
    return found


def openmetrics_families(text: str) -> Iterable[Parsed]:
    """What the parser of OpenMetrics finds."""
    return cast("Iterable[Parsed]", parser.text_string_to_metric_families(text))  # type: ignore[no-untyped-call]


def expected(of: Spine) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """What the meters show."""
    return {(name, frozenset(labels)): value for (name, labels), value in of.samples().items()}


@pytest.mark.parametrize(("file", "openmetrics"), [("page.prom", False), ("page.openmetrics", True)])
def test_every_byte_of_a_page(file: str, openmetrics: bool) -> None:
    """Numbers in labels have one spelling in both formats, and so has all else."""
    assert page(spine(), openmetrics=openmetrics, families=SHOWN).encode() == (HERE / file).read_bytes()


def test_both_formats_write_samples_alike() -> None:
    """They differ in the lines about families and in the end."""
    lines = [[line for line in page(spine(), openmetrics=o).splitlines() if line[:1] != "#"] for o in (False, True)]
    assert lines[0] == lines[1]


@pytest.mark.parametrize("spelling", ['le="1.0"', 'le="+Inf"', 'le="1.5"', 'quantile="0.5"', 'quantile="0.95"'])
def test_numbers_in_labels_are_canonical(spelling: str) -> None:
    """As OpenMetrics spells floats, in every format."""
    assert [spelling in page(spine(), openmetrics=openmetrics) for openmetrics in (False, True)] == [True, True]


def test_parsers_read_what_was_written() -> None:
    """Both parsers of the Prometheus client find every sample with its value, and none twice."""
    whole = spine()
    assert values(prometheus_families(page(whole))) == expected(whole)
    assert values(openmetrics_families(page(whole, openmetrics=True))) == expected(whole)


def test_hostile_labels_come_out_clean() -> None:
    """Whatever a client calls itself, the page parses, no foreign series is on it, and the totals are exact."""
    whole = Spine(CONFIG)
    whole.feed(*(request(tenant=one, route=one, model=one, duration_s=1.0) for one in HOSTILE))
    for found in (
        values(prometheus_families(page(whole))),
        values(openmetrics_families(page(whole, openmetrics=True))),
    ):
        assert found == expected(whole)
        requests = {labels: value for (name, labels), value in found.items() if name == "capwatch_requests_total"}
        assert sum(requests.values()) == len(HOSTILE)
        texts = [text for labels in requests for _, text in labels]
        assert [text for text in texts if "injected" in text and not text.startswith('x"} 1')] == []
        assert max(map(len, texts)) == 128
        assert [text for text in texts if "jane" in text or "0123456789" in text] == []


@given(st.lists(st.text(st.characters(codec=None), max_size=40), min_size=1, max_size=5))
@settings(max_examples=40)
def test_any_label_survives_both_parsers(names: list[str]) -> None:
    """Values come back as they were shown."""
    whole = Spine(Config())
    whole.feed(*(request(tenant=name) for name in names))
    shown = frozenset({"capwatch_requests"})
    labels = {dict(key)["tenant"] for key in whole.values("requests_total")}
    for found in (
        values(prometheus_families(page(whole, families=shown))),
        values(openmetrics_families(page(whole, openmetrics=True, families=shown))),
    ):
        assert {dict(key)["tenant"] for _, key in found} == labels
        assert sum(found.values()) == len(names)


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed; Debian package prometheus")
def test_promtool_finds_nothing() -> None:
    """`promtool check metrics` reads the page with hostile labels and has nothing to say."""
    whole = Spine(CONFIG)
    whole.feed(*(request(tenant=one, route=one, model=one, duration_s=1.0, ttft_s=0.5) for one in HOSTILE))
    told = subprocess.run(
        ["promtool", "check", "metrics"], input=page(whole).encode(), capture_output=True, check=False, timeout=60
    )
    assert (told.returncode, told.stdout + told.stderr) == (0, b"")


def test_only_what_changed_is_rendered_again() -> None:
    """A page after one more request writes the series of that request and the few of its pool, not all."""
    whole = Spine(CONFIG)
    whole.feed(*(request(tenant=f"t{n}", route=f"/r{n % 5}", duration_s=1.0) for n in range(50)))
    writer = Writer(whole.totals.names)
    first = writer.page(view(whole.pipeline.meters, whole.totals))
    rendered = writer.rendered
    assert writer.page(view(whole.pipeline.meters, whole.totals)) == first
    assert writer.rendered == rendered
    whole.feed(request(tenant="t7", route="/r2", duration_s=1.0))
    again = writer.page(view(whole.pipeline.meters, whole.totals))
    assert 0 < writer.rendered - rendered < 25
    assert again == Writer(whole.totals.names).page(view(whole.pipeline.meters, whole.totals))


ROWS = st.lists(st.dictionaries(st.integers(2, 9), st.integers(0, 3), max_size=6), min_size=1, max_size=6)


@given(ROWS)
def test_a_page_written_piece_by_piece_is_the_page_written_whole(pages: list[dict[int, int]]) -> None:
    """Series may come, change and go between pages; a count of 0 stands for an absent sample."""
    names = Names()
    for number in range(2, 10):
        names.id("tenant", f"t{number}")
    writer = Writer(names)
    for rows in pages:
        keys = np.array(sorted(rows), np.int64)
        told = np.array([rows[key] or np.nan for key in keys.tolist()], np.float64)
        series = [plain(m.BUDGET_WOULD_REJECT, Keys((TENANT,)), keys, told)]
        assert writer.page(series) == Writer(names).page(series)


def test_an_absent_sample_is_no_line() -> None:
    """None is absent, not 0 and not NaN."""
    lines = page(spine()).splitlines()
    assert [line for line in lines if "NaN" in line or line.startswith("capwatch_queue_seconds")] == []


def test_infinity_is_spelt_as_both_formats_want_it() -> None:
    """A wait without end, as the queue formulas have it, and it stays parseable."""
    keys = Keys((TENANT,))
    series = plain(m.EXPECTED_WAIT_SECONDS, keys, np.array([0]), np.array([np.inf]))
    page = Writer(Names()).page([series], openmetrics=False).decode()
    assert page.splitlines()[-1] == 'capwatch_expected_wait_seconds{tenant="unknown"} +Inf'
    assert [sample.value for family in prometheus_families(page) for sample in family.samples] == [float("inf")]


def test_families_stand_in_the_order_of_the_catalogue() -> None:
    """Each once, with its help and type before it."""
    heads = [line.split()[2] for line in page(spine()).splitlines() if line.startswith("# TYPE")]
    assert heads == [metric.name for metric in m.CATALOGUE.values() if metric.name in heads]
