"""However bytes come in pieces, they are the same lines, and every format makes the same of them."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capwatch.dialect import Decoder, Format, Options
from capwatch.formats import shelf
from capwatch.record import Request
from capwatch.replay.files import blocks

from .compare import NEAR
from .test_laws import mutated, seeds

TEXT = st.lists(st.sampled_from([b"\n", b"\r\n", b"a", b"bc", b"\xef\xbb\xbf", b"\0", b"d" * 30]), max_size=40)
Told = tuple[list[Request], Counter[str], int]


class Drips(io.BytesIO):
    """A stream that gives as many bytes as somebody drew, whatever is asked for."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        super().__init__(data)
        self._sizes = [*sizes]

    def read(self, size: int | None = -1) -> bytes:
        """Some of it, at least one byte."""
        return super().read(self._sizes.pop() if self._sizes else size)


@given(TEXT, st.lists(st.integers(1, 12), max_size=60), st.integers(1, 20), st.integers(4, 40))
def test_any_split_of_bytes_gives_the_same_lines(parts: list[bytes], sizes: list[int], size: int, longest: int) -> None:
    """Whole lines in order, too long ones counted, a byte order mark taken off: as one look at all bytes finds them."""
    data = b"".join(parts)
    found = list(blocks(Drips(data, sizes), size, longest))
    *whole, rest = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    assert b"".join(lines for _, lines, _, ends in found if ends) == b"".join(
        line + b"\n" for line in whole if len(line) <= longest
    )
    over = sum(len(line) > longest for line in whole) + (len(rest) > longest)
    assert sum(too_long for _, _, too_long, _ in found) == over
    assert b"".join(lines for _, lines, _, ends in found if not ends) == (rest if len(rest) <= longest else b"")
    assert sum(length for length, *_ in found) == len(data)


def told(form: Format, pieces: list[bytes]) -> Told:
    """Records, fates and lines of one file that comes in pieces of whole lines."""
    decoder = Decoder(form, Options())
    records: list[Request] = []
    fates: Counter[str] = Counter()
    read = 0
    for piece in pieces:
        decoded = decoder.decode(piece, NEAR)
        records += [decoded.batch.row(row) for row in range(len(decoded.batch))]
        fates.update([*decoded.dropped.elements(), *["skip"] * decoded.skipped, *["record"] * decoded.counted])
        read += decoded.read
    return records, fates, read


@pytest.mark.parametrize("name", shelf())
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_any_split_of_lines_gives_the_same_records(name: str, data: st.DataObject) -> None:
    """Also where a format remembers lines: what is cut between two commits is one log."""
    lines = [line + b"\n" for line in data.draw(st.lists(mutated(seeds(name)), min_size=1, max_size=8))]
    cuts = data.draw(st.sets(st.integers(1, len(lines)), max_size=4))
    pieces = [b"".join(lines[a:b]) for a, b in pairwise(sorted({0, len(lines)} | cuts))]
    assert told(shelf()[name], pieces) == told(shelf()[name], [b"".join(lines)])


@pytest.mark.parametrize("name", [name for name, form in shelf().items() if form.scanner])
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_fast_and_slow_read_alike(name: str, data: st.DataObject) -> None:
    """Every format with a fast tier: golden lines, damaged in any place, are the same records by either."""
    lines = data.draw(st.lists(mutated(seeds(name)), min_size=1, max_size=4))
    form = shelf()[name]
    assert told(form, [b"\n".join(lines)]) == told(replace(form, scanner=None), [b"\n".join(lines)])
