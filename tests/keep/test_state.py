"""The hot state: what it acknowledged is there again, and nothing that it did not write is ever taken for it."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capwatch.errors import StateError
from capwatch.keep.state import VERSION, DamagedError, Lock, State, set_aside

from .disks import fill, make_read_only, small_disk
from .process import running, told
from .writer import total

FILLED = ({"a": {"sums": [1, 2.5]}, "b": list(range(3000))}, [(n, {"add": n}) for n in range(4, 9)])


def read(folder: Path) -> tuple[dict[str, Any], list[tuple[int, Any]]]:
    """Chunks and deltas of a state."""
    with closing(State(str(folder))) as state:
        return state.chunks(), list(state.deltas())


def altered(folder: Path, *statements: str) -> None:
    """Change the file as no capwatch does."""
    with closing(sqlite3.connect(folder / "capwatch.db", isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A folder with a state of a checkpoint of two chunks and five deltas, closed."""
    chunks, deltas = FILLED
    with closing(State(str(tmp_path))) as state:
        for number in (1, 2, 3):
            state.append(number, None)
        state.checkpoint(3, chunks)
        for number, value in deltas:
            state.append(number, value)
    return tmp_path


def test_what_was_kept_is_there_again(filled: Path) -> None:
    """Chunks and deltas of a closed state are those that were given."""
    assert read(filled) == FILLED


def test_a_new_state_is_empty(tmp_path: Path) -> None:
    """A directory without a state begins with nothing, and with the first delta to come being 1."""
    with closing(State(str(tmp_path))) as state:
        assert (state.chunks(), list(state.deltas()), state.number) == ({}, [], 0)


def test_the_number_of_the_last_delta_survives_a_checkpoint(tmp_path: Path) -> None:
    """After a checkpoint that folded all deltas, numbers go on where they were."""
    with closing(State(str(tmp_path))) as state:
        state.append(1, "x")
        state.checkpoint(1, {"a": 1})
    with closing(State(str(tmp_path))) as state:
        assert (list(state.deltas()), state.number) == ([], 1)


def test_a_checkpoint_writes_what_changed(filled: Path) -> None:
    """Chunks that are equal to those of the last checkpoint are not written again."""
    with closing(State(str(filled))) as state:
        same = state.chunks()
        assert state.checkpoint(8, same) == 0
        assert 0 < state.checkpoint(8, same | {"c": 1}) < 50


def test_a_chunk_that_is_gone_goes(filled: Path) -> None:
    """A chunk that a checkpoint no longer has is not there afterwards."""
    with closing(State(str(filled))) as state:
        state.chunks()
        state.checkpoint(8, {"b": 1})
    assert read(filled) == ({"b": 1}, [])


def test_a_checkpoint_that_was_not_read_before_is_whole(filled: Path) -> None:
    """Chunks of an earlier checkpoint do not outlive one by a writer that never looked at them."""
    with closing(State(str(filled))) as state:
        state.checkpoint(8, {"new": 1})
    assert read(filled) == ({"new": 1}, [])


def test_a_delta_told_again_is_one(tmp_path: Path) -> None:
    """A commit that was tried again, since nobody knew whether it had come through, is there once."""
    with closing(State(str(tmp_path))) as state:
        state.append(1, "x")
        state.append(1, "x")
    assert read(tmp_path) == ({}, [(1, "x")])


STEPS = st.lists(st.tuples(st.sampled_from(["append", "checkpoint", "reopen"]), st.integers(0, 5)), max_size=25)


