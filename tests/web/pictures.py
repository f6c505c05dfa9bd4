"""Takes the pictures of the page that are in docs/: python -m tests.web.pictures [ADDRESS].

Of the demo's new tenant, some ten minutes: it is played as `make demo` plays it, and the pictures are taken once the
detector has raised its alarm. With an address they are taken of a daemon that runs there.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from .browser import chromium

DOCS: Final = Path(__file__).parents[2] / "docs"
PATIENCE_S: Final = 1200.0
PLAYED: Final = """
import sys, time
wall = time.time
begun = wall()
time.time = lambda: wall() - begun + begun // 86400 * 86400 + 9 * 3600 + 33 * 60
from capwatch.cli import main
sys.exit(main(sys.argv[1:]))
"""
"""The demo, begun at 09:33 UTC: whoever is paged at 09:40 sees this."""
LATER_S: Final = 300.0
"""After the alarm, so that the figures of five minutes have seen it, too."""


def main(arguments: list[str]) -> None:
    """Take them."""
    if arguments:
        take(arguments[0])
        return
    with demo() as address:
        until_alarm(address)
        time.sleep(LATER_S)
        take(address)


@contextmanager
def demo() -> Iterator[str]:
    """The address of a demo that plays."""
    command = [sys.executable, "-c", PLAYED, "demo", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = (re.search(r"http://\S+/$", line.strip()) for line in process.stdout)
        try:
            yield next(found[0] for found in told if found)
        finally:
            process.terminate()


def until_alarm(address: str) -> None:
    """Wait until a drift is active, and hold that against what the demo has done."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with urllib.request.urlopen(f"{address}api/v1/drift") as answer:
            active = json.load(answer)["active"]
        if active:
            assert "tenant acme" in active[0]["sentence"], active
            return
        time.sleep(5)
    raise AssertionError("no alarm")


def take(address: str) -> None:
    """A desktop in light colours and a phone in dark ones."""
    with tempfile.TemporaryDirectory() as profile, chromium(Path(profile)) as page:
        for name, width, height, scheme, phone in (
            ("page-light.png", 1280, 940, "light", False),
            ("page-phone.png", 400, 860, "dark", True),
        ):
            page.size(width, height, phone=phone, scale=1.25)
            page.scheme(scheme)
            page.open(address)
            page.until("document.documentElement.dataset.updates >= 1")
            page.picture(DOCS / name)
            assert page.complaints == []


if __name__ == "__main__":
    main(sys.argv[1:])
