"""Rotation by renaming."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from capwatch.tail.wake import Touched

from .reader import Reader, append, line, lines

Start = Callable[..., Reader]


def test_rename(tmp_path: Path, start: Start) -> None:
    """A rotated file is read to its end, the new one from its beginning, and one rotation is counted."""
    append(tmp_path / "log", lines(0, 10))
    reader = start()
    first = reader.read()
    append(tmp_path / "log", lines(10, 20))
    (tmp_path / "log").rename(tmp_path / "log.1")
    append(tmp_path / "log", lines(20, 30))
    assert first + reader.read() == lines(0, 30)
    assert (reader.status.rotations, reader.status.truncations, reader.status.lag_bytes) == (1, 0, 0)


def test_the_writer_keeps_the_old_descriptor(tmp_path: Path, start: Start) -> None:
    """What is written to a file after its rename is read, though its new name is under no glob."""
    append(tmp_path / "log", lines(0, 10))
    reader = start("log")
    data = reader.read()
    with (tmp_path / "log").open("ab") as writer:
        (tmp_path / "log").rename(tmp_path / "old")
        data += reader.read()
        writer.write(lines(10, 20))
        writer.flush()
        data += reader.read(seconds=10, steps=2)
        append(tmp_path / "log", lines(20, 30))
        writer.write(lines(30, 40))
    data += reader.read()
    assert sorted(data.splitlines()) == sorted(lines(0, 40).splitlines())


def test_the_name_is_missing(tmp_path: Path, start: Start) -> None:
    """A missing name is not an end: the old file is read on, the new one from its beginning when it comes."""
    append(tmp_path / "log", lines(0, 10))
    reader = start()
    data = reader.read()
    (tmp_path / "log").rename(tmp_path / "log.1")
    append(tmp_path / "log.1", lines(10, 12))
    data += reader.read()
    assert reader.status.rotations == 0
    append(tmp_path / "log", lines(12, 20))
    assert data + reader.read() == lines(0, 20)
    assert reader.status.rotations == 1


def test_unlinked_at_once(tmp_path: Path, start: Start) -> None:
    """A file that was open is read to its end after it was deleted."""
    append(tmp_path / "log", lines(0, 10))
    reader = start()
    data = reader.read()
    append(tmp_path / "log", lines(10, 20))
    (tmp_path / "log").unlink()
    append(tmp_path / "log", lines(20, 30))
    assert sorted((data + reader.read()).splitlines()) == sorted(lines(0, 30).splitlines())
    assert reader.status.bytes_lost == {}


def test_chain(tmp_path: Path, start: Start) -> None:
    """.1 is not read again as .2 and .3."""
    reader = start()
    data = b""
    for turn in range(6):
        append(tmp_path / "log", lines(10 * turn, 10 * turn + 5))
        data += reader.read()
        append(tmp_path / "log", lines(10 * turn + 5, 10 * turn + 10))
        for number in (2, 1):
            if (tmp_path / f"log.{number}").exists():
                (tmp_path / f"log.{number}").rename(tmp_path / f"log.{number + 1}")
        (tmp_path / "log").rename(tmp_path / "log.1")
    assert data + reader.read() == lines(0, 60)
    assert (reader.status.rotations, reader.status.bytes_lost) == (5, {})


def test_several_rotations_between_two_looks(tmp_path: Path, start: Start) -> None:
    """Files that came and were rotated between two looks are read from their beginning, oldest first."""
    append(tmp_path / "log", lines(0, 10))
    reader = start()
    data = reader.read()
    append(tmp_path / "log", lines(10, 20))
    (tmp_path / "log").rename(tmp_path / "log.2")
    append(tmp_path / "log.1", lines(20, 30))
    append(tmp_path / "log", lines(30, 40))
    assert data + reader.read() == lines(0, 40)
    assert reader.status.rotations == 2


def test_several_rotations_while_down(tmp_path: Path, start: Start) -> None:
    """The same over a restart, and `start: end` does not concern files that came while the daemon was down."""
    append(tmp_path / "log", lines(0, 10))
    reader = start(start="end")
    reader.read()
    reader.stop()
    append(tmp_path / "log", lines(10, 20))
    (tmp_path / "log").rename(tmp_path / "log.2")
    append(tmp_path / "log.1", lines(20, 30))
    append(tmp_path / "log", lines(30, 40))
    reader.restart(reader.kept)
    assert reader.read() == lines(10, 40)
    assert reader.accounted == len(lines(0, 40))


def test_rotation_into_an_empty_file(tmp_path: Path, start: Start) -> None:
    """A new file may stay empty for a while; the rotation is counted with its first line."""
    append(tmp_path / "log", lines(0, 10))
    reader = start()
    data = reader.read()
    (tmp_path / "log").rename(tmp_path / "log.1")
    append(tmp_path / "log", b"")
    data += reader.read()
    append(tmp_path / "log", lines(10, 12))
    assert data + reader.read() == lines(0, 12)
    assert reader.status.rotations == 1


def test_lines_that_are_all_the_same(tmp_path: Path, start: Start) -> None:
    """The successor of a renamed file is read even where its content is nothing but the same again."""
    append(tmp_path / "log", line(7) * 30)
    reader = start()
    reader.read()
    (tmp_path / "log").rename(tmp_path / "log.1")
    append(tmp_path / "log", line(7) * 20)
    assert reader.read() == line(7) * 20


def test_gzip_of_the_rotated_file(tmp_path: Path, start: Start) -> None:
    """A compressed sibling is neither counted again nor read as text."""
    append(tmp_path / "log", lines(0, 10))
    reader = start()
    data = reader.read()
    append(tmp_path / "log", lines(10, 20))
    (tmp_path / "log").rename(tmp_path / "log.1")
    append(tmp_path / "log.1.gz", b"\x1f\x8b not text\n")
    append(tmp_path / "log", lines(20, 30))
    data += reader.read(steps=1)
    (tmp_path / "log.1").unlink()
    assert data + reader.read() == lines(0, 30)
    assert reader.accounted == len(lines(0, 30))


@pytest.mark.parametrize("globs", [("current",), ("current", "log.*"), ("log.*", "current")])
def test_symlink_swap(tmp_path: Path, start: Start, globs: tuple[str, ...]) -> None:
    """A link that is turned to a new file is a rotation; a file under the link and its own name is one."""
    append(tmp_path / "log.0001", lines(0, 10))
    (tmp_path / "current").symlink_to("log.0001")
    reader = start(*globs)
    data = reader.read()
    append(tmp_path / "log.0001", lines(10, 20))
    append(tmp_path / "log.0002", lines(20, 30))
    (tmp_path / "next").symlink_to("log.0002")
    (tmp_path / "next").rename(tmp_path / "current")
    assert data + reader.read() == lines(0, 30)
    assert reader.status.bytes_lost == {}


def test_symlink_and_rename(tmp_path: Path, start: Start) -> None:
    """The layout of Kubernetes: the file behind a lasting link is renamed and made anew."""
    (tmp_path / "pod").mkdir()
    append(tmp_path / "pod/0.log", lines(0, 10))
    (tmp_path / "container.log").symlink_to("pod/0.log")
    reader = start("container.log", "pod/*")
    data = reader.read()
    append(tmp_path / "pod/0.log", lines(10, 20))
    (tmp_path / "pod/0.log").rename(tmp_path / "pod/0.log.20260101-120000")
    append(tmp_path / "pod/0.log", lines(20, 30))
    assert data + reader.read() == lines(0, 30)
    assert reader.status.rotations == 1


def test_hard_link(tmp_path: Path, start: Start) -> None:
    """One file under two paths is counted once."""
    append(tmp_path / "log", lines(0, 10))
    (tmp_path / "log.same").hardlink_to(tmp_path / "log")
    reader = start()
    assert reader.read() == lines(0, 10)
    append(tmp_path / "log.same", lines(10, 20))
    assert reader.read() == lines(10, 20)
    assert reader.status.files == 1


def test_delete_and_recreate(tmp_path: Path, start: Start) -> None:
    """A new file under the old name is read from its beginning, whatever its size."""
    append(tmp_path / "log", lines(0, 10))
    reader = start()
    data = reader.read()
    (tmp_path / "log").unlink()
    append(tmp_path / "log", lines(10, 12))
    data += reader.read()
    (tmp_path / "log").unlink()
    data += reader.read()
    append(tmp_path / "log", lines(12, 40))
    assert data + reader.read() == lines(0, 40)


def test_the_same_content_made_anew(tmp_path: Path, start: Start) -> None:
    """An editor or `sed -i` writes the content to another inode: what was read is not read again."""
    append(tmp_path / "log", lines(0, 10))
    reader = start()
    data = reader.read()
    append(tmp_path / "new", lines(0, 12))
    (tmp_path / "new").rename(tmp_path / "log")
    data += reader.read()
    append(tmp_path / "log", lines(12, 20))
    assert data + reader.read() == lines(0, 20)
    assert reader.accounted == len(lines(0, 20))


def test_moved_away_and_back(tmp_path: Path, start: Start) -> None:
    """A vanished content is known again, also as a copy and after a restart."""
    append(tmp_path / "log", lines(0, 40))
    reader = start()
    reader.read()
    (tmp_path / "log").unlink()
    reader.read(seconds=40, steps=5)
    assert reader.status.open_files == 0
    reader.restart()
    reader.read()
    append(tmp_path / "log", lines(0, 41))
    assert reader.read() == line(40)
    assert reader.accounted == len(lines(0, 41))


def test_an_empty_file_that_gets_another_name(tmp_path: Path, start: Start) -> None:
    """Nothing tells that it is the same file: under its new name it is live, and its last line is waited for."""
    append(tmp_path / "first", b"")
    reader = start("*")
    reader.read()
    (tmp_path / "first").rename(tmp_path / "second")
    reader.read()
    append(tmp_path / "second", b"half")
    assert reader.read(seconds=20, steps=5) == b""


def test_the_successor_of_a_file_without_a_name(tmp_path: Path, start: Start) -> None:
    """The old file is read to its end before the new one, also where a wake-up came before its next look."""
    append(tmp_path / "log", lines(0, 10))
    reader = start("log")
    reader.read(steps=20)
    append(tmp_path / "log", lines(10, 20))
    (tmp_path / "log").rename(tmp_path / "old")
    append(tmp_path / "log", lines(20, 30))
    reader.now += 0.1
    touched = Touched(renamed=frozenset({str(tmp_path / "log")}))
    assert b"".join(block.data for block in reader.follower.poll(reader.now, touched)) == lines(10, 30)
