"""A Prometheus with a week behind it: restarts at other addresses, lost state, gaps, metrics that came late."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from capwatch.cli import main
from capwatch.errors import CapwatchError
from capwatch.observed.columns import Columns
from capwatch.observed.prometheus import Server
from capwatch.review.asked import Asked
from capwatch.review.calendar import DAY, HOUR, WEEK, IsoWeek
from capwatch.review.rows import PLACE
from tests.end_to_end.prometheus import prometheus

pytestmark = pytest.mark.skipif(
    not (shutil.which("promtool") and shutil.which("prometheus")), reason="prometheus is not installed"
)
THIS = IsoWeek(2026, 48)
BEGIN = THIS.since - 2 * WEEK
CHANGE = THIS.since + 2 * DAY + 10 * HOUR
STEP = 1800
RATE = 4.0
"""Requests a second of each of two tenants."""
PREFILL, DECODE, OUTPUT, REPLICAS = 4000.0, 160.0, 100.0, 12


@dataclass(frozen=True)
class Pool:
    """How a pool's counters came to the server.

    Attributes:
        moves: times (s, epoch) from which on it was scraped at another address.
        reset: when it began to count anew.
        seen: whether the server saw a metric at a time.
        gone: when the series went of a tenant that had requests on the first day only.
    """

    name: str
    moves: tuple[float, ...] = ()
    reset: float = BEGIN
    seen: Callable[[str, float], bool] = lambda _name, _at: True
    gone: float = BEGIN

    def lines(self, at: int) -> Iterator[tuple[str, str]]:
        """(metric, sample) of everything it shows at a time."""
        since = self.reset if at >= self.reset else BEGIN
        address = sum(at >= move for move in self.moves)
        tenants = [("a", since, at), ("b", since, at)]
        if self.gone > BEGIN:
            tenants.append(("gone", since, min(at, BEGIN + DAY)))
        labels = f'instance="10.0.0.{address}:10077",pool="{self.name}"'
        count = 0.0
        for tenant, begin, end in tenants:
            n, prompts = work(begin, end)
            count += n
            if tenant == "gone" and at >= self.gone:
                continue
            who = f'tenant="{tenant}",route="/{self.name}"'
            name = f"{who},{labels.partition(',')[0]}"
            yield "requests", f'capwatch_requests_total{{{name},model="m",outcome="ok"}} {n}'
            for kind, tokens in (("prompt_computed", prompts), ("output", n * OUTPUT)):
                yield "tokens", f'capwatch_tokens_total{{{name},model="m",kind="{kind}"}} {tokens}'
            for phase, cost in (("prefill", prompts / PREFILL), ("decode", n * OUTPUT / DECODE)):
                yield (
                    "cost_replica_seconds",
                    f'capwatch_cost_replica_seconds_total{{{who},{labels},phase="{phase}"}} {cost}',
                )
        yield "departures", f"capwatch_departures_total{{{labels}}} {count}"
        for bound in ("4096.0", "+Inf"):
            yield (
                "route_prompt_tokens",
                f'capwatch_route_prompt_tokens_bucket{{route="/{self.name}",{labels},le="{bound}"}} {count}',
            )
        yield "replicas", f"capwatch_replicas{{{labels}}} {REPLICAS}"


def work(begin: float, end: float) -> tuple[float, float]:
    """Requests of one tenant and their prompt tokens: 1,500 each, from the change on 2,700."""
    late = max(0.0, end - max(begin, CHANGE))
    return RATE * (end - begin), RATE * ((end - begin - late) * 1500 + late * 2700)


def page(pools: list[Pool]) -> str:
    """Three weeks of it as OpenMetrics, a family and a series together."""
    families: dict[str, dict[str, list[str]]] = {}
    for at in range(BEGIN, THIS.until + 1, STEP):
        for pool in pools:
            for metric, sample in pool.lines(at):
                if pool.seen(metric, at):
                    series = families.setdefault(metric, {}).setdefault(sample.rpartition(" ")[0], [])
                    series.append(f"{sample} {at}\n")
    kinds = {"route_prompt_tokens": "histogram", "replicas": "gauge"}
    text = []
    for metric, found in families.items():
        text.append(f"# TYPE capwatch_{metric} {kinds.get(metric, 'counter')}\n")
        text += [line for series in found.values() for line in series]
    return "".join([*text, "# EOF\n"])


@contextmanager
def seen(folder: Path, pools: list[Pool]) -> Iterator[str]:
    """The address of a server that has seen the pools."""
    (folder / "page.om").write_text(page(pools))
    make = ("promtool", "tsdb", "create-blocks-from", "openmetrics", "--max-block-duration=256h")
    subprocess.run([*make, folder / "page.om", folder / "blocks"], capture_output=True, check=True)
    with prometheus(folder / "blocks") as server:
        yield server.url


def reviewed(folder: Path, pools: list[Pool]) -> dict[str, Any]:
    """The review of a server that has seen the pools."""
    out = folder / "review.html"
    with seen(folder, pools) as url:
        assert main(["review", "--week", str(THIS), "--prometheus", url, "--out", str(out)]) == 0
    found: dict[str, Any] = json.loads(out.with_suffix(".json").read_text())
    return found


def holds(pool: dict[str, Any], within: float = 1e-6) -> None:
    """The story's numbers: 1.000 → 1.300 replica-seconds, 66.7 → 86.7 %, fifteen replicas, since Wednesday 10:00."""
    assert pool["cost_before"] == pytest.approx(1.0, rel=within)
    assert pool["cost_after"] == pytest.approx(1.3, rel=within)
    assert pool["utilisation_before"] == pytest.approx(8 / 12, rel=within)
    assert pool["utilisation_after"] == pytest.approx(8 * 1.3 / 12, rel=within)
    assert (pool["replicas_needed"], pool["changed_at"]) == (15, CHANGE)


