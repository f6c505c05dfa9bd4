"""Reading: what it hands to a commit, when there is nothing to hand over, and what it remembers for another reading."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from glob import glob
from itertools import chain
from pathlib import Path

import pytest

from capwatch.config.schema import Config, Limits, Source
from capwatch.daemon.package import Package
from capwatch.daemon.reading import Reading
from capwatch.ledger import Totals
from capwatch.pipeline import Pipeline
from capwatch.tail.wake import NOTHING, Touched
from tests.spine import NOW, samples

STAMP = "2026-03-03T09:15:02.43Z stdout"


class Daemon:
    """Reading and what was committed of it, without a disk or a clock of its own."""

    def __init__(self, *sources: Source, limits: Limits | None = None) -> None:
        self.now = NOW
        self.config = Config(sources=sources, limits=limits or Limits())
        pipeline = Pipeline(self.config)
        self.totals: Totals = pipeline.totals()
        self.reading = Reading(self.config, pipeline, {}, lambda: self.now)

    def commit(self, *, checkpoint: bool = False) -> Package:
        """Read what there is, and commit it; every file counts as touched, however soon after the last look."""
        globs = [pattern for one in self.config.sources for pattern in one.path]
        self.reading.poll(Touched(written=frozenset(chain.from_iterable(map(glob, globs)))), lambda: True)
        package = self.reading.freeze(checkpoint=checkpoint)
        self.totals.apply(package.delta)
        return package

    def reload(self, *sources: Source) -> None:
        """Go on with other sources, as a reload does."""
        config = replace(self.config, sources=sources)
        old, pipeline = self.reading, Pipeline(config, self.reading.pipeline.names)
        pipeline.inherit(old.pipeline)
        self.reading = Reading(config, pipeline, old.states(), lambda: self.now)
        old.close()

    def value(self, name: str, **where: str) -> float:
        """The sum of all samples of a name (without prefix) with these labels."""
        found = samples(self.reading.pipeline, self.totals)
        return sum(
            value
            for (one, labels), value in found.items()
            if one == f"capwatch_{name}" and where.items() <= dict(labels).items()
        )

    def shown(self, source: str) -> dict[str, float]:
        """All samples of one source's files by name, without prefix."""
        found = samples(self.reading.pipeline, self.totals)
        return {
            one.removeprefix("capwatch_"): value
            for (one, labels), value in found.items()
            if one.startswith("capwatch_source_")
            and dict(labels).get("source") == source
            and "reason" not in dict(labels)
        }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log with one request."""
    path = tmp_path / "log"
    path.write_text(request())
    return path


@pytest.fixture
def daemon(path: Path) -> Iterator[Daemon]:
    """A daemon that has read it."""
    found = Daemon(source(path))
    found.commit()
    yield found
    found.reading.close()


def source(path: Path, name: str = "log") -> Source:
    """A source on one file, from its beginning."""
    return Source(name=name, path=(str(path),), format="jsonl", start="beginning")


def request() -> str:
    """One line."""
    return json.dumps({"finished_at": NOW, "tenant": "acme", "outcome": "ok"}) + "\n"


def test_time_that_goes_by_is_no_news(daemon: Daemon) -> None:
    """Nothing has to be committed while nothing is written."""
    daemon.now += 60
    daemon.reading.poll(NOTHING, lambda: True)
    assert not daemon.reading.has_news()


def test_an_unfinished_line_is_news(daemon: Daemon, path: Path) -> None:
    """It is no line yet, but bytes that lag behind."""
    with path.open("a") as file:
        file.write("{")
    daemon.reading.poll(Touched(written=frozenset({str(path)})), lambda: True)
    assert daemon.reading.has_news()


def test_what_was_committed_is_no_news(daemon: Daemon, path: Path) -> None:
    """A line is news until it has been handed over."""
    path.write_text(request() * 2)
    daemon.reload(source(path))
    daemon.reading.poll(NOTHING, lambda: True)
    before = daemon.reading.has_news()
    daemon.commit()
    assert (before, daemon.reading.has_news(), daemon.value("requests_total")) == (True, False, 2)


def test_a_source_that_was_taken_out_goes_on_where_it_stood(daemon: Daemon, path: Path) -> None:
    """Put back by a later reload it is not counted again."""
    daemon.reload()
    daemon.commit()
    with path.open("a") as file:
        file.write(request())
    daemon.reload(source(path))
    daemon.commit()
    assert daemon.value("lines_read_total", source="log") == 2


def test_a_source_that_was_taken_out_is_neither_up_nor_behind(daemon: Daemon, path: Path) -> None:
    """Its gauges are withdrawn, its counters stay; put back it has all of them again."""
    before = daemon.shown("log")
    daemon.reload()
    daemon.commit()
    gone = {"source_up", "source_lag_bytes"}
    assert daemon.shown("log") == {name: value for name, value in before.items() if name not in gone}
    daemon.reload(source(path))
    daemon.commit()
    assert daemon.shown("log") == before


def test_a_record_whose_last_part_never_comes_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a minute the parts of a container's line are a drop and skipped lines, though no other line comes.

    The minute is one of the monotonic clock: setting the wall clock changes nothing.
    """
    path = tmp_path / "0.log"
    path.write_text(f"{STAMP} P begun\n{STAMP} P and never ended\n")
    ticking = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: ticking[0])
    daemon = Daemon(replace(source(path), wrapper="cri"))
    daemon.commit()
    daemon.now += 3600  # the wall clock is set
    daemon.reload(replace(source(path), wrapper="cri"))  # and what is open goes on in another reading
    daemon.commit()
    held = daemon.value("lines_read_total")
    ticking[0] += 61
    daemon.commit()
    daemon.reading.close()
    counts = [daemon.value(f"lines_{one}_total") for one in ("read", "counted", "skipped", "dropped")]
    assert (held, counts, daemon.value("lines_dropped_total", reason="partial")) == (0, [2, 0, 1, 1], 1)


def test_dropped_lines_are_told_by_their_reason_and_not_by_their_text(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Once a minute at most, and everything in between with the next sentence."""
    caplog.set_level("INFO")
    path.write_text("secret\nsecret\n" + request())
    daemon = Daemon(Source("log", (str(path),), "jsonl", start="beginning"))
    daemon.commit()
    with path.open("a") as log:
        log.write("more\n")
    daemon.commit()
    daemon.commit()
    assert [message for message in caplog.messages if "source log" in message] == [
        "source log: files found: 1",
        "source log: lines dropped: 2 malformed; capwatch explain shows why",
    ]
