"""Numbers as people read them: rounded by their error, with their unit; never more digits than are known."""

from __future__ import annotations

import math
from datetime import UTC, datetime


def number(value: float | None, error: float | None = None) -> str:
    """A number with its error, both to the first digit of the error; three significant digits where none is known.

    >>> number(1.29953, 0.0021), number(1.29953), number(43612.4), number(0.0), number(None), number(0.00123)
    ('1.300 ± 0.002', '1.3', '43,600', '0', 'not known', '0.00123')
    """
    if value is None or math.isnan(value):
        return "not known"
    if math.isinf(value):
        return "unbounded"
    if error is None or not 0 < error < math.inf:
        return _plain(value, 3)
    decimals = max(0, -math.floor(math.log10(error)))
    if decimals > 9:
        return _plain(value, 6)
    return f"{value:,.{decimals}f} ± {error:,.{decimals}f}"


def exact(value: float) -> str:
    """A count.

    >>> exact(43612.0)
    '43,612'
    """
    return f"{value:,.0f}"


def percent(share: float | None) -> str:
    """A share in per cent: whole above 2 %, to two digits below.

    >>> percent(0.8667), percent(0.0123), percent(0.0), percent(1e-9), percent(None), percent(0.999996)
    ('87 %', '1.2 %', '0 %', '< 0.01 %', 'not known', '100 %')
    """
    if share is None or math.isnan(share):
        return "not known"
    if math.isinf(share):
        return "unbounded"
    if share == 0 or abs(share) >= 0.02:
        return f"{100 * share:,.0f} %"
    return "< 0.01 %" if 0 < share < 1e-4 else f"{100 * share:.2g} %"


def added(value: float) -> str:
    """What is added to a cost of a request, in replica-seconds.

    >>> added(0.29953), added(-0.0001)
    ('+0.300', '+0.000')
    """
    return f"{value:+.3f}".replace("-0.000", "+0.000")


def signed(change: float) -> str:
    """A relative change.

    >>> signed(0.303), signed(-0.004)
    ('+30 %', '-0.4 %')
    """
    return f"{100 * change:+.0f} %" if abs(change) >= 0.02 else f"{100 * change:+.1f} %"


def seconds(value: float | None) -> str:
    """A time.

    >>> seconds(0.0123), seconds(2.5), seconds(400), seconds(9000), seconds(None)
    ('12 ms', '2.5 s', '6.7 min', '2.5 h', 'not known')
    """
    if value is None or math.isnan(value):
        return "not known"
    if math.isinf(value):
        return "unbounded"
    for most, factor, unit in ((1, 1e3, "ms"), (180, 1, "s"), (7200, 1 / 60, "min")):
        if abs(value) < most:
            return f"{_plain(value * factor, 2)} {unit}"
    return f"{_plain(value / 3600, 2)} h"


def day(at: float) -> str:
    """A time as people read it.

    >>> day(1795618800)
    'Wed 25 Nov 15:00'
    """
    return f"{datetime.fromtimestamp(at, UTC):%a %-d %b %H:%M}"


def listed(parts: list[str], most: int = 5) -> str:
    """Some texts in a row; of many the first.

    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    rest = len(parts) - most
    return ", ".join(parts) if rest <= 0 else f"{', '.join(parts[:most])} and {rest} more"


def _plain(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    rounded = round(value, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{rounded:,.{min(decimals, 12)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
