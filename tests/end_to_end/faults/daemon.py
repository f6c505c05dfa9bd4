"""The real daemon as a process: start, stop, kill, ask; every wait has a deadline."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import yaml

from tests.end_to_end.command import COMMAND

from .launcher import CHECKPOINT_S, TRIGGER
from .ledger import Samples, parsed

PATIENCE_S = 60.0
"""The machine is shared: no wait fails before this."""
LOOK_S = 0.01
LAUNCHER = (sys.executable, "-m", "tests.end_to_end.faults.launcher")
ROOT = Path(__file__).parents[3]


def until(true: Callable[[], bool], what: str, patience: float = PATIENCE_S) -> float:
    """Wait until something is true; how long (s) it took."""
    begun = time.monotonic()
    while not true():
        assert time.monotonic() - begun < patience, f"waited in vain until {what}"
        time.sleep(LOOK_S)
    return time.monotonic() - begun


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Daemon:
    """A daemon with its folder: `capwatch.yml`, `state/` and `daemon.log`; its address stays over restarts."""

    def __init__(self, folder: Path, document: Mapping[str, Any], *, breakable: bool = False) -> None:
        self.folder = folder
        self.address = f"127.0.0.1:{free_port()}"
        self.config = folder / "capwatch.yml"
        self.trigger = folder / "trigger"
        self.log = folder / "daemon.log"
        self.env: dict[str, str] = {}
        """Added to its environment."""
        self.under: tuple[str, ...] = ()
        """The command that runs it with fewer rights than this process, or none."""
        self.configure(document)
        self._command = COMMAND
        if breakable:
            self.breakable()
        self._process: subprocess.Popen[bytes] | None = None

    def breakable(self) -> None:
        """From the next start on it can be broken by `trigger`."""
        self._command = LAUNCHER

    def configure(self, document: Mapping[str, Any]) -> None:
        """Write the configuration."""
        whole = {"listen": self.address, "state_dir": str(self.folder / "state"), **document}
        self.config.write_text(yaml.safe_dump(whole, sort_keys=False))

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process that runs now, or ran last."""
        assert self._process is not None
        return self._process

    def start(self, *words: str) -> float:
        """Start with these flags, and wait until it is ready; the seconds that took."""
        self.launch(*words)
        return until(self.is_ready, "the daemon is ready")

    def launch(self, *words: str) -> None:
        """Start with these flags, without waiting."""
        env = {**os.environ, TRIGGER: str(self.trigger), CHECKPOINT_S: "1", **self.env}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self.under, *self._command, "run", "--config.file", str(self.config), *words],
                cwd=ROOT,
                env=env,
                stderr=log,
            )

    def kill(self) -> None:
        """`kill -9`."""
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def kill_at(self, point: str) -> None:
        """Let it die at a point of its next commit, see `launcher`."""
        draft = self.trigger.with_suffix(".new")
        draft.write_text(point)
        draft.rename(self.trigger)
        assert self.process.wait(PATIENCE_S) == -signal.SIGKILL
        assert not self.trigger.exists()

    def stop(self) -> tuple[int, float]:
        """SIGTERM; its exit code, and the seconds it took."""
        begun = time.monotonic()
        self.process.terminate()
        return self.process.wait(PATIENCE_S), time.monotonic() - begun

    def close(self) -> None:
        """End it, whatever has happened."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def is_ready(self) -> bool:
        """Whether `/-/ready` says so."""
        assert self.process.poll() is None, self.log.read_text()
        return self._get("/-/ready") is not None

    def page(self) -> str | None:
        """The page of metrics; None where nobody answers."""
        return self._get("/metrics")

    def samples(self) -> Samples:
        """What the page says."""
        page = self.page()
        assert page is not None, self.log.read_text()
        return parsed(page)

    def wait_for_lines(self, wanted: Mapping[str, int]) -> None:
        """Wait until so many lines of each source have been read, and made durable."""
        deadline = time.monotonic() + PATIENCE_S
        while missing := self._missing(wanted):
            assert time.monotonic() < deadline, f"lines not read: {missing}; {self.log.read_text()}"
            time.sleep(LOOK_S)

    def _missing(self, wanted: Mapping[str, int]) -> dict[str, float]:
        samples = self.samples()
        missing = {name: lines - samples.total("lines_read_total", source=name) for name, lines in wanted.items()}
        return {name: lines for name, lines in missing.items() if lines > 0}

    def _get(self, path: str) -> str | None:
        try:
            with urlopen(f"http://{self.address}{path}", timeout=PATIENCE_S) as answer:
                return str(answer.read(), "utf-8")
        except (URLError, HTTPException, ConnectionError, TimeoutError):
            return None