@settings(max_examples=25, deadline=None)
@given(STEPS)
def test_chunks_and_deltas_are_all_that_was_given(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    """After any sequence of commits, checkpoints and restarts, the state holds the model's chunks and deltas."""
    folder = tmp_path_factory.mktemp("state")
    chunks: dict[str, Any] = {}
    deltas: list[tuple[int, Any]] = []
    state, number = State(str(folder)), 0
    for step, value in steps:
        if step == "append":
            number += 1
            state.append(number, {"v": value})
            deltas.append((number, {"v": value}))
        elif step == "checkpoint":
            chunks = {f"c{value % 3}": number, "all": [value]}
            state.checkpoint(number, chunks)
            deltas = []
        else:
            state.close()
            state = State(str(folder))
            assert (state.chunks(), list(state.deltas()), state.number) == (chunks, deltas, number)
    state.close()
    assert read(folder) == (chunks, deltas)
    shutil.rmtree(folder)


# Killed


def test_thirty_kills_lose_nothing(tmp_path: Path) -> None:
    """What was acknowledged before a `kill -9` is there, at most one more, and it goes on from there."""
    chance = random.Random(11)
    known = 0
    for _ in range(30):
        with running("writer", tmp_path) as process:
            acknowledged = told(process, 1 + chance.randrange(1, 20))
            process.kill()
            acknowledged += told(process)
        last = max([known, *map(int, acknowledged[1:])])
        with closing(State(str(tmp_path))) as state:
            assert total(state) == sum(range(state.number + 1))
            assert last <= state.number <= last + 1
            known = state.number


@pytest.mark.parametrize(("moment", "deltas"), [("append", 6), ("appended", 7), ("checkpoint", 7), ("checkpointed", 0)])
def test_killed_at_the_worst_moment(tmp_path: Path, moment: str, deltas: int) -> None:
    """A commit that a kill interrupts has not happened at all; one that had returned is whole."""
    with running("writer", tmp_path, moment) as process:
        told(process)
        assert process.wait() == -signal.SIGKILL
    with closing(State(str(tmp_path))) as state:
        found = total(state), state.number, len(list(state.deltas()))
    assert found == (sum(range(7 if moment == "append" else 8)), 6 if moment == "append" else 7, deltas)


@pytest.mark.parametrize("left", ["capwatch.db.new", "capwatch.db.new-journal", "capwatch.db.new-wal"])
def test_killed_while_it_was_made(tmp_path: Path, left: str) -> None:
    """A state that was half made is made anew: it is no damage."""
    (tmp_path / left).write_bytes(b"half")
    assert read(tmp_path) == ({}, [])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["capwatch.db"]


def test_fifty_starts_do_not_let_it_grow(filled: Path) -> None:
    """Opening and reading a state leaves its size as it is."""
    before = (filled / "capwatch.db").stat().st_size
    assert all(read(filled) == FILLED for _ in range(50))
    assert (filled / "capwatch.db").stat().st_size == before


# Locked


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    """While a process holds the directory, another gets one line that names the way out."""
    with running("writer", tmp_path, "hold") as process:
        assert told(process, 1) == ["ready"]
        with pytest.raises(
            StateError, match="held by another capwatch; stop that one or name another with --state-dir"
        ):
            Lock(str(tmp_path))


def test_the_kernel_frees_the_lock_of_a_killed_process(tmp_path: Path) -> None:
    """After a `kill -9` the directory is free at once."""
    with running("writer", tmp_path, "hold") as process:
        told(process, 1)
        process.kill()
        process.wait()
        Lock(str(tmp_path)).release()


def test_a_released_lock_is_free(tmp_path: Path) -> None:
    """Whoever gives the directory up can have it again."""
    Lock(str(tmp_path)).release()
    Lock(str(tmp_path)).release()


def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    """The directory is made 0700 and every file in it 0600, whatever the umask."""
    folder = tmp_path / "a" / "state"
    before = os.umask(0)
    try:
        lock = Lock(str(folder))
        state = State(str(folder))
        state.append(1, "x")
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    finally:
        os.umask(before)
    state.close()
    lock.release()
    names = ("capwatch.lock", "capwatch.db", "capwatch.db-wal", "capwatch.db-shm")
    assert (stat.S_IMODE(folder.stat().st_mode), modes) == (0o700, dict.fromkeys(names, 0o600))


@pytest.mark.parametrize("where", ["file/state", "file"])
def test_a_directory_that_cannot_be_made(tmp_path: Path, where: str) -> None:
    """What is in the way of the directory is named in one line."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match=r"name another with --state-dir$"):
        Lock(str(tmp_path / where))


# Damaged


def verdict(folder: Path) -> str:
    """`damaged`, or `whole` where the state reads as it was filled; anything else is raised."""
    try:
        found = read(folder)
    except DamagedError:
        return "damaged"
    assert found == FILLED
    return "whole"


def test_no_flipped_bit_gives_another_value(filled: Path) -> None:
    """Whichever bit of the file flips: the state is refused as damaged, or reads as it was written."""
    path = filled / "capwatch.db"
    data = path.read_bytes()
    verdicts = []
    for bit in [*range(0, 8 * 128, 5), *range(1024, 8 * len(data), 997)]:
        path.write_bytes(data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :])
        verdicts.append(verdict(filled))
    assert set(verdicts) == {"damaged", "whole"}


def test_a_schema_that_is_no_text_is_damage(filled: Path) -> None:
    """Bytes that SQLite's own message cannot even quote are damage, too."""
    path = filled / "capwatch.db"
    path.write_bytes(path.read_bytes().replace(b"NOT NULL", b"NOT N\xceLL"))
    assert verdict(filled) == "damaged"


@pytest.mark.parametrize("sixteenth", range(16))
def test_a_cut_file_is_damaged(filled: Path, sixteenth: int) -> None:
    """A state cut at any sixteenth of its length is refused as damaged; empty is one of them."""
    path = filled / "capwatch.db"
    os.truncate(path, path.stat().st_size * sixteenth // 16)
    assert verdict(filled) == "damaged"


@pytest.mark.parametrize(
    "content",
    [
        bytes(4096),
        bytes(1 << 16),
        b"to be or not to be\n" * 400,
        b"SQLite format 3\0",
        b"SQLite format 3\0" + bytes(8192),
    ],
    ids=["nuls", "many-nuls", "text", "magic", "magic-and-nuls"],
)
def test_other_content_is_damage(tmp_path: Path, content: bytes) -> None:
    """Whatever else stands where the state should be is refused as damaged."""
    (tmp_path / "capwatch.db").write_bytes(content)
    assert verdict(tmp_path) == "damaged"


@pytest.mark.parametrize(
    "statement", ["PRAGMA journal_mode=WAL", "PRAGMA user_version=9", f"PRAGMA user_version={VERSION}"]
)
def test_another_programs_database_is_damage(tmp_path: Path, statement: str) -> None:
    """A SQLite file of another program is neither used nor taken for a newer version."""
    altered(tmp_path, "PRAGMA journal_mode=WAL", "CREATE TABLE meta (key, value)", statement)
    assert verdict(tmp_path) == "damaged"


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM delta WHERE number = 4",
        "DELETE FROM delta WHERE number = 6",
        "DELETE FROM chunk WHERE name = 'a'",
        "DELETE FROM chunk",
        "UPDATE chunk SET name = 'c' WHERE name = 'a'",
        "UPDATE chunk SET data = (SELECT data FROM delta WHERE number = 4) WHERE name = 'a'",
        "UPDATE delta SET data = 'text' WHERE number = 4",
        "UPDATE delta SET data = 5 WHERE number = 4",
        "UPDATE meta SET value = 4 WHERE key = 'number'",
        "UPDATE meta SET value = 'x' WHERE key = 'number'",
        "DELETE FROM meta WHERE key = 'number'",
        "DELETE FROM meta WHERE key = 'seal'",
        "DELETE FROM meta WHERE key = 'version'",
        "DROP TABLE delta",
        "PRAGMA user_version=0",
        "PRAGMA user_version=77",
        "PRAGMA application_id=5",
    ],
)
def test_a_missing_or_changed_part_is_damage(filled: Path, statement: str) -> None:
    """A delta or a chunk that is missing, renamed or not what was written, and a version that says two things."""
    altered(filled, statement)
    assert verdict(filled) == "damaged"


