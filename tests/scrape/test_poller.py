"""The loop: real fetches from servers on loopback, with a clock that the test sets."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from queue import SimpleQueue
from threading import Event

from capwatch.scrape.fetch import Failure
from capwatch.scrape.poller import Poller
from capwatch.scrape.scraper import Scraper, Target, Told

from .endpoint import answer, endpoint, page, saying

WAIT_S = 20.0  # until news that should come at once; a limit for a broken loop, not a pause


class Clock:
    """Each look at it is 0.05 s later."""

    def __init__(self) -> None:
        self._now = 1.8e9

    def __call__(self) -> float:
        self._now += 0.05
        return self._now


def test_pages_become_news_and_a_restart_is_seen() -> None:
    """Page after page of a server whose counters start anew once, until the loop is stopped."""
    counts = iter([100, 150, 20, *range(30, 10_000, 10)])

    def reply(_head: str, line: socket.socket, _over: Event) -> None:
        line.sendall(answer(page(tokens=next(counts))))

    news: SimpleQueue[Sequence[Told]] = SimpleQueue()
    with endpoint(reply) as url:
        poller = Poller(Scraper([Target(f"{url}/metrics", "chat", "e0", 0.1, 30.0)]), news.put, Clock())
        poller.start()
        found = [one for _ in range(4) for one in news.get(timeout=WAIT_S)]
        poller.stop()
    assert [(one.grown.get("output_tokens"), one.sample and one.sample.starts) for one in found] == [
        (None, None),
        (50, None),
        (20, 1),
        (10, None),
    ]


def test_a_hanging_engine_delays_no_other() -> None:
    """While one engine never answers, the others' pages come."""
    held = Event()

    def get(url: str, _timeout: float) -> str | Failure:
        if url == "hangs":
            held.wait(WAIT_S)
            return Failure("timeout")
        return page()

    news: SimpleQueue[Sequence[Told]] = SimpleQueue()
    targets = [Target("hangs", "chat", "e0", 0.1, 30.0), Target("answers", "chat", "e1", 0.1, 30.0)]
    poller = Poller(Scraper(targets), news.put, Clock(), get)
    poller.start()
    found = [one.engine for _ in range(3) for one in news.get(timeout=WAIT_S)]
    held.set()
    poller.stop()
    assert found == ["e1", "e1", "e1"]


def test_a_server_that_fails_is_withdrawn() -> None:
    """An engine that answers well once and then with errors becomes unknown after its patience."""
    answers = iter([answer(page())])

    def reply(_head: str, line: socket.socket, _over: Event) -> None:
        line.sendall(next(answers, answer("no", "500 Internal Server Error")))

    news: SimpleQueue[Sequence[Told]] = SimpleQueue()
    with endpoint(reply) as url:
        poller = Poller(Scraper([Target(url, "chat", "e0", 0.1, 0.5)]), news.put, Clock())
        poller.start()
        found = [one.state for _ in range(2) for one in news.get(timeout=WAIT_S)]
        poller.stop()
    assert found == ["busy", "unknown"]


def test_an_answer_is_given_back_even_by_a_broken_fetch() -> None:
    """A fetch that raises is a failed fetch; the target is asked again."""
    asked: SimpleQueue[str] = SimpleQueue()

    def get(url: str, _timeout: float) -> str | Failure:
        asked.put(url)
        raise ValueError(url)

    poller = Poller(Scraper([Target("x", "chat", "e0", 0.1, 30.0)]), lambda _: None, Clock(), get)
    poller.start()
    found = [asked.get(timeout=WAIT_S) for _ in range(2)]
    poller.stop()
    assert found == ["x", "x"]


def test_garbage_is_no_news() -> None:
    """A server that is no engine gives nothing, and the loop goes on to the next target."""
    news: SimpleQueue[Sequence[Told]] = SimpleQueue()
    with endpoint(saying(answer("<html>"))) as garbage, endpoint(saying(answer(page()))) as good:
        targets = [Target(garbage, "chat", "e0", 0.1, 30.0), Target(good, "chat", "e1", 0.1, 30.0)]
        poller = Poller(Scraper(targets), news.put, Clock())
        poller.start()
        found = [one.engine for _ in range(3) for one in news.get(timeout=WAIT_S)]
        poller.stop()
    assert found == ["e1", "e1", "e1"]
