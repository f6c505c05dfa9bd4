"""Which exposition format and encoding a client gets, by the quality values of its Accept headers (RFC 9110, 12)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

Form = Literal["text", "openmetrics", "protobuf"]

_QUALITY = re.compile(r"(?:0?\.[0-9]{1,3}|0\.?|1(?:\.0{0,3})?)")


@dataclass(frozen=True, slots=True)
class _Offer:
    """A format that can be written: its media type, and the parameters that decide whether it is the one meant."""

    form: Form
    type: str
    fits: Mapping[str, frozenset[str]] = field(default_factory=dict)


# The plainest first: it wins a tie, such as `*/*` or no header at all. Other parameters (charset, and escaping, which
# concerns names that capwatch does not have) are no reason to refuse.
_OFFERS: Final = (
    # Version 1.0.0 differs from 0.0.4 only in how names outside [a-zA-Z0-9_:] are written, which there are none of.
    _Offer("text", "text/plain", {"version": frozenset({"0.0.4", "1.0.0"})}),
    _Offer("openmetrics", "application/openmetrics-text", {"version": frozenset({"1.0.0"})}),
    _Offer(
        "protobuf",
        "application/vnd.google.protobuf",
        {"proto": frozenset({"io.prometheus.client.metricfamily"}), "encoding": frozenset({"delimited"})},
    ),
)


def exposition(accept: str | None) -> Form:
    """The format that a client likes best; text where it likes nothing that there is.

    >>> exposition("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.4,*/*;q=0.1")
    'openmetrics'
    >>> exposition("text/html,*/*;q=0.8"), exposition(None)
    ('text', 'text')
    """
    ranges = list(_elements(accept or ""))
    return max(_OFFERS, key=lambda offer: _liking(offer, ranges)).form


def gzip(accept_encoding: str | None) -> bool:
    """Whether a client takes gzip, and likes it at least as well as plain bytes.

    >>> gzip("deflate, gzip;q=0.5"), gzip("gzip;q=0"), gzip("*;q=0.1"), gzip(None)
    (True, False, True, False)
    """
    liked = {name: quality for name, _, quality in _elements(accept_encoding or "")}
    wanted = liked.get("gzip", liked.get("x-gzip", liked.get("*", 0.0)))
    return wanted > 0 and wanted >= liked.get("identity", 0.0)


def _liking(offer: _Offer, ranges: list[tuple[str, Mapping[str, str], float]]) -> tuple[float, int]:
    """(quality, closeness) of the range that names the offer most closely; (0, 0) where none does or it is refused."""
    best = (0, 0.0)
    for name, parameters, quality in ranges:
        told = {key: value for key, value in parameters.items() if key in offer.fits}
        if name == offer.type and all(value in offer.fits[key] for key, value in told.items()):
            closeness = 3 + len(told)
        elif name == offer.type.partition("/")[0] + "/*":
            closeness = 2
        elif name == "*/*":
            closeness = 1
        else:
            continue
        best = max(best, (closeness, quality))
    closeness, quality = best
    return (quality, closeness) if quality > 0 else (0.0, 0)


def _elements(header: str) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """(name, parameters, quality) of the elements of a list, in lower case; what cannot be read is not liked."""
    for element in header.lower().split(","):
        name, *rest = (part.strip(" \t") for part in element.split(";"))
        parameters = {}
        for part in rest:
            key, _, value = part.partition("=")
            parameters[key.rstrip()] = value.strip(' \t"')
        quality = parameters.pop("q", "1")
        if name:
            yield name, parameters, float(quality) if _QUALITY.fullmatch(quality) else 0.0
