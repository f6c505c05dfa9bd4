"""Times that a log prints without year or date: what is missing is inferred from when the line was written or read."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, tzinfo
from typing import Final

from capwatch.dialect.value import REFUSED, epoch

AHEAD_S: Final = 86_400.0
"""A line may be ahead of the time of reading by this much: clocks and zones differ by less than a day."""
YEARS_BACK: Final = 8
"""Leap days are at most this far apart (1896 and 1904)."""

CLOCKS_S: Final = 3_600.0
"""A line without a date may be ahead of the time of reading by this much: clocks of one machine room differ by less."""

_TIME = re.compile(r"(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?", re.ASCII)
_CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?", re.ASCII)


def yearless(text: str, zone: tzinfo, near: float) -> float:
    """Seconds since the epoch of `MM-DD HH:MM:SS[.ffffff]` in ``zone``; `REFUSED` where it is no time.

    The year is the latest that puts the time at most a day after ``near`` (s, epoch), so a log that runs over New
    Year is read rightly in January.

    >>> from datetime import UTC
    >>> january = datetime(2027, 1, 1, 0, 5, tzinfo=UTC).timestamp()
    >>> [datetime.fromtimestamp(yearless(t, UTC, january), UTC).year for t in ("12-31 23:59:58", "01-01 00:04:00")]
    [2026, 2027]
    """
    found = _TIME.fullmatch(text)
    if not found:
        return REFUSED
    month, day, hour, minute, second = map(int, found.group(1, 2, 3, 4, 5))
    micro = int((found[6] or "").ljust(6, "0"))
    newest = datetime.fromtimestamp(near + AHEAD_S, zone).year
    for year in range(newest, newest - YEARS_BACK - 1, -1):
        try:
            at = epoch(datetime(year, month, day, hour, minute, second, micro, zone), zone)
        except (ValueError, OverflowError):
            continue
        if at <= near + AHEAD_S:
            return at
    return REFUSED


def dateless(text: str, zone: tzinfo, near: float) -> float:
    """Seconds since the epoch of `HH:MM:SS[.ffffff]` in ``zone``; `REFUSED` where it is no time.

    The day is the latest that puts the time at most an hour after ``near`` (s, epoch): lines of more than a day before
    cannot be told from those of the last.

    >>> from datetime import UTC
    >>> morning = datetime(2026, 3, 3, 0, 10, tzinfo=UTC).timestamp()
    >>> [datetime.fromtimestamp(dateless(t, UTC, morning), UTC).day for t in ("23:59:58", "00:04:00")]
    [2, 3]
    """
    found = _CLOCK.fullmatch(text)
    if not found:
        return REFUSED
    hour, minute, second = map(int, found.group(1, 2, 3))
    micro = int((found[4] or "").ljust(6, "0"))
    newest = datetime.fromtimestamp(near + CLOCKS_S, zone)
    for day in (newest, newest - timedelta(days=1)):
        try:
            at = epoch(day.replace(hour=hour, minute=minute, second=second, microsecond=micro), zone)
        except (ValueError, OverflowError):
            return REFUSED
        if at <= near + CLOCKS_S:
            return at
    return REFUSED
