"""Reader: one source in the daemon, its follower and a decoder for each lineage of its files."""

from __future__ import annotations

import logging
import math
import resource
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from capwatch.config.schema import Config, Source
from capwatch.daemon.package import DecoderState, SourceState
from capwatch.daemon.reporter import Reporter
from capwatch.dialect import Decoded, Decoder
from capwatch.keep.codec import DamagedError
from capwatch.keep.seal import opened, seal
from capwatch.origin import Origin
from capwatch.sourcing import decoder_for, engine_of
from capwatch.tail.blocks import Block
from capwatch.tail.follow import Follower, Status
from capwatch.tail.position import Saved
from capwatch.tail.settings import Settings

OPEN_LINES: Final = 4
"""Open records of all files of a source hold at most so many times the longest line; of more the largest are given up.
One file has at most twice the line (`capwatch.dialect.parts`), but a source may have thousands of files."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Reader:
    """One source's."""

    source: Source
    counts: bool
    follower: Follower
    line_bytes: int
    reporter: Reporter
    key: bytes
    """Seals what decoders remember, see `capwatch.keep.seal`."""
    decoders: dict[str, Decoder] = field(default_factory=dict)
    remembered: DecoderState = field(default_factory=dict)
    """What decoders remembered before a restart, sealed, until they are needed."""
    touched: set[str] = field(default_factory=set)
    """Lineages decoded, or gone, since the last freeze."""
    frozen: tuple[Saved, Status] | None = None
    """What the follower told at the last freeze."""

    @classmethod
    def of(
        cls, config: Config, source: Source, states: Mapping[str, SourceState], *, counts: bool, key: bytes
    ) -> Reader:
        """The reader of a source, from where ``states`` says that it stands."""
        state = states.get(source.name, SourceState())
        open_files = max(16, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2 // max(1, len(config.sources)))
        settings = Settings(
            name=source.name,
            globs=source.path,
            start=source.start,
            line_bytes=config.limits.line_bytes,
            max_open=min(open_files, Settings.max_open),
        )
        return cls(
            source,
            counts,
            Follower(settings, state.saved),
            config.limits.line_bytes,
            Reporter(source.name, source.format),
            key,
            remembered=dict(state.decoders),
        )

    def stands(self) -> tuple[Saved, Status]:
        """Where the follower stands."""
        return self.follower.saved(), self.follower.status()

    def origin(self, lineage: str) -> Origin:
        """Where the lines of a lineage come from."""
        return Origin(self.source.name, self.source.pool, engine_of(self.source, lineage), self.counts)

    def decode(self, data: bytes, blocks: list[Block]) -> Decoded:
        """Decode the joined lines of blocks of one lineage."""
        last = blocks[-1]
        self.touched.add(last.lineage)
        decoded = self._decoder(last.lineage).decode(data, last.mtime)
        if last.unterminated and decoded.dropped["malformed"]:
            decoded.dropped["malformed"] -= 1
            decoded.dropped["partial"] += 1
        too_long = sum(block.too_long for block in blocks)
        decoded.dropped["too_long"] += too_long
        decoded.read += too_long
        self.reporter.drop(decoded.dropped)
        return decoded

    def expire(self, now: float) -> Iterator[tuple[Origin, Decoded]]:
        """Give up records whose last part never came by ``now`` (s, monotonic); what comes of them."""
        for lineage in list(self.remembered):  # it may have held a part since before a restart, and get no more lines
            self._decoder(lineage)
        for lineage, decoder in self.decoders.items():
            if decoder.holds:
                yield from self._give_up(lineage, now)

    def make_room(self) -> Iterator[tuple[Origin, Decoded]]:
        """Give up the largest open records where all together pass the bound; what comes of them."""
        if self.source.wrapper == "none":
            return
        over = sum(decoder.held for decoder in self.decoders.values()) - OPEN_LINES * self.line_bytes
        while over > 0:
            largest = max(self.decoders, key=lambda lineage: self.decoders[lineage].held)
            over -= self.decoders[largest].held
            yield from self._give_up(largest, math.inf)

    def let_go(self) -> Iterator[tuple[Origin, Decoded]]:
        """Forget the decoders of lineages without any file left, giving up what is open; what comes of that."""
        for lineage in (self.decoders.keys() | self.remembered.keys()) - self.follower.lineages():
            self._decoder(lineage)
            yield from self._give_up(lineage, math.inf)
            del self.decoders[lineage]
            self.touched.add(lineage)

    def changes(self) -> DecoderState:
        """What the decoders of lineages touched since the last call remember, sealed; None for those that are gone."""
        touched, self.touched = self.touched, set()
        return {one: self._sealed(self.decoders[one]) if one in self.decoders else None for one in touched}

    def state(self) -> SourceState:
        """Where it stands, for another reader to go on."""
        decoders = {lineage: self._sealed(decoder) for lineage, decoder in self.decoders.items()}
        return SourceState(self.follower.saved(), self.remembered | decoders)

    def _give_up(self, lineage: str, now: float) -> Iterator[tuple[Origin, Decoded]]:
        given_up = self.decoders[lineage].expire(now)
        if given_up.read:
            self.touched.add(lineage)
            self.reporter.drop(given_up.dropped)
            yield self.origin(lineage), given_up

    def _decoder(self, lineage: str) -> Decoder:
        decoder = self.decoders.get(lineage)
        if decoder is None:
            decoder = self.decoders[lineage] = decoder_for(self.source, self.line_bytes)
            if lineage in self.remembered:
                try:
                    decoder.load(opened(self.remembered.pop(lineage), self.key))
                except DamagedError:
                    _log.warning("source %s: open records were sealed with another key and are lost", self.source.name)
        return decoder

    def _sealed(self, decoder: Decoder) -> bytes:
        return seal(decoder.save(), self.key)
