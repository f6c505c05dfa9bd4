"""200,000 tenants in one run, as a client that makes up names writes them: few series, little memory, exact totals."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.end_to_end.faults.daemon import Daemon

from .daemon import peak_mib, scrape_s, source

TENANTS = 200_000
LINE = (
    b'{"request_id": "r%d", "finished_at": %.3f, "tenant": "tenant-%d", "route": "/v%d/x%d", "model": "m%d", '
    b'"prompt_tokens": %d, "output_tokens": %d, "duration_s": 1.5, "ttft_s": 0.25, "outcome": "ok"}\n'
)
TOKENS = [(100 + n % 97, 1 + n % 13) for n in range(TENANTS)]
MIB, SCRAPE_S = 400, 1.0


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that has read one request of each, on 3,500 routes of 90 models."""
    folder = tmp_path_factory.mktemp("tenants")
    path, now = folder / "log", time.time() - TENANTS / 1000
    with path.open("wb") as file:
        file.writelines(
            LINE % (n, now + n / 1000, n, n % 7, n % 500, n % 90, *tokens) for n, tokens in enumerate(TOKENS)
        )
    found = Daemon(folder, {"sources": [source(path)]})
    found.start()
    found.wait_for_lines({"log": TENANTS})
    yield found
    found.close()


def test_memory_stays_small(daemon: Daemon) -> None:
    """Under 400 MiB at its peak."""
    assert peak_mib(daemon) < MIB


def test_a_scrape_is_quick(daemon: Daemon) -> None:
    """Under a second, of a page with every series there can be."""
    assert scrape_s(daemon) < SCRAPE_S


def test_totals_are_exact(daemon: Daemon) -> None:
    """Law 3, and the same for tokens: what has no name of its own is counted as `other`."""
    found = daemon.samples()
    prompt, output = (sum(tokens[n] for tokens in TOKENS) for n in (0, 1))
    assert found.total("requests_total") == found.total("lines_counted_total") == TENANTS
    assert [found.total("tokens_total", kind=kind) for kind in ("prompt_computed", "output")] == [prompt, output]


def test_what_has_no_name_is_told(daemon: Daemon) -> None:
    """Every request that counts as `other` is in the overflow of its label; no label has more names than its limit."""
    found = daemon.samples()
    for label, limit in (("tenant", 200), ("route", 100), ("model", 50)):
        names = found.by("requests_total", label)
        assert found.total("label_overflow_total", label=label) <= names["other",]
        assert len(names) <= limit + 1
    assert found.total("label_overflow_total", label="tenant") == found.total("requests_total", tenant="other")


def test_series_are_bounded(daemon: Daemon) -> None:
    """The page has fewer than the limit, and says how many."""
    page = daemon.page() or ""
    lines = sum(line.startswith("capwatch_") for line in page.splitlines())
    assert lines * 0.9 < daemon.samples().total("series") <= lines < 200_000
