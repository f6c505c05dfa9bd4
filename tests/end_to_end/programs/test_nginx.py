"""A real nginx: every request that went through it is told once, with what became of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .gateway import configure, counted_once, play_all, told_line_by_line
from .nginx import nginx
from .upstream import upstream


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The access log of all plays."""
    command = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if command is None:
        pytest.skip("no nginx on this machine: apt-get install nginx-light")
    with upstream() as server, nginx(command, server.port, tmp_path_factory.mktemp("nginx")) as (port, path):
        play_all(port, path)
    return path


@pytest.fixture(scope="module")
def config(log: Path) -> Path:
    """Reads it as any user would, without a word about keys."""
    return configure(log.parent, {"path": str(log), "format": "nginx"})


def test_every_line_is_one_request_with_the_right_outcome(log: Path, config: Path) -> None:
    """Success, stream, retry, failure, refusal, both kinds of 429, both kinds of client abort, time-out."""
    told_line_by_line(config, log)


def test_every_request_is_counted_once(config: Path) -> None:
    """The page has a request for each play, and a retry for each that was tried twice."""
    counted_once(config)
