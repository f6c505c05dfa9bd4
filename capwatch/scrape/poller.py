"""The loop that fetches what is due: one thread that decides and delivers, a few that wait for slow engines."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final

from capwatch.scrape.fetch import Failure, fetch
from capwatch.scrape.scraper import Scraper, Target, Told

TIMEOUT_S: Final = 5.0
"""An engine that needs longer for its page is as good as silent: its gauges would be of another moment."""
MOST_WAITING: Final = 32
"""Fetches at the same time; beyond that, fetches wait for the slow ones, each of them bounded by the timeout."""


_log = logging.getLogger(__name__)


class Poller:
    """Runs a `Scraper` until it is stopped."""

    def __init__(
        self,
        scraper: Scraper,
        deliver: Callable[[Sequence[Told]], None],
        clock: Callable[[], float],
        get: Callable[[str, float], str | Failure] = fetch,
    ) -> None:
        """A loop not yet running.

        Args:
            scraper: what is scraped; belongs to the loop from the start on.
            deliver: gets the news of one answer, never none, always from the loop's thread.
            clock: tells seconds since the epoch.
            get: fetches an address within some seconds; must not raise.
        """
        self._scraper = scraper
        self._deliver = deliver
        self._clock = clock
        self._get = get
        self._answers: SimpleQueue[tuple[Target, str | Failure] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="scrape", daemon=True)

    def start(self) -> None:
        """Begin; every target is fetched at once, then at its interval."""
        self._thread.start()

    def stop(self) -> None:
        """End, after at most the time-out of what is being fetched; nothing is delivered afterwards."""
        self._answers.put(None)
        self._thread.join()

    def _run(self) -> None:
        with ThreadPoolExecutor(MOST_WAITING, thread_name_prefix="scrape") as pool:
            while True:
                now = self._clock()
                for target in self._scraper.due(now):
                    pool.submit(self._ask, target)
                self._tell(self._scraper.expire(now))
                try:
                    answer = self._answers.get(timeout=self._scraper.pause(now))
                except Empty:
                    continue
                if answer is None:
                    pool.shutdown(cancel_futures=True)
                    return
                self._take(*answer)

    def _ask(self, target: Target) -> None:
        page: str | Failure = Failure("fetch failed")
        try:
            page = self._get(target.url, min(TIMEOUT_S, target.patience))
        finally:
            self._answers.put((target, page))

    def _take(self, target: Target, page: str | Failure) -> None:
        before = self._scraper.failures.get(target)
        self._tell(self._scraper.take(target, page, self._clock()))
        after = self._scraper.failures.get(target)
        if after and after != before:
            _log.warning("engine %s: cannot be scraped: %s", target.engine, after)
        elif before and not after:
            _log.info("engine %s: scraped again", target.engine)

    def _tell(self, news: Sequence[Told]) -> None:
        if news:
            self._deliver(news)
