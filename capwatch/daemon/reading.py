"""Reading: follows the files of all sources, decodes what they gained, and freezes it for the committer."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue
from typing import Final

from capwatch.config.rules import DEPLOYS, all_sources, roles
from capwatch.config.schema import Config
from capwatch.daemon.gpus import GpuWatch
from capwatch.daemon.package import Package, SourceState
from capwatch.daemon.reader import Reader
from capwatch.pipeline import Pipeline
from capwatch.scrape.poller import Poller
from capwatch.scrape.scraper import Scraper, Target, Told
from capwatch.sourcing import engines
from capwatch.tail.blocks import Block
from capwatch.tail.wake import Touched
from capwatch.web.status import Drifts

GATHER_S: Final = 0.05
"""Lines wait so long for others at most: an array pass costs the same for one line as for a hundred."""
GATHER_BYTES: Final = 4 << 20
"""Bytes gathered at most; in a backlog they are there at once."""
LONGEST_WAIT_S: Final = 0.1
"""Between two looks at the clock, when nothing moves."""


class Reading:
    """All sources and the pipeline they feed. One thread's."""

    def __init__(
        self,
        config: Config,
        pipeline: Pipeline,
        states: Mapping[str, SourceState],
        clock: Callable[[], float] = time.time,
        gpus: GpuWatch | None = None,
    ) -> None:
        """Begin where ``states`` stand; ``clock`` is the wall clock (s, epoch), ``gpus`` what is told of the cards."""
        self.pipeline = pipeline
        self.config = config
        self._clock = clock
        role = roles(config, engines())
        self._pending: list[tuple[Reader, Block]] = []
        self._pending_bytes = 0
        self._pending_since = 0.0
        sources = all_sources(config)
        configured = {one.name for one in sources}
        # A source that was taken out may come back: without its positions it would be counted again.
        self._others = {name: state for name, state in states.items() if name not in configured}
        self._withdrawn = False
        """Whether their gauges have been taken from the page."""
        self.readers = [
            Reader.of(config, one, states, counts=role.get(one.name) == "count", key=pipeline.secret) for one in sources
        ]
        self._told: SimpleQueue[Sequence[Told]] = SimpleQueue()
        targets = [*map(Target.of, config.engines)]
        pipeline.engines.expect((target.pool, target.engine) for target in targets)
        self._poller = Poller(Scraper(targets), self._told.put, clock) if targets else None
        self._gpus = gpus
        if gpus is not None:
            gpus.want(config.gpu.nvml)
        self._heard = False
        """Whether engines or cards have told anything since the last freeze."""
        if self._poller is not None:
            self._poller.start()

    def poll(self, touched: Touched, go_on: Callable[[], bool]) -> None:
        """One look at all sources; decodes what has waited long enough.

        ``go_on`` is called after every block: it may freeze what there is, and says whether to read more.
        """
        for reader in self.readers:
            for block in reader.follower.poll(time.monotonic(), touched):
                self._gather(reader, block)
                if not go_on():
                    return
            reader.reporter.tell(reader.follower.status(), time.monotonic())
        self._hear()
        if self._pending and time.monotonic() - self._pending_since >= GATHER_S:
            self.flush()

    def flush(self) -> None:
        """Decode everything gathered, and take it."""
        # What only adds to requests comes first: a request is joined with what is known when it is counted.
        pending, self._pending, self._pending_bytes = sorted(self._pending, key=lambda one: one[0].counts), [], 0
        begin = 0
        for end in range(1, len(pending) + 1):
            if end == len(pending) or not _joins(pending[begin], pending[end - 1], pending[end]):
                self._take(pending[begin][0], [block for _, block in pending[begin:end]])
                begin = end
        for reader in self.readers if pending else ():
            for origin, given_up in reader.make_room():
                self.pipeline.take(origin, given_up, self._clock())

    def wait(self) -> float:
        """How long (s) nothing has to be done."""
        now = time.monotonic()
        due = min((reader.follower.due() for reader in self.readers), default=now + LONGEST_WAIT_S)
        if self._pending:
            due = min(due, self._pending_since + GATHER_S)
        return min(max(due - now, 0.0), LONGEST_WAIT_S)

    def freeze(self, *, checkpoint: bool) -> Package:
        """Everything read since the last call, ready for a commit; with all the pipeline remembers where asked."""
        self.flush()
        self._heard = False
        self._expire(gone=checkpoint)
        self._withdraw()
        if self.caught_up():  # in a backlog only records move the clock: engines tell of now, and would make them late
            self.pipeline.tick(self._clock())
        sources = {}
        for reader in self.readers:
            reader.frozen = saved, status = reader.stands()
            up = status.up or (reader.source.name == DEPLOYS and not status.problems)  # where nothing was noted yet
            numbers = (
                *(status.bytes_read, status.bytes_skipped, status.lag_bytes),
                *(status.rotations, status.truncations, float(up)),
            )
            self.pipeline.book_files(reader.source.name, numbers, status.bytes_lost)
            sources[reader.source.name] = SourceState(saved, reader.changes())
        delta = self.pipeline.freeze()
        watching = self.pipeline.drifts
        return Package(
            delta,
            sources,
            self.pipeline.news(),
            self.pipeline.save() if checkpoint else None,
            Drifts(active=watching.active(), events=list(watching.events)),
            watching.fresh(),
            notes=watching.marks.fresh(),
        )

    def has_news(self) -> bool:
        """Whether anything has happened since the last freeze but that time went by."""
        moved = any(reader.frozen != reader.stands() for reader in self.readers)
        return moved or self._heard or bool(self._pending) or self.pipeline.pending > 0

    def caught_up(self) -> bool:
        """Whether every source has been read to its end."""
        return not self._pending and all(reader.follower.status().caught_up for reader in self.readers)

    def directories(self) -> set[str]:
        """What to watch for changes."""
        return set().union(*(reader.follower.directories() for reader in self.readers))

    def files(self) -> dict[str, tuple[int, tuple[str, ...]]]:
        """By source: files followed, and what is wrong with any of them."""
        status = {reader.source.name: reader.follower.status() for reader in self.readers}
        return {name: (one.files, one.problems) for name, one in status.items()}

    def states(self) -> dict[str, SourceState]:
        """Where all sources stand, for another reading to go on."""
        return self._others | {reader.source.name: reader.state() for reader in self.readers}

    def close(self) -> None:
        """Give all files back, and ask no engine any more."""
        if self._poller is not None:
            self._poller.stop()
        for reader in self.readers:
            reader.follower.close()

    def _hear(self) -> None:
        """Take in what the engines' pages and the cards told."""
        for reading in self._gpus.news() if self._gpus else ():
            self._heard = True
            self.pipeline.cards.hear(reading, self._clock())
        while not self._told.empty():
            self._heard = True
            for told in self._told.get():
                self.pipeline.engines.hear(
                    told.pool, told.engine, told.sample, patience=math.inf, state=told.state, grown=told.grown
                )

    def _gather(self, reader: Reader, block: Block) -> None:
        if not self._pending:
            self._pending_since = time.monotonic()
        self._pending.append((reader, block))
        self._pending_bytes += len(block.data)
        if self._pending_bytes >= GATHER_BYTES:
            self.flush()

    def _take(self, reader: Reader, blocks: list[Block]) -> None:
        data = b"".join(block.data for block in blocks)
        decoded = reader.decode(data, blocks)
        self.pipeline.take(reader.origin(blocks[-1].lineage), decoded, self._clock())
        for block in blocks:
            reader.follower.taken(block)

    def _withdraw(self) -> None:
        """Sources that are not configured (any more) are neither up nor behind; what they counted stays."""
        for name, state in self._others.items() if not self._withdrawn else ():
            if state.saved is not None:
                one, nothing = state.saved, math.nan
                numbers = (one.bytes_read, one.bytes_skipped, nothing, one.rotations, one.truncations, nothing)
                self.pipeline.book_files(name, numbers, one.bytes_lost)
        self._withdrawn = True

    def _expire(self, *, gone: bool) -> None:
        """Give up records whose last part never came; where ``gone``, also the decoders of files that are gone."""
        for reader in self.readers:
            for origin, given_up in [*reader.expire(time.monotonic()), *(reader.let_go() if gone else ())]:
                self.pipeline.take(origin, given_up, self._clock())


def _joins(first: tuple[Reader, Block], last: tuple[Reader, Block], following: tuple[Reader, Block]) -> bool:
    """Whether a block is decoded together with those before it: the same lines go on, and none is cut short."""
    same = following[0] is first[0] and following[1].lineage == first[1].lineage
    return same and not last[1].unterminated and not following[1].unterminated
