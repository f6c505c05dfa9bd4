"""What a source's decoders hold: bounded over all files, gone with the files, and sealed in the state."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from capwatch.config.schema import Config, Limits, Source
from capwatch.daemon.package import Ledger
from capwatch.daemon.reader import OPEN_LINES
from capwatch.keep.codec import pack, unpack
from capwatch.tail.wake import NOTHING

from .test_reading import STAMP, Daemon

LINE_BYTES = 4096


def cri(tmp_path: Path) -> Daemon:
    """A daemon on the files of a folder, in the wrapper of Kubernetes."""
    source = Source("pods", (f"{tmp_path}/*",), "jsonl", wrapper="cri", start="beginning")
    return Daemon(source, limits=Limits(line_bytes=LINE_BYTES))


def held(daemon: Daemon) -> int:
    """Bytes of open records."""
    (reader,) = daemon.reading.readers
    return sum(decoder.held for decoder in reader.decoders.values())


def fates(daemon: Daemon) -> list[float]:
    """Lines read, counted, skipped and dropped as partial."""
    counts = [daemon.value(f"lines_{one}_total") for one in ("read", "counted", "skipped")]
    return [*counts, daemon.value("lines_dropped_total", reason="partial")]


def test_open_records_of_many_files_are_bounded_together(tmp_path: Path) -> None:
    """The largest are given up as partial, each line once; the others are finished as if nothing had been."""
    daemon = cri(tmp_path)
    begun = '{"finished_at": 1772529300, "tenant": "'
    for number in range(10):
        (tmp_path / f"{number}.log").write_text(f"{STAMP} P {begun}{'x' * (2000 + number)}\n")
    daemon.commit()
    assert 0 < held(daemon) <= OPEN_LINES * LINE_BYTES
    given_up = fates(daemon)[3]
    assert given_up == 10 - len([one for one in daemon.reading.readers[0].decoders.values() if one.held]) > 0
    for number in range(10):
        with (tmp_path / f"{number}.log").open("a") as file:
            file.write(f'{STAMP} F "}}\n')
    daemon.now += 1
    daemon.commit()
    malformed = daemon.value("lines_dropped_total", reason="malformed")
    assert [*fates(daemon), malformed] == [20, 10 - given_up, 10 - given_up, given_up, given_up]


def test_decoders_go_with_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A year of pods leaves nothing: what was open is a partial record, and the state forgets the lineage too."""
    daemon, ledger = cri(tmp_path), Ledger()
    (reader,) = daemon.reading.readers
    seconds = count(0.0, 100.0)  # longer than any time of grace
    monkeypatch.setattr("capwatch.daemon.reading.time.monotonic", lambda: next(seconds))
    path = tmp_path / "pod-1.log"
    path.write_text(f"{STAMP} P never ended\n")  # too short to be known again
    ledger.take(daemon.commit())
    before = [*ledger.sources["pods"].decoders]
    path.unlink()
    for _ in range(3):
        daemon.reading.poll(NOTHING, lambda: True)
    package = daemon.commit(checkpoint=True)
    ledger.absorb(unpack(pack(ledger.changes(package)))["sources"])
    assert (before, reader.decoders, ledger.sources["pods"].decoders) == ([str(path)], {}, {})
    assert fates(daemon) == [1, 0, 0, 1]


def test_open_records_are_sealed_in_a_package(tmp_path: Path) -> None:
    """Nothing of a line is in what is committed, and the next daemon goes on with it all the same."""
    daemon = cri(tmp_path)
    path = tmp_path / "pod.log"
    path.write_text(f'{STAMP} P {{"finished_at": 1772529300, "prompt": "SYNTHETIC-PROMPT"\n')
    package = daemon.commit()
    assert "SYNTHETIC" not in repr(unpack(pack(Ledger().changes(package))))
    daemon.reload(*daemon.config.sources)
    with path.open("a") as file:
        file.write(f"{STAMP} F }}\n")
    daemon.commit()
    assert fates(daemon) == [2, 1, 1, 0]


def test_the_bound_is_that_of_the_configuration() -> None:
    """The default: four lines of 16 MiB for each source."""
    assert OPEN_LINES * Config().limits.line_bytes == 64 << 20
