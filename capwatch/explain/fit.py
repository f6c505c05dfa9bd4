"""Which format, and which wrapper, some lines are in."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final, NamedTuple

from capwatch import formats, wrappers
from capwatch.dialect import Decoder, Format, Options, Stateless, Verdict
from capwatch.explain.judge import records
from capwatch.explain.show import fields
from capwatch.record import EngineSample

FIT_LINES: Final = 200
"""Lines on which every format is tried when the best is looked for: more would not change the order."""
WRAPPED: Final = 0.9
"""Share of the lines that a wrapper must understand to be taken for the file's own."""


class Fit(NamedTuple):
    """How well a format fits some lines."""

    format: str
    share: float
    """Of the lines: those that became records or were understood as no record, 0..1."""
    counted: int
    """Lines that became records."""


def find_wrapper(lines: Iterable[bytes]) -> str | None:
    """The wrapper that most of the lines are in, or None."""
    tried = list(islice(lines, FIT_LINES))
    for name, factory in wrappers.shelf().items():
        decoder = Decoder(_EVERYTHING, Options(), factory())
        decoded = decoder.decode(b"\n".join([*tried, b""]), 0.0)
        if decoded.counted and decoded.dropped.total() <= (1 - WRAPPED) * len(tried):
            return name
    return None


def best_fit(lines: Iterable[bytes], wrapper: str | None = None, near: float = 0.0) -> list[Fit]:
    """How well each format on the shelf fits the first lines, the best first.

    A format that makes records goes before one that only knows why there are none; among those that make as many,
    the one whose records tell more.
    """
    tried = list(islice(lines, FIT_LINES))
    data = b"\n".join([*tried, b""])
    fits = []
    told: dict[str, int] = {}
    for name, form in formats.shelf().items():
        around = wrappers.shelf()[wrapper]() if wrapper else None
        decoded = Decoder(form, Options(), around).decode(data, near)
        understood = decoded.counted + decoded.skipped
        told[name] = sum(len(fields(record)) for record in records(decoded))
        fits.append(Fit(name, understood / decoded.read if decoded.read else 0.0, decoded.counted))
    return sorted(fits, key=lambda fit: (-fit.counted, -told[fit.format], -fit.share, fit.format))


class _Anything(Stateless):
    """Takes every line."""

    def read(self, line: str, near: float) -> Verdict:  # noqa: ARG002 - every line is as good as another
        return EngineSample()


_EVERYTHING: Final = Format("anything", "gateway", "every line", lambda _: _Anything())
