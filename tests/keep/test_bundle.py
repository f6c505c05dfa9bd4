"""The detector's ticks and its events in the history: told once, by names, for some weeks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from capwatch.drift.ticks import SUMS, TICK_S
from capwatch.keep.bundle import Texts
from capwatch.keep.history import TICKS_DAYS, History
from capwatch.keep.past import DAY, Past
from capwatch.ledger import CLASS, POOL, ROUTE, TENANT, Closed, Names
from capwatch.ledger.sums import Sums
from capwatch.meters.drift import TICKS
from capwatch.record import Floats
from capwatch.sketch import Cells

START = 1_767_571_200 // TICK_S


@pytest.fixture
def names() -> Names:
    """The names of a daemon."""
    return Names()


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """An empty history with plenty of space."""
    with closing(History(str(tmp_path), 1 << 30)) as one:
        yield one


def closed(names: Names, tick: int, *tenants: str, pool: str = "p", cost: float | Floats = 0.5) -> Closed:
    """A tick in which each tenant asks once."""
    ids = [(names.id(TENANT.name, one), names.id(ROUTE.name, "/r"), names.id(CLASS.name, "c")) for one in tenants]
    tenant, route, klass = (np.array(column) for column in zip(*ids, strict=True))
    keys = TICKS.pack(names.id(POOL.name, pool), tenant, route, klass)
    sums = Sums(len(SUMS))
    values = np.zeros((len(keys), len(SUMS)))
    values[:, SUMS.index("n")] = 1.0
    values[:, SUMS.index("cost")] = cost
    order = np.argsort(keys)
    sums.add(keys[order], values[order])
    return Closed(TICKS.name, START + tick, sums, Cells())


def told(past: Past, pool: str = "p", first: int = 0, last: int = 1 << 20) -> list[tuple[int, str, float, float]]:
    """(tick since START, tenant, requests, cost) of what is kept."""
    texts = Texts()
    ticks = past.ticks(pool, START + first, START + last, texts)
    tenants = [texts.texts["tenant"][code] for code in ticks.tenant.tolist()]
    return sorted(zip((ticks.tick - START).tolist(), tenants, ticks["n"].tolist(), ticks["cost"].tolist(), strict=True))


def test_ticks_come_back_by_pool_and_name(history: History, names: Names) -> None:
    """Sums of a pool's ticks from one to before another, in order, over the borders of bundles."""
    parts = [closed(names, n, "acme", "zen", cost=n / 4) for n in (0, 59, 60, 61)]
    history.keep([*parts, closed(names, 60, "moo", pool="q")], names, 0.0)
    expected = [(n, one, 1.0, n / 4) for n in (59, 60) for one in ("acme", "zen")]
    assert told(history, first=1, last=61) == expected
    assert told(history, pool="q") == [(60, "moo", 1.0, 0.5)]
    assert history.tick_span("p") == (START, START + 120)
    assert history.tick_span("nobody") == (0, 0)


def test_what_is_told_again_changes_nothing(history: History, names: Names) -> None:
    """The same ticks again, with others that are new: each counts once."""
    history.keep([closed(names, n, "acme") for n in (3, 4)], names, 0.0)
    history.keep([closed(names, n, "acme", cost=9.0) for n in (2, 3, 4, 5)], names, 0.0)
    assert told(history) == [(2, "acme", 1.0, 9.0), (3, "acme", 1.0, 0.5), (4, "acme", 1.0, 0.5), (5, "acme", 1.0, 9.0)]


def test_a_name_that_is_gone_is_other(history: History, names: Names) -> None:
    """Ticks that close after their names were retired are kept under `other`, added up."""
    part = closed(names, 7, "acme", "zen", "moo")
    for text in ("acme", "zen"):
        names.forget(TENANT.name, names.find(TENANT.name, text) or 0)
    history.keep([part], names, 0.0)
    assert told(history) == [(7, "moo", 1.0, 0.5), (7, "other", 2.0, 1.0)]


def test_ticks_go_after_four_weeks(history: History, names: Names) -> None:
    """What is older at the present clock is let go."""
    history.keep([closed(names, n, "acme") for n in (0, 600)], names, 0.0)
    history.keep([], names, (START + 600) * TICK_S + TICKS_DAYS * DAY)
    assert [tick for tick, *_ in told(history)] == [600]


def test_a_small_history_lets_the_oldest_ticks_go(tmp_path: Path, names: Names) -> None:
    """Ticks are detail: they keep within the bytes, the newest longest."""
    many, rng = [f"tenant-{n}" for n in range(200)], np.random.default_rng(3)
    with closing(History(str(tmp_path), 60 * 4096)) as history:
        for hour in range(40):
            parts = [closed(names, 360 * hour + n, *many, cost=rng.random(200)) for n in range(12)]
            history.keep(parts, names, 0.0)
        kept = {tick // 360 for tick, *_ in told(history)}
        assert kept == set(range(min(kept), 40))
        assert min(kept) > 0


def event(at: float, kind: str = "raised", pool: str = "p") -> dict[str, Any]:
    """An event as the API tells it."""
    return {"event": kind, "pool": pool, "direction": "up", "at": at, "started_at": at - 60, "sentence": f"at {at}"}


def test_events_come_back_in_order(history: History) -> None:
    """Those of a span, of one pool or of all; told again they are there once."""
    history.note_events([event(2000.0, "cleared"), event(1000.0), event(1500.0, pool="q")])
    history.note_events([event(1000.0), event(3000.0)])
    assert history.events(0, 3000) == [event(1000.0), event(1500.0, pool="q"), event(2000.0, "cleared")]
    assert history.events(1000, 2000, "p") == [event(1000.0)]


def test_events_go_with_the_hours_that_they_explain(history: History, names: Names) -> None:
    """After 13 weeks they are let go."""
    history.note_events([event(1000.0), event(1000.0 + DAY)])
    history.keep([], names, 1001.0 + 91 * DAY)
    assert history.events(0, 1 << 40) == [event(1000.0 + DAY)]


def test_a_history_from_before_has_neither(tmp_path: Path) -> None:
    """A file without these tables is read as one that has nothing in them, and gets them when it is written."""
    with closing(History(str(tmp_path), 1 << 30)) as history:
        history._db.executescript("DROP TABLE tick; DROP TABLE event")
    with closing(Past(str(tmp_path))) as past:
        assert (past.events(0, 1 << 40), told(past), past.tick_span("p")) == ([], [], (0, 0))
    with closing(History(str(tmp_path), 1 << 30)) as history:
        history.note_events([event(1.0)])
        assert len(history.events(0, 2)) == 1
