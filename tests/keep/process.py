"""Programs of these tests as processes that get killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def running(program: str, *arguments: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program of this folder, begun, and killed in the end if it still runs."""
    command = [sys.executable, "-m", f"tests.keep.{program}", *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def told(process: subprocess.Popen[bytes], lines: int | None = None) -> list[str]:
    """The next lines of its output, or all until its end."""
    assert process.stdout is not None
    if lines is None:
        return process.stdout.read().decode().split()
    return [process.stdout.readline().decode().strip() for _ in range(lines)]
