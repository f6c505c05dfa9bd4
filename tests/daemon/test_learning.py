"""Learning from the history, in a process of its own: what counts as history, and what happens where it fails."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from capwatch.daemon import learning
from capwatch.daemon.fitting import Learnable, accepted, alarmed, learn
from capwatch.daemon.learning import Learning, fitted
from capwatch.drift.model import Settings, fit
from capwatch.drift.saved import load
from capwatch.drift.ticks import TICK_S, Ticks
from capwatch.keep.bundle import Texts
from capwatch.keep.history import History
from capwatch.keep.past import Past
from tests.drift.sample import DAY, MONDAY, NAMES, SETTINGS, rows, ticks

FIRST = MONDAY // TICK_S
DAYS = 4
END = FIRST + DAYS * DAY // TICK_S


@pytest.fixture(scope="module")
def quiet() -> Ticks:
    """Four days without a drift."""
    return ticks(rows(MONDAY, DAYS * DAY, 11, rate=1.0))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, quiet: Ticks) -> Path:
    """A state directory whose history has them, but for the last hour."""
    found = tmp_path_factory.mktemp("state")
    texts = Texts()
    for axis, named in NAMES.items():
        texts.codes(axis, named)
    with closing(History(str(found), 1 << 30)) as history:
        history.keep_ticks("chat", quiet.between(0, END - 360), texts)
    return found


@pytest.fixture
def past(folder: Path) -> Iterator[Past]:
    """The history, open."""
    with closing(Past(str(folder))) as one:
        yield one


def job(recent: Ticks, *, backwards: bool = False, **told: Any) -> dict[str, Any]:
    """What the daemon asks for; ``backwards`` with other codes than the history's."""
    texts, codes = {}, {}
    for axis, column in (("tenant", recent.tenant), ("route", recent.route), ("class", recent.klass)):
        texts[axis] = NAMES[axis][::-1] if backwards else NAMES[axis]
        codes[axis] = len(NAMES[axis]) - 1 - column if backwards else column
    usual = {"pool": "chat", "settings": asdict(SETTINGS), "until": END, "events": [], "texts": texts}
    return usual | {"recent": [recent.tick, *codes.values(), recent.sums]} | told


def test_the_history_teaches_what_a_fit_in_memory_does(past: Past, quiet: Ticks) -> None:
    """By the history and what it does not have yet, in pieces and rounded: the same model within rounding."""
    told = learn(past, job(quiet.between(END - 400, END)))
    assert told is not None
    expected, found = fit(quiet, SETTINGS), load(told["model"])
    assert [told["texts"]["tenant"][code] for code in found.reference.layout.tenants] == NAMES["tenant"][:4]
    for part in ("rate", "share", "klass", "route", "factor"):
        one, other = getattr(found.reference, part), getattr(expected.reference, part)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-9, err_msg=part)
    for way, watched in expected.watched.items():
        same = found.watched[way]
        assert same.channels == watched.channels
        # Rounding may tip a half hour over the edge of a tail, so one channel or the other moves a little.
        off = np.abs(same.scale.alarm / watched.scale.alarm - 1)
        assert np.quantile(off, 0.9) < 1e-3
        assert off.max() < 0.05
    assert (told["until"], Settings(**told["settings"])) == (END, SETTINGS)


def event(kind: str, at: int, started: int = 0, **more: Any) -> dict[str, Any]:
    """An event at a tick."""
    usual = {"event": kind, "pool": "chat", "direction": "up", "at": at * 10.0, "started_at": started * 10.0}
    return usual | more


@pytest.mark.parametrize(
    ("events", "spans"),
    [
        ([event("raised", 20, 10), event("cleared", 40)], [(10, 40)]),
        ([event("raised", 20, 10), event("cleared", 40, note="accepted")], []),
        ([event("raised", 20, 10)], [(10, np.inf)]),
        ([event("raised", 20, 10, note="learning: less than three days of history")], []),
        (
            [
                event("raised", 20, 10),
                event("raised", 22, 21, direction="down"),
                event("cleared", 30, note="a further change follows"),
                event("raised", 30, 25),
                event("cleared", 50),
                event("cleared", 60, direction="down"),
            ],
            [(10, 30), (25, 50), (21, 60)],
        ),
    ],
    ids=["over", "accepted", "active", "wide rule", "both ways"],
)
def test_time_of_an_alarm_is_not_learnt(events: list[dict[str, Any]], spans: list[tuple[float, float]]) -> None:
    """From its begin to its end, unless it was accepted as the new normal, or history was too short to tell."""
    assert alarmed(events) == spans


def test_changes_that_were_accepted_begin_where_they_began() -> None:
    """At their change point; those that ended together, as a rise and a fall do, are one."""
    told = [
        event("raised", 20, 10),
        event("cleared", 40),
        event("raised", 60, 50),
        event("raised", 61, 48, direction="down"),
        event("cleared", 70, note="accepted"),
        event("cleared", 70, direction="down", note="accepted"),
        event("raised", 90, 80),
        event("cleared", 95, note="a further change follows"),
        event("raised", 95, 92),
        event("cleared", 99, note="accepted"),
    ]
    assert accepted(told) == [48, 92]


