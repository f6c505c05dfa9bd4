"""One show from begin to end, as `make demo` plays it: its words, its metrics, its page in a browser, its end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.end_to_end.command import Page as Metrics
from tests.web.browser import NEEDED, SHOWN, chromium, texts

THREE_DAYS = """
import sys
from capwatch.demo import history
history.DAYS = 3  # of fewer the detector learns nothing; the other eleven take ten seconds, and are no different
from capwatch.cli import main
sys.exit(main(sys.argv[1:]))
"""
PATIENCE_S = 300.0
OUTPUT = Path(__file__).parents[1] / "output" / "page"
"""Screenshots, to be looked at."""


@dataclass(frozen=True)
class Show:
    """A show that runs and has raised its alarm."""

    process: subprocess.Popen[str]
    folder: Path
    """Where it may leave files."""
    told: str
    address: str


@pytest.fixture(scope="module")
def show(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Show]:
    """The scenario `new-tenant`, a hundred times as fast as life, until it has told what changed and what it means."""
    folder = tmp_path_factory.mktemp("show")
    process = subprocess.Popen(
        [sys.executable, "-c", THREE_DAYS, "demo", "--port", "0", "--speed", "100"],
        env={**os.environ, "TMPDIR": str(folder), "CAPWATCH__LISTEN": "nonsense"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    patience = threading.Timer(PATIENCE_S, process.kill)
    patience.start()
    told = ""
    try:
        for line in process.stdout:
            told += line
            if "  SINCE " in told and "  ALARM: " in told:
                break
        address = re.search(r"http://\S+/$", told, re.MULTILINE)
        assert address is not None, told
        yield Show(process, folder, told, address[0])
    finally:
        patience.cancel()
        process.kill()
        process.wait()


def test_the_alarm_and_the_words(show: Show) -> None:
    """The terminal tells of the change when it comes, and the detector of who did it."""
    assert "The clock is simulated and runs 100 times as fast as yours." in show.told
    assert "JUST NOW: tenant acme arrives" in show.told
    (alarm,) = (line for line in show.told.splitlines() if "  ALARM: " in line)
    assert "tenant acme" in alarm


def test_the_metrics(show: Show) -> None:
    """A past without logs, a present that is read from them, and no line lost."""
    with urllib.request.urlopen(f"{show.address}metrics", timeout=30) as answer:
        page = Metrics(answer.read().decode())
    assert page.value("requests_total", tenant="acme") > 0
    assert page.value("class_requests_total") > 650_000  # three days of history, which hang on the weekday
    assert page.value("lines_read_total", source="gateway") < 100_000  # and no lines of it
    assert (page.value("lines_dropped_total"), page.value("source_bytes_lost_total")) == (0.0, 0.0)


@NEEDED
def test_the_page_answers_on_its_first_screen(show: Show, tmp_path: Path) -> None:
    """Who caused it, why, how long KV memory lasts and what to do first; nothing is being learnt any more."""
    with chromium(tmp_path) as page:
        page.size(1280, 900)
        page.open(show.address)
        page.until(SHOWN)
        page.until("document.getElementById('sentence').textContent.startsWith('Cost per request +')")
        page.until("document.querySelectorAll('.waterfall.who th').length >= 3")  # as by now, not as raised
        page.picture(OUTPUT / "demo.png")
        (sentence,) = texts(page, "#sentence")
        assert "tenant acme" in sentence
        grown = re.match(r"Cost per request \+(\d+)", sentence)
        assert grown is not None
        assert 10 <= int(grown[1]) <= 40
        assert re.match("(Composition, not queueing|Both composition and queueing)", texts(page, "#why")[0])
        assert texts(page, "#todo li")[0].startswith("Cut the work of tenant acme")
        first = ("tenant acme mix", "route /v1/summaries mix", "class long mix")
        assert all(text.startswith(first) for text in texts(page, ".waterfall.who th")[:3])
        assert texts(page, ".tile:last-child")[0].startswith("KV memory")
        assert page.ask("document.querySelector('.waterfall.who th').getBoundingClientRect().bottom < innerHeight")
        assert "earning" not in page.ask("document.body.innerText")
        assert page.complaints == []


def test_ctrl_c_ends_it(show: Show) -> None:
    """It ends well and at once, and leaves nothing behind."""
    show.process.send_signal(signal.SIGINT)
    rest, errors = show.process.communicate(timeout=60)
    said = [line for line in errors.splitlines() if not line.startswith("ts=")]  # the daemon's log tells of the alarm
    assert (show.process.returncode, said, list(show.folder.iterdir())) == (0, [], [])
    assert rest.splitlines()[-1] == "stopped; files removed"
