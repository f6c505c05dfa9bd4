"""What a proxy says of its upstream: attempts in nginx's lists, and who made an error that the client got."""

from __future__ import annotations

import re
from typing import Final

from capwatch.dialect.settle import of_status
from capwatch.dialect.table import Table
from capwatch.dialect.value import REFUSED, number, text
from capwatch.record import Request

_BETWEEN: Final = re.compile(r",\s*|\s+:\s+")


def attempts(value: object) -> list[str]:
    """The parts of one of nginx's `$upstream_*` variables, one for each server that was tried.

    Servers are parted by commas, server groups (an internal redirect) by a colon between blanks.

    >>> attempts("502, 200"), attempts("404 : 200"), attempts("-"), attempts(None)
    (['502', '200'], ['404', '200'], [], [])
    """
    told = text(value)
    return [part.strip() for part in _BETWEEN.split(told)] if told else []


def retries(value: object) -> int | None:
    """How often another server of the same group was tried; None where no server was. A redirect is no retry.

    >>> retries("502, 503, 200"), retries("404 : 200"), retries("200"), retries("")
    (2, 0, 0, None)
    """
    told = text(value)
    return told.count(",") if told else None


def total(value: object, factor: float = 1.0) -> float | None:
    """The sum of all attempts' times, dashes left out; None where none is told.

    >>> total("-, 3.203"), total("0.011 : 2.290"), total("-"), total(2306, 1e-3)
    (3.203, 2.301, None, 2.306)
    """
    parts = [one for one in (number(part, factor) for part in attempts(value)) if one is not None]
    return sum(parts) if parts else None


def inside(whole: float | None, outside: float | None) -> float | None:
    """What is left for the gateway itself of a duration; None where it is not told, or less than nothing."""
    if whole is None or outside is None or REFUSED in (whole, outside):
        return None
    left = round(whole - outside, 6)  # both are printed in milliseconds: the rest is noise of the arithmetic
    return left if left >= 0 else None


def outcome(status: int | None, *, reached: bool | None) -> str | None:
    """The outcome by status; of a 5xx without an upstream behind it the proxy itself is the maker.

    A 503 of its own says that it has no place left. ``reached`` is None where the log has no word about the upstream.

    >>> [outcome(code, reached=False) for code in (503, 500, 504, 200)], outcome(503, reached=True)
    (['overload', 'gateway_error', 'timeout', 'ok'], 'upstream_error')
    """
    if status is None:
        return None
    word = of_status(status)
    if word == "upstream_error" and reached is False:
        return "overload" if status == 503 else "gateway_error"
    return word


def judge(table: Table, request: Request, *, reached: bool | None, told: str | None = None) -> None:
    """Set outcome and limiter of a record, as far as the line has not told them under names of the operator's.

    ``told`` is what the line says of the outcome apart from the status.
    """
    if request.outcome is None:
        table.derive(request, outcome=told or outcome(request.status, reached=reached))
    if request.rate_limited_by is None:
        table.derive(request, rate_limited_by=limiter(request.outcome, reached=reached))


def limiter(outcome: str | None, *, reached: bool | None) -> str | None:
    """Who limited a request: the upstream if it was reached, otherwise the gateway.

    >>> limiter("rate_limited", reached=False), limiter("rate_limited", reached=None), limiter("ok", reached=True)
    ('gateway', None, None)
    """
    if outcome != "rate_limited" or reached is None:
        return None
    return "upstream" if reached else "gateway"
