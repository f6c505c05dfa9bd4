"""What a reader makes of some lines, for the tests of single formats."""

from __future__ import annotations

import msgspec

from capwatch.dialect import Decoded, Decoder, Format, Options
from capwatch.record import EngineSample, Request

from .compare import NEAR


def decode(form: Format, *lines: str, near: float = NEAR, options: Options | None = None) -> Decoded:
    """Everything that is found in some lines."""
    return Decoder(form, options or Options()).decode("\n".join(lines).encode(), near)


def samples(form: Format, *lines: str, near: float = NEAR) -> list[EngineSample]:
    """The engine samples of some lines."""
    return [one for _, one in decode(form, *lines, near=near).samples]


def requests(form: Format, *lines: str, near: float = NEAR) -> list[Request]:
    """The records of some lines."""
    batch = decode(form, *lines, near=near).batch
    return [batch.row(row) for row in range(len(batch))]


def fate(form: Format, line: str, near: float = NEAR) -> str:
    """What becomes of a line that is no record."""
    decoded = decode(form, line, near=near)
    assert decoded.counted == 0
    return decoded.fates[0][0]


def in_two(form: Format, first: list[str], then: list[str], near: float = NEAR) -> Decoded:
    """What the second lines hold, read by a reader that got the memory of the first one's as JSON."""
    one, other = Decoder(form, Options()), Decoder(form, Options())
    one.decode("\n".join(first).encode(), near)
    other.load(msgspec.json.decode(msgspec.json.encode(one.save())))
    return other.decode("\n".join(then).encode(), near)
