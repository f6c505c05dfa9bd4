"""The page in a real browser, on a real daemon with a real alarm: what it shows, and that it does so by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from .browser import NEEDED, SHOWN, Page, texts
from .scene import HOSTILE, Scene, playing

pytestmark = NEEDED
OUTPUT = Path(__file__).parents[1] / "output" / "page"
"""Screenshots, to be looked at."""
CELLS = "[...document.querySelectorAll('#who tbody tr')].map((row) => row.cells[{}].textContent)"
FOCUSED = "document.activeElement.textContent"
LARGE = 18.66
"""CSS pixels from which bold text is large (WCAG 2)."""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A daemon that has raised an alarm."""
    with playing(tmp_path_factory.mktemp("scene"), 1.4, 2) as found:
        yield found


@pytest.fixture
def page(browser: Page, scene: Scene) -> Page:
    """The page on a desktop in light colours, filled."""
    browser.size(1280, 900)
    browser.scheme("light")
    browser.open(scene.address)
    browser.until(SHOWN)
    return browser


def test_the_first_screen_answers(page: Page) -> None:
    """Who, what, whether it is queueing and what to do first stand on the first screen."""
    (sentence,) = texts(page, "#sentence")
    assert sentence.startswith("Cost per request +")
    assert all(f"{name} " in sentence for name in ("tenant acme", "route /v1/summaries", "class long"))
    assert texts(page, "#todo li")[0].startswith("Cut the work of tenant acme, route /v1/summaries, class long:")
    assert texts(page, "#why") == ["Composition, not queueing: the requests changed, the replicas work as before."]
    assert page.ask("document.getElementById('todo').getBoundingClientRect().bottom < innerHeight")
    page.picture(OUTPUT / "light.png", whole=True)


def test_an_active_watch_is_told_beside_it(page: Page) -> None:
    """What a watcher has found stands on the first screen, in its own words and with what helps."""
    page.until("document.getElementById('others').textContent.includes('Attempts')")
    (told,) = (text for text in texts(page, "#others li.warn") if text.startswith("Attempts per request 1.00 → "))
    assert "tenant acme (100\u202f% of it). Answer tenant acme with a stop" in told
    assert page.ask("document.getElementById('others').getBoundingClientRect().bottom < innerHeight")


def test_the_waterfall_adds_up(page: Page) -> None:
    """From what was expected by the effects to what it is now, as the API tells them."""
    now = page.ask("fetch('/api/v1/now').then((answer) => answer.json())")["pools"][0]
    found = now["drift"]
    heads = (text.split()[0] for text in texts(page, ".waterfall:not(.who) th"))
    rows = dict(zip(heads, texts(page, ".waterfall:not(.who) td.n"), strict=True))
    shown = {name: float(text.replace("−", "-")) for name, text in rows.items()}
    assert shown["expected"] == pytest.approx(found["cost_before"], abs=0.005)
    assert shown["now"] == pytest.approx(found["cost_after"], abs=0.005)
    effects = [shown[name] for name in ("mix", "prompts", "answers", "cache")]
    assert sum(effects) == pytest.approx(shown["now"] - shown["expected"], abs=0.03)
    assert texts(page, ".waterfall.who th")[0].startswith("tenant acme mix, 0 % → ".replace(" %", "\u202f%"))


def test_the_plots_are_drawn(page: Page) -> None:
    """Each figure has a canvas with colours in it, and says its newest value in words."""
    assert texts(page, "figcaption")[0].startswith("Requests per secondnow 1.")
    pixels = page.ask(
        "[...document.querySelectorAll('.plot canvas')].map((canvas) => new Set(new Uint32Array(canvas"
        ".getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size)"
    )
    assert len(pixels) == 6
    assert min(pixels) > 10
    labels = page.ask("[...document.querySelectorAll('.plot')].map((plot) => plot.getAttribute('aria-label'))")
    assert labels[2].startswith("Requests in flight, by phase: now ")


def test_without_the_library_the_lines_are_plain(page: Page, scene: Scene) -> None:
    """A build that could not fetch uPlot draws bare lines, and says what is missing."""
    page.call("Network.setBlockedURLs", urls=["*uPlot*"])
    page.open(scene.address)
    page.until(SHOWN)
    lines = page.ask("[...document.querySelectorAll('#plots polyline')].map((one) => one.points.length)")
    page.call("Network.setBlockedURLs", urls=[])
    assert len(texts(page, "#plots figure")) == 6
    assert min(lines) > 5
    assert any("lacks uPlot" in text for text in texts(page, "#plots p"))


def test_nothing_comes_from_elsewhere(page: Page, scene: Scene) -> None:
    """Every request goes to the daemon itself, and the browser has nothing to say against anything."""
    assert {urlsplit(url).netloc for url in page.requests} == {urlsplit(scene.address).netloc}
    assert page.complaints == []


def test_a_hostile_tenant_is_only_text(page: Page) -> None:
    """A name that is markup is shown letter by letter; no element and no request comes of it."""
    assert HOSTILE in page.ask(CELLS.format(0))
    assert page.ask("document.querySelectorAll('main img, main script').length") == 0


