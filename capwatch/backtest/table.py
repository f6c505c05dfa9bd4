"""A CSV as columns, many rows at once: numbers as floats, texts as codes.

Blocks of whole lines are cut at their separators by array operations, and fields of equal width are read together; a
row costs about a microsecond. A block with quotes or fields of odd form is read line by line instead, with the same
result, and what is no CSV of these columns is refused with its line.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final, cast

import numpy as np
from numpy.typing import NDArray

from capwatch.errors import UsageError
from capwatch.record import Floats, Ints

Bytes = NDArray[np.uint8]

BLOCK: Final = 4 << 20
"""Bytes read at once: the arrays of a block stay small enough that memory is used again and not given back."""
_COMMA, _NEWLINE, _DOT, _ZERO, _NINE = b",\n.09"
_EXACT_DIGITS: Final = 15
"""Decimal digits whose integer surely fits the 53 bits of a float; longer fields are read one by one."""


class Texts:
    """Texts of all columns by code, each once; the empty text is −1."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._codes: dict[str, int] = {}
        self._hashes = np.empty(0, np.uint64)
        self._code_of = np.empty(0, np.int64)

    def code(self, text: str) -> int:
        """The code of a text."""
        if not text:
            return -1
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = len(self.names)
            self.names.append(text)
        return code

    def codes(self, data: Bytes, begin: Ints, width: Ints) -> Ints:
        """The codes of many fields of a block of bytes."""
        hashes = _hashed(data, begin, width)
        place = np.searchsorted(self._hashes, hashes).clip(max=max(0, len(self._hashes) - 1))
        new = np.ones(len(hashes), np.bool_) if not len(self._hashes) else self._hashes[place] != hashes
        if new.any():
            found, first = np.unique(hashes[new], return_index=True)
            rows = np.flatnonzero(new)[first]
            texts = [bytes(data[begin[row] : begin[row] + width[row]]).decode("utf-8", "replace") for row in rows]
            hashed = np.concatenate([self._hashes, found])
            order = np.argsort(hashed)
            self._hashes = hashed[order]
            self._code_of = np.concatenate([self._code_of, [self.code(text) for text in texts]])[order].astype(np.int64)
            place = np.searchsorted(self._hashes, hashes)
        return np.asarray(self._code_of[place])


@dataclass(frozen=True, slots=True)
class Block:
    """Some rows: float64 or int64 by column name, for the columns that were asked for and are there."""

    numbers: dict[str, Floats]
    codes: dict[str, Ints]
    first_line: int
    """Line number in the file of the first row."""
    done: int
    """Bytes of the file read so far."""


