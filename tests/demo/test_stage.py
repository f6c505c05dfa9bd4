"""What the show refuses, and what it begins with. `test_show` plays it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from capwatch.config.load import load
from capwatch.demo.clock import Clock
from capwatch.demo.scene import Scene
from capwatch.sourcing import names
from tests.end_to_end.command import capwatch


def test_a_taken_port_is_one_line(tmp_path: Path) -> None:
    """A port that somebody listens on is refused before anything is made up, in one line with exit code 2."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        result = capwatch("demo", "--port", str(port), cwd=tmp_path)
    told = (result.returncode, result.stdout, result.stderr.decode())
    meant = (
        f"--port: 127.0.0.1:{port} cannot be had (Address already in use); name another, or 0 for any that is free "
        "(make demo OPTIONS='--port 0')\n"
    )
    assert told == (2, b"", meant)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--speed", "0"), "--speed: 0 is not more than 0 and at most 100\n"),
        (("--speed", "nan"), "--speed: nan is not more than 0 and at most 100\n"),
        (("--port", "65536"), "--port: 65536 is no port\n"),
        (("--seed", "-1"), "--seed: must be 0 or more\n"),
        (("--port", "0", "--keep", "."), "--keep: .: is not empty; name a new folder\n"),
        (("--port", "0", "--keep", "full"), "--keep: full: File exists; name another folder\n"),
    ],
)
def test_what_cannot_be_is_one_line(tmp_path: Path, words: tuple[str, ...], line: str) -> None:
    """Options that make no sense, and folders that are in use, are refused in one line with exit code 2."""
    (tmp_path / "full").touch()
    result = capwatch("demo", *words, cwd=tmp_path)
    assert (result.returncode, result.stdout, result.stderr.decode()) == (2, b"", line)


def test_the_configuration_is_good(tmp_path: Path) -> None:
    """The scene's configuration loads, and `times` is left to the rule that finds the gateway."""
    scene = Scene(tmp_path)
    scene.set_up("127.0.0.1:0")
    config = load(str(scene.configuration), {}, formats=names(), is_root=False)
    assert [source.name for source in config.sources] == ["gateway", "engine-logs"]
    assert config.pools[0].assumed is False


def test_the_clock_runs_faster_once_let_go() -> None:
    """The clock is the wall's until it is let go, and goes on from there at its speed without a leap."""
    wall = iter([100.0, 101.0, 101.0, 103.0])
    clock = Clock(10.0, lambda: next(wall))
    before = clock()
    clock.let_go()
    assert (before, clock(), clock()) == (100.0, 101.0, 121.0)