def test_rows_are_sorted_by_keyboard(page: Page) -> None:
    """Tab reaches the headings, Enter sorts by one, Enter again turns it round, and both are told to a reader."""
    page.ask("document.getElementById('filter').focus()")
    page.press("Tab", "Tab")
    assert page.ask(FOCUSED) == "tenant"
    page.press("Enter")
    state = "document.activeElement.closest('th').getAttribute('aria-sort')"
    up, names = page.ask(state), page.ask(CELLS.format(0))
    page.press("Enter")
    down, turned = page.ask(state), page.ask(CELLS.format(0))
    assert (up, down) == ("ascending", "descending")
    assert names == list(reversed(turned)) or set(names) == set(turned)
    assert [names[0], turned[-1]] == [min(names, key=str.casefold)] * 2
    page.press("Tab", "Tab", " ")
    assert page.ask(FOCUSED) == "req/s"
    rates = [float(text) for text in page.ask(CELLS.format(2))]
    assert rates == sorted(rates, reverse=True)


def test_rows_are_filtered_as_one_types(page: Page) -> None:
    """The filter finds a part of a tenant or route, whatever its case, and says how many it found."""
    page.ask("document.getElementById('filter').focus()")
    page.press(*"SUMM")
    assert set(page.ask(CELLS.format(1))) == {"/v1/summaries"}
    assert texts(page, "#who-note")[0].startswith(f"{len(page.ask(CELLS.format(1)))} of ")


def test_the_first_tab_leads_past_the_head(page: Page) -> None:
    """The first stop of the keyboard is a link to what matters."""
    page.press("Tab")
    assert page.ask(FOCUSED) == "Skip to what matters"
    page.press("Enter")
    assert page.ask("document.activeElement.id") == "main"


def test_the_stretch_of_time_is_chosen_by_keyboard(page: Page) -> None:
    """Arrows choose between 30 minutes, which suit a drift this young, 6 hours and a day."""
    page.ask("document.querySelector('#range input:checked').focus()")
    chosen = "document.querySelector('#range input:checked').value"
    young = page.ask(chosen)
    page.press("ArrowRight", "ArrowRight")
    assert (young, page.ask(chosen)) == ("1800", "86400")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_it_without_scrolling_sideways(page: Page, scheme: str) -> None:
    """Nothing is wider than a phone, in either colours; what is wide scrolls in a frame of its own."""
    page.size(360, 780, phone=True, scale=2.0)
    page.scheme(scheme)
    page.until("document.querySelector('.plot').clientWidth < 360")
    assert page.ask("document.documentElement.scrollWidth") == 360
    page.picture(OUTPUT / f"phone-{scheme}.png", whole=True)


CONTRAST = """
(() => {
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => {
    const [r, g, b] = rgb.map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const found = parts(getComputedStyle(at).backgroundColor);
      if (found.length === 3) return found;
    }
    return [255, 255, 255];
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (texts.nextNode()) {
    const one = texts.currentNode.parentElement;
    if (!texts.currentNode.textContent.trim() || !one.offsetParent || one.closest(".unseen, .skip")) continue;
    const style = getComputedStyle(one);
    const [a, b] = [light(parts(style.color).slice(0, 3)), light(ground(one))].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), texts.currentNode.textContent.slice(0, 40), parseFloat(style.fontSize)]);
  }
  return found;
})()
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(page: Page, scheme: str) -> None:
    """The contrast of each text with its ground is 4.5 at least (WCAG 2, AA), in both colours."""
    page.scheme(scheme)
    found = page.ask(CONTRAST)
    assert len(found) > 100
    assert [one for one in found if one[0] < 4.5] == []


def test_colours_are_chosen_and_kept(page: Page) -> None:
    """The button leads from what the system prefers to light and dark, and a reload keeps the choice."""
    ground = "getComputedStyle(document.body).backgroundColor"
    before = page.ask(ground)
    page.ask("document.getElementById('theme').click(); document.getElementById('theme').click()")
    dark = page.ask(ground)
    page.call("Page.reload")
    page.until(f"document.readyState === 'complete' && {SHOWN}")
    assert (page.ask(ground), dark != before) == (dark, True)
    page.ask("document.getElementById('theme').click()")
    assert page.ask(ground) == before


def test_the_page_keeps_itself_fresh_and_says_when_it_cannot(page: Page, scene: Scene) -> None:
    """A line that the gateway writes is counted on the page without a reload; a daemon that is gone is told of."""
    read = "document.querySelector('#sources td:nth-child(5)').textContent"
    before = int(page.ask(read).replace(",", ""))
    scene.log(['{"tenant": "late", "route": "/v1/x", "model": "chat-70b", "outcome": "ok", "status": 200}\n'])
    page.until(f"{read} === {json.dumps(f'{before + 1:,}')}")
    scene.stop()
    page.ask("document.dispatchEvent(new Event('visibilitychange'))")  # as when one comes back to the page
    page.until("document.documentElement.classList.contains('stale')")
    assert texts(page, "#age")[0].startswith("capwatch has not answered for ")
