"""Starts a program, waits until its port answers, and ends it by its own id."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

PATIENCE_S = 60.0


def free_port() -> int:
    """A port that the kernel says is free."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait for something that has to come true."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@contextmanager
def program(
    command: Sequence[str | Path], port: int, out: Path, *, env: Mapping[str, str] | None = None, stop_s: float = 20
) -> Iterator[subprocess.Popen[bytes]]:
    """A program that listens on a loopback port when the block begins, and is gone when it ends; prints to ``out``."""
    with out.open("wb") as printed:
        process = subprocess.Popen(
            list(map(str, command)), stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT, env=env
        )
    try:
        until(lambda: process.poll() is not None or _answers(port), f"{command[0]} does not listen")
        assert process.poll() is None, out.read_text(errors="replace")[-3000:]
        yield process
    finally:
        process.terminate()
        try:
            process.wait(stop_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False
