"""The duplicate window: which request ids were seen in the last hour of event time.

The rule: of the rows of one source that share a key (`Batch.dedupe_key`), the first counts, and those after it are
duplicates for as long as the window is since that first one, by the event clock that each row meets. So it makes no
difference how rows come in batches: a replay finds the duplicates that the daemon found. A row that is late by its own
time is judged like its neighbours. Ids are kept as 64-bit hashes: with half a million remembered, a chance hit comes
once in 10^13 requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from xxhash import xxh3_64_intdigest

from capwatch.record import MISSING, Bools, Floats

MOST: Final = 500_000
"""Ids remembered at most (4 MB): an hour at 139 requests/s; beyond that the window is shorter, oldest out first."""
SHORTEST_S: Final = 0.001
"""Of a segment."""
SEGMENTS: Final = 12
"""The window is kept in this many parts that expire as a whole, so it is up to a twelfth longer than asked."""

_NO_ID: Final = MISSING | {None}

Hashes = np.ndarray[tuple[int], np.dtype[np.uint64]]


class Seen:
    """Ids by segment of event time; segments are sorted arrays and never change once the next one has begun."""

    def __init__(self, window_s: float, hashed: Callable[[str], int] | None = None) -> None:
        """A window of this length.

        ``hashed`` makes a number of an id: by default one that is the same in every process; where nothing is saved,
        Python's own `hash` is much cheaper.
        """
        self._span = max(window_s / SEGMENTS, SHORTEST_S) if window_s else 0.0
        self._digest = hashed or digest
        self._lasting = hashed is None
        self._segments: dict[int, Hashes] = {}
        self._news: list[tuple[int, Hashes]] = []

    def repeats(self, source: str, ids: Sequence[str | None], clocks: Floats) -> Bools:
        """Which of these ids were seen before, in the window or earlier in this sequence; remembers them all.

        Ids are told apart by source; an absent id, and every text that stands for one, is never a repeat. ``clocks``
        has the event clock (s, epoch) that each meets; it never falls.
        """
        repeated = np.zeros(len(ids), np.bool_)
        told = ids if _NO_ID.isdisjoint(ids) else [one for one in ids if one not in _NO_ID]
        if self._span <= 0 or not told:
            return repeated
        rows = slice(None) if told is ids else np.array([one not in _NO_ID for one in ids])
        hashes = np.array(list(map(self._digest, told)), np.int64).view(np.uint64)  # type: ignore[arg-type]
        hashes ^= np.uint64(xxh3_64_intdigest(source.encode()))
        segments = (clocks[rows] // self._span).astype(np.int64)
        edges = [0, *(np.flatnonzero(np.diff(segments)) + 1).tolist(), len(segments)]
        repeated[rows] = np.concatenate(
            [self._repeats(hashes[begin:end], int(segments[begin])) for begin, end in pairwise(edges)]
        )
        return repeated

    def _repeats(self, hashes: Hashes, now: int) -> Bools:
        """The same of rows that meet the clock in one segment, the one of this number."""
        self._expire(now)
        ordered = np.sort(hashes)
        known = self._known(ordered)
        if not known.any() and (ordered[1:] != ordered[:-1]).all():
            self._remember(ordered, now)
            return np.zeros(len(hashes), np.bool_)
        _, first = np.unique(hashes, return_index=True)
        again = np.ones(len(hashes), np.bool_)
        again[first] = False
        again |= np.isin(hashes, ordered[known])
        self._remember(np.unique(ordered[~known]), now)
        return again

    def _known(self, ordered: Hashes) -> Bools:
        known = np.zeros(len(ordered), np.bool_)
        for segment in self._segments.values():
            place = np.searchsorted(segment, ordered)
            place[place == len(segment)] = 0
            known |= segment[place] == ordered
        return known

    def _remember(self, fresh: Hashes, now: int) -> None:
        if not len(fresh):
            return
        if self._lasting:
            self._news.append((now, fresh))
        # Both parts are sorted, and a stable sort merges sorted runs.
        self._segments[now] = np.sort(np.concatenate([self._segments.get(now, fresh[:0]), fresh]), kind="stable")
        room = MOST
        for number in sorted(self._segments, reverse=True):
            room -= len(self._segments[number])
            if room < 0 and number != now:
                del self._segments[number]

    def _expire(self, now: int) -> None:
        """Forget what is older than the window, and what was numbered by another length of it."""
        self._segments = {n: segment for n, segment in self._segments.items() if now - SEGMENTS <= n <= now}

    def news(self) -> list[tuple[int, bytes]]:
        """Ids remembered since the last call, as bytes by segment."""
        news, self._news = self._news, []
        return [(number, fresh.tobytes()) for number, fresh in news]

    def inherit(self, other: Seen) -> None:
        """Take over from another window what it remembered since its last `news`."""
        self._news = [*other._news, *self._news]

    def absorb(self, news: Iterable[tuple[int, bytes]]) -> None:
        """Remember what `news` gave elsewhere."""
        for number, data in news:
            self._remember(np.frombuffer(data, np.uint64), number)
        self._news = []

    def save(self) -> list[tuple[int, bytes]]:
        """Segments by number, as bytes; closed ones stay the same between saves."""
        return [(number, segment.tobytes()) for number, segment in self._segments.items()]

    def load(self, saved: Iterable[tuple[int, bytes]]) -> None:
        """Remember again what `save` gave."""
        self._segments = {number: np.frombuffer(data, np.uint64) for number, data in saved}


def digest(one: str) -> int:
    """A signed 64-bit hash of an id, the same in every process."""
    return xxh3_64_intdigest(one.encode("utf-8", "replace")) - (1 << 63)
