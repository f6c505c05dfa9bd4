"""Files: which are read, from where, with how many descriptors; positions and numbers."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from capwatch.tail.content import Content
from capwatch.tail.descriptors import Descriptors
from capwatch.tail.position import Position
from capwatch.tail.wake import Touched

from .reader import Reader, append, line, lines

Start = Callable[..., Reader]


def test_start_at_the_end(tmp_path: Path, start: Start) -> None:
    """What was there at the first ever start is passed over up to its last whole line and shown as skipped."""
    append(tmp_path / "log", lines(0, 10) + line(10)[:30])
    reader = start(start="end")
    assert reader.read() == b""
    assert reader.status.bytes_skipped == len(lines(0, 10))
    append(tmp_path / "log", line(10)[30:] + line(11))
    assert reader.read() == lines(10, 12)
    assert reader.accounted == len(lines(0, 12))


def test_start_at_the_beginning(tmp_path: Path, start: Start) -> None:
    """What was there at the first ever start is read."""
    append(tmp_path / "log", lines(0, 10))
    assert start(start="beginning").read() == lines(0, 10)


def test_a_file_that_comes_later_is_read_from_its_beginning(tmp_path: Path, start: Start) -> None:
    """`start: end` is only for files that exist at the first ever start."""
    reader = start(start="end")
    reader.read()
    append(tmp_path / "log", lines(0, 10))
    assert reader.read() == lines(0, 10)
    reader.stop()
    append(tmp_path / "log.1", lines(10, 20))
    reader.restart(reader.kept)
    assert reader.read() == lines(10, 20)


def test_a_missing_directory(tmp_path: Path, start: Start) -> None:
    """It is no error; the source is not up, and is read from byte 0 when it comes."""
    reader = start("later/*/log", start="end")
    assert reader.read() == b""
    assert not reader.status.up
    (tmp_path / "later/pod").mkdir(parents=True)
    append(tmp_path / "later/pod/log", lines(0, 10))
    assert reader.read() == lines(0, 10)
    assert reader.status.up


def refuse(monkeypatch: pytest.MonkeyPatch, path: Path, number: int = errno.EACCES) -> None:
    """Let opening this path fail, for root too."""
    opened = os.open

    def refusing(name: str, *arguments: int) -> int:
        if name == str(path):
            raise OSError(number, os.strerror(number), name)
        return opened(name, *arguments)

    monkeypatch.setattr(os, "open", refusing)


@pytest.mark.parametrize("policy", ["beginning", "end"])
def test_unreadable_then_readable(tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    """The source is not up meanwhile, its bytes are lag, others are read; then it catches up."""
    append(tmp_path / "log", lines(0, 10))
    append(tmp_path / "log.a", lines(50, 60))
    reader = start(start=policy)
    with monkeypatch.context() as patched:
        refuse(patched, tmp_path / "log")
        assert reader.read() == (lines(50, 60) if policy == "beginning" else b"")
        assert (reader.status.up, reader.status.lag_bytes) == (False, len(lines(0, 10)))
        assert reader.status.problems == (f"{tmp_path / 'log'}: Permission denied",)
        reader.restart()
        reader.read()
        append(tmp_path / "log", lines(10, 20))
    assert reader.read() == (lines(0, 20) if policy == "beginning" else lines(10, 20))
    assert reader.status.up
    assert list(reader.status.problems) == []
    assert reader.accounted == len(lines(0, 20) + lines(50, 60))


def test_a_read_error(tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error while reading is a problem, not the end of the file."""
    append(tmp_path / "log", lines(0, 10))
    reader = start()
    with monkeypatch.context() as patched:
        patched.setattr(os, "preadv", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "Input/output error")))
        assert reader.read() == b""
        assert reader.status.problems == (f"{tmp_path / 'log'}: Input/output error",)
    assert reader.read() == lines(0, 10)


