"""One commit: what reading hands to committing, what a delta of the state holds, and the way back after a restart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, fields
from typing import Any

import msgspec

from capwatch.ledger import Delta
from capwatch.record import Note
from capwatch.tail.position import Position, Saved
from capwatch.web.status import Drifts

DecoderState = dict[str, object]
"""By lineage of files: what the decoder of their lines remembers, sealed; in changes None where the files are gone."""


@dataclass(slots=True)
class SourceState:
    """Where reading of one source stands: positions in its files, and what its decoders remember."""

    saved: Saved | None = None
    decoders: DecoderState = field(default_factory=dict)


@dataclass(slots=True)
class Package:
    """Everything that one commit makes durable; it is about exactly the lines that were read for it."""

    delta: Delta
    sources: dict[str, SourceState]
    """By name of the source; decoders only where they changed."""
    news: Mapping[str, Any]
    """What the pipeline remembers of single requests since the package before."""
    pipeline: Mapping[str, object] | None = None
    """All that the pipeline remembers, when a checkpoint is wanted."""
    drifts: Drifts = field(default_factory=Drifts)
    """What the API tells of drifts once this is durable."""
    events: Sequence[Mapping[str, Any]] = ()
    """Drifts that were raised or have gone since the package before; told once this is durable."""
    notes: Sequence[Note] = ()
    """Deploy notes that were read since the package before; the history keeps them first."""
    done: Sequence[Future[None]] = ()
    """Who waits for this to be durable."""
    caught_up: bool = False
    """Whether there was nothing left to read when it was frozen."""


class Ledger:
    """What the state holds beside the totals, as the last commit left it, and what changed since the one before."""

    def __init__(self) -> None:
        self.sources: dict[str, SourceState] = {}

    def changes(self, package: Package) -> dict[str, object]:
        """A package as the value of a delta: of positions and decoders only what changed."""
        changed = {name: self._change(name, state) for name, state in package.sources.items()}
        return {"ledger": _plain(package.delta), "sources": changed, "news": package.news}

    def _change(self, name: str, state: SourceState) -> dict[str, object]:
        before = self.sources.get(name, SourceState()).saved
        positions = state.saved.positions if state.saved else {}
        known = before.positions if before else {}
        # A position that did not change is the same object as before.
        return {
            "positions": {number: one for number, one in positions.items() if known.get(number) is not one},
            "gone": [number for number in known if number not in positions],
            "counters": msgspec.structs.replace(state.saved, positions={}) if state.saved else None,
            "decoders": state.decoders,
        }

    def take(self, package: Package) -> None:
        """A package has been made durable."""
        for name, state in package.sources.items():
            kept = self.sources.setdefault(name, SourceState())
            kept.saved = state.saved or kept.saved
            kept.decoders = _present(kept.decoders | state.decoders)

    def absorb(self, sources: Mapping[str, Any]) -> None:
        """Take over the part `sources` of a delta that was read back."""
        for name, change in sources.items():
            state = self.sources.setdefault(name, SourceState())
            state.decoders = _present(state.decoders | change["decoders"])
            if change["counters"] is None:
                continue
            positions = dict(state.saved.positions) if state.saved else {}
            positions |= {number: msgspec.convert(one, Position) for number, one in change["positions"].items()}
            for number in change["gone"]:
                positions.pop(number, None)
            state.saved = msgspec.structs.replace(msgspec.convert(change["counters"], Saved), positions=positions)

    def save(self) -> dict[str, object]:
        """Chunks of a checkpoint."""
        return {f"source/{name}": [state.saved, state.decoders] for name, state in self.sources.items()}

    def load(self, chunks: Mapping[str, Any]) -> None:
        """Take over what `save` gave."""
        for name, chunk in chunks.items():
            kind, _, source = name.partition("/")
            if kind == "source":
                saved = None if chunk[0] is None else msgspec.convert(chunk[0], Saved)
                self.sources[source] = SourceState(saved, chunk[1])


def _present(decoders: DecoderState) -> DecoderState:
    return {lineage: one for lineage, one in decoders.items() if one is not None}


def _plain(delta: Delta) -> dict[str, object]:
    return {one.name: getattr(delta, one.name) for one in fields(delta)}


def delta_of(value: Mapping[str, Any]) -> Delta:
    """The ledger's delta in the value of a delta that was read back; parts of other versions are left."""
    known = {one.name for one in fields(Delta)}
    delta = Delta(**{name: part for name, part in value["ledger"].items() if name in known})
    delta.retired = [(tenant, route) for tenant, route in delta.retired]
    delta.names = [(axis, number, text) for axis, number, text in delta.names]
    return delta