def test_a_lost_file_beside_its_log_is_damage(tmp_path: Path) -> None:
    """A log without its file is not written over."""
    (tmp_path / "capwatch.db-wal").write_bytes(b"what was committed last")
    assert verdict(tmp_path) == "damaged"


def test_damage_in_the_log_leaves_an_earlier_commit(tmp_path: Path) -> None:
    """A flipped bit or a cut in the log of a crash gives the state of an earlier commit, whole, or is damage."""
    source, target = tmp_path / "a", tmp_path / "b"
    source.mkdir()
    with closing(State(str(source))) as state:
        for number in range(1, 9):
            state.append(number, number)
        log = (source / "capwatch.db-wal").read_bytes()
        file = (source / "capwatch.db").read_bytes()
    lengths = set()
    for place in range(0, len(log), 607):
        for broken in (log[:place], log[:place] + bytes([log[place] ^ 8]) + log[place + 1 :]):
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            (target / "capwatch.db").write_bytes(file)
            (target / "capwatch.db-wal").write_bytes(broken)
            chunks, deltas = read(target)
            assert (chunks, deltas) == ({}, [(number, number) for number in range(1, len(deltas) + 1)])
            lengths.add(len(deltas))
    assert lengths == set(range(8))


def test_a_damaged_state_is_kept_aside(filled: Path) -> None:
    """It is moved under a name that says why and when, with its log, and the place is free for a new one."""
    (filled / "capwatch.db-wal").write_bytes(b"log")
    data = (filled / "capwatch.db").read_bytes()
    moved = set_aside(str(filled), "corrupt", 1764500000.9)
    assert moved == [str(filled / f"capwatch.db.corrupt-1764500000{suffix}") for suffix in ("", "-wal")]
    assert [Path(name).read_bytes() for name in moved] == [data, b"log"]
    assert read(filled) == ({}, [])


