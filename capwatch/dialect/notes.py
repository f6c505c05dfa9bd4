"""Deploy notes: a JSON line for each change that a pipeline made, `{"at": …, "text": …, "pool": …}`.

`at` is RFC 3339 or seconds since the epoch, `pool` may be left out where it is about all. Other keys are ignored.
"""

from __future__ import annotations

import json
from datetime import UTC
from typing import Final, TypeGuard

from capwatch.dialect.value import REFUSED
from capwatch.dialect.value import time as read_time
from capwatch.dialect.verdict import Drop, Format, Options, Stateless
from capwatch.record import Note

LONGEST: Final = 2000
"""Characters of a note: a sentence, not a change log."""
LATEST: Final = 253402300799
"""The last second that a date can tell, in 9999."""


class Notes(Stateless):
    """Reads one line at a time."""

    def __init__(self, options: Options | None = None) -> None:
        """There is nothing to choose."""

    def read(self, line: str, near: float) -> Note | Drop:  # noqa: ARG002 - notes carry their time
        """One JSON object is one note.

        >>> Notes().read('{"at": "2026-11-30T09:41:00Z", "text": "4 to 8 chunks"}', 0.0)
        Note(at=1796031660.0, pool=None, text='4 to 8 chunks')
        """
        try:
            found = json.loads(line)
        except RecursionError:
            return Drop("malformed", "nested too deeply")
        if not isinstance(found, dict):
            return Drop("malformed", "no JSON object")
        text, pool = found.get("text"), found.get("pool")
        if not is_note(text):
            return Drop("malformed", f"text: must be a text of 1 to {LONGEST} characters")
        if not (pool is None or isinstance(pool, str)):
            return Drop("malformed", "pool: must be a text")
        at = read_time(found.get("at"), UTC)
        if at is None or at is REFUSED or not 0 <= at <= LATEST:
            return Drop("bad_time", "at: must be RFC 3339 or seconds since the epoch")
        return Note(at, pool or None, text)


def is_note(text: object) -> TypeGuard[str]:
    """Whether it can be kept and shown as a note: some characters that can be written down, and not too many."""
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


FORMAT: Final = Format(
    name="deploys",
    kind="notes",
    title="deploy notes",
    reader=Notes,
    mappable=False,
)
"""Of the file that `deploys` names; no source can choose it."""
