"""Rotation by copying and truncating."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from .reader import Reader, append, line, lines

Start = Callable[..., Reader]


def truncate(path: Path) -> None:
    """As logrotate does: the inode stays, writers append from zero."""
    os.truncate(path, 0)


def test_copy_in_reach(tmp_path: Path, start: Start) -> None:
    """What was not read before the truncation is read from the copy, then the live file from its beginning."""
    append(tmp_path / "log", lines(0, 100))
    reader = start()
    data = reader.read()
    append(tmp_path / "log", lines(100, 150))
    shutil.copy(tmp_path / "log", tmp_path / "log.1")
    truncate(tmp_path / "log")
    append(tmp_path / "log", lines(150, 170))
    assert data + reader.read() == lines(0, 170)
    assert (reader.status.truncations, reader.status.rotations, reader.status.bytes_lost) == (1, 0, {})
    assert reader.accounted == len(lines(0, 170))


def test_the_copy_seen_before_the_truncation(tmp_path: Path, start: Start) -> None:
    """A copy of a file that is still followed is left alone, also half made; then it takes over."""
    append(tmp_path / "log", lines(0, 100))
    reader = start()
    data = reader.read()
    (tmp_path / "log.1").write_bytes(b"")
    data += reader.read()
    (tmp_path / "log.1").write_bytes(lines(0, 100)[:5000])
    data += reader.read()
    append(tmp_path / "log", lines(100, 150))
    (tmp_path / "log.1").write_bytes(lines(0, 150))
    data += reader.read()
    assert data == lines(0, 150)
    truncate(tmp_path / "log")
    append(tmp_path / "log", lines(150, 170))
    assert data + reader.read() == lines(0, 170)
    assert reader.accounted == len(lines(0, 170))


def test_copytruncate_many_times_in_a_chain(tmp_path: Path, start: Start) -> None:
    """Copies are renamed from .1 to .2 to .3, and none of them is read again."""
    reader = start()
    data = b""
    for turn in range(8):
        append(tmp_path / "log", lines(10 * turn, 10 * turn + 6))
        data += reader.read()
        append(tmp_path / "log", lines(10 * turn + 6, 10 * turn + 10))
        for number in (2, 1):
            if (tmp_path / f"log.{number}").exists():
                (tmp_path / f"log.{number}").rename(tmp_path / f"log.{number + 1}")
        shutil.copy(tmp_path / "log", tmp_path / "log.1")
        truncate(tmp_path / "log")
    assert data + reader.read() == lines(0, 80)
    assert (reader.status.truncations, reader.status.rotations, reader.status.bytes_lost) == (8, 0, {})


@pytest.mark.parametrize("read", [0, 60, 100])
def test_lines_in_the_gap(tmp_path: Path, start: Start, read: int) -> None:
    """Lines between copy and truncation that nobody saw are lost, those seen but not read are counted as lost."""
    append(tmp_path / "log", lines(0, read))
    reader = start()
    data = reader.read()
    append(tmp_path / "log", lines(read, 100))
    shutil.copy(tmp_path / "log", tmp_path / "log.1")
    append(tmp_path / "log", lines(100, 110))
    truncate(tmp_path / "log")
    append(tmp_path / "log", lines(110, 130))
    assert data + reader.read() == lines(0, 100) + lines(110, 130)
    assert reader.status.truncations == (1 if read else 0)


@pytest.mark.parametrize("copied", [1, 3, 30, 99])
def test_lines_in_the_gap_that_were_read(tmp_path: Path, start: Start, copied: int) -> None:
    """A copy shorter than what was read is no new content, even where it is first seen after the truncation."""
    append(tmp_path / "log", lines(0, copied))
    reader = start()
    data = reader.read()
    shutil.copy(tmp_path / "log", tmp_path / "copy")
    append(tmp_path / "log", lines(copied, 100))
    data += reader.read()
    (tmp_path / "copy").rename(tmp_path / "log.1")
    truncate(tmp_path / "log")
    append(tmp_path / "log", lines(100, 120))
    assert data + reader.read() == lines(0, 120)
    assert reader.accounted == len(lines(0, 120))
    append(tmp_path / "log.1", lines(500, 501))
    assert reader.read() == lines(500, 501)
    reader.read(seconds=20, steps=4)
    assert reader.status.open_files == 1


def test_no_copy(tmp_path: Path, start: Start) -> None:
    """Without a copy the live file is read from its beginning and the known rest is lost."""
    append(tmp_path / "log", lines(0, 10))
    reader = start(line_bytes=1 << 20, poll_bytes=1, block_bytes=len(lines(0, 8)))
    data = reader.read(steps=1)
    truncate(tmp_path / "log")
    append(tmp_path / "log", lines(10, 13))
    data += reader.read(steps=10)
    assert data == lines(0, 8) + lines(10, 13)
    assert reader.status.bytes_lost == {"truncated": len(lines(8, 10))}
    assert reader.status.truncations == 1
    assert reader.accounted == len(lines(0, 13))


def test_a_file_that_grew_beyond_the_old_position(tmp_path: Path, start: Start) -> None:
    """A truncation is seen by the content before the position, not only by the size."""
    append(tmp_path / "log", lines(0, 10))
    reader = start()
    data = reader.read()
    truncate(tmp_path / "log")
    append(tmp_path / "log", lines(10, 40))
    assert data + reader.read() == lines(0, 40)
    assert reader.status.truncations == 1


def test_a_file_that_grew_to_the_same_size(tmp_path: Path, start: Start) -> None:
    """Another content of the same length is seen by the time of its last change."""
    append(tmp_path / "log", lines(0, 10))
    reader = start()
    data = reader.read()
    truncate(tmp_path / "log")
    append(tmp_path / "log", lines(10, 20))
    os.utime(tmp_path / "log", ns=(0, 12345))
    assert data + reader.read() == lines(0, 20)


def test_the_copy_comes_late(tmp_path: Path, start: Start) -> None:
    """A copy that comes under the glob only after the truncation was seen still completes the old content."""
    append(tmp_path / "log", lines(0, 50) + b"half")
    reader = start()
    data = reader.read()
    append(tmp_path / "log", b" and half\n")
    shutil.copy(tmp_path / "log", tmp_path / "hidden")
    truncate(tmp_path / "log")
    data += reader.read(steps=1)
    (tmp_path / "hidden").rename(tmp_path / "log.1")
    assert data + reader.read() == lines(0, 50) + b"half and half\n"
    assert reader.status.bytes_lost == {}


def test_of_several_copies_the_longest(tmp_path: Path, start: Start) -> None:
    """Nothing is lost that one of them holds."""
    append(tmp_path / "log", lines(0, 50))
    reader = start()
    reader.read()
    shutil.copy(tmp_path / "log", tmp_path / "log.0")
    append(tmp_path / "log", b"half a line")
    reader.read()
    shutil.copy(tmp_path / "log", tmp_path / "log.1")
    truncate(tmp_path / "log")
    reader.read()
    assert reader.status.bytes_lost == {}
    assert reader.accounted == len(lines(0, 50)) + len(b"half a line")


def test_copies_of_different_age(tmp_path: Path, start: Start) -> None:
    """A copy is compared with the content that was read furthest, not with a shorter copy of it."""
    append(tmp_path / "app", lines(0, 20))
    reader = start("*")
    reader.read()
    shutil.copy(tmp_path / "app", tmp_path / "log.bak")
    append(tmp_path / "app", lines(20, 25))
    reader.read()
    shutil.copy(tmp_path / "app", tmp_path.parent / "hidden")
    append(tmp_path / "app", lines(25, 30))
    reader.read()
    truncate(tmp_path / "app")
    assert reader.read(steps=1) == b""
    (tmp_path.parent / "hidden").rename(tmp_path / "log.1")
    assert reader.read() == b""
    assert reader.accounted == len(lines(0, 30))


def test_truncated_then_renamed(tmp_path: Path, start: Start) -> None:
    """Time runs forward also where a file was truncated and renamed between two looks."""
    append(tmp_path / "log", lines(0, 10))
    reader = start()
    data = reader.read()
    truncate(tmp_path / "log")
    append(tmp_path / "log", lines(10, 12))
    (tmp_path / "log").rename(tmp_path / "log.1")
    append(tmp_path / "log", lines(12, 14))
    assert data + reader.read() == lines(0, 14)


def test_copytruncate_while_down(tmp_path: Path, start: Start) -> None:
    """The copy is known by its content after a restart, twice copied included."""
    append(tmp_path / "log", lines(0, 50))
    reader = start()
    data = reader.read()
    reader.stop()
    append(tmp_path / "log", lines(50, 60))
    shutil.copy(tmp_path / "log", tmp_path / "log.2")
    truncate(tmp_path / "log")
    append(tmp_path / "log", lines(60, 70))
    shutil.copy(tmp_path / "log", tmp_path / "log.1")
    truncate(tmp_path / "log")
    append(tmp_path / "log", lines(70, 200))
    reader.restart(reader.kept)
    assert data + reader.read() == lines(0, 200)
    assert reader.status.truncations == 1
    assert reader.accounted == len(lines(0, 200))


def test_a_backup_under_a_strange_name(tmp_path: Path, start: Start) -> None:
    """A copy of at least 1,024 bytes is known under any name; it is read from where it goes its own way."""
    append(tmp_path / "log", lines(0, 50))
    shutil.copy(tmp_path / "log", tmp_path / "backup")
    reader = start("*")
    assert reader.read() == lines(0, 50)
    append(tmp_path / "log", lines(50, 60))
    assert reader.read() == lines(50, 60)
    assert reader.accounted == len(lines(0, 60))


def test_a_first_start_beside_a_copy(tmp_path: Path, start: Start) -> None:
    """The live file has grown since the copy was made; both together are read once."""
    append(tmp_path / "log.1", lines(0, 50))
    os.utime(tmp_path / "log.1", ns=(0, 0))
    append(tmp_path / "log", lines(0, 60))
    assert start().read() == lines(0, 60)


def test_a_line_taken_back(tmp_path: Path, start: Start) -> None:
    """A writer that cuts off its own unfinished line has not rotated; the bytes are lost, the content goes on."""
    append(tmp_path / "log", lines(0, 10))
    reader = start()
    data = reader.read()
    append(tmp_path / "log", b"x" * 500)
    data += reader.read()
    os.truncate(tmp_path / "log", len(lines(0, 10)))
    data += reader.read()
    append(tmp_path / "log", line(10))
    assert data + reader.read() == lines(0, 11)
    assert reader.status.truncations == 0
    assert reader.status.bytes_lost == {"truncated": 500}


def test_a_writer_without_append_leaves_a_hole(tmp_path: Path, start: Start) -> None:
    """Such a writer goes on at its old place: the file is as long as before, begins with NULs and is read anew."""
    append(tmp_path / "log", lines(0, 10))
    reader = start()
    reader.read()
    truncate(tmp_path / "log")
    with (tmp_path / "log").open("r+b") as writer:
        writer.seek(len(lines(0, 10)))
        writer.write(b"\n" + lines(10, 12))
    assert reader.read() == b"\0" * len(lines(0, 10)) + b"\n" + lines(10, 12)
