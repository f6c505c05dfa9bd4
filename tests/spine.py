"""The spine in a test: records go in as lines, what a page would show comes out as numbers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from capwatch.config.schema import Config
from capwatch.dialect import Decoded, Decoder, Options
from capwatch.formats import shelf
from capwatch.ledger import Names, Totals
from capwatch.origin import Origin
from capwatch.pipeline import Pipeline
from capwatch.view import view

NOW = 1_772_529_300.0
"""A time on the grid of 30 s slices."""
Labels = tuple[tuple[str, str], ...]
Record = Mapping[str, Any]


def decoded(*records: Record | bytes) -> Decoded:
    """Records, or lines as they are, as the dialect `jsonl` decodes them."""
    lines = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in records]
    return Decoder(shelf()["jsonl"], Options()).decode(b"\n".join(lines), NOW)


def request(**told: Any) -> dict[str, Any]:
    """A request that finished well at `NOW`, with what else is told."""
    usual = {"finished_at": NOW, "tenant": "acme", "route": "/chat", "model": "chat-70b", "outcome": "ok"}
    return usual | told


class Spine:
    """A pipeline and the totals that its deltas add up to."""

    def __init__(self, config: Config | None = None, names: Names | None = None) -> None:
        self.config = config or Config()
        self.pipeline = Pipeline(self.config, names)
        self.totals = self.pipeline.totals()

    def feed(self, *records: Record | bytes, now: float = NOW + 3600, source: str = "log") -> None:
        """Take records as one batch and commit them."""
        self.pipeline.take(Origin(source), decoded(*records), now)
        self.commit()

    def tick(self, now: float) -> None:
        """Let time pass and commit."""
        self.pipeline.tick(now)
        self.commit()

    def commit(self) -> None:
        """Add what was gathered to the totals."""
        self.totals.apply(self.pipeline.freeze())

    def samples(self) -> dict[tuple[str, Labels], float]:
        """Every sample of the page, by its name and labels."""
        return samples(self.pipeline, self.totals)

    def values(self, name: str, **where: str) -> dict[Labels, float]:
        """The samples of a name (without prefix) that have these labels, by their other labels."""
        return {
            tuple(pair for pair in labels if pair[0] not in where): value
            for (found, labels), value in self.samples().items()
            if found == f"capwatch_{name}" and where.items() <= dict(labels).items()
        }

    def value(self, name: str, **where: str) -> float | None:
        """The only sample of a name with these labels; None where there is none."""
        found = list(self.values(name, **where).values())
        assert len(found) <= 1, found
        return found[0] if found else None

    def total(self, name: str, **where: str) -> float:
        """The sum over all samples of a name with these labels."""
        return sum(self.values(name, **where).values())


def samples(pipeline: Pipeline, totals: Totals) -> dict[tuple[str, Labels], float]:
    """Every sample that the meters show; a name and labels twice fail."""
    found: dict[tuple[str, Labels], float] = {}
    for series in view(pipeline.meters, totals):
        axes = series.axes.axes
        columns = [
            [axis.values[one] if axis.values else totals.names.text(axis.name, one) for one in ids.tolist()]
            for axis, ids in zip(axes, series.axes.unpack(series.keys), strict=True)
        ]
        rows: Iterable[tuple[str, ...]] = zip(*columns, strict=True) if columns else [()]
        for texts, values in zip(rows, series.values.tolist(), strict=True):
            own = tuple((axis.name, text) for axis, text in zip(axes, texts, strict=True))
            for column, value in zip(series.columns, values, strict=True):
                if value == value:  # noqa: PLR0124 - NaN is an absent sample
                    key = (series.metric.name + column.suffix, (*own, *column.labels))
                    assert key not in found, key
                    found[key] = value
    return found
