"""The totals: what all deltas add up to; what exporters show, a checkpoint saves and a restart rebuilds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from capwatch.ledger.delta import Delta
from capwatch.ledger.layout import Layout, layout_of
from capwatch.ledger.names import Names
from capwatch.ledger.parting import of_names, of_pairs, retired
from capwatch.ledger.sums import NO_KEYS, Closed, Follower, Sums
from capwatch.ledger.table import RETIRED, Sketch, Table
from capwatch.record import Floats, Ints
from capwatch.sketch import SLICE, Cells, Window, gather, series_of

_NO_CELLS = Cells()
"""Of slots without a sketch, of which a backlog closes hundreds of thousands at once. Nothing is ever added."""


class Totals:
    """All tables and sketches of the meters, with the clock and the names that go with them.

    Not safe for several threads: whoever shares one guards it.
    """

    def __init__(
        self,
        tables: Iterable[Table],
        sketches: Iterable[Sketch],
        followers: Iterable[Follower] = (),
        *,
        natives: bool = True,
    ) -> None:
        """Nothing has happened yet; ``natives`` False where no native histograms will be asked for."""
        self.followers = {follower.name: follower for follower in followers}
        self.tables = {table.name: table for table in (*tables, RETIRED)}
        self.sketches = {sketch.name: sketch for sketch in sketches}
        self.clock = 0.0
        self.names = Names()
        self._sums = {table.name: Sums(len(table.columns)) for table in self.tables.values() if not table.slot_s}
        self._slots: dict[str, dict[int, Sums]] = {table.name: {} for table in self.tables.values() if table.slot_s}
        self._lasting = {
            sketch.name: Cells()
            for sketch in self.sketches.values()
            if sketch.lasting and (natives or not sketch.native)
        }
        self._recent = {sketch.name: Window() for sketch in self.sketches.values() if sketch.recent}

        self._rolling: dict[str, dict[int, Cells]] = {s.name: {} for s in self.sketches.values() if s.rolls_up}
        self.closed: list[Closed] = []
        """Slots that are complete and wait for the history, see `kept`."""
        self._parted: list[tuple[str, int, str]] = []
        """(axis, id, text) of names that went while slots waited: these are still about them."""

    @property
    def layout(self) -> Layout:
        """How keys and columns are packed here."""
        return layout_of(self.tables.values(), self.sketches.values())

    def apply(self, delta: Delta) -> None:
        """Add a delta; the clock never goes back. Tables that no meter has any more are passed over."""
        self.names.put(delta.names)
        self._retire(delta.retired)
        for name, rows in delta.sums.items():
            if name in self._sums:
                self._sums[name].add(*rows)
        for name, rows in delta.levels.items():
            if name in self._sums:
                self._sums[name].put(*rows)
        for name, slots in delta.slots.items():
            self._apply_slots(name, slots)
        for name, parts in delta.cells.items():
            self._apply_cells(name, parts)
        self.advance(delta.clock)  # first, for what closes is about names that may go now
        for axis in {axis for axis, _ in delta.forgotten}:
            self._forget(axis, [number for one, number in delta.forgotten if one == axis])
        for axis, number in delta.forgotten:
            text = self.names.texts(axis).get(number)
            if self.closed and text is not None:
                self._parted.append((axis, number, text))
            self.names.forget(axis, number)
        self.names.gone()

    def _apply_slots(self, name: str, slots: Mapping[int, tuple[Ints, Floats]]) -> None:
        if name in self._slots:
            for slot, rows in slots.items():
                self._slots[name].setdefault(slot, Sums(rows[1].shape[1])).add(*rows)

    def _apply_cells(self, name: str, parts: Mapping[int, tuple[Ints, Ints]]) -> None:
        for slot, (keys, counts) in parts.items():
            if name in self._lasting:
                self._lasting[name].add(keys, counts)
            if name in self._recent:
                self._recent[name].add(slot, keys, counts)
            if name in self._rolling:
                self._rolling[name].setdefault(slot, Cells()).add(keys, counts)

    def advance(self, clock: float) -> None:
        """Turn the event clock (s, epoch); what has left a window goes."""
        if clock <= self.clock:
            return
        self.clock = clock
        for window in self._recent.values():
            window.advance(math.floor(clock / SLICE))
        for name, slots in self._slots.items():
            table = self.tables[name]
            oldest = table.oldest(clock)
            rolling = next((self._rolling[s.name] for s in self.sketches.values() if s.rolls_up == name), {})
            for slot in sorted(slot for slot in slots if slot < oldest):
                sums, cells = slots.pop(slot), rolling.pop(slot, _NO_CELLS)
                if table.closes:
                    self.closed.append(Closed(name, slot, sums, cells))
                for follower in self.followers.values():
                    if follower.table == name:
                        follower.close(slot, sums)

    def closed_names(self) -> Names:
        """A copy of the names, those among them that closed slots are about and that have gone since."""
        names = self.names.copy()
        names.put(self._parted)
        return names

    def kept(self, count: int) -> None:
        """The history has so many of the closed slots, the first ones."""
        del self.closed[:count]
        if not self.closed:
            self._parted.clear()

    def rows(self, table: Table) -> tuple[Ints, Floats]:
        """(keys ascending, values) of a table for life."""
        sums = self._sums[table.name]
        return sums.keys, sums.values

    def row(self, table: Table, key: int = 0) -> Floats:
        """The values of one key, zeros where it has none."""
        keys, values = self.rows(table)
        place = int(np.searchsorted(keys, key))
        found = place < len(keys) and keys[place] == key
        return values[place] if found else np.zeros(len(table.columns))

    def slots(self, table: Table) -> Mapping[int, Sums]:
        """The sums of a table by slots; slots ahead of the clock are among them."""
        return self._slots[table.name]

    def rolling(self, sketch: Sketch) -> Mapping[int, Cells]:
        """The values of a sketch that rolls up with a table, by the slots of that table which are open."""
        return self._rolling[sketch.name]

    def window(self, table: Table) -> tuple[Ints, Floats]:
        """(keys, sums) over all slots of a table that the clock has reached."""
        reached = math.floor(self.clock / table.slot_s)
        parts = [sums for slot, sums in sorted(self._slots[table.name].items()) if slot <= reached]
        keys = np.concatenate([NO_KEYS, *(part.keys for part in parts)])
        return gather(keys, np.concatenate([np.empty((0, len(table.columns))), *(part.values for part in parts)]))

    def lasting(self, sketch: Sketch) -> Cells:
        """All values of a sketch that is kept for life."""
        return self._lasting[sketch.name]

    def recent(self, sketch: Sketch) -> Cells:
        """The values of the last five minutes of event time."""
        return self._recent[sketch.name].running()

    def _retire(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Move what retired pairs hold to `RETIRED` and let their rows go."""
        if not pairs:
            return
        for name, sums in self._sums.items():
            out = of_pairs(self.tables[name], sums.keys, pairs)
            if out.any():
                self._sums[RETIRED.name].add(np.zeros(1, np.int64), retired(self.tables[name], sums.values[out]))
                sums.keep(~out)
        for name, cells in self._lasting.items():
            series = np.unique(series_of(cells.arrays()[0]))
            cells.drop(series[of_pairs(self.sketches[name], series, pairs)])

    def _forget(self, axis: str, gone: Sequence[int]) -> None:
        """Let the rows go that belong to forgotten names alone."""
        for name, sums in self._sums.items():
            sums.keep(~of_names(self.tables[name], sums.keys, axis, gone))
        for name, cells in self._lasting.items():
            series = np.unique(series_of(cells.arrays()[0]))
            cells.drop(series[of_names(self.sketches[name], series, axis, gone)])

    def save(self) -> dict[str, object]:
        """Everything, in parts by name; a part that did not change is equal to what it was."""
        parts: dict[str, object] = {"clock": self.clock, "names": self.names.save(), "parted": list(self._parted)}
        parts["layout"] = self.layout
        parts |= {f"sums/{name}": [sums.keys, sums.values] for name, sums in self._sums.items()}
        for name, slots in self._slots.items():
            parts |= {f"slots/{name}/{slot}": [sums.keys, sums.values] for slot, sums in slots.items()}
        parts |= {f"lasting/{name}": list(cells.arrays()) for name, cells in self._lasting.items()}
        for name, window in self._recent.items():
            parts |= {f"recent/{name}/{slot}": list(cells) for slot, cells in window.slices().items()}
        for name, rolling in self._rolling.items():
            parts |= {f"rolling/{name}/{slot}": list(cells.arrays()) for slot, cells in rolling.items()}
        for name, follower in self.followers.items():
            parts |= {f"follower/{name}/{part}": value for part, value in follower.save().items()}
        for number, one in enumerate(self.closed):
            parts[f"closed/{one.table}/{one.slot}/{number}"] = [one.sums.keys, one.sums.values, *one.cells.arrays()]
        return parts

    def load(self, parts: Mapping[str, Any]) -> None:
        """Take over what `save` gave, in this layout; parts of tables that are no longer there are left."""
        self.names.load(parts["names"])
        self._parted = [(axis, number, text) for axis, number, text in parts.get("parted", ())]
        for name, part in parts.items():
            kind, _, rest = name.partition("/")
            table, _, slot = rest.partition("/")
            slot = slot.partition("/")[0]
            if kind == "sums" and table in self._sums:
                self._sums[table].add(*part)
            elif kind == "slots" and table in self._slots:
                self._apply_slots(table, {int(slot): tuple(part)})
            elif kind == "lasting" and table in self._lasting:
                self._lasting[table].add(*part)
            elif kind == "rolling" and table in self._rolling:
                self._rolling[table].setdefault(int(slot), Cells()).add(*part)
            elif kind == "closed" and table in self.tables:
                sums = Sums(part[1].shape[1])
                sums.add(*part[:2])
                self.closed.append(Closed(table, int(slot), sums, Cells(*part[2:])))
        for name, follower in self.followers.items():
            head = f"follower/{name}/"
            follower.load({key.removeprefix(head): part for key, part in parts.items() if key.startswith(head)})
        # Windows open at the saved clock, so that no slice is too old for one that has not begun.
        self.clock = parts["clock"]
        for name in self._recent:
            saved = {
                int(key.rpartition("/")[2]): tuple(part)
                for key, part in parts.items()
                if key.startswith(f"recent/{name}/")
            }
            self._recent[name] = Window(math.floor(self.clock / SLICE), saved)
