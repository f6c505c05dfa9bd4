"""Colours that programs write for terminals, and leave in files."""

from __future__ import annotations

import re

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def plain(line: str) -> str:
    r"""The line without its colours.

    >>> plain("\x1b[32mINFO\x1b[0m ready")
    'INFO ready'
    """
    return _COLOUR.sub("", line) if "\x1b" in line else line
