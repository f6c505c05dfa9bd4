"""The history: told once, coarser with age, bounded, readable while it is written."""

from __future__ import annotations

import os
import random
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capwatch.errors import StateError
from capwatch.keep.codec import DamagedError
from capwatch.keep.database import set_aside
from capwatch.keep.history import History
from capwatch.keep.past import Past
from capwatch.keep.slot import Slot
from capwatch.ledger import Names
from capwatch.meters.rollup import MEASURE, ROLLUPS
from capwatch.record import Note
from capwatch.sketch import quantiles

from .closing import DAY, FIVE, HOUR, START, Requests, combination, rollup, second
from .closing import told as closed_at
from .disks import fill, small_disk
from .process import running, told

PLENTY = 1 << 30
OK, QUEUE = ROLLUPS.column("outcome_ok"), ROLLUPS.column("queue")


@pytest.fixture
def names() -> Names:
    """The names of a daemon."""
    return Names()


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """An empty history with plenty of space."""
    with closing(History(str(tmp_path), PLENTY)) as one:
        yield one


def content(history: Past) -> list[list[tuple[object, ...]]]:
    """All rows of all tables."""
    return [history._db.execute(f"SELECT * FROM {table}").fetchall() for table in ("second", "slot", "annotation")]  # noqa: S608


def spans(history: Past) -> list[tuple[int, int]]:
    """(begin since START, span) of what is kept of the rollups, in order."""
    rows = history._db.execute("SELECT at, span FROM slot ORDER BY at, span").fetchall()
    return [(at - START, span) for at, span in rows]


def requests(slot: Slot) -> dict[str, tuple[float, float]]:
    """Requests and seconds in the queue by tenant."""
    rows = zip(slot.names, slot.values[:, [OK, QUEUE]].tolist(), strict=True)
    return {name[0]: (count, seconds) for name, (count, seconds) in rows}


def test_seconds_come_back_by_pool(history: History, names: Names) -> None:
    """Counts by second of one pool, in order, from a time to before another; seconds without an event are absent."""
    history.keep([second(names, START + n, {"p": (n, 1, 0.5), "q": (7, 7, 7)}) for n in (3, 1, 2, 6)], names, START)
    at, counts = history.seconds("p", START + 2, START + 6)
    assert ((at - START).tolist(), counts.tolist()) == ([2, 3], [[2, 1, 0.5], [3, 1, 0.5]])


def test_no_seconds(history: History) -> None:
    """A pool that nothing is known of has no rows, in all columns."""
    at, counts = history.seconds("nobody", 0, START)
    assert (at.shape, counts.shape) == ((0,), (0, 3))


def test_rollups_come_back_with_names_and_sketches(history: History, names: Names) -> None:
    """Sums and quantiles of a slot, by tenant, route, model, pool and class."""
    history.keep([rollup(names, START, [("acme", 0.25), ("zen", 1.5), ("acme", 0.5)])], names, START)
    (slot,) = history.rollups(START, START + FIVE, FIVE)
    _, found, counts = quantiles(slot.cells, (0.5,))
    assert (slot.at, slot.span) == (START, FIVE)
    assert slot.names == [("acme", "/chat", "m", "p", "c"), ("zen", "/chat", "m", "p", "c")]
    assert requests(slot) == {"acme": (2, 0.75), "zen": (1, 1.5)}
    assert counts.tolist() == [2, 1]
    np.testing.assert_allclose(found[:, 0], [0.25, 1.5], rtol=0.0055)


def test_what_is_told_again_changes_nothing(history: History, names: Names) -> None:
    """The same closed slots again, as after a crash, leave every row as it is."""
    closed = [one for number in range(5) for one in closed_at(names, number)]
    history.keep(closed, names, START)
    before = content(history)
    history.keep(closed, names, START)
    assert content(history) == before


def test_a_second_told_again_in_part_stays_whole(history: History, names: Names) -> None:
    """An arrival that is known only after its second has closed does not take its place."""
    history.keep([second(names, START, {"p": (5, 3, 2.5)})], names, START)
    history.keep([second(names, START, {"p": (1, 0, 0)})], names, START)
    assert history.seconds("p", START, START + 1)[1].tolist() == [[5, 3, 2.5]]


