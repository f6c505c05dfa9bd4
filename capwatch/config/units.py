"""Numbers with units as people write them: durations, sizes, shares, rates, stages. Shared with the command line.

Every parser takes the text (or a number where one is natural), refuses what is negative, NaN or infinite, and raises
`ValueError` whose text says what was found and what is possible. Values are the float nearest to the written decimal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from capwatch.capacity import chain

SECONDS: Final[Mapping[str, Decimal]] = {
    "ms": Decimal("0.001"),
    "s": Decimal(1),
    "m": Decimal(60),
    "min": Decimal(60),
    "h": Decimal(3600),
    "d": Decimal(86400),
}
BYTES: Final[Mapping[str, Decimal]] = {
    "B": Decimal(1),
    **{f"{letter}B": Decimal(1000**power) for power, letter in enumerate("kMGT", 1)},
    **{f"{letter}iB": Decimal(1024**power) for power, letter in enumerate("KMGT", 1)},
    "KB": Decimal(1000),  # not SI, but what many write
}

# Three digits of exponent reach as far as a float does.
NUMBER: Final = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
DURATION_PATTERN: Final = rf"^(?:0|{NUMBER} ?(?:{'|'.join(SECONDS)}))$"
SIZE_PATTERN: Final = rf"^{NUMBER} ?(?:{'|'.join(BYTES)})?$"
SHARE_PATTERN: Final = rf"^{NUMBER} ?%?$"
RATE_PATTERN: Final = rf"^{NUMBER}(?: ?/ ?(?:{'|'.join(SECONDS)}))?$"
STAGE_PATTERN: Final = rf"^{NUMBER}(?:\*{NUMBER})?(?:@{NUMBER}%?)?$"

_SPLIT: Final = re.compile(rf"({NUMBER}) ?(.*)", re.DOTALL)
_LONGEST: Final = 64  # characters of a number with its unit; nobody writes more, and decimals stay cheap
_SHOWN: Final = 40  # characters of a wrong text that an error repeats: enough to find it, too few to flood a line


def found(text: str) -> str:
    """A wrong text as an error repeats it: quoted, escaped, cut short."""
    return "nothing" if not text else repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")


def number(text: str | float) -> float:
    """Read a plain number, finite and not negative.

    >>> number("3.5"), number(2)
    (3.5, 2.0)
    """
    value, unit = _parts(text, "a number such as 4 or 0.5")
    if unit:
        raise ValueError(f"found {found(str(text))}; possible is a number without a unit")
    return _finite(value, text)


def duration(text: str | float) -> float:
    """Read a duration in seconds. Only 0 may stand without a unit.

    >>> duration("500ms"), duration("8min"), duration("12.25s"), duration(0)
    (0.5, 480.0, 12.25, 0.0)
    >>> duration("30")
    Traceback (most recent call last):
    ValueError: found '30' without a unit; write 30s for seconds (possible: ms, s, m, min, h, d)
    """
    value, unit = _parts(text, "a duration such as 500ms, 30s, 5m, 8min, 1h, 2d")
    if not unit and value:
        written = str(text).strip()
        raise ValueError(
            f"found {found(written)} without a unit; write {written[:_SHOWN]}s for seconds"
            f" (possible: {', '.join(SECONDS)})"
        )
    return _finite(value * _factor(SECONDS, unit or "s", text), text)


def size(text: str | float) -> int | float:
    """Read a size in bytes, an int where it is whole; a bare number is bytes, GB is 1e9 and GiB is 2**30.

    >>> size("140GB"), size("0.25MiB"), size("2.5B")
    (140000000000, 262144, 2.5)
    """
    value, unit = _parts(text, "a size such as 16MiB, 140GB or a number of bytes")
    value *= _factor(BYTES, unit or "B", text)
    read = _finite(value, text)
    return int(value) if value == value.to_integral_value() else read


def share(text: str | float) -> float:
    """Read a share of a whole, written 0.01 or 1%. Not bounded by 1: that is for the caller to say.

    >>> share("1%"), share(0.01), share("0.01")
    (0.01, 0.01, 0.01)
    """
    value, unit = _parts(text, "a share such as 0.01 or 1%")
    if unit not in ("", "%"):
        raise ValueError(f"found {found(str(text))}; possible is a share such as 0.01 or 1%")
    return _finite(value / 100 if unit else value, text)


def rate(text: str | float) -> float:
    """Read a rate per second; a bare number is per second.

    >>> rate("0.5/min") * 120, rate("2/s"), rate(2)
    (1.0, 2.0, 2.0)
    """
    value, unit = _parts(text, "a rate such as 2, 2/s or 0.5/min")
    if unit and not unit.startswith("/"):
        raise ValueError(f"found {found(str(text))}; possible is a rate such as 2, 2/s or 0.5/min")
    return _finite(value / _factor(SECONDS, unit[1:].strip() if unit else "s", text), text)


@dataclass(frozen=True, slots=True)
class Stage:
    """What one stage of a request's way sustains, for the chain of limits.

    Attributes:
        rate: visits per second that the stage sustains.
        factor: replica factor that multiplies the rate (`12*0.7`: twelve replicas of 0.7/s each, or 12/s used to 70 %).
        visits: visits per user request (`10@0.15`: one request in 6.7 comes by).
    """

    rate: float
    factor: float = 1.0
    visits: float = 1.0

    @property
    def capacity_rps(self) -> float:
        """User requests per second that this stage lets through: rate × factor / visits."""
        return chain.capacity(self.rate, self.factor, self.visits)


def stage(text: str | float) -> Stage:
    """Read `RATE`, `RATE*FACTOR`, `RATE@VISITS` or `RATE*FACTOR@VISITS`; all greater than 0.

    >>> stage("12*0.7"), stage("10@15%").visits, stage(60).capacity_rps
    (Stage(rate=12.0, factor=0.7, visits=1.0), 0.15, 60.0)
    """
    rate_and_factor, at, visits = str(text).partition("@")
    rate_text, star, factor = rate_and_factor.partition("*")
    try:
        read = Stage(number(rate_text), number(factor) if star else 1.0, share(visits) if at else 1.0)
    except ValueError:
        read = Stage(0)
    if not (read.rate and read.factor and read.visits):
        raise ValueError(f"found {found(str(text))}; possible is a rate greater than 0 such as 60, 12*0.7 or 10@0.15")
    return read


def show_duration(seconds: float) -> str:
    """Write seconds in the largest unit that makes them whole; read again they are the same float.

    >>> show_duration(0.5), show_duration(170), show_duration(600), show_duration(12.25)
    ('500ms', '170s', '10m', '12.25s')
    """
    exact = Decimal(repr(float(seconds)))
    for unit in ("d", "h", "m") if exact >= 1 else ("ms",):
        value = exact / SECONDS[unit]
        if exact and value < 10**15 and value == value.to_integral_value():  # beyond, a Decimal could have rounded
            return f"{int(value)}{unit}"
    return f"{plain(seconds)}s"


def show_size(size_bytes: float) -> str | float:
    """Write bytes in the largest unit that makes them whole, a bare number where none does.

    >>> show_size(2**31), show_size(140 * 10**9), show_size(7)
    ('2GiB', '140GB', 7)
    """
    for unit in ("TiB", "TB", "GiB", "GB", "MiB", "MB", "KiB", "kB"):
        value, rest = divmod(size_bytes, int(BYTES[unit]))
        if value and not rest:
            return f"{int(value)}{unit}"
    return plain(size_bytes)


def show_stage(value: Stage) -> str | float:
    """Write a stage as `stage` reads it.

    >>> show_stage(Stage(12, 0.7)), show_stage(Stage(10, visits=0.15)), show_stage(Stage(60))
    ('12*0.7', '10@0.15', 60)
    """
    text = f"{plain(value.rate)}"
    text += "" if value.factor == 1 else f"*{plain(value.factor)}"
    text += "" if value.visits == 1 else f"@{plain(value.visits)}"
    return plain(value.rate) if value.factor == value.visits == 1 else text


def plain(value: float) -> float:
    """A whole float as an int, so that it is written without `.0`; others as they are."""
    return int(value) if float(value).is_integer() and abs(value) < 10**15 else value  # beyond, repr is shorter


def _parts(text: str | float, possible: str) -> tuple[Decimal, str]:
    """Split a text into its number and what follows; `ValueError` unless it begins with a number that is possible."""
    written = str(text).strip()
    match = _SPLIT.fullmatch(written)
    if match is None or len(written) > _LONGEST:
        raise ValueError(f"found {found(written)}; possible is {possible}, not negative")
    return Decimal(match[1]), match[2]


def _factor(units: Mapping[str, Decimal], unit: str, text: str | float) -> Decimal:
    if unit not in units:
        raise ValueError(f"found {found(str(text))} with the unknown unit {found(unit)}; possible: {', '.join(units)}")
    return units[unit]


def _finite(value: Decimal, text: str | float) -> float:
    read = float(value)
    if math.isinf(read):
        raise ValueError(f"found {found(str(text))}, which is too large")
    return read
