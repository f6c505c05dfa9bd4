"""The page in a real browser, in states that no scene plays: behind a password, several pools, KV memory that fills."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import bcrypt
import pytest
from msgspec.structs import replace

from capwatch.web import Door
from capwatch.web.findings import ahead
from capwatch.web.now import Finding, History, Now, PoolHistory

from .browser import NEEDED, SHOWN, Page, texts
from .talk import NOW, Daemon, serving
from .test_findings import POOL, history

pytestmark = NEEDED


def test_passwords_are_no_obstacle(browser: Page, tmp_path: Path) -> None:
    """Behind a password the page fills itself, also where the address has it; without requests it says so."""
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    (tmp_path / "web.yml").write_text(f"basic_auth_users: {{ops: {hashed}}}\n")
    with serving(door=Door(str(tmp_path / "web.yml"))) as address:
        browser.open(f"http://ops:secret@127.0.0.1:{address.port}/")
        browser.until(SHOWN)
        assert texts(browser, "#sentence") == ["Nothing has changed."]
        assert browser.complaints == []


class TwoPools(Daemon):
    """A daemon with two pools, the smaller of which is in trouble."""

    def now(self) -> Now:
        """Both."""
        trouble = Finding(kind="wait", severity="bad", text="Pool small waits.", pool="small", todo=("Add replicas.",))
        return Now(
            clock=1.0, findings=[trouble], pools=[replace(POOL, name="large"), replace(POOL, name="small", rate=2.0)]
        )


def test_the_pool_in_trouble_is_shown_first(browser: Page) -> None:
    """Of several pools the page opens on the one that the sentence is about; another is a button away."""
    pressed = "[...document.querySelectorAll('#pools [aria-pressed=true]')].map((one) => one.textContent)"
    with serving(TwoPools()) as address:
        browser.open(f"http://127.0.0.1:{address.port}/")
        browser.until(SHOWN)
        first = browser.ask(pressed), texts(browser, ".tile b")[0]
        browser.ask("document.querySelector('#pools button').focus()")
        browser.press("Enter")
        assert [first, (browser.ask(pressed), texts(browser, ".tile b")[0])] == [(["small"], "2/s"), (["large"], "8/s")]
        assert browser.complaints == []


class Filling(Daemon):
    """A daemon whose pool needs half of its KV memory, or that of nobody knows how much, and with some history."""

    def __init__(self, *, known: bool, past: Mapping[str, PoolHistory]) -> None:
        super().__init__()
        self.pool = replace(POOL, kv_demand_ratio=0.5) if known else replace(POOL, kv_demand_ratio=None, kv_room=None)
        self.past = past

    def now(self) -> Now:
        """One pool."""
        return replace(NOW, pools=[self.pool])

    def history(self) -> History:
        """What there is, and what it tells."""
        return History(pools=self.past, findings=ahead([self.pool], self.past))


@pytest.mark.parametrize(
    ("known", "past", "tile", "words"),
    [
        (
            True,
            {"chat": history(1500.0)},
            ("KV memory50 %full in 25 min", "tile warn"),
            "at this trend it is full in 25 min",
        ),
        (
            True,
            {"chat": history(None)},
            ("KV memory50 %not full within 1 h", "tile "),
            "at this trend it is not full within",
        ),
        (
            True,
            {"chat": replace(history(None), kv_steady=False)},
            ("KV memory50 %no steady growth", "tile "),
            "but not all the time: when it is full cannot be told",
        ),
        (True, {}, ("KV memory50 %trend not known yet", "tile "), "is told once a quarter of an hour is known."),
        (False, {}, ("KV memory–size not known", "tile "), "KV memory is not judged: no engine tells its size"),
    ],
)
def test_how_long_kv_memory_lasts(
    browser: Page, known: bool, past: Mapping[str, PoolHistory], tile: tuple[str, str], words: str
) -> None:
    """The tile and a sentence say when it is full, or why that is not known; soon is a finding of its own."""
    with serving(Filling(known=known, past=past)) as address:
        browser.open(f"http://127.0.0.1:{address.port}/")
        browser.until(SHOWN)
        last = "document.querySelector('.tile:last-child')"
        shown = browser.ask(f"[{last}.textContent, {last}.className]")
        assert [text.replace("\u202f", " ") for text in shown] == list(tile)
        (told,) = [text.replace("\u202f", " ") for text in texts(browser, "#room p") if text.startswith(("KV", "Rep"))]
        assert words in told
        soon = texts(browser, "#sentence")[0].startswith("Pool chat: KV memory is full in 25")
        assert soon == ("warn" in tile[1])
        assert browser.complaints == []
