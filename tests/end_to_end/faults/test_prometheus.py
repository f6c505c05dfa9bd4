"""End to end with Debian's Prometheus: what it answers is the truth, and every page keeps the laws."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.end_to_end.prometheus import Prometheus

from . import LONG
from .daemon import Daemon
from .ledger import Ledger, Samples
from .scenario import source
from .scraping import judged, needs_prometheus, scraping, tenants, wait_for
from .writer import Writer, tokens

pytestmark = needs_prometheus
RATE = 2000 if LONG else 500
SECONDS = 30.0 if LONG else 6.0
INTERVAL = "1s"
PREFILL, DECODE = 4000.0, 160.0
"""Tokens/s of the pool, so that costs can be told from tokens."""


@dataclass(frozen=True)
class Scraped:
    """A run that is over: the daemon and the Prometheus that scraped it are still there."""

    writer: Writer
    ledger: Ledger
    last: Samples
    server: Prometheus

    def query(self, promql: str) -> dict[tuple[str, ...], float]:
        """The values of an instant query now, by the values of its labels."""
        return self.server.query(promql, time.time())


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scraped]:
    """Everything exposed, names for all tenants, and a steady stream of requests."""
    folder = tmp_path_factory.mktemp("prometheus")
    path = folder / "requests.jsonl"
    pool = {"name": "chat", "prefill_tokens_per_second": PREFILL, "decode_tokens_per_second": DECODE}
    slo = {"match": {}, "ttft": "1.5s", "tpot": "60ms"}
    daemon = Daemon(
        folder, {"sources": [source("gateway", path)], "pools": [pool], "slo": [slo], "limits": {"tenants": 1000}}
    )
    writer = Writer(path, RATE)
    ledger = Ledger(daemon.page, lambda: writer.bytes)
    try:
        daemon.start()
        with scraping(folder / "tsdb", daemon.address, INTERVAL) as server:
            wait_for(server, "max(up)", 1)
            ledger.start()
            writer.start()
            time.sleep(SECONDS)
            writer.stop()
            daemon.wait_for_lines({"gateway": writer.lines})
            wait_for(server, "sum(capwatch_requests_total)", writer.lines)
            ledger.stop()
            yield Scraped(writer, ledger, daemon.samples(), server)
    finally:
        daemon.close()


def test_the_laws_hold_at_every_scrape(scraped: Scraped) -> None:
    """Laws 1, 2, 3 and 7, and bytes that belong to lines, on every page."""
    assert scraped.ledger.breaches == []
    assert scraped.ledger.pages > SECONDS


def test_prometheus_knows_every_tenant_exactly(scraped: Scraped) -> None:
    """Requests and tokens by tenant, accumulated from its raw samples by its own rule, and it saw no counter fall."""
    increases, fallen = judged(scraped.server, '{__name__=~"capwatch_(requests|tokens)_total"}')
    assert fallen == []
    assert tenants(increases) == scraped.writer.truth()


def test_queries_return_the_true_totals(scraped: Scraped) -> None:
    """Totals by PromQL are those of the log, whatever the caps."""
    told = [tokens(sequence) for sequence in range(scraped.writer.lines)]
    computed, cached = sum(prompt - hit for prompt, hit, _ in told), sum(hit for _, hit, _ in told)
    output = sum(one for _, _, one in told)
    assert scraped.query("sum(capwatch_requests_total)") == {(): scraped.writer.lines}
    assert scraped.query("sum by (kind) (capwatch_tokens_total)") == {
        ("prompt_computed",): computed,
        ("prompt_cached",): cached,
        ("output",): output,
    }
    cost = scraped.query("sum by (phase) (capwatch_cost_replica_seconds_total)")
    assert cost == {
        ("prefill",): pytest.approx(computed / PREFILL, rel=1e-9),
        ("decode",): pytest.approx(output / DECODE, rel=1e-9),
    }
    seconds = scraped.query("sum(capwatch_phase_seconds_total)")
    assert seconds == {(): pytest.approx(2.25 * scraped.writer.lines, rel=1e-9)}
