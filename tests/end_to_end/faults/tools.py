"""What follows a log and counts its lines: capwatch, mtail and rsyslog behind one face, as real processes."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from .daemon import PATIENCE_S, Daemon, free_port, until
from .ledger import Accumulated, Ledger, Samples, parsed
from .writer import Truth

SCRAPE_S = 0.5
"""Between two scrapes of mtail, as in the measurements that capwatch is held against."""
Counts = Mapping[str, float]
"""Lines by tenant."""


class Tool(ABC):
    """One tool on one log. What it has counted is judged as a Prometheus that scraped throughout sees it."""

    name: str
    tells = False
    """Whether `read` tells at once what was read."""
    settles_s = 2.0
    """So long without a change, and it has read all that it ever will."""

    @abstractmethod
    def start(self) -> None:
        """Start the process, or start it again, and wait until it reads."""

    @abstractmethod
    def counts(self) -> Counts:
        """Lines counted so far, by tenant."""

    @property
    @abstractmethod
    def process(self) -> subprocess.Popen[bytes]:
        """The process that runs now, or ran last."""

    def read(self) -> float:
        """Lines counted so far."""
        return sum(self.counts().values())

    def settle(self, wanted: float) -> None:
        """Wait until so many lines have been counted, or until the count no longer moves."""
        last, since = -1.0, time.monotonic()
        while (now := self.read()) < wanted and time.monotonic() - since < self.settles_s:
            if now != last:
                last, since = now, time.monotonic()
            time.sleep(0.05)
        time.sleep(self.settles_s / 2)  # a double would come now

    def kill(self) -> None:
        """`kill -9`."""
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def stop(self) -> None:
        """SIGTERM, and wait for the end."""
        self.process.terminate()
        self.process.wait(PATIENCE_S)

    def pause(self) -> None:
        """SIGSTOP."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End it, whatever has happened."""
        with suppress(AssertionError):
            if self.process.poll() is None:
                self.kill()


class Capwatch(Tool):
    """The daemon, scraped ten times a second and judged by the laws on every page."""

    name = "capwatch"
    tells = True
    settles_s = 3.0

    def __init__(self, folder: Path, document: Mapping[str, Any], written: Callable[[], float], **more: Any) -> None:
        """A daemon with a configuration; ``written`` tells how many bytes there ever were, for law 2.

        Args:
            more: see `Ledger`.
        """
        self.daemon = Daemon(folder, document)
        self.ledger = Ledger(self.daemon.page, written, **more)
        self._scraping = False

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """See `Tool.process`."""
        return self.daemon.process

    def start(self) -> None:
        """See `Tool.start`."""
        self.daemon.start()
        if not self._scraping:
            self._scraping = True
            self.ledger.start()

    def read(self) -> float:
        """See `Tool.read`; the daemon's own word, since a page of a moment ago is no reason to wait longer."""
        return self.daemon.samples().total("requests_total")

    def counts(self) -> Counts:
        """See `Tool.counts`."""
        return {tenant: sums[0] for tenant, sums in self.accumulated().items()}

    def accumulated(self) -> Truth:
        """What a Prometheus has made of all pages, by tenant."""
        self.ledger.stop()
        return Samples(self.ledger.accumulated.sums, frozenset()).tenants()

    def close(self) -> None:
        """See `Tool.close`."""
        if self._scraping:
            self.ledger.stop()
        self.daemon.close()


class Mtail(Tool):
    """mtail on the live name with a counter by tenant; a scrape adds up what it says by the rule for resets."""

    name = "mtail"

    def __init__(self, folder: Path, live: Path) -> None:
        self._port = free_port()
        program = folder / "lines.mtail"
        program.write_text('counter lines by tenant\n/"tenant": "(?P<tenant>t[0-9]+)"/ {\n  lines[$tenant]++\n}\n')
        self._command = ["mtail", "--progs", str(program), "--logs", str(live), "--port", str(self._port)]
        self._command += ["--address", "127.0.0.1", "--poll_interval", "250ms", "--poll_log_interval", "250ms"]
        self._log = folder / "mtail.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._accumulated = Accumulated()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._scrape, daemon=True)

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """See `Tool.process`."""
        assert self._process is not None
        return self._process

    def start(self) -> None:
        """See `Tool.start`."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        until(lambda: self._page() is not None, "mtail answers")
        if not self._thread.is_alive():
            self._thread.start()

    def counts(self) -> Counts:
        """See `Tool.counts`."""
        self._look()
        with self._lock:
            sums = dict(self._accumulated.sums)
        return {found[1]: value for key, value in sums.items() if (found := re.search(r'tenant="(t\d+)"', key))}

    def close(self) -> None:
        """See `Tool.close`."""
        self._stopping.set()
        super().close()

    def _scrape(self) -> None:
        while not self._stopping.wait(SCRAPE_S):
            self._look()

    def _look(self) -> None:
        with self._lock:
            for key, value in parsed(self._page() or "").values.items():
                if key.startswith("lines{"):
                    self._accumulated.add(key, value)

    def _page(self) -> str | None:
        try:
            with urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=PATIENCE_S) as answer:
                return str(answer.read(), "utf-8")
        except (URLError, HTTPException, ConnectionError, TimeoutError):
            return None


class Rsyslog(Tool):
    """rsyslog's imfile on the live name, writing what it reads into a file, whose lines are counted."""

    name = "rsyslog"
    _CONFIG = """
global(workDirectory="{folder}" maxMessageSize="64k")
module(load="imfile" mode="inotify")
template(name="raw" type="string" string="%msg%\\n")
input(type="imfile" file="{live}" tag="x" ruleset="out" reopenOnTruncate="on" persistStateInterval="1000")
ruleset(name="out") {{ action(type="omfile" file="{out}" template="raw") }}
"""

    def __init__(self, folder: Path, live: Path) -> None:
        state = folder / "rsyslog"
        state.mkdir()
        self._out = folder / "rsyslog.out"
        config = folder / "rsyslog.conf"
        config.write_text(self._CONFIG.format(folder=state, live=live, out=self._out))
        self._pid = folder / "rsyslog.pid"
        self._command = [_sbin("rsyslogd") or "rsyslogd", "-n", "-f", str(config), "-i", str(self._pid)]
        self._log = folder / "rsyslog.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """See `Tool.process`."""
        assert self._process is not None
        return self._process

    def start(self) -> None:
        """See `Tool.start`."""
        self._pid.unlink(missing_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        until(self._pid.exists, "rsyslogd has started")

    def counts(self) -> Counts:
        """See `Tool.counts`."""
        if not self._out.exists():
            return {}
        return Counter(found.decode() for found in re.findall(rb'"tenant": "(t\d+)"', self._out.read_bytes()))


def _sbin(program: str) -> str | None:
    """Where a program is that users seldom have on their path."""
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")


def missing(tools: Sequence[str]) -> list[str]:
    """Which of the tools are not installed."""
    return [
        name for name, program in (("mtail", "mtail"), ("rsyslog", "rsyslogd")) if name in tools and not _sbin(program)
    ]


def versions() -> list[str]:
    """The tools' own words on which they are."""
    commands = (
        [sys.executable, "-m", "capwatch.cli", "--version"],
        ["mtail", "--version"],
        [_sbin("rsyslogd") or "", "-v"],
    )
    found = []
    for name, command in zip(("capwatch", "mtail", "rsyslog"), commands, strict=True):
        if shutil.which(command[0]):
            told = subprocess.run(command, capture_output=True, text=True, check=False)
            number = re.search(r"\d+\.\d+\S*", told.stdout or told.stderr)
            found.append(f"{name} {number[0] if number else '?'}")
    return found
