"""A real daemon on planted lines of every format: nothing of them is on a page, in its state, or in its log."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from capwatch.formats import shelf
from capwatch.keep.codec import DamagedError, unpack
from tests.end_to_end.faults.daemon import Daemon

from .planting import MARK, SECRETS, planted

PATHS = ("/", "/metrics", *(f"/api/v1/{name}" for name in ("status", "drift", "now", "recent", "history")))
FORMS = ("text/plain", "application/openmetrics-text; version=1.0.0", "application/vnd.google.protobuf")
OPEN = b'2026-03-03T09:15:02.43Z stdout P {"prompt": "CANARY of an open record", "finished_at": 1772529300, \n'


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that has read them all, one record of which is still open, with its log as talkative as can be."""
    folder = tmp_path_factory.mktemp("canaries")
    sources: list[dict[str, Any]] = []
    wanted = {}
    for name in shelf():
        lines = list(planted(name, list(SECRETS.values())))
        (folder / f"{name}.log").write_bytes(b"\n".join([*lines, b""]))
        sources.append({"name": name, "path": str(folder / f"{name}.log"), "format": name, "start": "beginning"})
        wanted[name] = 1
    (folder / "pod.log").write_bytes(OPEN)
    sources.append({**sources[0], "name": "pod", "path": str(folder / "pod.log"), "format": "jsonl", "wrapper": "cri"})
    found = Daemon(folder, {"sources": sources})
    found.start("--log.level", "debug")
    found.wait_for_lines(wanted)
    yield found
    found.close()


def test_no_page_tells_any(daemon: Daemon) -> None:
    """In no form, no document."""
    for path in PATHS:
        for form in FORMS if path == "/metrics" else FORMS[:1]:
            with urlopen(Request(f"http://{daemon.address}{path}", headers={"Accept": form})) as answer:
                assert MARK.encode() not in answer.read().lower(), path


def test_no_file_tells_any(daemon: Daemon) -> None:
    """After a stop: neither the bytes of the state's files, nor what is packed in them, nor the log at debug level."""
    assert daemon.stop()[0] == 0
    files = list((daemon.folder / "state").iterdir())
    assert {"capwatch.db", "history.db", "label.key"} <= {path.name for path in files}
    told = b"".join(path.read_bytes() for path in (*files, daemon.log)).lower()
    packed = [one for path in files if path.suffix == ".db" for one in _packed(path)]
    assert len(packed) > 10
    assert [one for one in (told, *packed) if MARK.encode() in one] == []


def _packed(path: Path) -> Iterator[bytes]:
    """Every value of a database, unpacked where it is packed."""
    with closing(sqlite3.connect(path)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for row in database.execute(f"SELECT * FROM {table}"):  # noqa: S608 - its own names
                for value in row:
                    yield repr(value).lower().encode()
                    with suppress(DamagedError):
                        yield repr(unpack(value)).lower().encode()
