"""Files that look alike."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from .reader import Reader, append, line, lines

Start = Callable[..., Reader]

BANNER = lines(9000, 9020)
"""More than 1,024 bytes that several files begin with."""


def test_equal_beginnings(tmp_path: Path, start: Start) -> None:
    """Files with the same first 1,024 bytes and different lines behind them are different files."""
    append(tmp_path / "a.log", BANNER + lines(0, 10))
    append(tmp_path / "b.log", BANNER + lines(10, 20))
    data = start("*.log").read()
    assert sorted(data.splitlines()) == sorted((2 * BANNER + lines(0, 20)).splitlines())


def test_equal_until_one_of_them_goes_on(tmp_path: Path, start: Start) -> None:
    """While they are equal they may be copies; when they part, each is read whole."""
    append(tmp_path / "a.log", BANNER)
    append(tmp_path / "b.log", BANNER)
    reader = start("*.log")
    data = reader.read()
    assert data == BANNER
    append(tmp_path / "b.log", lines(0, 10))
    data += reader.read()
    append(tmp_path / "a.log", lines(10, 20))
    data += reader.read()
    assert sorted(data.splitlines()) == sorted((2 * BANNER + lines(0, 20)).splitlines())
    assert reader.accounted == len(data)


def test_short_equal_files_of_different_programs(tmp_path: Path, start: Start) -> None:
    """Less than 1,024 equal bytes under unrelated names are a coincidence."""
    append(tmp_path / "a.log", line(1))
    append(tmp_path / "b.log", line(1))
    assert start("*.log").read() == line(1) * 2


def test_equal_beginnings_through_a_rotation(tmp_path: Path, start: Start) -> None:
    """Every file of a chain begins with the same banner; the newcomer is not a copy of its predecessor."""
    append(tmp_path / "log", BANNER + lines(0, 10))
    reader = start()
    data = reader.read()
    (tmp_path / "log").rename(tmp_path / "log.1")
    append(tmp_path / "log", BANNER)
    data += reader.read()
    append(tmp_path / "log", lines(10, 20))
    assert data + reader.read() == BANNER + lines(0, 10) + BANNER + lines(10, 20)


def test_equal_beginnings_under_the_name_of_a_truncated_file(tmp_path: Path, start: Start) -> None:
    """What stands under its own name is its successor, never a copy of it."""
    append(tmp_path / "log", BANNER + lines(0, 10))
    reader = start()
    reader.read()
    os.truncate(tmp_path / "log", 0)
    reader.read(steps=1)
    (tmp_path / "log").unlink()
    append(tmp_path / "log", BANNER)
    assert reader.read(seconds=0.6) == BANNER


def test_a_beginning_that_could_be_anything(tmp_path: Path, start: Start) -> None:
    """A file shorter than 64 bytes says nothing about a content of which nothing was read yet."""
    append(tmp_path / "log", b"x" * 70)
    reader = start()
    reader.read()
    reader.stop()
    append(tmp_path / "new", b"x")
    (tmp_path / "new").rename(tmp_path / "log")
    reader.restart(reader.kept)
    reader.read()
    assert reader.accounted == 71


def test_the_inode_of_a_vanished_file(tmp_path: Path, start: Start) -> None:
    """A new file that got it was not truncated."""
    append(tmp_path / "log", lines(0, 10))
    reader = start()
    reader.read()
    (tmp_path / "log").unlink()
    reader.read(seconds=40, steps=5)
    kept = reader.follower.saved()
    append(tmp_path / "log", lines(10, 12))
    reused = os.stat(tmp_path / "log")
    positions = {number: msgspec.structs.replace(each, inode=reused.st_ino) for number, each in kept.positions.items()}
    reader.restart(msgspec.structs.replace(kept, positions=positions))
    assert reader.read() == lines(10, 12)
    assert reader.status.truncations == 0


def test_inode_reuse(tmp_path: Path, start: Start) -> None:
    """After a restart the old inode with other content is a new file."""
    append(tmp_path / "log", lines(0, 10))
    reader = start()
    data = reader.read()
    kept = reader.follower.saved()
    reader.follower.close()
    append(tmp_path / "log.new", lines(10, 30))
    reused = os.stat(tmp_path / "log.new")
    positions = {number: msgspec.structs.replace(each, inode=reused.st_ino) for number, each in kept.positions.items()}
    (tmp_path / "log").unlink()
    reader.restart(msgspec.structs.replace(kept, positions=positions))
    assert data + reader.read() == lines(0, 30)
    assert reader.accounted == len(lines(0, 30))


def test_inode_reuse_of_a_file_that_was_closed(tmp_path: Path, start: Start) -> None:
    """The same while the daemon runs: the content before the position is checked at every read."""
    append(tmp_path / "log", lines(0, 10))
    reader = start()
    data = reader.read()
    (content,) = reader.follower._register.files.values()
    reader.follower._register.open_files.close(content)
    (tmp_path / "log").write_bytes(lines(10, 30))
    assert data + reader.read() == lines(0, 30)


@pytest.mark.parametrize("size", [1, 50, 64, 1023, 1024, 1025, 5000])
def test_a_renamed_file_of_any_size_is_known_after_a_restart(tmp_path: Path, start: Start, size: int) -> None:
    """Identity does not depend on how long the file is."""
    append(tmp_path / "log", b"x" * (size - 1) + b"\n")
    reader = start()
    reader.read()
    reader.stop()
    (tmp_path / "log").rename(tmp_path / "log.1")
    append(tmp_path / "log", line(1))
    reader.restart(reader.kept)
    assert reader.read() == line(1)


def test_empty_files_are_known_by_their_inode(tmp_path: Path, start: Start) -> None:
    """Any number of empty files are different files."""
    for name in ("log", "log.a", "log.b"):
        append(tmp_path / name, b"")
    reader = start()
    reader.read()
    assert reader.status.files == 3
    append(tmp_path / "log.a", line(1))
    append(tmp_path / "log.b", line(2))
    assert sorted(reader.read().splitlines()) == sorted((line(1) + line(2)).splitlines())


def test_the_inode_of_a_deleted_file_under_another_name(tmp_path: Path, start: Start) -> None:
    """After a restart a new file with the inode of one that went was not truncated; what was unread of that is lost."""
    append(tmp_path / "log", lines(0, 10))
    append(tmp_path / "log.1", lines(20, 30))
    reader = start()
    reader.read()
    append(tmp_path / "log.1", b"not yet read")
    reader.read()
    reader.stop()
    (tmp_path / "log.1").unlink()
    append(tmp_path / "log.new", lines(30, 40))
    reused = os.stat(tmp_path / "log.new").st_ino
    positions = {
        number: msgspec.structs.replace(each, inode=reused) if each.path.endswith("log.1") else each
        for number, each in reader.kept.positions.items()
    }
    reader.restart(msgspec.structs.replace(reader.kept, positions=positions))
    assert reader.read(seconds=20) == lines(30, 40)
    assert reader.status.truncations == 0
    assert reader.status.bytes_lost == {"deleted": len(b"not yet read")}
