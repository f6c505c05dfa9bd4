"""End to end: Prometheus 2.42 scrapes the protobuf page from the real server, and its answers are the truth."""

from __future__ import annotations

import gzip
import json
import math
import shutil
import socket
import subprocess
import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from queue import Queue
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from capwatch.exporters import protobuf, text
from capwatch.ledger.native import FINEST
from capwatch.meters.latency import natives
from capwatch.web import Server, Status
from capwatch.web.negotiate import Form
from capwatch.web.now import History, Now, Recent
from capwatch.web.status import Drifts
from tests.web.talk import NOW, STATUS

from .replayed import rows, totals

pytestmark = pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="prometheus is not installed; Debian package prometheus"
)

ROWS = rows(3000, seed=7)
ROWS.append({**ROWS[0], "request_id": "mute", "tenant": "mute", "output_tokens": 0})  # who has never had an answer
READY_S = 60.0
WITHIN = 2.0 ** (2.0**-FINEST)
"""A quantile lies in the bucket of the order statistic, so it is off by less than the width of a bucket."""

Labels = tuple[tuple[str, str], ...]


@dataclass
class Shown:
    """A page in both forms; tells each form that is asked for."""

    pages: dict[Form, bytes]
    asked: Queue[tuple[Form, bool]]

    def metrics(self, form: Form, *, compressed: bool) -> bytes:
        """The page."""
        self.asked.put((form, compressed))
        return gzip.compress(self.pages[form]) if compressed else self.pages[form]

    def status(self) -> Status:
        """Nothing that matters here."""
        return STATUS

    def drifts(self) -> Drifts:
        """None."""
        return Drifts()

    def now(self) -> Now:
        """Nothing."""
        return NOW

    def recent(self) -> Recent:
        """Nobody."""
        return Recent()

    def history(self) -> History:
        """None."""
        return History()

    def ready(self) -> bool:
        """It is."""
        return True


