"""Finished log files as blocks of whole lines, compressed ones too, in bounded memory."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final

import zstandard

BOM: Final = b"\xef\xbb\xbf"
"""A byte order mark."""
UNREADABLE: Final = (OSError, EOFError, zlib.error, zstandard.ZstdError)
"""What reading raises where a file cannot be read, or is not compressed as its name says."""


def opened(path: str) -> BinaryIO:
    """A log as plain bytes; ``.gz`` and ``.zst`` are decompressed on the way.

    Raises:
        OSError: it cannot be opened.
    """
    if path.endswith(".gz"):
        return io.BufferedReader(gzip.open(path))
    file = open(path, "rb")  # noqa: SIM115 - the caller closes it
    if path.endswith(".zst"):
        return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True))
    return file


def blocks(stream: BinaryIO, size: int, longest: int) -> Iterator[tuple[int, bytes, int, bool]]:
    """Cut a stream into blocks of whole lines.

    Args:
        stream: bytes, from the beginning of the file; a byte order mark there is taken off.
        size: bytes a block has at most, unless one line is longer.
        longest: bytes of a line, without its line feed, beyond which it is passed over in constant memory.

    Yields:
        Bytes read for the block, its lines, how many lines were too long, and whether its last line is terminated.
    """
    carry = b""
    skipping = False
    first = True
    while data := stream.read(size):
        length = len(data)
        if first:
            data, carry = carry + data, b""
            if len(data) < len(BOM) and BOM.startswith(data):
                carry = data
                yield length, b"", 0, True
                continue
            data, first = data.removeprefix(BOM), False
        if skipping:
            end = data.find(b"\n") + 1
            if not end:
                yield length, b"", 0, True
                continue
            data, skipping = data[end:], False
        cut = data.rfind(b"\n") + 1
        lines, rest = (carry + data[:cut], data[cut:]) if cut else (b"", carry + data)
        too_long = 0
        if len(rest) > longest:
            rest, skipping, too_long = b"", True, 1
        if len(lines) > longest:
            lines, over = _short(lines, longest)
            too_long += over
        carry = rest
        yield length, lines, too_long, True
    if carry:
        yield 0, carry, 0, False


def _short(lines: bytes, longest: int) -> tuple[bytes, int]:
    """Without the lines that are too long, and how many those were."""
    split = lines[:-1].split(b"\n")
    kept = [line for line in split if len(line) <= longest]
    return b"".join(line + b"\n" for line in kept), len(split) - len(kept)
