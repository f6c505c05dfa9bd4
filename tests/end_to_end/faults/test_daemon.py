"""The daemon's manners: it ends and goes on exactly, reloads without a gap, and refuses with one line."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from capwatch.daemon.run import SILENT_S
from tests.end_to_end.command import COMMAND

from . import LONG
from .daemon import Daemon, until
from .launcher import FULL
from .ledger import LINE_BYTES, Ledger, accounted
from .scenario import DOCUMENT, source
from .writer import Writer, line

STOP_S = 5.0
"""A stop takes no longer, whatever is left to read (contract, section 1; reliability, section 3)."""
BACKLOG = 4_000_000 if LONG else 600_000
"""Lines that wait: far more than a daemon reads before it is told to stop."""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon on one source, with a hundred lines to read; not yet started."""
    path = tmp_path / "requests.jsonl"
    path.write_bytes(b"".join(line(sequence, time.time()) for sequence in range(100)))
    found = Daemon(tmp_path, configured(source("gateway", path)))
    yield found
    found.close()


def configured(*sources: dict[str, Any]) -> dict[str, Any]:
    """A document with these sources."""
    return DOCUMENT | {"sources": list(sources)}


def refused(daemon: Daemon) -> str:
    """The only line of a start that ends with exit code 2 at once."""
    before = daemon.log.read_text() if daemon.log.exists() else ""
    daemon.launch()
    assert daemon.process.wait(STOP_S * 4) == 2
    (told,) = daemon.log.read_text().removeprefix(before).splitlines()
    return told


def reload(daemon: Daemon, *, well: bool) -> None:
    """SIGHUP, and wait until the page says how it went."""
    daemon.process.send_signal(signal.SIGHUP)
    name = "config_last_reload_successful"
    until(lambda: daemon.samples().total(name) == well, f"{name} is {well}")


