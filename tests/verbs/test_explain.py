"""`capwatch explain`: options, the search for a format, text for people, and lines as they come."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path

import pytest
import zstandard

from capwatch.cli import main
from capwatch.formats import shelf
from tests.end_to_end.command import COMMAND, printed

GOOD = {"finished_at": 1772529302.5, "tenant": "acme", "timing": {"ttft_ms": 400}, "duration_s": 2.5, "stream": True}
LINES = f'{json.dumps(GOOD)}\n\n{{"finished_at": 17\n'.encode()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a log: a record, a blank line, a broken one."""
    (tmp_path / "access.jsonl").write_bytes(LINES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def explained(*words: str, capsys: pytest.CaptureFixture[str], code: int = 1) -> list[dict[str, object]]:
    """What --json prints."""
    assert main(["explain", "--json", *words]) == code
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_each_line_has_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    """One object a line, in order; exit code 1, since one was dropped."""
    got = explained("--format", "jsonl", "access.jsonl", capsys=capsys)
    assert [(one["line"], one["outcome"]) for one in got] == [(1, "record"), (2, "skip"), (3, "drop")]


def test_without_a_drop_all_is_fine(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0."""
    (folder / "good.jsonl").write_bytes(LINES.splitlines(keepends=True)[0])
    assert len(explained("--format", "jsonl", "good.jsonl", capsys=capsys, code=0)) == 1


def test_fields_are_mapped_with_their_unit(capsys: pytest.CaptureFixture[str]) -> None:
    """--field RECORD_FIELD=PATH:UNIT, as often as needed."""
    words = ("--field", "ttft_s=timing.ttft_ms:ms", "--field", "route=tenant")
    record = explained("--format", "jsonl", *words, "access.jsonl", capsys=capsys)[0]["record"]
    assert isinstance(record, dict)
    assert (record["ttft_s"], record["route"]) == (0.4, "acme")


def test_the_configuration_says_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--config.file with --source takes format and fields from there, and its limit of a line."""
    (folder / "capwatch.yml").write_text(
        "sources:\n"
        "  - {name: a, path: a, format: envoy}\n"
        "  - {name: b, path: b, format: jsonl, fields: {ttft_s: {path: timing.ttft_ms, unit: ms}}}\n"
        "limits: {line_bytes: 200}\n"
    )
    (folder / "access.jsonl").write_bytes(LINES + b'{"finished_at": 17725293' + b"0" * 200 + b"}\n" + LINES)
    got = explained("--config.file", "capwatch.yml", "--source", "b", "access.jsonl", capsys=capsys)
    record = got[0]["record"]
    assert isinstance(record, dict)
    assert record["ttft_s"] == 0.4
    assert [one.get("reason") for one in got[2:5]] == ["malformed", "too_long", None]


def test_times_without_a_zone_are_in_the_timezone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--timezone says which; without it they are UTC."""
    (folder / "local.jsonl").write_text('{"finished_at": "2026-03-03T10:00:00", "tenant": "acme"}\n')
    found = [
        explained("--format", "jsonl", *words, "local.jsonl", capsys=capsys, code=0)[0]["record"]
        for words in ((), ("--timezone", "Europe/Berlin"))
    ]
    assert [one["finished_at"] for one in found if isinstance(one, dict)] == [1772532000, 1772532000 - 3600]


def test_text_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    """Without --json: what each line is, and its fields with readable times."""
    assert main(["explain", "--format", "jsonl", "access.jsonl"]) == 1
    text = capsys.readouterr().out
    assert "line 1: record\n" in text
    assert "finished_at  2026-03-03T09:15:02.500+00:00" in text
    assert "line 3: drop, malformed" in text


def test_a_path_that_finds_nothing_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    """Text for people tells which key was probably meant."""
    main(["explain", "--format", "jsonl", "--field", "ttft_s=timing.ttft", "access.jsonl"])
    assert "ttft_s: no key timing.ttft; nearest: timing.ttft_ms" in capsys.readouterr().out


def test_without_a_format_the_best_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    """A table tells how well each fits; the best that makes records goes on."""
    assert main(["explain", "access.jsonl"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "format  records  understood or skipped  (wrapper: none)",
        "jsonl         1                    67%",
    ]
    assert lines[2] == "line 1: record"


def test_only_where_nothing_fits_all_formats_are_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A format that makes no record of the lines is no fit."""
    (folder / "prose.txt").write_text("It was a dark and stormy night.\n")
    main(["explain", "prose.txt"])
    rows = capsys.readouterr().out.splitlines()[1:]
    assert sorted(row.split()[0] for row in rows) == list(shelf())


def test_the_outcomes_are_added_up(capsys: pytest.CaptureFixture[str]) -> None:
    """On stderr, after all lines; machines count for themselves."""
    main(["explain", "--format", "jsonl", "access.jsonl"])
    assert capsys.readouterr().err == "3 lines: 1 records, 1 skipped, 1 dropped\n"
    main(["explain", "--json", "--format", "jsonl", "access.jsonl"])
    assert capsys.readouterr().err == ""


def test_a_log_that_tells_nothing_names_the_page_that_says_how_it_would(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """LiteLLM's own log is understood and holds no request: what to switch on is on the page of its format."""
    (folder / "stdout.log").write_text('{"message": "started", "level": "INFO", "timestamp": "2026-03-03T09:15:00"}\n')
    main(["explain", "--format", "litellm", "stdout.log"])
    shown = capsys.readouterr().err
    assert shown.startswith("1 lines: 0 records, 1 skipped, 0 dropped; docs/formats/litellm.md says how")


def test_what_was_skipped_may_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """--records shows records and drops."""
    main(["explain", "--records", "--format", "jsonl", "access.jsonl"])
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("line")]
    assert [line.split(",")[0] for line in shown] == ["line 1: record", "line 3: drop"]


def test_machines_hear_of_every_line(capsys: pytest.CaptureFixture[str]) -> None:
    """--records and --json contradict each other."""
    code = main(["explain", "--records", "--json", "--format", "jsonl", "access.jsonl"])
    shown = capsys.readouterr()
    assert (code, shown.out, shown.err.count("\n"), "--records" in shown.err) == (2, "", 1, True)


def test_the_wrapper_is_found_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Lines of a container's log are taken out of it; with --json the table goes to stderr."""
    wrapped = "".join(f"2026-03-03T09:15:02.5Z stdout F {json.dumps(GOOD)}\n" for _ in range(3))
    (folder / "cri.log").write_text(wrapped)
    code = main(["explain", "--json", "cri.log"])
    shown = capsys.readouterr()
    assert (code, "(wrapper: cri)" in shown.err) == (0, True)
    assert [json.loads(line)["outcome"] for line in shown.out.splitlines()] == ["record"] * 3


def test_what_no_format_fits_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 and one line, after the table."""
    (folder / "prose.txt").write_text("It was a dark and stormy night.\n")
    code = main(["explain", "prose.txt"])
    shown = capsys.readouterr()
    assert (code, shown.err.count("\n")) == (1, 1)
    assert "no format makes a record of these lines" in shown.err


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_compressed_files(suffix: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """.gz and .zst are read as what is in them."""
    pack = gzip.compress if suffix == "gz" else zstandard.ZstdCompressor().compress
    (folder / f"access.{suffix}").write_bytes(pack(LINES))
    got = [explained("--format", "jsonl", name, capsys=capsys) for name in ("access.jsonl", f"access.{suffix}")]
    assert got[0] == got[1]


def test_a_byte_order_mark_is_no_part_of_the_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither is the carriage return of Windows."""
    (folder / "windows.jsonl").write_bytes(b"\xef\xbb\xbf" + LINES.replace(b"\n", b"\r\n"))
    got = [explained("--format", "jsonl", name, capsys=capsys) for name in ("access.jsonl", "windows.jsonl")]
    assert got[0] == got[1]


def test_an_empty_log_is_fine(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No line, no object."""
    (folder / "empty").touch()
    assert explained("--format", "jsonl", "empty", capsys=capsys, code=0) == []


def test_standard_input_is_told_line_by_line(folder: Path) -> None:
    """As under `tail -f`: each line's result is there before the next line is written."""
    words = ("explain", "--json", "--format", "jsonl", "-")
    with subprocess.Popen([*COMMAND, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        outcomes = []
        for line in LINES.splitlines(keepends=True):
            process.stdin.write(line)
            process.stdin.flush()
            outcomes.append(json.loads(process.stdout.readline())["outcome"])
        process.stdin.close()
    assert (outcomes, process.returncode) == (["record", "skip", "drop"], 1)


def test_standard_input_needs_no_name(folder: Path) -> None:
    """Without FILE it is read, too."""
    assert len(printed("explain", "--json", "--format", "jsonl", cwd=folder, stdin=LINES, code=1).splitlines()) == 3


def test_a_page_of_an_engine_is_one_unit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The format engine_metrics gives one object with a record for each replica."""
    (folder / "page.prom").write_text(
        'vllm:num_requests_running{engine="0"} 3\nvllm:num_requests_running{engine="1"} 5\n'
    )
    (one,) = explained("--format", "engine_metrics", "page.prom", capsys=capsys, code=0)
    assert one["records"] == [{"engine": "0", "running": 3.0}, {"engine": "1", "running": 5.0}]
    (other,) = explained("--format", "engine_metrics", "access.jsonl", capsys=capsys)
    assert (other["outcome"], other["reason"]) == ("drop", "malformed")
