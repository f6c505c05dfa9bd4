"""The year of a time without one: the latest that is at most a day ahead."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.dialect.value import REFUSED
from capwatch.dialect.yearless import dateless, yearless

moments = st.datetimes(datetime(2000, 1, 1), datetime(2060, 1, 1)).map(lambda t: t.replace(microsecond=0, tzinfo=UTC))  # noqa: DTZ001 - hypothesis wants bounds without a zone


@given(written=moments, age=st.integers(-86_400, 300 * 86_400))
def test_a_line_is_dated_right_when_read_within_months(written: datetime, age: int) -> None:
    """From a day before to 300 days after it was written, over New Year and leap days too."""
    assert yearless(f"{written:%m-%d %H:%M:%S}", UTC, written.timestamp() + age) == written.timestamp()


def test_a_leap_day_waits_for_its_year() -> None:
    """In a year without one, 29 February is that of the last leap year."""
    near = datetime(2027, 3, 1, tzinfo=UTC).timestamp()
    assert yearless("02-29 12:00:00", UTC, near) == datetime(2024, 2, 29, 12, tzinfo=UTC).timestamp()


def test_fractions_and_zones_count() -> None:
    """The time is in the zone, the year too: in Auckland the new year has begun."""
    zone = ZoneInfo("Pacific/Auckland")
    near = datetime(2026, 12, 31, 12, tzinfo=UTC).timestamp()
    expected = datetime(2027, 1, 1, 0, 30, tzinfo=zone) + timedelta(microseconds=250_000)
    assert yearless("01-01 00:30:00.25", zone, near) == expected.timestamp()


@pytest.mark.parametrize("text", ["13-01 00:00:00", "02-30 00:00:00", "01-01 24:00:00", "1-1 0:0:0", "", "01-01"])
def test_what_is_no_time_is_refused(text: str) -> None:
    """A broken time is told apart from none."""
    assert yearless(text, UTC, 1.8e9) == math.inf


@given(st.integers(0, 2 * 86_400 - 1), st.integers(0, 23 * 3600 - 1))
def test_a_time_of_day_is_of_the_last_day(written: int, age: int) -> None:
    """A line read within 23 hours, over midnight too, gets the day on which it was written."""
    at = datetime(2026, 12, 31, tzinfo=UTC).timestamp() + written
    text = datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")
    assert dateless(text, UTC, at + age) == at


@pytest.mark.parametrize("text", ["24:00:00", "12:60:00", "1:00:00", "12:00", "noon", ""])
def test_no_time_of_day_is_refused(text: str) -> None:
    """What is no time of a clock is refused."""
    assert dateless(text, UTC, 1.8e9) == REFUSED