def test_what_was_accepted_is_usual_from_the_begin_of_history_on(past: Past) -> None:
    """Half an hour of answers half as long again, accepted: the model expects them at every hour of the day."""
    begin = END * TICK_S
    recent = ticks(rows(begin, 1800, 12, rate=1.0, output=1.5))
    events = [event("raised", END + 12, END), event("cleared", END + 180, note="accepted")]
    asked = job(recent, until=END + 180, events=events)
    usual, told = (learn(past, one) for one in (asked | {"events": []}, asked))
    assert usual is not None
    assert told is not None
    before, after = (load(one["model"]).reference for one in (usual, told))
    grown = (after.level["log_output"] - before.level["log_output"])[:3, 0]  # half an hour has few of the others
    np.testing.assert_allclose(grown, np.log(1.5), atol=0.1)
    np.testing.assert_allclose(after.level["log_computed"], before.level["log_computed"], atol=0.05)
    np.testing.assert_allclose(after.rate.sum(axis=1), before.rate.sum(axis=1), rtol=0.05)


def test_ticks_of_an_alarm_or_of_other_rates_are_left_out(past: Past, quiet: Ticks) -> None:
    """What is read for learning has neither."""
    spans = [(FIRST + 100, FIRST + 200)]
    found = Learnable(past, "chat", SETTINGS, spans).between(FIRST, FIRST + 400)
    kept = quiet.between(FIRST, FIRST + 400)
    assert set(found.tick.tolist()) == {tick for tick in kept.tick.tolist() if not FIRST + 100 <= tick < FIRST + 200}
    other = replace(SETTINGS, decode_rate=200.0)
    assert len(Learnable(past, "chat", other).between(FIRST, FIRST + 400)) == 0
    assert learn(past, job(Ticks.empty(), settings=asdict(other))) is None


def test_too_short_a_history_teaches_nothing(past: Past, tmp_path: Path) -> None:
    """Two days are too few, and where there is none at all no process is begun."""
    assert learn(past, job(Ticks.empty(), until=FIRST + 2 * 8640)) is None
    with closing(History(str(tmp_path), 1 << 30)):
        assert fitted(str(tmp_path), job(Ticks.empty()), begun=lambda _: pytest.fail("begun")) is None


class Drifts:
    """The detectors as learning sees them."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.asked = asked
        self.taken: list[tuple[str, Mapping[str, Any]]] = []

    def due(self) -> list[str]:
        """Always the one pool, until something is learnt."""
        return [] if self.taken else ["chat"]

    def job(self, pool: str) -> dict[str, Any]:
        """What was given."""
        return self.asked | {"pool": pool}

    def learn(self, pool: str, told: Mapping[str, Any]) -> bool:
        """Remember it."""
        self.taken.append((pool, told))
        return True


def looked(one: Learning, drifts: Drifts, patience: float = 120.0) -> None:
    """Look until nothing is under way."""
    one.look(drifts)  # type: ignore[arg-type]
    until = time.monotonic() + patience
    while one._busy:
        assert time.monotonic() < until
        time.sleep(0.01)
    one.look(drifts)  # type: ignore[arg-type]


def test_a_process_learns_and_the_reader_takes_it(folder: Path, quiet: Ticks) -> None:
    """Asked once, done elsewhere, taken at the next look."""
    one, drifts = Learning(str(folder)), Drifts(job(quiet.between(END - 400, END), backwards=True))
    one.start()
    looked(one, drifts)
    one.stop()
    ((pool, told),) = drifts.taken
    assert pool == "chat"
    reference = load(told["model"]).reference
    named = [told["texts"]["tenant"][code] for code in reference.layout.tenants]
    shares = dict(zip(named, reference.share.round(2).tolist(), strict=False))
    assert shares == {"alpha": 0.5, "beta": 0.3, "gamma": 0.15, "delta": 0.05}


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("import sys; sys.exit(3)", "the process that fits ended with 3"),
        ("import os; os.kill(os.getpid(), 9)", "the process that fits ended with -9"),
        ("print('nonsense')", "a checksum does not match"),
        ("import time; time.sleep(60)", "TimeoutExpired"),
    ],
)
def test_a_fit_that_fails_is_logged_and_costs_nothing(
    folder: Path, program: str, why: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is learnt, one line says so, and it is not tried again at once."""
    monkeypatch.setattr(learning, "COMMAND", (sys.executable, "-c", program))
    monkeypatch.setattr(learning, "PATIENCE_S", 1.0)
    one, drifts = Learning(str(folder)), Drifts(job(Ticks.empty()))
    one.start()
    with caplog.at_level(logging.WARNING):
        looked(one, drifts)
        looked(one, drifts)
    one.stop()
    assert drifts.taken == []
    assert [record.getMessage() for record in caplog.records] == [
        f"pool chat: nothing was learnt from the history ({why})"
    ]