def test_a_read_error_while_files_are_told_apart(tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same where only the beginning was to be compared, after a restart too; no descriptor is left behind."""
    append(tmp_path / "log", lines(0, 10))
    reader = start()
    with monkeypatch.context() as patched:
        for name in ("pread", "preadv"):
            patched.setattr(os, name, lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "Input/output error")))
        assert reader.read() == b""
        assert not reader.status.up
        reader.restart()
        assert reader.read() == b""
        assert reader.status.problems == (f"{tmp_path / 'log'}: Input/output error",)
        assert reader.status.open_files == 0
    assert reader.read() == lines(0, 10)


def test_deleted_before_it_could_be_opened(tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bytes were seen and are lost, after the grace time in which it might have come back."""
    append(tmp_path / "log", lines(0, 10))
    refuse(monkeypatch, tmp_path / "log")
    reader = start()
    reader.read()
    (tmp_path / "log").unlink()
    reader.read(seconds=10, steps=2)
    assert reader.status.bytes_lost == {}
    reader.read(seconds=10, steps=4)
    assert reader.status.bytes_lost == {"deleted": len(lines(0, 10))}
    assert reader.status.lag_bytes == 0


def test_deleted_while_down(tmp_path: Path, start: Start) -> None:
    """What was known of it and not taken is lost."""
    append(tmp_path / "log", lines(0, 10))
    reader = start(block_bytes=len(lines(0, 6)), poll_bytes=1)
    reader.read(steps=1)
    reader.stop()
    (tmp_path / "log").unlink()
    reader.restart(reader.kept)
    reader.read(seconds=20)
    assert reader.status.bytes_lost == {"deleted": len(lines(6, 10))}


def test_a_deleted_file_frees_its_disk(tmp_path: Path, start: Start) -> None:
    """The descriptor of a deleted file is closed within the grace time after its last line."""
    append(tmp_path / "log", lines(0, 10))
    reader = start()
    reader.read()
    (tmp_path / "log").unlink()
    reader.read(seconds=5, steps=4)
    assert reader.status.open_files == 1
    reader.read(seconds=5, steps=4)
    assert reader.status.open_files == 0


def test_a_rotated_file_is_closed(tmp_path: Path, start: Start) -> None:
    """The descriptor of a silent rotated file is closed; if it grows again it is opened again."""
    append(tmp_path / "log", lines(0, 10))
    reader = start()
    reader.read()
    (tmp_path / "log").rename(tmp_path / "log.1")
    append(tmp_path / "log", lines(10, 12))
    reader.read(seconds=11, steps=4)
    assert reader.status.open_files == 1
    append(tmp_path / "log.1", lines(12, 14))
    assert reader.read() == lines(12, 14)


def test_more_files_than_descriptors(tmp_path: Path, start: Start) -> None:
    """500 files through 64 descriptors: growth, renames and a restart lose nothing."""
    reader = start("*.log", "*.log.1", max_open=64)
    expected: list[bytes] = []
    data = b""
    for turn in range(3):
        for number in range(500):
            seq = 1000 * turn + number
            expected.append(line(seq))
            append(tmp_path / f"{number}.log", line(seq))
            if turn == 1 and number % 7 == 0:
                (tmp_path / f"{number}.log").rename(tmp_path / f"{number}.log.1")
        data += reader.read(steps=2)
        assert reader.status.open_files <= 64
        if turn == 1:
            reader.restart()
    assert sorted(data.splitlines(keepends=True)) == sorted(expected)
    assert reader.accounted == sum(map(len, expected))


def test_a_file_without_a_name_keeps_its_descriptor(tmp_path: Path, start: Start) -> None:
    """It could not be opened again, so others are closed for want of room."""
    append(tmp_path / "log", line(0))
    reader = start(max_open=1)
    reader.read()
    with (tmp_path / "log").open("ab", buffering=0) as writer:
        (tmp_path / "log").unlink()
        reader.read()
        append(tmp_path / "log.a", line(1))
        append(tmp_path / "log.b", line(2))
        reader.read()
        writer.write(line(3))
        assert reader.read() == line(3)


def test_the_longest_silent_file_is_closed(tmp_path: Path) -> None:
    """Of those with a name, the one that moved last stays open."""
    contents = [Content(number, Position(0, number, "log"), 0.0) for number in range(3)]
    held = Descriptors(limit=2)
    for content in contents:
        content.listed = True
        held.hold(content, os.open(tmp_path, os.O_RDONLY))
        held.moved(contents[0])
    assert [content.fd is None for content in contents] == [False, True, False]
    held.close_all()
    assert len(held) == 0


def test_blocks_not_taken_are_read_again(tmp_path: Path, start: Start) -> None:
    """Positions cover exactly the blocks taken, even in the middle of a poll."""
    append(tmp_path / "log", lines(0, 30))
    reader = start(block_bytes=len(lines(0, 10)))
    blocks = []
    for block in reader.follower.poll(reader.now):
        blocks.append(block)
        if len(blocks) == 2:
            reader.follower.taken(blocks[0])
            kept = reader.follower.saved()
    assert reader.status.lag_bytes == len(lines(10, 30))
    reader.restart(kept)
    assert reader.read() == lines(10, 30)


def test_blocks_taken_after_the_file_was_truncated(tmp_path: Path, start: Start) -> None:
    """A block on its way through the pipeline keeps its place in the old content."""
    append(tmp_path / "log", lines(0, 10))
    reader = start()
    (block,) = reader.follower.poll(reader.now)
    (tmp_path / "log").write_bytes(lines(10, 15))
    assert reader.read(steps=10) == lines(10, 15)
    reader.follower.taken(block)
    reader.read()
    assert reader.status.bytes_read == len(lines(0, 15))
    assert reader.accounted == len(lines(0, 15))
    assert sorted(each.vanished for each in reader.follower.saved().positions.values()) == [False, True]


@pytest.mark.parametrize("data", [lines(0, 10), b"a\n"])
def test_blocks_never_taken_of_a_file_that_is_gone(tmp_path: Path, start: Start, data: bytes) -> None:
    """After a restart their bytes are lost and counted as such."""
    append(tmp_path / "log", data)
    reader = start()
    list(reader.follower.poll(reader.now))
    (tmp_path / "log").write_bytes(b"")
    reader.read(steps=10)
    assert reader.status.lag_bytes == len(data)
    reader.restart()
    reader.read(seconds=20)
    assert (reader.status.lag_bytes, sum(reader.status.bytes_lost.values())) == (0, len(data))


def test_the_end_is_seen_twice(tmp_path: Path, start: Start) -> None:
    """After a pause of the daemon a rotated file is not closed at the first look."""
    append(tmp_path / "log", lines(0, 10))
    reader = start()
    reader.read(steps=1)
    (tmp_path / "log").rename(tmp_path / "log.1")
    append(tmp_path / "log.1", line(10))
    open_files = []
    for _ in range(3):
        reader.read(seconds=40, steps=1)
        open_files.append(reader.status.open_files)
    assert open_files == [1, 1, 0]


def test_positions_that_did_not_change_are_the_same_objects(tmp_path: Path, start: Start) -> None:
    """So a commit can tell cheaply which to write."""
    append(tmp_path / "log", lines(0, 10))
    append(tmp_path / "log.a", lines(10, 20))
    reader = start()
    reader.read()
    before = reader.follower.saved().positions
    append(tmp_path / "log.a", line(20))
    reader.read()
    after = reader.follower.saved().positions
    assert [after[number] is before[number] for number in before] == [True, False]


def test_vanished_contents_are_remembered_in_bounds(tmp_path: Path, start: Start) -> None:
    """The state does not grow with the number of rotations."""
    reader = start(remembered=3)
    for turn in range(8):
        append(tmp_path / "log", line(turn))
        reader.read()
        (tmp_path / "log").unlink()
        reader.read(seconds=35, steps=4)
    assert len(reader.follower.saved().positions) == 3


def test_oldest_files_first(tmp_path: Path, start: Start) -> None:
    """Time runs forward: by time of change, then by number, the live file last."""
    for name, number in (("log", 3), ("log.1", 2), ("log.2", 1), ("log.10", 0)):
        append(tmp_path / name, line(number))
        os.utime(tmp_path / name, ns=(0, 5))
    os.utime(tmp_path / "log.1", ns=(0, 1))
    reader = start()
    assert reader.read() == line(2) + line(0) + line(1) + line(3)
    assert reader.status.rotations == 0


def test_silent_files_are_looked_at_less_often(tmp_path: Path, start: Start) -> None:
    """From 20 ms after a line to half a second."""
    append(tmp_path / "log", line(1))
    reader = start()
    waits: list[float] = []
    for _ in range(8):
        assert len(list(reader.follower.poll(reader.now))) == (1 if not waits else 0)
        waits.append(round(reader.follower.due() - reader.now, 3))
        reader.now = reader.follower.due()
    assert waits == [0.02, 0.04, 0.08, 0.16, 0.32, 0.38, 0.12, 0.5]  # two of them end with the scan
    append(tmp_path / "log", line(2))
    reader.read(steps=1)
    assert round(reader.follower.due() - reader.now, 3) == 0.02


def test_a_touched_file_is_read_at_once(tmp_path: Path, start: Start) -> None:
    """A wake-up names the file; what is under no glob does not matter."""
    append(tmp_path / "log", line(1))
    reader = start()
    reader.read(steps=20)
    append(tmp_path / "log.1", line(3))
    other = Touched(written=frozenset({str(tmp_path / "other")}), renamed=frozenset({str(tmp_path / "more")}))
    reader.now += 0.1
    assert list(reader.follower.poll(reader.now, other)) == []
    append(tmp_path / "log", line(2))
    (block,) = reader.follower.poll(reader.now, Touched(written=frozenset({str(tmp_path / "log")})))
    assert block.data == line(2)


def test_a_new_name_is_looked_up_at_once(tmp_path: Path, start: Start) -> None:
    """A wake-up by a rename brings the next look at the globs forward."""
    append(tmp_path / "log", line(1))
    reader = start()
    reader.read()
    append(tmp_path / "log.1", line(2))
    reader.now += 0.1
    (block,) = reader.follower.poll(reader.now, Touched(renamed=frozenset({str(tmp_path / "log.1")})))
    assert block.data == line(2)


def test_directories_to_watch(tmp_path: Path, start: Start) -> None:
    """Those of the globs, of the files found, and of the files behind links."""
    (tmp_path / "real").mkdir()
    (tmp_path / "pods/a").mkdir(parents=True)
    append(tmp_path / "real/log", line(1))
    (tmp_path / "pods/a/log").symlink_to(tmp_path / "real/log")
    reader = start("pods/*/log")
    reader.read()
    assert reader.follower.directories() == {str(tmp_path / name) for name in ("pods", "pods/a", "real")}
