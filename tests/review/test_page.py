"""The page: whole in a real browser, nothing from outside, names from logs are text, the same content in all three."""

from __future__ import annotations

import html as of_html
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from capwatch.keep.past import HOUR
from capwatch.review import document, html, markdown, plots
from capwatch.review.document import Document
from tests.review import made

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NASTY = '<script>alert("x")</script>|`*'


@pytest.fixture(scope="module")
def reviewed() -> Document:
    """Three weeks with a tenant whose name is meant to do harm."""

    def rows(begin: float) -> list[dict[str, object]]:
        return [
            {
                "started_at": begin + number, "finished_at": begin + number + 2, "duration_s": 2.0, "ttft_s": 0.5,
                "tenant": NASTY if number % 3 else "acme", "route": "/v1/chat", "model": "chat-70b", "stream": True,
                "prompt_tokens": 900 + number % 500, "output_tokens": 50 + number % 90, "outcome": "ok",
            }
            for number in range(HOUR)
        ]  # fmt: skip

    hour = made.kind(made.CONFIG, rows)
    past = made.Made(lambda at: hour, made.WEEK.since - 3 * 7 * 86400, made.WEEK.until)
    return past.review()


@pytest.fixture(scope="module")
def page(reviewed: Document) -> str:
    """Its page."""
    return html.html(reviewed, plots.drawn)


def test_nothing_comes_from_outside(page: str) -> None:
    """No script, no link but to itself, no address; the browser is told so."""
    assert "default-src &#x27;none&#x27;" in page
    assert not re.search(r"<script|<link|<iframe|https?://(?!www\.w3\.org)", page)
    assert all(src.startswith("data:image/svg+xml;base64,") for src in re.findall(r'src="([^"]*)"', page))
    assert all(href.startswith("#") for href in re.findall(r'href="([^"]*)"', page))


def test_names_are_text(page: str, reviewed: Document) -> None:
    """What a log calls a tenant is never markup, in HTML nor in Markdown."""
    assert of_html.escape(NASTY) in page
    assert NASTY not in page
    assert NASTY not in markdown.markdown(reviewed)


def test_all_three_tell_the_same(page: str, reviewed: Document) -> None:
    """Every cell of every table of the JSON is on the page and in the Markdown."""
    text = markdown.markdown(reviewed)
    for section in document.as_plain(reviewed)["sections"]:
        for table in section["tables"]:
            for cell in {cell for row in table["rows"] for cell in row}:
                assert of_html.escape(cell) in page
                assert markdown.safe(cell) in text


def test_the_same_week_gives_the_same_bytes(page: str, reviewed: Document) -> None:
    """Pictures as well, so that two reviews can be compared."""
    assert html.html(reviewed, plots.drawn) == page


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (apt-get install chromium)")
def test_a_browser_opens_it(page: str, tmp_path: Path) -> None:
    """Chromium lays it out with every picture, and has nothing to complain of."""
    file = tmp_path / "review.html"
    file.write_text(page)
    assert CHROMIUM is not None
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    shot = tmp_path / "review.png"
    ran = subprocess.run(
        [*command, "--enable-logging=stderr", "--window-size=1100,9000", f"--screenshot={shot}", file.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "CONSOLE" not in ran.stderr
    assert shot.stat().st_size > 100_000  # an empty page of that size is some 10 kB