def why(found: dict[str, Any]) -> str:
    """What is missing, in one text."""
    return "\n".join(gap["why"] for gap in found["missing"])


@pytest.fixture(scope="module")
def restarted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Pools whose capwatch did not run through."""
    moves = (THIS.since - 4 * DAY, THIS.since + DAY + 0.5 * HOUR, THIS.since + 3 * DAY)
    pools = [
        Pool("plain"),
        Pool("moved", moves=moves),
        Pool("reset", reset=THIS.since + 3 * DAY),
        Pool("left", gone=THIS.since - 4 * DAY),
    ]
    return reviewed(tmp_path_factory.mktemp("restarted"), pools)


@pytest.mark.parametrize("name", ["plain", "moved", "left"])
def test_a_restart_changes_nothing(name: str, restarted: dict[str, Any]) -> None:
    """Whoever goes on counting at another address is the same; a tenant that has gone takes nothing with it."""
    holds(restarted["pools"][name])


def test_counters_that_began_anew(restarted: dict[str, Any]) -> None:
    """What they counted between two looks around it is lost, and no more."""
    holds(restarted["pools"]["reset"], within=0.01)


def test_earlier_weeks_have_no_leaps(tmp_path: Path) -> None:
    """Where the series of a tenant go, an hour has the requests of that hour, not all that were counted before."""
    with seen(tmp_path, [Pool("left", gone=BEGIN + 3 * DAY)]) as url:
        slots = [*Asked(Server(url), THIS, THIS.until).hours(BEGIN, BEGIN + WEEK)]
    requests = {slot.at: float(slot.values[:, PLACE["outcome_ok"]].sum()) for slot in slots}
    assert requests == {
        at: pytest.approx(RATE * HOUR * (3 if at < BEGIN + DAY else 2)) for at in range(BEGIN, BEGIN + WEEK, HOUR)
    }


def test_hours_without_scrapes(tmp_path: Path) -> None:
    """A server that was down on Thursday night: the counts are there, evenly, and it is told."""
    down = (THIS.since + 3 * DAY, THIS.since + 3 * DAY + 9 * HOUR)
    found = reviewed(tmp_path, [Pool("plain", seen=lambda _name, at: not down[0] < at < down[1])])
    holds(found["pools"]["plain"])
    assert "saw nothing from Thu 26 Nov 00:00 to Thu 26 Nov 09:00" in why(found)


def test_a_metric_that_came_late(tmp_path: Path) -> None:
    """Tokens kept from Tuesday on only: what is told is of the hours since then, and that is said."""
    late = THIS.since + DAY
    found = reviewed(tmp_path, [Pool("plain", seen=lambda name, at: name != "tokens" or at >= late)])
    pool = found["pools"]["plain"]
    assert pool["cost_before"] == pytest.approx(1.0)
    assert pool["cost_after"] == pytest.approx(1.3)
    assert pool["changed_at"] == CHANGE
    assert "capwatch_tokens_total of a part of the time only" in why(found)
    assert found["observed"]["from"] == "2026-11-24T00:00:00Z"


def test_a_query_that_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It costs its own part: the rest is told, and the query is named."""
    usual = Server.range

    def slow(self: Server, expr: str, since: float, until: float, step: float) -> Columns:
        if "saved" in expr or "departures" in expr:
            raise CapwatchError(f"{self.url}: no whole answer within 60 s")
        return usual(self, expr, since, until, step)

    monkeypatch.setattr(Server, "range", slow)
    found = reviewed(tmp_path, [Pool("plain")])
    holds(found["pools"]["plain"])
    told = [gap["what"] for gap in found["missing"] if "no whole answer" in gap["why"]]
    assert "capwatch_prefill_saved_replica_seconds_total" in told
    assert "weeks before the last" in told