def test_what_was_set_aside_before_stays(filled: Path) -> None:
    """Two states set aside in one second are both kept."""
    first = set_aside(str(filled), "corrupt", 1764500000.0)
    State(str(filled)).close()
    second = set_aside(str(filled), "corrupt", 1764500000.0)
    assert [os.path.basename(name) for name in first + second] == [
        "capwatch.db.corrupt-1764500000",
        "capwatch.db.corrupt-1764500001",
    ]
    assert set_aside(str(filled), "corrupt", 1764500000.0) == []


def test_a_newer_version_is_refused(filled: Path) -> None:
    """The state of a newer capwatch stays as it is; one line names both versions and the way out."""
    altered(filled, f"PRAGMA user_version={VERSION + 1}", "UPDATE meta SET value=value + 1 WHERE key='version'")
    before = (filled / "capwatch.db").read_bytes()
    with pytest.raises(StateError) as refused:
        State(str(filled))
    assert str(refused.value) == (
        f"{filled}/capwatch.db: written by a newer capwatch (version {VERSION + 1} of the layout, this one knows "
        f"{VERSION}); upgrade capwatch, or begin anew with --state.reset"
    )
    assert (filled / "capwatch.db").read_bytes() == before


# Out of space


def big(number: int) -> dict[str, Any]:
    """A delta of about 100 kB that does not compress."""
    return {"add": number, "x": np.random.default_rng(number).bytes(100_000)}


def test_a_full_disk_takes_nothing_half(tmp_path: Path) -> None:
    """What does not fit is SQLite's error, what was there stays, and the same delta fits once there is space again."""
    with small_disk(tmp_path / "disk") as folder, closing(State(str(folder))) as state:
        state.append(1, {"add": 1})
        filler = fill(folder)
        for _ in range(3):
            with pytest.raises(sqlite3.OperationalError, match="full"):
                state.append(2, big(2))
            assert [number for number, _ in state.deltas()] == [1]
        with pytest.raises(sqlite3.OperationalError, match="full"):
            state.checkpoint(1, {"a": big(1)})
        assert (state.chunks(), [number for number, _ in state.deltas()]) == ({}, [1])
        filler.unlink()
        state.append(2, big(2))
        state.checkpoint(1, {"total": 1})
        assert read(folder) == ({"total": 1}, [(2, big(2))])


def test_a_small_disk_is_not_filled_by_the_log(tmp_path: Path) -> None:
    """Commits of many times the size of the disk fit on it, as long as a minute of them does."""
    with small_disk(tmp_path / "disk") as folder, closing(State(str(folder))) as state:
        for number in range(1, 61):
            state.append(number, big(number))
            if number % 2 == 0:
                state.checkpoint(number, {"total": number})
        assert read(folder) == ({"total": 60}, [])


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    """A read-only directory is one line that names it, for the lock and for the state."""
    with small_disk(tmp_path / "disk") as folder:
        make_read_only(folder)
        for opening in (Lock, State):
            with pytest.raises(StateError, match=r"disk.*: Read-only file system; name another .*with --state-dir$"):
                opening(str(folder))


def test_a_state_that_can_no_longer_be_written(tmp_path: Path) -> None:
    """When its directory becomes read-only the error is SQLite's and no damage."""
    with small_disk(tmp_path / "disk") as folder:
        State(str(folder)).close()
        make_read_only(folder)
        with pytest.raises(sqlite3.OperationalError):
            State(str(folder))


def test_how_much_a_start_had_to_read_is_known(filled: Path) -> None:
    """The deltas behind the last checkpoint, so that it can be told when they have become many."""
    with closing(State(str(filled))) as state:
        list(state.deltas())
        assert state.unfolded == len(FILLED[1])
