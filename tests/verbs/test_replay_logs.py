"""Logs as they are found on disk: compressed, cut, from other systems, too long, in several files and sources."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from itertools import permutations
from pathlib import Path

import pytest
import zstandard

from capwatch.cli import main
from tests.end_to_end.command import COMMAND, Page

START = 1772529300
CONFIG = """
sources:
  - {name: gateway, path: [access.jsonl, access.jsonl.*], format: jsonl}
limits: {line_bytes: 64KiB}
"""


def row(at: float, **fields: object) -> bytes:
    """One request that finished ``at`` seconds after the start."""
    told = {"finished_at": START + at, "tenant": "acme", "duration_s": 1.0, "prompt_tokens": 100, "output_tokens": 10}
    return json.dumps(told | fields).encode() + b"\n"


ROWS = [row(second, tenant=f"t{second % 7}", duration_s=second / 100) for second in range(60)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the configuration."""
    (tmp_path / "capwatch.yml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def replayed(folder: Path, capfd: pytest.CaptureFixture[str]) -> Replayed:
    """A way to the page of some files."""
    return Replayed(folder, capfd)


class Replayed:
    """Writes files and replays them."""

    def __init__(self, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capfd = capfd

    def __call__(self, *words: str, **files: bytes) -> Page:
        """The page of ``files`` (their names with _ for .), or of the logs named in ``words``."""
        names = [name.replace("_", ".") for name in files]
        for name, data in zip(names, files.values(), strict=True):
            (self._folder / name).write_bytes(data)
        code = main(["replay", "--config.file", "capwatch.yml", *(words or names)])
        shown = self._capfd.readouterr()
        assert (code, shown.err) == (0, "")
        return Page(shown.out)


def fates(page: Page) -> dict[str, float]:
    """The lines read, by their fate."""
    dropped = {reason: n for (reason,), n in page.values("lines_dropped_total", "reason").items() if n}
    return {"counted": page.value("lines_counted_total"), "skipped": page.value("lines_skipped_total")} | dropped


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_compressed_logs_tell_the_same(suffix: str, replayed: Replayed) -> None:
    """A .gz or .zst file, of several members or frames too, gives the page of the plain one."""
    pack = gzip.compress if suffix == "gz" else zstandard.ZstdCompressor().compress
    halves = [b"".join(ROWS[:31]), b"".join(ROWS[31:])]
    plain = replayed(access_jsonl=b"".join(halves)).text
    assert replayed(**{f"access_jsonl_{suffix}": b"".join(map(pack, halves))}).text == plain


def test_a_last_line_without_its_end_counts_where_it_is_whole(replayed: Replayed) -> None:
    """The writer may be about to write only the line feed."""
    assert fates(replayed(access_jsonl=b"".join(ROWS).removesuffix(b"\n"))) == {"counted": 60, "skipped": 0}


def test_a_last_line_that_is_cut_is_partial(replayed: Replayed) -> None:
    """It is no mistake of the log: `partial`, not `malformed`; law 1 holds."""
    page = replayed(access_jsonl=b"".join(ROWS)[:-20])
    assert fates(page) == {"counted": 59, "skipped": 0, "partial": 1}
    assert page.value("lines_read_total") == 60


def test_a_record_whose_end_never_came_is_partial(folder: Path, replayed: Replayed) -> None:
    """The file ends within a record that a container's runtime had cut: each of its lines has a fate."""
    (folder / "capwatch.yml").write_text(CONFIG.replace("jsonl}", "jsonl, wrapper: cri}"))
    stamp = b"2026-03-03T09:15:02.43Z stdout "
    page = replayed(access_jsonl=stamp + b"F " + ROWS[0] + stamp + b"P " + ROWS[1][:20] + b"\n")
    assert fates(page) == {"counted": 1, "skipped": 0, "partial": 1}
    assert page.value("lines_read_total") == 2


def test_a_file_copied_without_its_time_tells_the_same(folder: Path, replayed: Replayed) -> None:
    """Its records say when it was written, not the file's own time, where that is before them."""
    plain = replayed(access_jsonl=b"".join(ROWS)).text
    os.utime(folder / "access.jsonl", (1, 1))
    assert replayed("access.jsonl").text == plain


def test_windows_line_ends_and_a_byte_order_mark(replayed: Replayed) -> None:
    """CRLF and a mark at the beginning change nothing."""
    plain = replayed(access_jsonl=b"".join(ROWS)).text
    assert replayed(access_jsonl=b"\xef\xbb\xbf" + b"".join(ROWS).replace(b"\n", b"\r\n")).text == plain


@pytest.mark.parametrize("data", [b"", b"\n", b"\n\n   \n"], ids=["empty", "one", "blank"])
def test_a_log_without_a_record(data: bytes, replayed: Replayed) -> None:
    """Nothing in it is nothing wrong: a page of zeros, its blank lines skipped."""
    assert fates(replayed(access_jsonl=data)) == {"counted": 0, "skipped": data.count(b"\n")}


def peak_kib(*words: str) -> tuple[int, bytes]:
    """The most memory that a call held (KiB), and what it printed."""
    with subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        page = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss, page


def test_a_line_beyond_the_limit_costs_no_memory(folder: Path) -> None:
    """A line of 200 MB between two good ones is dropped as `too_long`, in the memory that the good ones need."""
    command = ("replay", "--config.file", "capwatch.yml")
    (folder / "small.jsonl").write_bytes(ROWS[0] + ROWS[1])
    usual, _ = peak_kib(*command, "small.jsonl")
    with open(folder / "long.jsonl", "wb") as file:
        file.write(ROWS[0])
        file.seek(200_000_000, os.SEEK_CUR)  # a hole: NULs that lie on no disk
        file.write(b"\n" + ROWS[1])
    most, page = peak_kib(*command, "long.jsonl")
    assert fates(Page(page.decode())) == {"counted": 2, "skipped": 0, "too_long": 1}
    assert most - usual < 40_000


def test_lines_at_the_limit(replayed: Replayed) -> None:
    """65536 bytes are a line, one more is too long, wherever in the file it stands."""
    whole = [row(i, note="x" * (65536 + i - len(row(i, note="")) + 1)) for i in range(2)]
    assert [len(line) - 1 for line in whole] == [65536, 65537]
    page = replayed(access_jsonl=whole[0] + whole[1] + ROWS[0] + whole[1].removesuffix(b"\n"))
    assert fates(page) == {"counted": 2, "skipped": 0, "too_long": 2}


def test_the_order_of_the_logs_does_not_matter(replayed: Replayed, folder: Path) -> None:
    """Rotated files in any order give the same page: they are merged by time."""
    for number in range(3):
        rows = [row(600 * number + i, tenant=f"t{i % 5}", duration_s=i / 50) for i in range(100)]
        (folder / f"{number}.jsonl").write_bytes(b"".join(rows))
    pages = {replayed(*order).text for order in permutations(["0.jsonl", "1.jsonl", "2.jsonl"])}
    assert len(pages) == 1


def test_files_of_the_same_time_are_read_together(replayed: Replayed, folder: Path) -> None:
    """Half an hour in two files that were written at once: nothing is late, and the window holds both."""
    rows = [row(second, duration_s=1 + second % 2) for second in range(1800)]
    (folder / "even.jsonl").write_bytes(b"".join(rows[::2]))
    (folder / "odd.jsonl").write_bytes(b"".join(rows[1::2]))
    page = replayed("even.jsonl", "odd.jsonl")
    assert page.value("late_records_total") == 0
    assert page.value("duration_seconds", quantile="0.5") == pytest.approx(1, rel=0.006)
    assert page.value("duration_seconds", quantile="0.95") == pytest.approx(2, rel=0.006)


def test_sources_are_merged_by_time(folder: Path, replayed: Replayed) -> None:
    """Without LOG all sources are read: each has its own lines, and both share the window."""
    for name, seconds in (("a", range(0, 1800, 2)), ("b", range(1, 1800, 2))):
        (folder / f"{name}.jsonl").write_bytes(b"".join(row(second) for second in seconds))
    source = "{{name: {0}, path: {0}.jsonl, format: jsonl}}"
    (folder / "capwatch.yml").write_text(f"sources: [{source.format('a')}, {source.format('b')}]\n")
    page = replayed()
    assert page.values("lines_counted_total", "source") == {("a",): 900, ("b",): 900}
    assert page.values("late_records_total", "source") == {("a",): 0, ("b",): 0}
    assert page.value("requests_total") == 1800


def test_rotated_names_of_one_source_are_found_once(replayed: Replayed, folder: Path) -> None:
    """Globs that overlap, and links, name a file once."""
    (folder / "access.jsonl").write_bytes(b"".join(ROWS[40:]))
    (folder / "access.jsonl.1").write_bytes(b"".join(ROWS[20:40]))
    (folder / "access.jsonl.2.gz").write_bytes(gzip.compress(b"".join(ROWS[:20])))
    (folder / "access.jsonl.link").symlink_to("access.jsonl.1")
    assert replayed().value("requests_total") == 60


def test_the_log_of_one_of_several_sources(folder: Path, replayed: Replayed) -> None:
    """--source says whose LOG it is, with that source's fields."""
    (folder / "capwatch.yml").write_text(
        "sources:\n"
        "  - {name: a, path: a.jsonl, format: jsonl}\n"
        "  - {name: b, path: b.jsonl, format: jsonl, fields: {tenant: team}}\n"
    )
    (folder / "any.jsonl").write_bytes(row(0, tenant="wrong", team="right"))
    page = replayed("--source", "b", "any.jsonl")
    assert page.values("requests_total", "tenant") == {("right",): 1}
