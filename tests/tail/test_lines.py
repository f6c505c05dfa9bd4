"""Lines: whole, half, long, last."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from capwatch.tail.blocks import Lines
from capwatch.tail.fingerprint import START

from .reader import Reader, append, line, lines

Start = Callable[..., Reader]


def test_two_writes_per_line(tmp_path: Path, start: Start) -> None:
    """Half a line is lag until its newline comes."""
    reader = start()
    append(tmp_path / "log", line(1) + line(2)[:50])
    assert reader.read() == line(1)
    assert reader.status.lag_bytes == 50
    append(tmp_path / "log", line(2)[50:])
    assert reader.read() == line(2)
    assert reader.status.lag_bytes == 0


def test_half_a_line_over_a_restart(tmp_path: Path, start: Start) -> None:
    """A position stops before an unfinished line."""
    reader = start()
    append(tmp_path / "log", line(1) + line(2)[:50])
    reader.read()
    reader.restart()
    append(tmp_path / "log", line(2)[50:])
    assert reader.read() == line(2)


def test_the_last_line_of_a_rotated_file(tmp_path: Path, start: Start) -> None:
    """It is handed out after the grace time, marked as unterminated, and not before."""
    append(tmp_path / "log", lines(0, 3) + b"the last")
    reader = start()
    reader.read()
    (tmp_path / "log").rename(tmp_path / "log.1")
    append(tmp_path / "log", line(3))
    assert reader.read(seconds=9, steps=3) == line(3)
    assert reader.read(seconds=9, steps=2) == b"the last"
    assert [block.unterminated for block in reader.blocks] == [False, False, True]
    assert reader.read(seconds=40) == b""
    assert reader.status.lag_bytes == 0


def test_the_last_line_of_a_deleted_file(tmp_path: Path, start: Start) -> None:
    """The same where the file has no name any more."""
    append(tmp_path / "log", b"the last")
    reader = start()
    reader.read()
    (tmp_path / "log").unlink()
    assert reader.read(seconds=9, steps=3) == b""
    assert reader.read(seconds=9, steps=2) == b"the last"
    assert reader.accounted == len(b"the last")


def test_the_last_line_of_a_file_rotated_while_down(tmp_path: Path, start: Start) -> None:
    """A name that extends another one is a rotated file, even if it was never seen under another."""
    append(tmp_path / "log.1", b"the last")
    append(tmp_path / "log", line(1) + b"half")
    reader = start()
    assert reader.read(seconds=20, steps=6) == line(1) + b"the last"
    assert reader.status.lag_bytes == len(b"half")


def test_the_last_line_of_a_rotated_file_that_was_closed(tmp_path: Path, start: Start) -> None:
    """It is handed out though the descriptor had to be given up before its time."""
    append(tmp_path / "log", lines(0, 3) + b"the last")
    reader = start(max_open=1)
    reader.read()
    (tmp_path / "log").rename(tmp_path / "log.1")
    append(tmp_path / "log", line(3))
    append(tmp_path / "log.a", line(4))
    assert reader.read(seconds=8, steps=3) == line(3) + line(4)
    assert reader.read(seconds=8, steps=6) == b"the last"


def test_a_rotated_file_that_grows_much_after_a_long_silence(tmp_path: Path, start: Start) -> None:
    """What does not fit in one poll is no unfinished line."""
    append(tmp_path / "log", line(0))
    reader = start(poll_bytes=500, block_bytes=500)
    reader.read()
    (tmp_path / "log").rename(tmp_path / "log.1")
    reader.read(seconds=20)
    append(tmp_path / "log.1", lines(1, 30))
    assert reader.read(steps=10) == lines(1, 30)
    assert not any(block.unterminated for block in reader.blocks)


def test_a_rotated_file_that_is_finished_late(tmp_path: Path, start: Start) -> None:
    """As long as it grows the grace time starts anew."""
    append(tmp_path / "log", b"a")
    reader = start()
    reader.read()
    (tmp_path / "log").rename(tmp_path / "log.1")
    for _ in range(5):
        append(tmp_path / "log.1", b"a")
        assert reader.read(seconds=20, steps=1) == b""
    append(tmp_path / "log.1", b"\n")
    assert reader.read() == b"aaaaaa\n"


def test_byte_order_mark(tmp_path: Path, start: Start) -> None:
    """It goes at the beginning of a file and stays anywhere else."""
    bom = b"\xef\xbb\xbf"
    append(tmp_path / "log", bom + line(1))
    reader = start()
    assert reader.read() == line(1)
    append(tmp_path / "log", bom + line(2))
    assert reader.read() == bom + line(2)
    assert reader.status.bytes_read == len(line(1) + line(2)) + 6


@pytest.mark.parametrize("block_bytes", [100, 1000, 1 << 20])
def test_lines_of_the_limit_and_over(tmp_path: Path, start: Start, block_bytes: int) -> None:
    """A line of the limit is handed out, one byte more is too long; its neighbours are exact."""
    fits, over = b"x" * 1000 + b"\n", b"y" * 1001 + b"\n"
    append(tmp_path / "log", line(1) + fits + over + over + line(2) + fits)
    reader = start(line_bytes=1000, block_bytes=block_bytes)
    assert reader.read() == line(1) + fits + line(2) + fits
    assert sum(block.too_long for block in reader.blocks) == 2
    assert reader.status.bytes_read == (tmp_path / "log").stat().st_size


def test_a_long_line_that_grows(tmp_path: Path, start: Start) -> None:
    """Its newline is sought only in what is new, and it counts once."""
    reader = start(line_bytes=1000, block_bytes=1000)
    append(tmp_path / "log", line(1))
    for _ in range(30):
        append(tmp_path / "log", b"x" * 700)
        reader.read(steps=1)
    append(tmp_path / "log", b"\n" + line(2))
    reader.read()
    assert [(block.data, block.too_long) for block in reader.blocks] == [(line(1), 0), (b"", 1), (line(2), 0)]


def test_a_long_line_that_never_ends(tmp_path: Path, start: Start) -> None:
    """Rotated away without a newline it is one line too long."""
    append(tmp_path / "log", line(1) + b"x" * 5000)
    reader = start(line_bytes=1000)
    reader.read()
    (tmp_path / "log").rename(tmp_path / "log.1")
    assert reader.read(seconds=20, steps=5) == b""
    assert (reader.blocks[-1].too_long, reader.blocks[-1].unterminated) == (1, False)
    assert reader.status.lag_bytes == 0


def test_a_long_line_in_constant_memory(tmp_path: Path, start: Start) -> None:
    """40 MiB without a newline need no more memory than twice the longest line allowed."""
    append(tmp_path / "log", b"x" * (40 << 20) + b"\n" + line(1))
    reader = start(line_bytes=1 << 20)
    tracemalloc.start()
    try:
        assert reader.read() == line(1)
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()
    assert sum(block.too_long for block in reader.blocks) == 1


def test_blocks_are_bounded(tmp_path: Path, start: Start) -> None:
    """A block holds whole lines and at most the block size; one poll hands out about its share and ends."""
    append(tmp_path / "log", lines(0, 100))
    reader = start(block_bytes=1000, poll_bytes=2000)
    assert reader.read(steps=1) == lines(0, 24)
    assert [len(block.data) for block in reader.blocks] == [960, 960, 960]
    assert not reader.status.caught_up
    assert reader.read(steps=10) == lines(24, 100)
    assert reader.status.caught_up


def test_the_search_for_a_newline_is_bounded(tmp_path: Path, start: Start) -> None:
    """A line without end does not hold up its neighbours: the poll ends, the next one goes on."""
    append(tmp_path / "log", b"x" * 5000 + b"\n" + line(1))
    reader = start(line_bytes=1000, poll_bytes=1)
    reader.read(steps=1)
    assert reader.blocks == []
    assert not reader.status.caught_up
    assert reader.read() == line(1)


def test_what_a_block_says(tmp_path: Path, start: Start) -> None:
    """Blocks name their file, its lineage and their place in it."""
    append(tmp_path / "log.1", lines(0, 2))
    reader = start()
    reader.read()
    (block,) = reader.blocks
    found = (tmp_path / "log.1").stat()
    assert (block.source, block.path, block.lineage) == ("test", str(tmp_path / "log.1"), str(tmp_path / "log"))
    assert (block.file, block.start, block.end) == ((found.st_dev, found.st_ino), 0, len(lines(0, 2)))
    assert block.mtime == found.st_mtime_ns / 1e9


def test_content_that_changes_between_a_look_and_the_read(tmp_path: Path) -> None:
    """Every read checks what stands before its place."""
    (tmp_path / "log").write_bytes(lines(0, 10))
    reader = Lines(line_bytes=1000, block_bytes=1000)
    with (tmp_path / "log").open("rb") as file:
        piece = reader.read(file.fileno(), START, 0)
        assert piece is not None
        assert piece.data == lines(0, 8)
        (tmp_path / "log").write_bytes(lines(10, 20))
        assert reader.read(file.fileno(), piece.at, piece.searched) is None
        (tmp_path / "log").write_bytes(b"")
        assert reader.read(file.fileno(), piece.at, piece.searched) is None
