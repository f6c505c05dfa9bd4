"""Weeks as people name them: `2026-W48` is Monday 00:00 to Sunday 24:00 UTC of the ISO week."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from capwatch.errors import UsageError

HOUR: Final = 3600
DAY: Final = 24 * HOUR
WEEK: Final = 7 * DAY
_FORM: Final = re.compile(r"(?:(\d{4})-)?W(\d{1,2})")


@dataclass(frozen=True, slots=True)
class IsoWeek:
    """An ISO week.

    >>> one = IsoWeek(2026, 48)
    >>> str(one), moment(one.since), moment(one.until), str(one.before(1))
    ('2026-W48', '2026-11-23T00:00:00Z', '2026-11-30T00:00:00Z', '2026-W47')
    """

    year: int
    number: int

    @property
    def since(self) -> int:
        """Its first second, s since the epoch."""
        return int(datetime.fromisocalendar(self.year, self.number, 1).replace(tzinfo=UTC).timestamp())

    @property
    def until(self) -> int:
        """The second behind its last."""
        return self.since + WEEK

    def before(self, weeks: int) -> IsoWeek:
        """So many weeks earlier."""
        day = datetime.fromisocalendar(self.year, self.number, 1).replace(tzinfo=UTC) - timedelta(weeks=weeks)
        return IsoWeek(*day.isocalendar()[:2])

    def __str__(self) -> str:
        return f"{self.year:04}-W{self.number:02}"


def week(option: str, text: str, year: int | None = None) -> IsoWeek:
    """Read `2026-W48`, or `W47` where a year is known.

    Raises:
        UsageError: it is no week; the text names the option.

    >>> str(week("--week", "2026-W48")), str(week("--compare", "W47", 2026))
    ('2026-W48', '2026-W47')
    """
    found = _FORM.fullmatch(text.strip())
    if found is None or (found[1] is None and year is None):
        raise UsageError(f"{option}: {text!r} is no week; use the ISO form, such as 2026-W48")
    number = int(found[2])
    try:
        of = int(found[1]) if found[1] is not None else year
        assert of is not None  # noqa: S101 - see above
        datetime.fromisocalendar(of, number, 1)
    except ValueError:
        raise UsageError(f"{option}: {text!r}: that year has no week {number}") from None
    if of < 1971:
        raise UsageError(f"{option}: {text!r} is before any log")
    return IsoWeek(of, number)


def moment(at: float) -> str:
    """A time as RFC 3339, to the second."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"
