"""What the log says of a source: what was found, what cannot be read, and lines that are dropped. Never their text."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Final

from capwatch.dialect import notes
from capwatch.tail.follow import Status

EVERY_S: Final = 60.0
"""Between two sentences about dropped lines of one source."""
HELP: Final = {notes.FORMAT.name: 'each line is {"at": RFC 3339 or seconds, "text": …, "pool": optional}'}
"""What to do about lines that are dropped, by format; for the others there is a verb."""

_log = logging.getLogger(__name__)


class Reporter:
    """One source's."""

    def __init__(self, name: str, form: str) -> None:
        """Nothing has been said yet of a source of this format."""
        self._name = name
        self._help = HELP.get(form, "capwatch explain shows why")
        self._looked = False
        self._problems: frozenset[str] = frozenset()
        self._dropped: Counter[str] = Counter()
        self._quiet_until = 0.0

    def drop(self, dropped: Mapping[str, int]) -> None:
        """Note lines that were dropped, by reason."""
        self._dropped.update(dropped)

    def tell(self, status: Status, now: float) -> None:
        """Say what is new at this moment (s, monotonic)."""
        if not self._looked:
            self._looked = True
            passed = f", {status.bytes_skipped} bytes passed over" if status.bytes_skipped else ""
            _log.info("source %s: files found: %d%s", self._name, status.files, passed)
        problems = frozenset(status.problems)
        for problem in problems - self._problems:
            _log.warning("source %s: cannot be read: %s", self._name, problem)
        self._problems = problems
        if now >= self._quiet_until and (dropped := {why: n for why, n in self._dropped.items() if n}):
            self._quiet_until = now + EVERY_S
            self._dropped.clear()
            said = ", ".join(f"{count} {reason}" for reason, count in dropped.items())
            _log.warning("source %s: lines dropped: %s; %s", self._name, said, self._help)