@dataclass(frozen=True)
class Prometheus:
    """A running server that has scraped."""

    port: int
    printed: str
    form: tuple[Form, bool]
    """What it was that it asked for first."""

    def query(self, expression: str) -> dict[Labels, float]:
        """An instant query: values by labels, without those of the scrape."""
        address = f"http://127.0.0.1:{self.port}/api/v1/query?{urlencode({'query': expression})}"
        with urlopen(address, timeout=READY_S) as reply:
            found = json.load(reply)["data"]["result"]
        foreign = {"instance", "job"}
        return {
            tuple(sorted(pair for pair in one["metric"].items() if pair[0] not in foreign)): float(one["value"][1])
            for one in found
        }


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as line:
        return int(line.getsockname()[1])


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Prometheus with native histograms switched on, which has scraped the made-up log's totals."""
    folder = tmp_path_factory.mktemp("prometheus")
    found, series = totals(folder, ROWS)
    page = text.Writer(found.names).page(series)
    shown = Shown({"text": page, "protobuf": protobuf.Writer(found.names).page(series, natives(found))}, Queue())
    server = Server(["127.0.0.1:0"], shown)
    server.start()
    port = free_port()
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s}\n"
        f"scrape_configs: [{{job_name: capwatch, static_configs: [{{targets: ['{server.addresses[0]}']}}]}}]\n"
    )
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                *("prometheus", "--enable-feature=native-histograms", f"--config.file={folder}/prometheus.yml"),
                *(f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{port}"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        form = shown.asked.get(timeout=READY_S)
        running = Prometheus(port, page.decode(), form)
        wait_until_scraped(running, process)
        yield running
    finally:
        process.terminate()
        process.wait()
        server.stop()


def wait_until_scraped(running: Prometheus, process: subprocess.Popen[bytes]) -> None:
    """Wait until a scrape has been stored."""
    pause = threading.Event()
    for _ in range(int(READY_S / 0.1)):
        assert process.poll() is None, "prometheus has ended"
        try:
            if running.query("histogram_count(capwatch_tenant_prompt_tokens)"):
                return
        except URLError:
            pass
        pause.wait(0.1)
    raise AssertionError("nothing was scraped")


def exact(quantity: str, q: float) -> dict[Labels, float]:
    """The order statistic of rank ⌈q·n⌉ per tenant and route."""
    values: defaultdict[Labels, list[float]] = defaultdict(list)
    for row in ROWS:
        value = row.get(quantity)
        if isinstance(value, int | float):
            values[("route", str(row["route"])), ("tenant", str(row["tenant"]))].append(value)
    return {labels: sorted(some)[math.ceil(q * len(some)) - 1] for labels, some in values.items()}


def test_protobuf_is_what_it_asks_for(prometheus: Prometheus) -> None:
    """With native histograms switched on, its Accept header leads to a compressed protobuf page."""
    assert prometheus.form == ("protobuf", True)
    assert prometheus.query("up") == {(("__name__", "up"),): 1.0}


@pytest.mark.parametrize("q", [0.5, 0.95, 0.99])
@pytest.mark.parametrize(
    ("metric", "quantity"),
    [("prompt_tokens", "prompt_tokens"), ("ttft_seconds", "ttft_s"), ("duration_seconds", "duration_s")],
)
def test_quantiles_are_right(prometheus: Prometheus, metric: str, quantity: str, q: float) -> None:
    """`histogram_quantile` of a native histogram is within the schema's error of the exact order statistic."""
    found = prometheus.query(f"histogram_quantile({q}, capwatch_tenant_{metric})")
    wanted = exact(quantity, q)
    assert found.keys() == wanted.keys()
    assert {labels: 1 / WITHIN < found[labels] / wanted[labels] < WITHIN for labels in wanted} == dict.fromkeys(
        wanted, True
    )


def test_counts_and_sums_of_native_histograms_are_exact(prometheus: Prometheus) -> None:
    """A native histogram's count and sum over all series are those of the log."""
    told = [row["ttft_s"] for row in ROWS if isinstance(row.get("ttft_s"), float)]
    assert prometheus.query("sum(histogram_count(capwatch_tenant_ttft_seconds))") == {(): float(len(told))}
    (total,) = prometheus.query("sum(histogram_sum(capwatch_tenant_ttft_seconds))").values()
    assert total == pytest.approx(math.fsum(told), rel=1e-12)  # type: ignore[arg-type]  # floats, see above


def test_zeros_are_counted_as_zeros(prometheus: Prometheus) -> None:
    """A native histogram that holds nothing but zeros is taken for what it is."""
    assert list(prometheus.query('histogram_count(capwatch_tenant_output_tokens{tenant="mute"})').values()) == [1.0]


def test_native_histograms_add_up(prometheus: Prometheus) -> None:
    """Histograms of all tenants and routes merge into one whose median is that of all requests."""
    (found,) = prometheus.query("histogram_quantile(0.5, sum(capwatch_tenant_prompt_tokens))").values()
    values = sorted(row["prompt_tokens"] for row in ROWS if isinstance(row["prompt_tokens"], int))
    assert 1 / WITHIN < found / values[math.ceil(len(values) / 2) - 1] < WITHIN


def test_everything_else_is_as_on_the_text_page(prometheus: Prometheus) -> None:
    """Counters, gauges, summaries and classic histograms hold the samples that the text page shows."""
    stored = prometheus.query('{__name__=~"capwatch_.+", __name__!~"capwatch_tenant_.+_(tokens|seconds)"}')
    printed = {
        tuple(sorted({**labels(sample.labels), "__name__": sample.name}.items())): sample.value
        for family in text_string_to_metric_families(prometheus.printed)
        for sample in family.samples
    }
    assert {labelled(key): value for key, value in stored.items()} == printed
    assert len(printed) > 500


def labels(found: dict[str, str]) -> dict[str, str]:
    """Labels with the bounds of buckets as numbers, since Prometheus 2.42 spells those of protobuf itself."""
    return {**found, **({"le": repr(float(found["le"]))} if "le" in found else {})}


def labelled(key: Labels) -> Labels:
    """The same for the labels of a stored series."""
    return tuple(sorted(labels(dict(key)).items()))
