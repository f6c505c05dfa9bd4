"""Start: from what the state directory holds to a pipeline and totals that go on exactly where the last one stopped."""

from __future__ import annotations

import logging
import math
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from capwatch.config.schema import Config
from capwatch.daemon.package import Ledger, delta_of
from capwatch.daemon.upgrade import layout_written
from capwatch.drift.marks import KEPT_S
from capwatch.errors import StateError
from capwatch.keep.codec import DamagedError
from capwatch.keep.history import History
from capwatch.keep.secret import secret
from capwatch.keep.state import VERSION, State, set_aside
from capwatch.ledger import Totals
from capwatch.ledger.layout import ForeignError, Layout, Translation
from capwatch.meters import shelf
from capwatch.meters.watches import found_in
from capwatch.pipeline import Pipeline, empty

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Begun:
    """Everything that a daemon starts from."""

    state: State
    ledger: Ledger
    totals: Totals
    pipeline: Pipeline

    def chunks(self) -> dict[str, object]:
        """All of it, for a checkpoint."""
        chunks = {f"totals/{name}": part for name, part in self.totals.save().items()}
        chunks |= {f"pipeline/{name}": part for name, part in self.pipeline.save().items()}
        return chunks | self.ledger.save()


def begin(config: Config, *, reset: bool) -> Begun:
    """Open the state and rebuild what it holds; one that is damaged, or unwanted, is moved aside.

    Raises:
        StateError: it is of a newer version, or of an older one that cannot be taken over.
        sqlite3.Error: it cannot be opened now.
        OSError: the directory cannot be used.
    """
    reason = ""
    if reset:
        reason = "requested"
        _aside(config.state_dir, "reset")
    key = secret(config.state_dir)
    try:
        begun = _rebuilt(config, key)
    except DamagedError as error:
        reason = "corrupt"
        _log.error("the state is damaged (%s); moved aside, beginning anew", error)
        _aside(config.state_dir, "corrupt")
        begun = _rebuilt(config, key)
    if reason:
        begun.pipeline.count_reset(reason)
    return begun


def opened_history(config: Config) -> History:
    """The history, open for writing; one that is damaged is moved aside, so that there is one in any case.

    Raises:
        StateError: it is of a newer version.
        sqlite3.Error: it cannot be opened now.
        OSError: the directory cannot be used.
    """
    try:
        return History(config.state_dir, config.history.max_bytes)
    except DamagedError as error:
        return fresh_history(config, error)


def recall_notes(history: History, pipeline: Pipeline) -> None:
    """Let change points be told with the deploy notes of the last days, which only the history keeps.

    Raises:
        sqlite3.Error: it cannot be read now.
    """
    with suppress(DamagedError):  # it is begun anew when it is written
        pipeline.drifts.marks.recall(history.annotations(pipeline.clock - KEPT_S, math.inf))


def fresh_history(config: Config, error: DamagedError) -> History:
    """A new history in place of a damaged one, which must be closed. Raises as `opened_history` does."""
    _log.error("the history is damaged (%s); moved aside, beginning anew", error)
    _aside(config.state_dir, "corrupt", "history.db")
    return History(config.state_dir, config.history.max_bytes)


def _rebuilt(config: Config, key: bytes) -> Begun:
    state = State(config.state_dir)
    try:
        return _replayed(config, key, state)
    except BaseException:
        state.close()
        raise


def _replayed(config: Config, key: bytes, state: State) -> Begun:
    try:
        begun, written = _understood(config, key, state)
    except ForeignError as error:
        raise StateError(_refusal(state, str(error))) from None
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        # Checksums were right, so another program wrote it: of no use, but worth keeping.
        if state.version != VERSION:
            raise StateError(_refusal(state, type(error).__name__)) from None
        raise DamagedError(f"not understood: {type(error).__name__}") from error
    if state.version != VERSION or written != begun.totals.layout:
        # At once, since what is appended from now on is in the present layout; one transaction, so it is whole or not.
        state.checkpoint(state.number, begun.chunks())
    return begun


def _understood(config: Config, key: bytes, state: State) -> tuple[Begun, Layout | None]:
    """What a state holds, and the layout that it tells, if it does."""
    ledger = Ledger()
    totals = empty(shelf(config))
    chunks = state.chunks()
    kinds: dict[str, dict[str, Any]] = {"totals": {}, "pipeline": {}}
    for name, chunk in chunks.items():
        kind, _, rest = name.partition("/")
        kinds.setdefault(kind, {})[rest] = chunk
    ledger.load(chunks)
    later = []
    for _, value in state.deltas():
        ledger.absorb(value["sources"])
        later.append((delta_of(value), value["news"]))
    parts = kinds["totals"]
    translation = Translation(layout_written(parts, [delta for delta, _ in later], totals.layout), totals.layout)
    later = [(translation.delta(delta), news) for delta, news in later]
    if parts:
        totals.load(translation.parts(parts))
    for delta, _ in later:
        totals.apply(delta)
    found_in(totals).fresh()  # they were told when those deltas were committed
    pipeline = Pipeline(config, totals.names.copy(), secret=key)
    if kinds["pipeline"]:
        pipeline.load(kinds["pipeline"])
    for delta, news in later:
        pipeline.absorb(delta, news)
    pipeline.recall(totals)
    return Begun(state, ledger, totals, pipeline), parts.get("layout")


def _refusal(state: State, why: str) -> str:
    return (
        f"{state.path}: written by another capwatch in a layout that this one cannot take over ({why}); "
        "go back to that one, or begin anew with --state.reset"
    )


def _aside(folder: str, reason: str, name: str = "capwatch.db") -> None:
    for path in set_aside(folder, reason, time.time(), name):
        _log.warning("kept the old file as %s", path)
