"""The scalars of the configuration: how each sort is read from text, printed, bounded, and told to a JSON Schema."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final
from urllib.parse import urlsplit

from capwatch.config import units

SWITCHES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("on", "yes", "true"), "on"),
    **dict.fromkeys(("off", "no", "false"), "off"),
}
"""What YAML 1.1 takes for booleans, as the words `on` and `off`."""

_WHOLE: Final = re.compile("0|[1-9][0-9]{0,17}")  # no octal 010, no sexagesimal 12:30; 18 digits fit 64 bits
_LISTEN: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]*):([0-9]{1,5})")
_NUMERIC: Final = ["number", "string"]  # a text that JSON and YAML may also take for a number


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds of a number in its base unit, named as JSON Schema would."""

    at_least: float = -math.inf
    above: float = -math.inf
    at_most: float = math.inf
    below: float = math.inf

    def holds(self, value: float) -> bool:
        """Whether ``value`` lies inside."""
        return self.at_least <= value <= self.at_most and self.above < value < self.below

    def told(self, show: Callable[[float], object]) -> str:
        """The bounds in words, numbers written by ``show``.

        >>> Range(above=0, at_most=1).told(str)
        'greater than 0 and at most 1'
        """
        words = (
            ("at least", self.at_least),
            ("greater than", self.above),
            ("at most", self.at_most),
            ("less than", self.below),
        )
        return " and ".join(f"{word} {show(bound)}" for word, bound in words if math.isfinite(bound))


@dataclass(frozen=True, slots=True)
class Kind:
    """One sort of scalar: how it is read from text, printed, and told to a JSON Schema."""

    noun: str
    read: Callable[[str], object]  # raises ValueError that says what was found and what is possible
    show: Callable[[Any], object]
    schema: Mapping[str, object] = field(hash=False)
    quoted: bool = True  # whether a quoted text is as good as a plain one
    limits: Range = Range()

    @property
    def expected(self) -> str:
        """What is possible, for errors."""
        told = self.limits.told(self.show)
        return f"{self.noun} ({told})" if told else self.noun


def _whole(text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"found {units.found(text)}; possible is a whole number such as 12")
    return int(text)


def _bytes(text: str) -> int:
    size = units.size(text)
    if size % 1:
        raise ValueError(f"found {units.found(text)}, which is no whole number of bytes")
    return int(size)


def _flag(text: str) -> bool:
    if text.lower() not in SWITCHES:
        raise ValueError(f"found {units.found(text)}; possible is true or false")
    return SWITCHES[text.lower()] == "on"


def _text(text: str) -> str:
    if not text:
        raise ValueError("found nothing; possible is a text")
    if any(ord(sign) < 0x20 or ord(sign) == 0x7F for sign in text):
        raise ValueError(f"found {units.found(text)}; possible is a text without control characters")
    return text


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"found {units.found(text)}; possible is a date such as 2026-11-01") from None


def _listen(text: str) -> str:
    match = _LISTEN.fullmatch(text)
    if match is None or int(match[1]) > 65535:
        raise ValueError(f"found {units.found(text)}; possible is an address such as 127.0.0.1:10077 or '[::1]:10077'")
    return text


def _url(text: str) -> str:
    """Check a URL without ever repeating it in an error: it may carry a password."""
    try:
        parts = urlsplit(_text(text))
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a broken host or port
        usable = False
    if not usable or " " in text:
        raise ValueError("found no usable URL; possible is one such as http://10.0.0.7:8000/metrics")
    return text


def masked(url: str) -> str:
    """A URL whose user and password cannot be read.

    >>> masked("http://user:secret@10.0.0.7:8000/metrics"), masked("http://10.0.0.7/metrics")
    ('http://***@10.0.0.7:8000/metrics', 'http://10.0.0.7/metrics')
    """
    parts = urlsplit(url)
    _, at, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"***@{host}").geturl() if at else url


TEXT: Final = Kind("a text", _text, str, {"type": "string", "pattern": r"^[^\u0000-\u001f\u007f]+$"})
DATE: Final = Kind("a date", _date, date.isoformat, {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"})
LISTEN: Final = Kind("an address", _listen, str, {"type": "string", "pattern": f"^{_LISTEN.pattern}$"})
URL: Final = Kind("a URL", _url, masked, {"type": "string", "pattern": "^https?://"})
WHOLE: Final = Kind("a whole number", _whole, int, {"type": "integer"}, quoted=False)
NUMBER: Final = Kind("a number", units.number, units.plain, {"type": "number"}, quoted=False)
FLAG: Final = Kind("true or false", _flag, bool, {"type": "boolean"}, quoted=False)
DURATION: Final = Kind(
    "a duration",
    units.duration,
    units.show_duration,
    {"anyOf": [{"const": 0}, {"type": "string", "pattern": units.DURATION_PATTERN}]},
)
SIZE: Final = Kind("a size", _bytes, units.show_size, {"type": ["integer", "string"], "pattern": units.SIZE_PATTERN})
SHARE: Final = Kind("a share", units.share, units.plain, {"type": _NUMERIC, "pattern": units.SHARE_PATTERN})
RATE: Final = Kind("a rate", units.rate, units.plain, {"type": _NUMERIC, "pattern": units.RATE_PATTERN})
STAGE: Final = Kind("a stage", units.stage, units.show_stage, {"type": _NUMERIC, "pattern": units.STAGE_PATTERN})
