"""The hint at the end of an error: what was probably meant, or else what is possible."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Set
from typing import Final

_MOST: Final = 30  # names in one line; all keys of a pool and all formats fit


def nearest(word: str, possible: Iterable[str]) -> str:
    """Name the nearest of ``possible``, or all of them (the first 30; sets in alphabetical order) where none is near.

    >>> nearest("formt", ["name", "format"]), nearest("x", ["name", "format"])
    ("did you mean 'format'?", 'possible: name, format')
    """
    names = sorted(possible) if isinstance(possible, Set) else list(possible)
    close = difflib.get_close_matches(word[:100], names, 1)  # longer words are near to nothing, but slow to compare
    if close:
        return f"did you mean '{close[0]}'?"
    return f"possible: {', '.join(names[:_MOST]) or 'none'}{', …' if len(names) > _MOST else ''}"
