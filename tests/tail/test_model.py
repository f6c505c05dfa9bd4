"""A random life of a log against a model: every complete line exactly once and in order, every byte accounted for.

10,000 steps, different ones every time, in lives of at most 50; `make faults` runs ten times as many, and
`CAPWATCH_TAIL_STEPS` any number. How many ran is printed with `pytest -s`.
"""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from capwatch.tail.position import Saved

from .reader import Reader, line

STEPS = int(os.environ.get("CAPWATCH_TAIL_STEPS") or (100_000 if os.environ.get("CAPWATCH_FAULTS") else 4_000))
LENGTH = 50
"""Steps in one life: enough for several rotations and restarts."""
LIVES = 100
"""Of one run: between two of them what ran is counted."""


class LifeOfALog(RuleBasedStateMachine):
    """One writer, its rotation, and a reader that is stopped, killed and started again.

    Files lose their content (deletion, truncation without a copy) only when it was read and committed.
    """

    ran = 0
    """Steps of all lives."""

    @invariant()
    def count(self) -> None:
        """One more step."""
        LifeOfALog.ran += 1

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="tail-"))
        self.live = self.folder / "log"
        self.writer: IO[bytes] = self.live.open("ab", buffering=0)
        self.next = 0
        self.half = b""  # what is still to come of a line begun
        self.whole: list[bytes] = []
        self.bytes = 0
        self.up = True

    @initialize(max_open=st.sampled_from([1, 3, 100]))
    def first_start(self, max_open: int) -> None:
        """The reader finds an empty file, and has few or many descriptors."""
        self.reader = Reader(self.folder, block_bytes=500, poll_bytes=2000, line_bytes=400, max_open=max_open)
        self.committed: tuple[Saved, int] = (self.reader.follower.saved(), 0)
        self.poll()

    def teardown(self) -> None:
        """At the end everything is there."""
        try:
            if not self.up:
                self.reader.restart(self.committed[0])
            self.catch_up()
        finally:
            self.writer.close()
            self.reader.follower.close()
            shutil.rmtree(self.folder)

    def put(self, data: bytes) -> None:
        """The writer writes."""
        self.writer.write(data)
        self.bytes += len(data)

    def on_disk(self) -> list[Path]:
        """Rotated files, the newest first."""
        return [path for number in range(1, 30) if (path := self.folder / f"log.{number}").exists()]

    def shift(self) -> None:
        """Make room for a new .1."""
        for path in reversed(self.on_disk()):
            path.rename(path.with_suffix(f".{int(path.suffix[1:]) + 1}"))

    def lose_half(self) -> None:
        """The writer forgets the line it has begun."""
        if self.half:
            self.whole.pop()
            self.half = b""

    def poll(self, seconds: float = 1.0, steps: int = 1) -> None:
        """Read, and check the byte law and what was read so far."""
        self.reader.read(seconds, steps)
        got = b"".join(block.data for block in self.reader.blocks if not block.unterminated).splitlines(keepends=True)
        complete = self.whole[:-1] if self.half else self.whole
        assert got == complete[: len(got)]
        assert sum(block.too_long for block in self.reader.blocks) == 0

    def catch_up(self) -> None:
        """Read until there is nothing left, and commit."""
        self.poll(steps=2)
        while not self.reader.status.caught_up:
            self.poll()
        got = b"".join(block.data for block in self.reader.blocks if not block.unterminated).splitlines(keepends=True)
        assert got == (self.whole[:-1] if self.half else self.whole)
        assert self.reader.accounted == self.bytes
        self.commit()

    @rule(count=st.integers(1, 30))
    def write(self, count: int) -> None:
        """Some lines, the first of them perhaps begun earlier."""
        if self.half:
            self.put(self.half)
            self.half = b""
        fresh = [line(self.next + number) for number in range(count)]
        self.next += count
        self.whole += fresh
        self.put(b"".join(fresh))

    @rule(size=st.integers(1, 119))
    def write_half(self, size: int) -> None:
        """The beginning of a line."""
        if not self.half:
            fresh = line(self.next)
            self.next += 1
            self.whole.append(fresh)
            self.put(fresh[:size])
            self.half = fresh[size:]

    @rule(reopen=st.booleans())
    def rename(self, reopen: bool) -> None:
        """Rotation by renaming; the writer may go on with its old descriptor."""
        if self.live.exists():
            self.shift()
            self.live.rename(self.folder / "log.1")
        if reopen:
            self.reopen()

    @rule()
    def reopen(self) -> None:
        """The writer notices that the name is gone."""
        if not self.live.exists():
            self.lose_half()
            self.writer.close()
            self.writer = self.live.open("ab", buffering=0)

    @rule(gap=st.integers(0, 3))
    def copytruncate(self, gap: int) -> None:
        """Rotation by copying; lines between copy and truncation only where they are read before it."""
        if self.live.exists() and self.live.stat().st_size >= 200:
            self.lose_half()
            self.shift()
            shutil.copy(self.live, self.folder / "log.1")
            if gap and self.up:
                if not self.unfinished():
                    self.write(gap)
                self.catch_up()
            os.truncate(self.live, 0)

    def telling(self, path: Path) -> bool:
        """Whether a file is empty or long enough that its content tells it from another."""
        return path.stat().st_size == 0 or path.stat().st_size >= 64

    def unfinished(self) -> bool:
        """Whether the live file ends within a line that nobody will finish."""
        content = self.live.read_bytes()
        return bool(content) and not content.endswith(b"\n")

    @precondition(lambda self: self.up)
    @rule()
    def truncate_without_copy(self) -> None:
        """The lines were read; a line begun is lost."""
        if self.live.exists() and self.telling(self.live):
            self.catch_up()
            self.lose_half()
            os.truncate(self.live, 0)

    @precondition(lambda self: self.up)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        """A rotated file goes when it was read; the writer no longer writes to it."""
        files = [path for path in self.on_disk() if self.telling(path)]
        if files and self.live.exists():
            self.catch_up()
            data.draw(st.sampled_from(files)).unlink()

    @precondition(lambda self: self.up)
    @rule(data=st.data())
    def compress(self, data: st.DataObject) -> None:
        """A rotated file becomes a .gz under the same glob: the same content, never read again, nor as text."""
        files = [path for path in self.on_disk() if self.telling(path)]
        if files and self.live.exists():
            self.catch_up()
            path = data.draw(st.sampled_from(files))
            with gzip.open(f"{path}.gz", "wb", compresslevel=1) as file:
                file.write(path.read_bytes())
            path.unlink()

    @precondition(lambda self: self.up)
    @rule()
    def delete_live(self) -> None:
        """The live file goes and is made anew."""
        if self.live.exists() and self.telling(self.live):
            self.catch_up()
            self.lose_half()
            self.live.unlink()
            self.writer.close()
            self.writer = self.live.open("ab", buffering=0)

    @precondition(lambda self: self.up)
    @rule()
    def backup(self) -> None:
        """A copy beside the live file that nothing is ever truncated for."""
        if self.live.exists() and self.live.stat().st_size >= 1024:
            self.catch_up()
            (self.folder / "log.bak").unlink(missing_ok=True)
            shutil.copy(self.live, self.folder / "log.bak")

    @precondition(lambda self: self.up)
    @rule(steps=st.integers(1, 3))
    def look(self, steps: int) -> None:
        """Some polls."""
        self.poll(steps=steps)

    @precondition(lambda self: self.up)
    @rule(after=st.integers(0, 5))
    def commit_while_reading(self, after: int) -> None:
        """Positions are frozen between two blocks of one poll."""
        self.reader.now += 1
        for number, block in enumerate(self.reader.follower.poll(self.reader.now)):
            self.reader.follower.taken(block)
            self.reader.blocks.append(block)
            if number == after:
                self.commit()

    @precondition(lambda self: self.up)
    @rule()
    def rest(self) -> None:
        """Nothing happens for longer than the grace time."""
        if self.live.exists() or not self.half:
            self.poll(seconds=12, steps=5)

    @precondition(lambda self: self.up)
    @rule()
    def commit(self) -> None:
        """What was read so far is durable."""
        self.committed = (self.reader.follower.saved(), len(self.reader.blocks))

    @precondition(lambda self: self.up)
    @rule(down=st.booleans())
    def kill(self, down: bool) -> None:
        """Whatever was not committed is gone; the daemon stays down or comes back at once."""
        saved, count = self.committed
        del self.reader.blocks[count:]
        self.reader.follower.close()
        self.up = not down
        if self.up:
            self.reader.restart(saved)

    @precondition(lambda self: not self.up)
    @rule()
    def start(self) -> None:
        """The daemon comes back."""
        self.reader.restart(self.committed[0])
        self.up = True


@pytest.mark.filterwarnings("ignore::hypothesis.errors.NonInteractiveExampleWarning")
def test_life_of_a_log() -> None:
    """Every complete line exactly once and in order, whatever happens to the files and to the daemon."""
    before = LifeOfALog.ran
    while LifeOfALog.ran - before < STEPS:
        run_state_machine_as_test(
            LifeOfALog,
            settings=settings(
                max_examples=LIVES,
                stateful_step_count=LENGTH,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    print(f"{LifeOfALog.ran - before} steps in the life of a log")
