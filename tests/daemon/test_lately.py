"""The last 24 hours and the last minutes for the page, against requests whose figures are known beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from capwatch.config.schema import Config, Slo
from capwatch.daemon.lately import Lately, present
from capwatch.daemon.recent import recent
from capwatch.daemon.shown import Shown
from capwatch.daemon.slots import still_open
from capwatch.daemon.spared import Spared
from capwatch.daemon.status import Board
from capwatch.keep.history import History
from capwatch.web.now import History as Told
from capwatch.web.now import PoolHistory
from tests.spine import NOW, Spine, request

BEGIN = NOW - 7200.0
STEP = 2.0
CHANGE = 90 * 60.0
"""Seconds after `BEGIN` from which prompts are twice as long."""
WITHIN = 0.0055


def requests() -> Iterator[dict[str, Any]]:
    """Two hours: one request in two seconds, each ten seconds long; 2, later 3 replica-seconds."""
    for after in np.arange(STEP / 2, 7200.0, STEP).tolist():
        yield request(
            finished_at=BEGIN + after,
            duration_s=10.0,
            ttft_s=2.0,
            gateway_s=0.5,
            prompt_tokens=4000 if after - 10.0 < CHANGE else 8000,
            cached_tokens=0,
            output_tokens=160,
            tenant="acme" if after % 8 < 2 else "bolt",
        )


class Played:
    """A spine and a history that it fills as the daemon does."""

    def __init__(self, folder: Path) -> None:
        self.spine = Spine(Config(slo=(Slo(ttft=1.0),)))
        self.folder = str(folder)

    def feed(self, records: list[dict[str, Any]], history: History) -> None:
        """Take records, and keep what closes."""
        totals = self.spine.totals
        self.spine.feed(*records)
        history.keep(totals.closed, totals.closed_names(), totals.clock)
        totals.kept(len(totals.closed))

    def told(self, lately: Lately) -> PoolHistory:
        """What is told of the pool."""
        return lately.history(present(self.spine.totals, {"default": 1000.0})).pools["default"]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Played, list[PoolHistory]]]:
    """Everything, and what one reader saw on the way: after each ten minutes."""
    tmp_path = tmp_path_factory.mktemp("history")
    one, records, seen = Played(tmp_path), list(requests()), []
    lately = Lately(str(tmp_path))
    with closing(History(str(tmp_path), 1 << 30)) as history:
        for part in range(0, len(records), 300):
            one.feed(records[part : part + 300], history)
            seen.append(one.told(lately))
        yield one, seen


def test_minutes_are_those_of_the_requests(played: tuple[Played, list[PoolHistory]]) -> None:
    """Each minute has its rate and its cost per request, the change in the minute in which it came."""
    found = played[1][-1]
    first = (int(BEGIN) - (int(played[0].spine.totals.clock) - 86_400) // 300 * 300) // 60
    rate, cost = found.rate[first + 1 :], found.cost[first + 1 :]
    assert len(rate) >= 117
    assert rate == pytest.approx([0.5] * len(rate))
    change = int(CHANGE) // 60 - 1
    assert cost[:change] == pytest.approx([2.0] * change)
    assert cost[change + 1 :] == pytest.approx([3.0] * (len(cost) - change - 1))
    assert set(found.rate[:first]) == {None}


def test_five_minutes_are_those_of_the_requests(played: tuple[Played, list[PoolHistory]]) -> None:
    """In flight is λW by phase and what no phase explains; times are quantiles; goodput is a share; KV is λW tokens."""
    found = played[1][-1]
    assert found.in_flight["gateway"][-2] == pytest.approx(0.25)
    assert sum(values[-2] or 0.0 for values in found.in_flight.values()) == pytest.approx(5.0, rel=WITHIN)
    assert (found.ttft_p50[-2], found.ttft_p95[-2]) == pytest.approx((2.0, 2.0), rel=WITHIN)
    assert found.goodput[-2] == 0.0
    running = sum(found.in_flight[phase][-2] or 0.0 for phase in ("prefill", "decode"))
    assert found.kv_demand[-2] == pytest.approx(running * 8160 / 1000, rel=0.001)


def test_kv_memory_is_full_when_its_line_says_so(played: tuple[Played, list[PoolHistory]]) -> None:
    """The growth is that of the last four points, and the time what is left of the room over it."""
    one, seen = played
    tokens = 1000.0 * np.array(seen[-1].kv_demand[-4:], np.float64)
    growth = ((tokens[3] - tokens[0]) * 3 + tokens[2] - tokens[1]) / 10 / 300  # a straight line through four points
    assert seen[-1].kv_growth == pytest.approx(growth, abs=0.05)
    assert seen[-1].kv_full_s == 0.0  # it holds 1,000 tokens and needs many more
    assert (seen[0].kv_growth, seen[0].kv_full_s) == (None, None)  # after ten minutes there is no quarter of an hour
    unknown = Lately(one.folder).history(present(one.spine.totals, {})).pools["default"]
    assert (unknown.kv_growth, unknown.kv_full_s) == (None, None)


def test_a_reader_that_keeps_up_sees_what_a_new_one_sees(played: tuple[Played, list[PoolHistory]]) -> None:
    """What has been read before is never read again, and makes no difference."""
    one, seen = played
    assert one.told(Lately(one.folder)) == seen[-1]


def test_a_history_that_cannot_be_read_costs_only_itself(
    played: tuple[Played, list[PoolHistory]], tmp_path: Path
) -> None:
    """What is newer than the history is told all the same, and why the rest is not."""
    totals = played[0].spine.totals
    found = Lately(str(tmp_path / "nowhere")).history(present(totals, {}))
    assert found.problem is not None
    assert found.pools["default"].rate[-1] == pytest.approx(0.5)


def test_recent_rows_are_those_of_the_requests(played: tuple[Played, list[PoolHistory]]) -> None:
    """Rates, costs, shares and quantiles of each tenant; the dearest stands first."""
    totals = played[0].spine.totals
    found = recent(still_open(totals), totals.clock)
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    assert [(row["pool"], row["tenant"], row["route"]) for row in rows] == [
        ("default", "bolt", "/chat"),
        ("default", "acme", "/chat"),
    ]
    assert [row["rate"] for row in rows] == pytest.approx([0.375, 0.125], rel=0.01)
    assert [row["cost"] for row in rows] == pytest.approx([3.0, 3.0])
    assert [row["cost_share"] for row in rows] == pytest.approx([0.75, 0.25], rel=0.01)
    assert [row["prompt_tokens_p95"] for row in rows] == pytest.approx([8000.0] * 2, rel=WITHIN)
    assert [(row["ok"], row["goodput"], row["ttft_s_p50"] is None) for row in rows] == [(1.0, 0.0, False)] * 2


def test_nobody_asked_for_anything() -> None:
    """Without a request there are no rows and no pools, and nothing fails."""
    totals = Spine().totals
    assert recent(still_open(totals), 0.0).rows == ()


def test_what_many_ask_for_is_made_once() -> None:
    """An answer stands for so many seconds, and is made anew after that."""
    made: list[int] = []

    def make() -> int:
        made.append(len(made))
        return made[-1]

    lasting, fleeting = Spared(make, 1e9), Spared(make, 0.0)
    assert [lasting.value(), lasting.value()] == [0, 0]
    assert [fleeting.value(), fleeting.value()] == [1, 2]


def test_a_long_look_at_the_history_holds_up_no_scrape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the history is read, scrapes see the totals as ever: of them it has taken copies."""
    spine = Spine(Config(state_dir=str(tmp_path)))
    spine.feed(*list(requests())[-300:])
    shown = Shown(spine.totals, spine.pipeline.meters)
    scraped: list[bytes] = []

    def reading(lately: Lately, now: object) -> Told:
        scraped.append(shown.metrics("text", compressed=False))
        return Told()

    monkeypatch.setattr(Lately, "history", reading)
    assert Board(shown, spine.config).history() == Told(findings=[])
    assert b"capwatch_requests_total" in scraped[0]