def test_all_of_it_or_nothing(history: History, names: Names) -> None:
    """Where one slot cannot be kept, none of the call is."""
    before = content(history)
    mistaken = second(Names(), START, {"p": (1, 1, 0.5)})
    mistaken.sums.values = np.zeros((1, 7))
    with pytest.raises(sqlite3.Error):
        history.keep([*closed_at(names, 3), mistaken], names, START)
    assert content(history) == before


def test_a_table_that_is_not_for_the_history_is_passed_over(history: History, names: Names) -> None:
    """Only tables that the history knows are kept."""
    one = rollup(names, START, [("acme", 1.0)])
    history.keep([type(one)("unheard", one.slot, one.sums, one.cells)], names, START)
    assert spans(history) == []


def test_a_name_that_is_gone_is_other(history: History, names: Names) -> None:
    """Slots that close after their names were retired are kept under `other`, added up."""
    closed = rollup(names, START, [("acme", 0.5), ("zen", 0.25), ("moo", 1.0)])
    for tenant in ("acme", "zen"):
        names.forget("combination", combination(names, tenant))
    names.forget("tenant", 4)
    history.keep([closed], names, START)
    (slot,) = history.rollups(0, START + 1, FIVE)
    assert slot.names == [("other", "/chat", "m", "p", "c"), ("other",) * 5]
    assert slot.values[:, [OK, QUEUE]].tolist() == [[1, 1.0], [2, 0.75]]


# Age

