"""The fast reader of CSV gives what Python's own reader gives, and refuses what is no table with its line."""

from __future__ import annotations

import csv
import gzip
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.backtest import table
from capwatch.backtest.table import Table, Texts
from capwatch.errors import UsageError


def read(path: Path) -> tuple[list[float], list[str]]:
    """The columns `number` and `text` of a file."""
    texts = Texts()
    numbers: list[float] = []
    codes: list[int] = []
    with closing(Table(str(path), ["number", "absent"], {"text": texts})) as found:
        for block in found.blocks():
            numbers += block.numbers["number"].tolist()
            codes += block.codes["text"].tolist()
    return numbers, ["" if code < 0 else texts.names[code] for code in codes]


def written(path: Path, rows: list[tuple[str, str, str]]) -> Path:
    """A file with a header and rows."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["number", "unread", "text"])
        writer.writerows(rows)
    return path


NUMBERS = st.one_of(
    st.integers(0, 10**17).map(str), st.floats(0, 1e12).map(repr), st.decimals(0, 10**9, places=3).map(str), st.just("")
)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=12)


@given(rows=st.lists(st.tuples(NUMBERS, TEXTS, TEXTS), min_size=1, max_size=60))
def test_it_reads_what_python_reads(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]]) -> None:
    """Numbers to the last bit, texts as they are, whatever is quoted; an empty number is NaN."""
    path = written(tmp_path_factory.mktemp("csv") / "some.csv", rows)
    numbers, texts = read(path)
    assert np.array_equal(numbers, [float(number or "nan") for number, _, _ in rows], equal_nan=True)
    assert texts == [text for _, _, text in rows]


def test_blocks_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that lie across the border of two blocks are read like all others."""
    path = written(tmp_path / "some.csv", [(str(i), "x" * (i % 9), f"tenant-{i % 5}") for i in range(500)])
    whole = read(path)
    monkeypatch.setattr(table, "BLOCK", 100)
    assert read(path) == whole
    assert whole[0] == list(range(500))


def test_compressed_files_and_odd_line_ends(tmp_path: Path) -> None:
    """gzip, CRLF and a last line without an end are all the same table."""
    plain = written(tmp_path / "some.csv", [("1.5", "", "a"), ("2", "", "b")])
    zipped = tmp_path / "some.csv.gz"
    zipped.write_bytes(gzip.compress(plain.read_bytes().replace(b"\n", b"\r\n")[:-2]))
    assert read(zipped) == read(plain) == ([1.5, 2.0], ["a", "b"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("number,unread,text\n1,,a\n2,b\n", "some.csv:3: 2 fields where the header has 3"),
        ("number,unread,text\n1,,a\nseven,,b\n", "some.csv:3: number: 'seven' is no number"),
        ("number,number,text\n", "some.csv:1: column 'number' is there twice"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, text: str, words: str) -> None:
    """One line that names the place."""
    path = tmp_path / "some.csv"
    path.write_text(text)
    with pytest.raises(UsageError) as error:
        read(path)
    assert str(error.value).endswith(words)
