"""The file of deploy notes: followed like a log, each note kept once, whatever happens in between."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from capwatch.config.schema import Config
from capwatch.daemon.package import Ledger, Package
from capwatch.daemon.reading import Reading
from capwatch.drift.marks import Marks
from capwatch.pipeline import Pipeline
from capwatch.record import Note
from capwatch.tail.wake import NOTHING
from tests.spine import NOW, samples


def line(number: int) -> str:
    """One note."""
    return json.dumps({"at": NOW + number, "text": f"deploy {number}"}) + "\n"


def read(path: Path, ledger: Ledger) -> tuple[Reading, Package]:
    """What a daemon reads that begins where another one stood at its last commit."""
    config = Config(deploys=str(path))
    reading = Reading(config, Pipeline(config), ledger.sources, lambda: NOW)
    reading.poll(NOTHING, lambda: True)
    package = reading.freeze(checkpoint=False)
    reading.close()
    return reading, package


def shown(reading: Reading, package: Package) -> dict[str, float]:
    """All samples about the file, by name and reason."""
    totals = reading.pipeline.totals()
    totals.apply(package.delta)
    found = samples(reading.pipeline, totals)
    return {
        name + dict(labels).get("reason", ""): value
        for (name, labels), value in found.items()
        if ("source", "deploys") in labels
    }


def test_notes_are_read_from_the_beginning_and_once(tmp_path: Path) -> None:
    """A daemon that dies before its commit reads them again, one that dies after it does not."""
    path, ledger = tmp_path / "deploys.jsonl", Ledger()
    path.write_text(line(1) + line(2))
    first = [Note(NOW + 1, None, "deploy 1"), Note(NOW + 2, None, "deploy 2")]
    assert read(path, ledger)[1].notes == first
    _, package = read(path, ledger)
    assert package.notes == first
    ledger.take(package)
    with path.open("a") as file:
        file.write(line(3))
    assert read(path, ledger)[1].notes == [Note(NOW + 3, None, "deploy 3")]


def test_lines_are_counted(tmp_path: Path) -> None:
    """By the laws of every source: bad ones by their reason, bytes to the last one."""
    path = tmp_path / "deploys.jsonl"
    path.write_text(line(1) + "rubbish\n" + '{"at": "?", "text": "x"}\n')
    told = shown(*read(path, Ledger()))
    assert told["capwatch_lines_read_total"] == 3
    assert told["capwatch_lines_counted_total"] == 1
    assert told["capwatch_lines_dropped_totalmalformed"] == told["capwatch_lines_dropped_totalbad_time"] == 1
    assert told["capwatch_source_bytes_read_total"] == path.stat().st_size


def test_a_file_that_is_not_there_yet_is_no_fault(tmp_path: Path) -> None:
    """Nothing has been deployed."""
    assert shown(*read(tmp_path / "deploys.jsonl", Ledger()))["capwatch_source_up"] == 1


def test_the_note_is_the_last_one_before_the_change() -> None:
    """Within a quarter of an hour, give or take a minute, about the pool or about all."""
    marks = Marks()
    marks.recall([Note(1000.0, None, "a"), Note(1300.0, "chat", "b"), Note(1300.0, "chat", "b")])
    told = {change: marks.near(change, "chat") for change in (930.0, 945.0, 1200.0, 1250.0, 2200.0, 2201.0)}
    assert [note and note.text for note in told.values()] == [None, "a", "a", "b", "b", None]
    assert marks.near(1400.0, "code") == Note(1000.0, None, "a")


@pytest.mark.parametrize("clock", [1000.0 + 8 * 86400, 1001.0 + 8 * 86400])
def test_old_notes_go(clock: float) -> None:
    """After eight days: longer than a drift is active."""
    marks = Marks()
    marks.recall([Note(1000.0, None, "a")])
    marks.expire(clock)
    assert (marks.near(1000.0, "chat") is None) == (clock > 1000.0 + 8 * 86400)
