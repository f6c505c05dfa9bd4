"""What the daemon tells of itself: the document behind the page and the API, from the durable snapshot."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

import numpy as np
from msgspec.structs import replace

from capwatch import __version__
from capwatch.config.rules import roles
from capwatch.config.schema import Config, Pool, Source
from capwatch.daemon.lately import Lately, present
from capwatch.daemon.now import pools
from capwatch.daemon.recent import recent
from capwatch.daemon.shown import Form, Shown
from capwatch.daemon.slots import still_open
from capwatch.daemon.spared import Spared
from capwatch.ledger import SOURCE, Table, Totals
from capwatch.load.tables import FLOW
from capwatch.meters.files import FILES, LOSSES, LOST
from capwatch.meters.sources import DROPS, LAST_EVENT, LINES
from capwatch.meters.watches import found_in
from capwatch.metrics import DROP_REASONS
from capwatch.minutes.told import lines
from capwatch.redact import redacted
from capwatch.sourcing import engines
from capwatch.web.findings import ahead, findings
from capwatch.web.now import History, Now, Recent
from capwatch.web.status import Bytes, Commit, Drifts, Lines, PoolStatus, SourceStatus, Status

NOW_S: Final = 1.0
"""So long what the page asks for stands, however many ask: making it holds up scrapes for a moment."""
RECENT_S: Final = 5.0
HISTORY_S: Final = 15.0
"""A minute is the finest that it tells."""


class Board:
    """Everything that `capwatch.web` shows."""

    def __init__(self, shown: Shown, config: Config) -> None:
        self.config = config
        self.files: Mapping[str, tuple[int, tuple[str, ...]]] = {}
        """By source: files followed, and problems, as reading last saw them."""
        self._shown = shown
        self._lately = Lately(config.state_dir)
        self._now = Spared(self._make_now, NOW_S)
        self._recent = Spared(self._make_recent, RECENT_S)
        self._history = Spared(self._make_history, HISTORY_S)

    def metrics(self, form: Form, *, compressed: bool) -> bytes:
        """The page of metrics."""
        return self._shown.metrics(form, compressed=compressed)

    def ready(self) -> bool:
        """Whether everything has been read that lay on disk at the start."""
        return self._shown.live.ready

    def drifts(self) -> Drifts:
        """See `Drifts`."""
        with self._shown.held() as totals:
            watches = lines(found_in(totals), totals.rows(FLOW)[0].tolist(), totals.names)
        return replace(self._shown.live.drifts, watches=watches)

    def now(self) -> Now:
        """See `Now`."""
        return self._now.value()

    def recent(self) -> Recent:
        """See `Recent`."""
        return self._recent.value()

    def history(self) -> History:
        """See `History`."""
        return self._history.value()

    def _make_now(self) -> Now:
        with self._shown.held() as totals:
            found = pools(self.config, totals)
            clock = totals.clock or None
        return Now(clock=clock, findings=findings(self.status(), self.drifts(), found), pools=found)

    def _make_recent(self) -> Recent:
        with self._shown.held() as totals:
            opened, clock = still_open(totals), totals.clock
        return recent(opened, clock)

    def _make_history(self) -> History:
        known = self.now().pools
        rooms = {pool.name: pool.kv_room for pool in known if pool.kv_room is not None}
        with self._shown.held() as totals:
            copied = present(totals, rooms)
        told = self._lately.history(copied)
        return replace(told, findings=ahead(known, told.pools))

    def status(self) -> Status:
        """See `Status`."""
        config, live = self.config, self._shown.live
        role = roles(config, engines())
        with self._shown.held() as totals:
            sources = [self._source(totals, source, role[source.name]) for source in config.sources]
            clock = totals.clock or None
        return Status(
            version=__version__,
            at=time.time(),
            started_at=live.started_at,
            ready=live.ready,
            clock=clock,
            commit=Commit(timestamp=live.commit_at or None, duration_s=live.commit_s, errors=live.commit_errors),
            sources=sources,
            pools=[_pool(pool) for pool in config.pools or (Pool("default", assumed=True),)],
        )

    def _source(self, totals: Totals, source: Source, role: str) -> SourceStatus:
        number = totals.names.find(SOURCE.name, source.name)
        files, problems = self.files.get(source.name, (0, ()))
        if number is None:
            return SourceStatus(
                name=source.name,
                format=source.format,
                role=role,
                up=False,
                files=0,
                lag_bytes=0,
                lines=Lines(),
                bytes=Bytes(),
            )
        read, counted, skipped = map(int, totals.row(LINES, number))
        numbers = dict(zip(FILES.columns, map(int, totals.row(FILES, number)), strict=True))
        last = float(totals.row(LAST_EVENT, number)[0])
        return SourceStatus(
            name=source.name,
            format=source.format,
            role=role,
            up=bool(numbers["up"]),
            files=files,
            lag_bytes=numbers["lag"],
            lines=Lines(
                read=read, counted=counted, skipped=skipped, dropped=_by_reason(totals, DROPS, number, DROP_REASONS)
            ),
            bytes=Bytes(
                read=numbers["read"], skipped=numbers["skipped"], lost=_by_reason(totals, LOST, number, LOSSES)
            ),
            last_event=last or None,
            rotations=numbers["rotations"],
            truncations=numbers["truncations"],
            problems=tuple(map(redacted, problems)),
        )


def _by_reason(totals: Totals, table: Table, source: int, reasons: tuple[str, ...]) -> dict[str, int]:
    keys = table.pack(source, np.arange(len(reasons)))
    return {reason: int(totals.row(table, int(key))[0]) for reason, key in zip(reasons, keys, strict=True)}


def _pool(pool: Pool) -> PoolStatus:
    return PoolStatus(
        name=pool.name,
        assumed=pool.assumed,
        prefill_tokens_per_second=pool.prefill_tokens_per_second,
        decode_tokens_per_second=pool.decode_tokens_per_second,
        replicas=float(pool.replicas) if isinstance(pool.replicas, int) else None,
    )