class Table:
    """A CSV file with a header, plain or compressed with gzip."""

    def __init__(self, path: str, numbers: Sequence[str], texts: dict[str, Texts]) -> None:
        """Open a file and read its header.

        Args:
            path: ends in .gz where it is compressed.
            numbers: columns to read as numbers, empty fields as NaN.
            texts: columns to read as texts, each with the table of its codes.

        Raises:
            UsageError: it cannot be read, or has no header.
        """
        self.path = path
        try:
            self._raw: BinaryIO = open(path, "rb")  # noqa: SIM115 - closed by `close`
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from None
        self.size = os.fstat(self._raw.fileno()).st_size
        zipped = path.endswith(".gz")
        self._file = cast("BinaryIO", gzip.GzipFile(fileobj=self._raw)) if zipped else self._raw
        try:
            self.columns = self._header()
        except UsageError:
            self.close()
            raise
        self._numbers = [name for name in numbers if name in self.columns]
        self._texts = {name: table for name, table in texts.items() if name in self.columns}

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
        self._raw.close()

    def _header(self) -> list[str]:
        try:
            head = self._file.readline(1 << 20)
        except (EOFError, OSError, zlib.error) as error:
            raise UsageError(f"{self.path}: {getattr(error, 'strerror', None) or error}") from None
        line = head.decode("utf-8-sig", "replace").strip()
        columns = [name.strip() for name in next(csv.reader([line]), [])]
        repeated = sorted({name for name in columns if columns.count(name) > 1})
        if repeated:
            raise UsageError(f"{self.path}:1: column {repeated[0]!r} is there twice")
        return columns

    def blocks(self) -> Iterator[Block]:
        """All rows, some at a time.

        Raises:
            UsageError: a row is no row of this table; the text names its line.
        """
        line, rest = 2, b""
        try:
            while True:
                data = self._file.read(BLOCK)
                whole = rest + data
                if not data:
                    whole += b"\n" if whole else b""
                end = whole.rfind(b"\n") + 1
                text, rest = whole[:end], whole[end:]
                if text:
                    rows, numbers, codes = self._read(text, line)
                    if rows:
                        yield Block(numbers, codes, line, self._raw.tell())
                    line += text.count(b"\n")
                if not data:
                    return
        except (EOFError, OSError, zlib.error) as error:
            raise UsageError(f"{self.path}:{line}: {getattr(error, 'strerror', None) or error}") from None

    def _read(self, text: bytes, line: int) -> tuple[int, dict[str, Floats], dict[str, Ints]]:
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n")
        if b'"' not in text:
            found = self._cut(text)
            if found is not None:
                return found
        return self._one_by_one(text, line)

    def _cut(self, text: bytes) -> tuple[int, dict[str, Floats], dict[str, Ints]] | None:
        """The columns of a regular block, or None."""
        data = np.frombuffer(text, np.uint8)
        ends = np.flatnonzero((data == _COMMA) | (data == _NEWLINE))
        width = len(self.columns)
        rows = len(ends) // width
        if len(ends) != rows * width or text.count(b"\n") != rows or (data[ends[width - 1 :: width]] != _NEWLINE).any():
            return None
        begins = np.concatenate([[0], ends[:-1] + 1])
        numbers, codes = {}, {}
        for i, name in enumerate(self.columns):
            begin, wide = begins[i::width], ends[i::width] - begins[i::width]
            if name in self._numbers:
                read = _floats(data, begin, wide)
                if read is None:
                    return None
                numbers[name] = read
            elif name in self._texts:
                codes[name] = self._texts[name].codes(data, begin, wide)
        return rows, numbers, codes

    def _one_by_one(self, text: bytes, line: int) -> tuple[int, dict[str, Floats], dict[str, Ints]]:
        numbers: dict[str, list[float]] = {name: [] for name in self._numbers}
        codes: dict[str, list[int]] = {name: [] for name in self._texts}
        reader = csv.reader(io.StringIO(text.decode("utf-8", "replace"), newline=""))
        rows = 0
        for row in reader:
            if not row:
                continue
            here = f"{self.path}:{line + reader.line_num - 1}"
            if len(row) != len(self.columns):
                raise UsageError(f"{here}: {len(row)} fields where the header has {len(self.columns)}")
            for name, field in zip(self.columns, row, strict=True):
                if name in numbers:
                    numbers[name].append(_float(field, name, here))
                elif name in codes:
                    codes[name].append(self._texts[name].code(field))
            rows += 1
        return (
            rows,
            {name: np.array(values) for name, values in numbers.items()},
            {name: np.array(values, np.int64) for name, values in codes.items()},
        )


def _float(field: str, name: str, here: str) -> float:
    try:
        return float(field) if field.strip() else np.nan
    except ValueError:
        raise UsageError(f"{here}: {name}: {field!r} is no number") from None


def _groups(width: Ints) -> Iterator[tuple[int, Ints | slice]]:
    """(width, rows) of the fields of each width."""
    counts = np.bincount(width)
    wide = np.flatnonzero(counts)
    if len(wide) == 1:
        yield int(wide[0]), slice(None)
        return
    for one in wide.tolist():
        yield one, np.flatnonzero(width == one)


def _signs(data: Bytes, begin: Ints, rows: Ints | slice, width: int) -> Bytes:
    """uint8[rows, width]: the fields of one width."""
    return np.asarray(data[begin[rows][:, None] + np.arange(width)])


def _floats(data: Bytes, begin: Ints, width: Ints) -> Floats | None:
    """The numbers in many fields; None where one is not of the form 123 or 123.45 with few digits."""
    found = np.full(len(begin), np.nan)
    for wide, rows in _groups(width):
        if wide == 0:
            continue
        if wide > _EXACT_DIGITS + 1:
            return None
        signs = _signs(data, begin, rows, wide)
        values = np.zeros(len(signs))
        point = np.full(len(signs), -1)
        for i in range(wide):
            sign = signs[:, i]
            dot = sign == _DOT
            if dot.any():
                if (point[dot] >= 0).any():
                    return None
                point = np.where(dot, wide - 1 - i, point)
                values = np.where(dot, values, values * 10 + sign - _ZERO)
            else:
                values = values * 10 + (sign - _ZERO)
            if ((sign < _ZERO) & ~dot).any() or (sign > _NINE).any():
                return None
        if wide > _EXACT_DIGITS and (point < 0).any():
            return None
        found[rows] = values / 10.0 ** np.maximum(point, 0)
    return found


def _hashed(data: Bytes, begin: Ints, width: Ints) -> NDArray[np.uint64]:
    """uint64 of each field, as good as different for different texts (FNV-1a, Fowler, Noll and Vo)."""
    found = np.empty(len(begin), np.uint64)
    for wide, rows in _groups(width):
        signs = _signs(data, begin, rows, wide)
        value = np.full(len(signs), 14695981039346656037, np.uint64)
        if len(signs) and (signs == signs[0]).all():
            signs, value = signs[:1], value[:1]
        for i in range(wide):
            value = (value ^ signs[:, i]) * np.uint64(1099511628211)
        found[rows] = value ^ np.uint64(wide)
    return found