HOURLY = st.lists(
    st.tuples(
        st.integers(0, 35),
        st.lists(st.tuples(st.sampled_from(["a", "b"]), st.floats(0, 100)), min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=12,
    unique_by=lambda told: told[0],
)


@settings(max_examples=30, deadline=None)
@given(HOURLY)
def test_hours_are_their_five_minutes(
    tmp_path_factory: pytest.TempPathFactory, slots: list[tuple[int, Requests]]
) -> None:
    """Sums and sketches by hour are those of all requests in it, before they are folded and after, to the last bit."""
    names = Names()
    folder = str(tmp_path_factory.mktemp("history"))
    with closing(History(folder, PLENTY)) as history:
        history.keep([rollup(names, START + n * FIVE, some) for n, some in slots], names, START)
        before = list(history.rollups(0, START + DAY, HOUR))
        history.keep([], names, START + 30 * DAY)
        after = list(history.rollups(0, START + DAY, HOUR))
        assert list(history.rollups(0, START + DAY, FIVE)) == []
    assert [(s.at, s.span, s.names, s.values.tolist()) for s in after] == [
        (s.at, s.span, s.names, s.values.tolist()) for s in before
    ]
    assert all(one.cells == other.cells for one, other in zip(after, before, strict=True))
    for slot in after:
        inside = [request for n, some in slots if (n * FIVE) // HOUR * HOUR == slot.at - START for request in some]
        names_now = Names()
        whole = rollup(names_now, slot.at, inside)
        order = np.argsort([names_now.text("tenant", 2 + k) for k in range(len(whole.sums.keys))])
        assert slot.values[:, OK].tolist() == whole.sums.values[order, OK].tolist()
        np.testing.assert_allclose(
            slot.values[:, QUEUE], whole.sums.values[order, QUEUE], atol=12 * 2.0**-21, rtol=1e-12
        )
        _, found, _ = quantiles(slot.cells, (0.5, 0.99))
        _, wanted, _ = quantiles(whole.cells, (0.5, 0.99))
        assert found.tolist() == wanted[order].tolist()


def test_five_minutes_become_hours_after_14_days(history: History, names: Names) -> None:
    """An hour is folded when all of it is 14 days old."""
    slots = [rollup(names, START + n * FIVE, [("acme", 1.0)]) for n in (0, 11, 12)]
    history.keep(slots, names, START + 14 * DAY + HOUR - 1)
    assert spans(history) == [(0, FIVE), (11 * FIVE, FIVE), (HOUR, FIVE)]
    history.keep([], names, START + 14 * DAY + HOUR)
    assert spans(history) == [(0, HOUR), (HOUR, FIVE)]


def test_what_is_told_again_after_folding_changes_nothing(history: History, names: Names) -> None:
    """Five minutes that are in their hour already are not added to it again."""
    slots = [rollup(names, START + n * FIVE, [("acme", 1.0)]) for n in range(4)]
    history.keep(slots, names, START + 20 * DAY)
    before = content(history)
    history.keep(slots[1:3], names, START + 20 * DAY)
    assert content(history) == before


def test_what_comes_after_folding_is_added(history: History, names: Names) -> None:
    """Five minutes that their hour has not seen, as from a replay of older logs, are added to it."""
    for n in (5, 2):
        history.keep([rollup(names, START + n * FIVE, [("acme", n)])], names, START + 20 * DAY)
    assert [requests(slot) for slot in history.rollups(0, START + DAY, HOUR)] == [{"acme": (2, 7.0)}]


def test_seconds_go_after_15_days(history: History, names: Names) -> None:
    """A second older than 15 days is not there any more."""
    history.keep([second(names, START + n, {"p": (1, 1, 0.5)}) for n in range(3)], names, START + 15 * DAY + 1)
    assert (history.seconds("p", 0, START + DAY)[0] - START).tolist() == [1, 2]


def test_hours_and_notes_go_after_13_weeks(history: History, names: Names) -> None:
    """Hours that ended 13 weeks ago go, and what was noted before."""
    for n in (0, 12):
        history.keep([rollup(names, START + n * FIVE, [("acme", 1.0)])], names, START + 20 * DAY)
        history.annotate(START + n * FIVE, None, "deploy")
    history.keep([], names, START + 91 * DAY + HOUR)
    assert spans(history) == [(HOUR, HOUR)]
    assert history.annotations(0, START + DAY) == [Note(START + HOUR, None, "deploy")]


def test_without_a_bound_nothing_goes(tmp_path: Path, names: Names) -> None:
    """Seconds, five minutes and notes stay, however old."""
    with closing(History(str(tmp_path), None)) as history:
        history.keep([second(names, START, {"p": (1, 1, 0.5)}), rollup(names, START, [("acme", 1.0)])], names, START)
        history.annotate(START, None, "deploy")
        history.keep([], names, START + 200 * DAY)
        assert history.seconds("p", 0, START + DAY)[0].tolist() == [START]
        assert spans(history) == [(0, FIVE)]
        assert history.annotations(0, START + DAY) == [Note(START, None, "deploy")]


# Size


def noisy(names: Names, history: History, hours: int) -> None:
    """Tell hours of noisy traffic, hour by hour."""
    chance = random.Random(3)
    for hour in range(hours):
        at = START + hour * HOUR
        some = [[(f"t{chance.randrange(40)}", chance.expovariate(1)) for _ in range(150)] for _ in range(12)]
        closed = [rollup(names, at + n * FIVE, one) for n, one in enumerate(some)]
        history.keep(
            [*closed, *(second(names, at + n, {"p": (1, 1, 0.5)}) for n in range(0, HOUR, 40))], names, at + HOUR
        )


def test_the_oldest_detail_goes_first(tmp_path: Path, names: Names) -> None:
    """The file never has more than its bytes; what is detailed is the newest, and hours reach further back."""
    most = 400_000
    with closing(History(str(tmp_path), most)) as history:
        noisy(names, history, 40)
        kept = spans(history)
        first_second = int(history.seconds("p", 0, START + DAY * 9)[0][0]) - START
        history._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert 0.5 * most < os.path.getsize(tmp_path / "history.db") <= most
    detail = [at for at, span in kept if span == FIVE]
    hours = [at for at, span in kept if span == HOUR]
    assert detail == list(range(detail[0], 40 * HOUR, FIVE))
    assert hours == list(range(0, detail[0], HOUR))
    assert first_second == detail[0]


def test_hours_go_when_no_detail_is_left(tmp_path: Path, names: Names) -> None:
    """Where even the hours are too much, the oldest of them go."""
    with closing(History(str(tmp_path), 150_000)) as history:
        noisy(names, history, 40)
        kept = spans(history)
    first, span = kept[0]
    assert span == HOUR
    assert 0 < first < 39 * HOUR
    assert kept[-1][0] // HOUR == 39


def test_a_lower_bound_gives_the_disk_back(tmp_path: Path, names: Names) -> None:
    """A history that was larger shrinks with the next write."""
    with closing(History(str(tmp_path), PLENTY)) as history:
        noisy(names, history, 30)
    before = os.path.getsize(tmp_path / "history.db")
    with closing(History(str(tmp_path), before // 3)) as history:
        history.keep([], names, START + 30 * HOUR)
    assert os.path.getsize(tmp_path / "history.db") <= before // 3


def test_a_bound_that_nothing_fits_into(tmp_path: Path, names: Names) -> None:
    """A bound below the empty file is no endless work."""
    with closing(History(str(tmp_path), 1)) as history:
        history.keep(closed_at(names, 2), names, START + HOUR)
        assert content(history) == [[], [], []]


# Notes


def test_notes_come_back_in_order(history: History) -> None:
    """Annotations of a time, of a pool or of all; the same one again is one."""
    for at, pool, text in ((5.5, "p", "b"), (1.0, None, "a"), (5.5, "p", "b"), (9.0, None, "c")):
        history.annotate(at, pool, text)
    assert history.annotations(0, 9) == [Note(1.0, None, "a"), Note(5.5, "p", "b")]


def test_settings_are_those_in_force(history: History) -> None:
    """At each time the last settings noted before; a pool that was taken away has none, one that returns has."""
    history.note_settings(10, {"p": {"slots": 4}, "q": {"slots": 1}})
    history.note_settings(20, {"p": {"slots": 8}})
    history.note_settings(30, {"p": {"slots": 8}, "q": {"slots": 2}})
    assert [history.settings(at) for at in (9, 10, 20, 35)] == [
        {},
        {"p": {"slots": 4}, "q": {"slots": 1}},
        {"p": {"slots": 8}},
        {"p": {"slots": 8}, "q": {"slots": 2}},
    ]


def test_settings_that_stay_are_not_noted_again(history: History) -> None:
    """Noting the same settings at every start does not grow the history."""
    for at in range(10):
        history.note_settings(at, {"p": {"slots": 4, "replicas": 1.5}})
    assert history._db.execute("SELECT at FROM setting").fetchall() == [(0,)]


# Other processes, crashes, damage


def test_it_is_read_while_another_process_writes(tmp_path: Path) -> None:
    """A reader beside the daemon sees whole slots, ever more of them, and stops nobody."""
    with running("closing", tmp_path) as process:
        told(process, 1)
        with closing(Past(str(tmp_path))) as past:
            seen: list[int] = []
            while not seen or seen[-1] < 40:
                found = [(s.at - START) // FIVE for s in past.rollups(0, START + DAY, FIVE)]
                assert found == list(range(len(found)))
                seen.append(len(found))
                told(process, 3)
            slots = list(past.rollups(0, START + DAY, FIVE))
    assert seen == sorted(seen)
    assert [requests(slot) for slot in slots[1:]] == [
        {"acme": (n, n * 0.25), "zen": (1, 1.5)} for n in range(1, len(slots))
    ]


def test_kills_lose_nothing_that_was_kept(tmp_path: Path, names: Names) -> None:
    """What `keep` returned from before a `kill -9` is there, and to tell all again makes it whole."""
    chance = random.Random(5)
    known = 0
    for _ in range(10):
        with running("closing", tmp_path) as process:
            lines = told(process, chance.randrange(1, 12))
            process.kill()
            known = max([known, *map(int, lines + told(process))])
        with closing(Past(str(tmp_path))) as past:
            found = len(list(past.rollups(0, START + DAY, FIVE)))
        assert known + 1 <= found
    reference = tmp_path / "reference"
    reference.mkdir()
    with closing(History(str(tmp_path), PLENTY)) as survivor, closing(History(str(reference), PLENTY)) as whole:
        for one in (survivor, whole):
            for number in range(60):
                one.keep(closed_at(names, number), names, START)
        assert content(survivor) == content(whole)


def test_it_is_read_when_no_daemon_runs(tmp_path: Path, names: Names) -> None:
    """A review needs no daemon."""
    with closing(History(str(tmp_path), PLENTY)) as history:
        history.keep(closed_at(names, 3), names, START)
    with closing(Past(str(tmp_path))) as past:
        assert [requests(slot) for slot in past.rollups(0, START + DAY, HOUR)] == [{"acme": (3, 0.75), "zen": (1, 1.5)}]


def test_a_reader_cannot_write(tmp_path: Path, history: History) -> None:
    """What is open for reading stays as it is."""
    with closing(Past(str(tmp_path))) as past, pytest.raises(sqlite3.OperationalError, match="readonly"):
        past._db.execute("DELETE FROM slot")


def test_there_is_nothing_to_read(tmp_path: Path) -> None:
    """A directory without a history is one line that says so."""
    with pytest.raises(StateError, match=r"history\.db: there is nothing; name the directory of a daemon"):
        Past(str(tmp_path))


def test_nobody_else_may_read_it(tmp_path: Path, history: History) -> None:
    """Every file of it is 0600."""
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == dict.fromkeys(["history.db", "history.db-wal", "history.db-shm"], 0o600)


@pytest.mark.parametrize("opening", [lambda folder: History(folder, PLENTY), Past], ids=["writing", "reading"])
@pytest.mark.parametrize("content", [b"", bytes(4096), b"text " * 1000], ids=["empty", "nuls", "text"])
def test_other_content_is_damage(tmp_path: Path, opening: type[Past], content: bytes) -> None:
    """Whatever else stands where the history should be is refused as damaged."""
    (tmp_path / "history.db").write_bytes(content)
    with pytest.raises(DamagedError):
        opening(str(tmp_path))


def test_a_damaged_slot_is_found(tmp_path: Path, history: History, names: Names) -> None:
    """A slot that is not what was written is refused by whoever reads it, and by the daemon that would fold it."""
    history.keep(closed_at(names, 3), names, START)
    history._db.execute("UPDATE slot SET data = zeroblob(50)")
    with pytest.raises(DamagedError):
        list(history.rollups(0, START + DAY, FIVE))
    with pytest.raises(DamagedError):
        history.keep([], names, START + 20 * DAY)


def test_damaged_pages_are_found(tmp_path: Path, names: Names) -> None:
    """Pages that SQLite cannot read are damage, not trouble."""
    with closing(History(str(tmp_path), PLENTY)) as history:
        noisy(names, history, 3)
        roots = dict(history._db.execute("SELECT name, rootpage FROM sqlite_schema").fetchall())
    with (tmp_path / "history.db").open("r+b") as file:
        file.seek((roots["slot"] - 1) * 4096)
        file.write(bytes([255]) * 4096)
    with closing(History(str(tmp_path), PLENTY)) as history, pytest.raises(DamagedError):
        history.keep(closed_at(names, 30), names, START)


def test_a_damaged_history_is_kept_aside(tmp_path: Path) -> None:
    """It is moved like a state, and a new one begins."""
    (tmp_path / "history.db").write_bytes(b"damaged")
    moved = set_aside(str(tmp_path), "corrupt", START, "history.db")
    assert moved == [str(tmp_path / f"history.db.corrupt-{START}")]
    with closing(History(str(tmp_path), PLENTY)) as history:
        assert content(history) == [[], [], []]


@pytest.mark.parametrize("opening", [lambda folder: History(folder, PLENTY), Past], ids=["writing", "reading"])
def test_a_newer_version_is_refused(tmp_path: Path, opening: type[Past]) -> None:
    """The history of a newer capwatch stays as it is, with one line that names the way out."""
    with closing(History(str(tmp_path), PLENTY)) as history:
        history._db.execute("PRAGMA user_version = 9")
        history._db.execute("UPDATE meta SET value = 9")
    with pytest.raises(StateError, match=r"written by a newer capwatch \(version 9 .*--state\.reset$"):
        opening(str(tmp_path))


def test_a_full_disk_takes_nothing_half(tmp_path: Path, names: Names) -> None:
    """Where it cannot be written, nothing of the call is kept; the same call succeeds once there is space again."""
    with small_disk(tmp_path / "disk") as folder, closing(History(str(folder), PLENTY)) as history:
        history.keep(closed_at(names, 1), names, START)
        before = content(history)
        filler = fill(folder)
        closed = [rollup(names, START + n * FIVE, [(f"t{k}", k / 7) for k in range(900)]) for n in range(12)]
        with pytest.raises(sqlite3.OperationalError, match="full"):
            history.keep(closed, names, START)
        assert content(history) == before
        filler.unlink()
        history.keep(closed, names, START)
        assert len(list(history.rollups(0, START + DAY, FIVE))) == 12


def test_a_series_of_its_sketch_is_its_row(history: History, names: Names) -> None:
    """The sketch of a row's measure is found by the row's number."""
    history.keep([rollup(names, START, [("zen", 4.0), ("acme", 2.0)])], names, START)
    (slot,) = history.rollups(0, START + 1, FIVE)
    series, middle, _ = quantiles(slot.cells, (0.5,))
    rows = [slot.names[one >> MEASURE.bits][0] for one in series.tolist()]
    assert dict(zip(rows, np.rint(middle[:, 0]).tolist(), strict=True)) == {"acme": 2.0, "zen": 4.0}
