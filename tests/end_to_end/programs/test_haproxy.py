"""A real HAProxy, its text and its JSON: every request that went through it is told once, with what became of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .gateway import configure, counted_once, explained, play_all, told_line_by_line
from .haproxy import TEXT, haproxy, json_format
from .plays import PLAYS
from .upstream import CHUNKS, GAP_S, THINKS_S, upstream


@pytest.fixture(scope="module", params=["text", "json"])
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of all plays."""
    command = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    if command is None:
        pytest.skip("no haproxy on this machine: apt-get install haproxy")
    told = TEXT if request.param == "text" else json_format()
    folder = tmp_path_factory.mktemp(f"haproxy-{request.param}")
    with upstream() as server, haproxy(command, server.port, folder, told) as (port, path):
        play_all(port, path)
    return path


@pytest.fixture(scope="module")
def config(log: Path) -> Path:
    """Reads it by the place of the captured header, where it has no name."""
    fields = {} if log.read_bytes().startswith(b"{") else {"tenant": "hr.0"}
    return configure(log.parent, {"path": str(log), "format": "haproxy", "fields": fields})


def test_every_line_is_one_request_with_the_right_outcome(log: Path, config: Path) -> None:
    """Success, stream, retry, failure, refusal, both kinds of 429, both kinds of client abort, time-out."""
    told_line_by_line(config, log)


def test_every_request_is_counted_once(config: Path) -> None:
    """The page has a request for each play, and a retry for each that was tried twice."""
    counted_once(config)


def test_times_reach_to_the_last_byte_and_tell_the_queue(log: Path, config: Path) -> None:
    """A stream lasts as long as the upstream spoke; all that reached a server waited for none, the limited did not."""
    records = [one["record"] for one in explained(config, log)]
    whole = THINKS_S + CHUNKS * GAP_S
    assert [whole <= one["duration_s"] <= whole + 1 for one in records if one["tenant"] == "stream"] == [True, True]
    waits = [one.get("queue_s") for one in records]
    assert (waits.count(0), waits.count(None)) == (len(PLAYS) - 1, 1)