def test_a_stop_in_a_backlog_is_quick_and_goes_on_exactly(tmp_path: Path) -> None:
    """SIGTERM exits 0 within five seconds in the middle of a large backlog; the next start reads what was left."""
    path = tmp_path / "requests.jsonl"
    now = time.time()
    block = b"".join(line(sequence, now) for sequence in range(10_000))
    with path.open("wb") as file:
        for _ in range(BACKLOG // 10_000):
            file.write(block)
    daemon = Daemon(tmp_path, configured(source("gateway", path)))
    ledger = Ledger(daemon.page, lambda: BACKLOG * LINE_BYTES)
    try:
        daemon.launch()
        ledger.start()
        until(lambda: (daemon.page() or "").count("capwatch_requests_total{") > 0, "something is counted")
        code, seconds = daemon.stop()
        daemon.launch()
        until(lambda: daemon.page() is not None, "it answers")
        first = daemon.samples()
        assert daemon.is_ready() or first.total("lines_read_total") < BACKLOG
        daemon.wait_for_lines({"gateway": BACKLOG})
        ledger.stop()
        last = daemon.samples()
    finally:
        daemon.close()
    assert (code, seconds < STOP_S) == (0, True)
    assert 0 < first.total("lines_read_total") < BACKLOG
    assert last.tenants() == {
        tenant: [value * (BACKLOG // 10_000) for value in sums] for tenant, sums in _truth_of(block).items()
    }
    assert accounted(last) == BACKLOG * LINE_BYTES
    assert ledger.breaches == []


def _truth_of(block: bytes) -> dict[str, list[float]]:
    writer = Writer(Path("/dev/null"), 1)
    writer.lines = block.count(b"\n")
    return writer.truth()


def test_a_stop_makes_the_last_line_durable(daemon: Daemon) -> None:
    """What was read when SIGTERM came is there at once after the next start, with nothing to read again."""
    daemon.start()
    daemon.wait_for_lines({"gateway": 100})
    assert daemon.stop()[0] == 0
    daemon.launch()
    until(lambda: daemon.page() is not None, "it answers")
    assert daemon.samples().total("lines_read_total") == 100


def test_a_bad_reload_keeps_the_old_configuration(daemon: Daemon, tmp_path: Path) -> None:
    """SIGHUP with a bad file changes nothing but the metric that says so; a good one works; no line is missed."""
    daemon.start()
    good = daemon.config.read_text()
    daemon.config.write_text(good + "surces: []\n")
    reload(daemon, well=False)
    path = tmp_path / "requests.jsonl"
    with path.open("ab") as file:
        file.write(line(100, time.time()))
    daemon.wait_for_lines({"gateway": 101})
    daemon.config.write_text(good)
    reload(daemon, well=True)
    with path.open("ab") as file:
        file.write(line(101, time.time()))
    daemon.wait_for_lines({"gateway": 102})
    assert daemon.samples().total("lines_read_total") == 102
    assert "surces" in daemon.log.read_text()


def test_a_source_added_by_a_reload_is_read(daemon: Daemon, tmp_path: Path) -> None:
    """A new source is read by its `start`; one taken out and put back goes on where it stood."""
    path, other = tmp_path / "requests.jsonl", tmp_path / "other.jsonl"
    other.write_bytes(b"".join(line(sequence, time.time(), "u") for sequence in range(50)))
    daemon.start()
    daemon.wait_for_lines({"gateway": 100})
    daemon.configure(configured(source("other", other)))
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_for_lines({"other": 50})
    with path.open("ab") as file:
        file.write(line(100, time.time()))
    daemon.configure(configured(source("gateway", path), source("other", other)))
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_for_lines({"gateway": 101})
    found = daemon.samples()
    assert (found.total("requests_total"), found.total("lines_read_total")) == (151, 151)


def test_a_second_daemon_on_the_same_state_is_refused(daemon: Daemon, tmp_path: Path) -> None:
    """It exits 2 with one line, and the first one does not notice; `kill -9` frees the lock."""
    daemon.start()
    (tmp_path / "second").mkdir()
    document = configured(source("gateway", tmp_path / "requests.jsonl"))
    second = Daemon(tmp_path / "second", document | {"state_dir": str(tmp_path / "state")})
    begun = time.monotonic()
    told = refused(second)
    assert (str(tmp_path / "state") in told, "another" in told) == (True, True)
    assert time.monotonic() - begun < (2.0 if LONG else 20.0)
    assert daemon.is_ready()
    daemon.kill()
    second.start()
    second.close()


def test_a_taken_port_is_refused(daemon: Daemon) -> None:
    """It exits 2 with one line that names the address."""
    host, port = daemon.address.split(":")
    with socket.create_server((host, int(port))):
        told = refused(daemon)
    assert daemon.address in told


def test_a_full_disk_stops_what_is_shown_and_nothing_else(daemon: Daemon, tmp_path: Path) -> None:
    """While nothing can be written the last durable page stays; afterwards everything is there, without a restart."""
    path = tmp_path / "requests.jsonl"
    daemon.breakable()
    daemon.start()
    daemon.wait_for_lines({"gateway": 100})
    daemon.trigger.write_text(FULL)
    with path.open("ab") as file:
        file.writelines(line(sequence, time.time()) for sequence in range(100, 300))
    until(lambda: daemon.samples().total("commit_errors_total") >= 2, "a commit has failed twice")
    found = daemon.samples()
    assert (found.total("requests_total"), found.total("lines_read_total")) == (100, 100)
    daemon.trigger.unlink()
    daemon.wait_for_lines({"gateway": 300})
    assert daemon.samples().total("requests_total") == 300
    assert daemon.stop()[0] == 0


def test_a_silent_daemon_writes_next_to_nothing(daemon: Daemon) -> None:
    """While no log moves, a commit every ten seconds is enough: it says that all is well, and lets windows run dry."""
    daemon.start()
    daemon.wait_for_lines({"gateway": 100})
    before = _written(daemon)
    last = daemon.samples().total("commit_timestamp_seconds")
    if LONG:
        took = until(lambda: daemon.samples().total("commit_timestamp_seconds") > last, "it commits again")
        assert took > SILENT_S / 2
    else:
        until(lambda: time.time() > last + SILENT_S / 4, "five intervals have gone by")
        assert daemon.samples().total("commit_timestamp_seconds") == last
    assert _written(daemon) - before < 200_000


def _written(daemon: Daemon) -> int:
    """Bytes that its process has had written to disk."""
    found = Path(f"/proc/{daemon.process.pid}/io").read_text()
    return int(found.split("write_bytes: ")[1].split()[0])


def test_notes_are_kept_and_bad_ones_refused(daemon: Daemon) -> None:
    """A note that cannot be written down ends nothing: neither the daemon, nor its answers to the next one."""
    daemon.start()
    state = daemon.folder / "state"
    notes: list[tuple[str | bytes, int]] = [("first", 0), (b"deploy M\xfcnchen", 2), ("  ", 2), ("second", 0)]
    for text, code in notes:
        result = subprocess.run(
            [*COMMAND, "annotate", text, "--state-dir", state, "--at", "2026-11-30T09:41:00Z"],
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert (result.returncode, result.stderr.count(b"\n")) == (code, int(code != 0)), result
    for sent in (
        b'{"do":"annotate","text":"\\ud800","at":5}',
        b'{"do":"annotate","text":"x","at":' + b"9" * 400 + b"}",
    ):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(state / "capwatch.sock"))
            connection.sendall(sent + b"\n")
            assert b"error" in connection.recv(4096)
    assert daemon.stop()[0] == 0
    with closing(sqlite3.connect(state / "history.db")) as history:
        assert history.execute("SELECT at, pool, text FROM annotation ORDER BY text").fetchall() == [
            (1796031660.0, "", "first"),
            (1796031660.0, "", "second"),
        ]


def test_deploy_notes_are_kept_once_over_kills(daemon: Daemon) -> None:
    """A pipeline appends to the file while the daemon is killed and started: each note is in the history, once."""
    path, state = daemon.folder / "deploys.jsonl", daemon.folder / "state"
    daemon.configure(DOCUMENT | {"sources": [], "deploys": str(path)})
    written = []
    for number in range(2):
        daemon.start()
        for text in (f"deploy {number}a", f"deploy {number}b"):
            written.append((1796031660.0 + number, "", text))
            with path.open("a") as file:
                file.write(json.dumps({"at": 1796031660.0 + number, "text": text}) + "\n")
            if number % 2:
                until(lambda: daemon.samples().total("lines_counted_total") == len(written), "it is counted")
        daemon.kill()
    daemon.start()
    until(lambda: daemon.samples().total("lines_counted_total") == len(written), "all are counted")
    assert daemon.stop()[0] == 0
    with closing(sqlite3.connect(state / "history.db")) as history:
        assert history.execute("SELECT at, pool, text FROM annotation ORDER BY text").fetchall() == written
