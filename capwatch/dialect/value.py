"""Tolerant values: numbers, texts, times and durations as logs print them. Pure; nothing here raises on bad data."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Final

import msgspec

from capwatch.record import MISSING

REFUSED: Final = math.inf
"""Stands for a number that was given but is none; settling counts it as refused and leaves the field absent."""
UNITS: Final = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
"""As access logs print them, whatever the language of the machine."""

_ACCESS_LOG: Final = re.compile(
    r"(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(?: ([+-])(\d\d)(\d\d))?", re.ASCII
)


def number(value: object, factor: float = 1.0, *, texts: bool = True) -> float | None:
    """Read a number; None where nothing is told, `REFUSED` where what is told is no number.

    Args:
        value: what the log has: number, text, None.
        factor: multiplies the number, for units.
        texts: whether numbers printed as text count (gateways that quote all values); otherwise they are refused.

    >>> number("12"), number("-"), number(True), number(float("nan")), number(2300, 1e-3)
    (12.0, None, inf, inf, 2.3)
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return REFUSED
    if isinstance(value, str):
        text = value.strip()
        if text in MISSING:
            return None
        if not texts:
            return REFUSED
        value = text
    if not isinstance(value, int | float | str):
        return REFUSED
    try:
        read = float(value)
    except (ValueError, OverflowError):
        return REFUSED
    return _rescaled(read, factor) if math.isfinite(read) else REFUSED


def _rescaled(value: float, factor: float) -> float:
    """Dividing by a whole number keeps decimals as short as they were printed: 2300 ms are 2.3 s."""
    return value * factor if factor >= 1 else value / round(1 / factor)


def text(value: object) -> str | None:
    """Read a text; numbers are spelled out, empty and "not told" texts are None, other shapes are None.

    >>> text("acme"), text(""), text(12), text(["a"])
    ('acme', None, '12', None)
    """
    if isinstance(value, str):
        return None if value.strip() in MISSING else value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(value)
    return None


def flag(value: object) -> bool | None:
    """Read a truth value, also as text.

    >>> flag(True), flag("False"), flag("true"), flag(None), flag("?")
    (True, False, True, None, None)
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return {"true": True, "false": False, "1": True, "0": False}.get(value.strip().lower())
    return None


def time(value: object, zone: tzinfo, factor: float = 1.0) -> float | None:
    """Read a point in time as seconds since the epoch, UTC; None where none is told, `REFUSED` where it is no time.

    Numbers (also as text) are epoch seconds times ``factor``; texts are RFC 3339 / ISO 8601, or what web servers print
    in their access logs, in ``zone`` where they carry no offset. Fractions beyond microseconds are lost.

    >>> from datetime import UTC
    >>> time("2026-03-03T10:15:08.840+01:00", UTC), time(1772529300.12, UTC), time("1772529300120", UTC, 1e-3)
    (1772529308.84, 1772529300.12, 1772529300.12)
    >>> time("03/Mar/2026:10:15:02 +0100", UTC), time("03/Mar/2026:09:15:00.120", UTC)
    (1772529302.0, 1772529300.12)
    """
    read = number(value, factor)
    if read is not REFUSED or not isinstance(value, str):
        return read
    try:
        return epoch(_moment(value.strip()), zone)
    except (ValueError, OverflowError):
        return REFUSED


def _moment(text: str) -> datetime:
    """A datetime as the fast tier reads it, to the microsecond; other spellings of ISO 8601 as Python does."""
    found = _ACCESS_LOG.fullmatch(text)
    if found:
        return _printed(found)
    try:
        return msgspec.convert(text, datetime)
    except msgspec.ValidationError:
        return datetime.fromisoformat(text)


def _printed(found: re.Match[str]) -> datetime:
    """A datetime of an access log. `strptime` would read the months in the language of the machine, and slowly."""
    day, month, year, hour, minute, second, fraction, sign, hours, minutes = found.groups()
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    zone = timezone(-offset if sign == "-" else offset) if sign else None
    micro = int((fraction or "").ljust(6, "0"))
    return datetime(
        int(year), MONTHS.index(month) + 1, int(day), int(hour), int(minute), int(second), micro, tzinfo=zone
    )


def epoch(moment: datetime, zone: tzinfo) -> float:
    """Seconds since the epoch of a datetime, taken in ``zone`` where it is naive.

    In the hour that a clock repeats in autumn, the earlier of both is meant.
    """
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()
