"""The cards of this host: what each GPU last told, and how much of what it counts is booked.

A card counts since its driver was loaded. Booked is by how much that grew, also while nobody looked; after a number
that fell, the number itself. So what is shown never falls, however often driver or daemon start anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from capwatch.config.schema import Pool
from capwatch.ledger import Gathering
from capwatch.meters import gpu as meter
from capwatch.metrics import ECC_KINDS
from capwatch.record import GpuReading, GpuSample

FORGET_S: Final = 86_400.0
"""A card that has not answered for a day was taken out: until then it is one that should be there."""

Key = tuple[str, str]
"""Index and UUID."""
_COUNTERS: Final = ("energy", *(f"ecc_{kind}" for kind in ECC_KINDS))


class _Card(msgspec.Struct, array_like=True):
    """One card, as plain values."""

    counts: dict[str, float] = {}
    """What it last counted."""
    info: list[str] = []
    """Its name and driver, as they are shown."""
    pools: list[str] = []
    """Pools that it serves, as they are shown."""
    heard_at: float = 0.0
    """s, epoch."""


class Cards:
    """All cards that have answered. Plain values: `save` and `load`, `news` and `absorb`."""

    def __init__(self, into: Gathering, pools: Sequence[Pool]) -> None:
        """Book into a gathering; ``pools`` may name the cards that serve them."""
        self._into = into
        self._pools = pools
        self._cards: dict[Key, _Card] = {}
        self._changed: set[Key] = set()

    def hear(self, reading: GpuReading | None, now: float) -> None:
        """Take in a reading of ``now`` (s, epoch); None where the library does not answer, or is not to be asked."""
        told = {(card.gpu, card.uuid): card for card in reading.cards} if reading else {}
        meter.book_library(self._into, up=reading is not None)
        for key, sample in told.items():
            self._take(key, sample, now)
        for key in [*self._cards.keys() - told.keys()]:
            self._lose(key, now)
        for gpu, uuid, xid in reading.xids if reading else ():
            meter.book_xid(self._into, (gpu, uuid), xid)

    def _take(self, key: Key, sample: GpuSample, now: float) -> None:
        card = self._cards.setdefault(key, _Card())
        card.heard_at = now
        self._changed.add(key)
        meter.book_up(self._into, key, 1.0)
        meter.book_levels(self._into, key, sample)
        self._show(key, card, [sample.name or "unknown", sample.driver or "unknown"], self._serves(sample))
        for name in _COUNTERS:
            count = getattr(sample, name)
            if count is not None:
                before, card.counts[name] = card.counts.get(name, 0.0), count
                self._grow(key, name, count - before if count >= before else count)

    def _grow(self, key: Key, name: str, by: float) -> None:
        if name == "energy":
            meter.book_energy(self._into, key, by)
        else:
            meter.book_ecc(self._into, key, name.removeprefix("ecc_"), by)

    def _lose(self, key: Key, now: float) -> None:
        """A card that does not answer: its gauges go at once, the word that it is down after a day."""
        card = self._cards[key]
        meter.book_levels(self._into, key, None)
        self._show(key, card, [], [])
        gone = now - card.heard_at > FORGET_S
        meter.book_up(self._into, key, float("nan") if gone else 0.0)

    def _show(self, key: Key, card: _Card, info: list[str], pools: list[str]) -> None:
        """Show a card under its name and its pools, and no longer under what these were."""
        if card.info != info:
            for there, texts in ((False, card.info), (True, info)):
                if texts:
                    meter.book_info(self._into, key, texts, there=there)
        for pool in set(card.pools) ^ set(pools):
            meter.book_pool(self._into, key, pool, there=pool in pools)
        if (card.info, card.pools) != (info, pools):
            card.info, card.pools = info, pools
            self._changed.add(key)

    def _serves(self, sample: GpuSample) -> list[str]:
        """Pools that name a card by its index or UUID; those that name a card have its MIG instances too."""
        whole = sample.gpu.partition(":")[0]
        return [pool.name for pool in self._pools if {sample.gpu, sample.uuid, whole} & set(pool.gpus)]

    def inherit(self, other: Cards) -> None:
        """Go on with the cards of another pipeline of the same names."""
        self._cards, self._changed = other._cards, other._changed

    def news(self) -> list[object]:
        """What changed since the last call, as plain builtins."""
        changed, self._changed = self._changed, set()
        return [[*key, msgspec.to_builtins(self._cards[key])] for key in sorted(changed)]

    def absorb(self, news: Iterable[Any]) -> None:
        """Remember what `news` gave elsewhere."""
        for gpu, uuid, card in news:
            self._cards[gpu, uuid] = msgspec.convert(card, _Card)

    def save(self) -> list[object]:
        """Everything, as plain builtins."""
        return [[*key, msgspec.to_builtins(card)] for key, card in self._cards.items()]

    def load(self, saved: Iterable[Any]) -> None:
        """Take over what `save` gave."""
        self.absorb(saved)
