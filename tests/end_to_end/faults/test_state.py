"""The state of another version, damaged, unwanted: taken over, moved aside and counted, or refused with one line."""

from __future__ import annotations

import re
import shutil
import sqlite3
import time
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from capwatch.keep.state import VERSION, State

from . import LONG
from .cases import SEEDS
from .daemon import Daemon, until
from .ledger import Accumulated, parsed
from .scenario import DOCUMENT, source
from .test_daemon import refused
from .writer import line, truth

STATES = Path(__file__).with_name("states")
"""What earlier programs left: of version 1 with narrow axes and a checkpoint, and with wide ones after a kill."""
WRITTEN = 600
"""Lines that they have read: numbers from 0, the first of them finished at `BEGUN`, 20 a second."""
BEGUN = 1_772_529_302.0
DAMAGES = 12 if LONG else 3
KINDS = ("flip", "cut", "zeros")
KEPT_S = 26.0 * 60
"""Event time that passes before seconds go to the history."""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon that has read a log of an hour, so that its history holds some of it, and has stopped."""
    path = tmp_path / "log"
    begun = time.time() - 2 * KEPT_S
    path.write_bytes(b"".join(line(number, begun + number * 2 * KEPT_S / 900) for number in range(900)))
    found = Daemon(tmp_path, DOCUMENT | {"sources": [source("gateway", path)]})
    found.start()
    found.wait_for_lines({"gateway": 900})
    found.stop()
    yield found
    found.close()


def aside(folder: Path, name: str, reason: str) -> list[Path]:
    """Files that were moved aside for a reason."""
    return sorted(one for one in folder.iterdir() if re.fullmatch(rf"{re.escape(name)}\.{reason}-\d+", one.name))


def without_logs(path: Path) -> None:
    """Remove the write-ahead log and its index: the file stands for itself."""
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


@pytest.mark.parametrize("name", ["version-1-narrow", "version-1-wide"])
def test_a_state_of_version_1_is_taken_over(tmp_path: Path, name: str) -> None:
    """No counter falls, lines that it had read are not read again, and from then on it is of the present version."""
    with zipfile.ZipFile(STATES / f"{name}.zip") as archive:
        archive.extractall(tmp_path)
    path = tmp_path / "log"
    path.write_bytes(b"".join(line(number, BEGUN + number * 0.05) for number in range(WRITTEN)))
    pools = [{"name": "chat"}, {"name": "other", "match": {"tenant": "t000002"}}]
    daemon = Daemon(tmp_path, DOCUMENT | {"sources": [source("gateway", path)], "pools": pools})
    told = Accumulated()
    for key, value in parsed((tmp_path / "page.prom").read_text()).values.items():
        told.add(key, value)
    try:
        daemon.start()
        found = daemon.samples()
        for key in told.last:
            told.add(key, found.values[key])
        assert told.fallen == []
        assert found.tenants() == truth(WRITTEN)
        with path.open("ab") as file:
            file.writelines(line(number, BEGUN + number * 0.05) for number in range(WRITTEN, 700))
        daemon.wait_for_lines({"gateway": 700})
        assert daemon.samples().tenants() == truth(700)
        daemon.kill()
        daemon.start()
        assert daemon.samples().tenants() == truth(700)
        assert daemon.samples().total("state_resets_total") == 0
    finally:
        daemon.close()
    with closing(sqlite3.connect(tmp_path / "state" / "capwatch.db")) as database:
        meta = dict(database.execute("SELECT key, value FROM meta"))
        assert (database.execute("PRAGMA user_version").fetchone()[0], meta["version"]) == (VERSION, VERSION)


@pytest.mark.parametrize("name", ["capwatch.db", "history.db"])
def test_a_newer_state_is_refused(daemon: Daemon, tmp_path: Path, name: str) -> None:
    """It exits 2 with one line that names the file and the way out, and the file stays as it was."""
    path = tmp_path / "state" / name
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA user_version=99")
        database.execute("UPDATE meta SET value = 99 WHERE key = 'version'")
    kept = path.read_bytes()
    told = refused(daemon)
    assert (str(path) in told, "newer" in told, "--state.reset" in told) == (True, True, True)
    assert path.read_bytes() == kept


def test_a_state_in_a_foreign_layout_is_refused(daemon: Daemon, tmp_path: Path) -> None:
    """Of this version, but with a label that is not known here: nothing is guessed, and the file stays as it was."""
    with closing(State(str(tmp_path / "state"))) as state:
        chunks = state.chunks()
        axes, _ = chunks["totals/layout"]["tables/requests"]
        (outcome,) = (axis for axis in axes if axis[0] == "outcome")
        outcome[2] = ["fine", *outcome[2][1:]]
        number = [*state.deltas()][-1:]
        state.checkpoint(number[0][0] if number else state.number, chunks)
    path = tmp_path / "state" / "capwatch.db"
    kept = path.read_bytes()
    told = refused(daemon)
    assert (str(path) in told, "outcome fine is not known" in told, "--state.reset" in told) == (True, True, True)
    assert path.read_bytes() == kept


def damaged(whole: bytes, kind: str, random: Random) -> bytes:
    """A file with one bit flipped, cut, or with some NULs, at any place."""
    place = random.randrange(len(whole))
    if kind == "flip":
        return whole[:place] + bytes([whole[place] ^ 1 << random.randrange(8)]) + whole[place + 1 :]
    if kind == "cut":
        return whole[:place]
    size = random.choice([512, 4096, len(whole)])
    return whole[:place] + bytes(len(whole[place : place + size])) + whole[place + size :]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["capwatch.db", "history.db"])
def test_any_damage_is_survived(daemon: Daemon, tmp_path: Path, name: str, seed: int) -> None:
    """It goes on exactly, where nothing that matters was hit, or begins anew, says so, and keeps the damaged file."""
    random = Random(seed)
    state = tmp_path / "state"
    original = tmp_path / "original"
    shutil.copytree(state, original)
    for number in range(DAMAGES):
        kind = KINDS[number % len(KINDS)]
        shutil.rmtree(state)
        shutil.copytree(original, state)
        path = state / name
        without_logs(path)
        broken = damaged(path.read_bytes(), kind, random)
        path.write_bytes(broken)
        before = daemon.log.stat().st_size
        daemon.start()
        daemon.wait_for_lines({"gateway": 900})
        found = daemon.samples()
        daemon.stop()
        assert found.tenants() == truth(900), (kind, seed, number)
        kept = aside(state, name, "corrupt")
        resets = found.by("state_resets_total", "reason")[("corrupt",)]
        assert resets == (len(kept) if name == "capwatch.db" else 0)
        assert [one.read_bytes() for one in kept] in ([], [broken])
        assert ("level=error" in daemon.log.read_text()[before:]) == bool(kept)


@pytest.mark.parametrize("content", [b"", b"something else\n" * 500], ids=["empty", "foreign"])
def test_both_files_are_something_else(daemon: Daemon, tmp_path: Path, content: bytes) -> None:
    """The daemon begins anew by `start:`, says so, counts it, and keeps both."""
    state = tmp_path / "state"
    for name in ("capwatch.db", "history.db"):
        without_logs(state / name)
        (state / name).write_bytes(content)
    daemon.start()
    daemon.wait_for_lines({"gateway": 900})
    found = daemon.samples()
    assert found.by("state_resets_total", "reason") == {("corrupt",): 1.0, ("requested",): 0.0}
    assert found.tenants() == truth(900)
    assert [aside(state, name, "corrupt")[0].read_bytes() for name in ("capwatch.db", "history.db")] == [content] * 2


def test_a_reset_is_the_same_on_purpose(daemon: Daemon, tmp_path: Path) -> None:
    """The old state is kept under a name that says why, the reset is counted, and reading begins as `start:` says."""
    daemon.start("--state.reset")
    daemon.wait_for_lines({"gateway": 900})
    found = daemon.samples()
    assert found.by("state_resets_total", "reason") == {("corrupt",): 0.0, ("requested",): 1.0}
    assert found.tenants() == truth(900)
    assert len(aside(tmp_path / "state", "capwatch.db", "reset")) == 1
    daemon.stop()
    daemon.start()
    until(lambda: daemon.samples().total("state_resets_total") == 1, "it is counted for good")
