"""A part of the review as plain data: what it says, shows, finds, and could not find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from capwatch.record import Floats

SEVERITIES: Final = ("critical", "warning", "info")
"""Users suffer now; a promise is broken or will be; worth knowing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a planner should know.

    Attributes:
        title: in one line, with its numbers.
        severity: of `SEVERITIES`.
        evidence: sentences with numbers, units and windows.
        remedies: what to do, in order of speed, reversibility and cost, with the effect of each.
        numbers: what is behind it, for machines.
        pool: which one.
        confidence: `measured`, `computed` (a formula on measured numbers) or `estimated` (an assumption is in it).
    """

    title: str
    severity: str
    evidence: Sequence[str]
    remedies: Sequence[str] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)
    pool: str = ""
    confidence: str = "measured"

    def line(self) -> dict[str, Any]:
        """As the contract tells it (section 1b), for JSON."""
        return {
            "title": self.title, "severity": self.severity, "evidence": list(self.evidence),
            "remedies": list(self.remedies), "confidence": self.confidence, "pool": self.pool or None,
            "numbers": dict(self.numbers),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that could not be told: what, why, and what would provide it."""

    what: str
    why: str
    provide: str

    def line(self) -> dict[str, str]:
        """For JSON."""
        return {"what": self.what, "why": self.why, "provide": self.provide}


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headings, all texts."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a figure: float64[n] each."""

    label: str
    x: Floats
    y: Floats
    style: str = "line"
    """`line`, `step`, `area` (from 0), `points`, `mark` (a vertical line at each x)."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture, drawn later.

    Attributes:
        title: what is seen.
        x, y: what the axes are, with units; ``x`` `time` is seconds since the epoch.
        lines: what is drawn.
        log: whether y is logarithmic.
    """

    title: str
    x: str
    y: str
    lines: Sequence[Line]
    log: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """One topic."""

    title: str
    text: Sequence[str] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    findings: Sequence[Finding] = ()
    missing: Sequence[Missing] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)
    """By pool, for machines: what a pool of the document gets beside the contract's keys."""
