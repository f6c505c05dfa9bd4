"""What a check found, for people and for machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Final, Literal

Severity = Literal["error", "warning", "note"]
SEVERITIES: Final = ("error", "warning", "note")
"""Something does not work; a mistake that costs capacity; what is absent and may well be. A note is no finding."""
_WIDTH = 100
_SHOWN = 6
"""Of what is affected, in the text; all of it is in the JSON."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a person should know.

    Attributes:
        severity: one of `SEVERITIES`.
        check: which check it comes from, a word for machines.
        title: one line.
        seen: what was seen, with numbers, a line each.
        why: why it matters.
        fix: what to do.
        affects: panels and rules that rest on it.
    """

    severity: Severity
    check: str
    title: str
    seen: Sequence[str]
    why: str
    fix: str
    affects: Sequence[str] = ()

    def as_text(self) -> Iterator[str]:
        """Itself as lines."""
        yield f"{self.severity:8}{self.title}"
        rows = [*(("seen", line) for line in self.seen), ("fix", self.fix)]
        if self.severity != "note":
            rows.insert(-1, ("why", self.why))
        if self.affects:
            more = len(self.affects) - _SHOWN
            rows.append(("for", "; ".join(self.affects[:_SHOWN]) + (f"; {more} more" if more > 0 else "")))
        for name, text in rows:
            first, *rest = wrap(text, _WIDTH - 16, break_on_hyphens=False, break_long_words=False) or [""]
            yield f"        {name:6}{first}"
            yield from (f"{'':14}{line}" for line in rest)

    def as_object(self) -> dict[str, object]:
        """Itself for machines."""
        return {
            "severity": self.severity, "check": self.check, "title": self.title, "seen": list(self.seen),
            "why": self.why, "fix": self.fix, "affects": list(self.affects),
        }  # fmt: skip
