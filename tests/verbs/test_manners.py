"""What every command keeps to (contract, section 1): examples that run, refusals of one line, quiet pipes."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from capwatch import __version__
from capwatch.cli import main, verbs
from tests.calibrate.engine import Engine, poisson, serve
from tests.end_to_end.command import COMMAND

CONFIG = "sources:\n  - {name: gateway, path: access.jsonl, format: jsonl}\nslo:\n  - {match: {}, ttft: 1s}\n"
LOG = "".join(
    json.dumps({"finished_at": 1772529300 + i, "duration_s": 1.5, "tenant": "acme", "prompt_tokens": 100}) + "\n"
    for i in range(20)
)
# Three hours of usual traffic, then answers of ten times the length: even the wide rule of a beginner sees it.
TRACE = "t,tenant,prompt_tokens,output_tokens\n" + "".join(
    f"{1768773600 + i},acme,{1000 + i % 7 * 100},{100 if i < 10000 else 1000}\n" for i in range(12000)
)
LOADTEST = "".join(
    json.dumps(
        {
            "started_at": one.at,
            "finished_at": one.end,
            "ttft_s": one.first - one.at,
            "prompt_tokens": one.prompt,
            "output_tokens": one.output,
        }
    )
    + "\n"
    for one in serve(Engine(), poisson(1.2, 400, 1))
)
# A daemon ends when it is told to, and a note needs one that runs, as a doctor needs a server; all are tried elsewhere.
ENDING = [name for name in verbs() if name not in ("run", "demo", "acknowledge", "annotate", "doctor")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of a user with a configuration and a log."""
    (tmp_path / "capwatch.yml").write_text(CONFIG)
    (tmp_path / "access.jsonl").write_text(LOG)
    (tmp_path / "requests.csv").write_text(TRACE)
    (tmp_path / "loadtest.jsonl").write_text(LOADTEST)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAPWATCH__STATE_DIR", str(tmp_path / "state"))
    return tmp_path


def helped(*words: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What --help prints."""
    with pytest.raises(SystemExit) as end:
        main([*words, "--help"])
    shown = capsys.readouterr()
    assert (end.value.code, shown.err) == (0, "")
    return shown.out


@pytest.mark.parametrize("verb", ENDING)
def test_the_example_in_the_help_runs(verb: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every verb's help ends in an example, which does something where its files are."""
    example = helped(verb, capsys=capsys).rpartition("example:\n")[2].strip()
    program, *words = shlex.split(example)
    code = main(words)
    shown = capsys.readouterr()
    assert (program, words[0], code) == ("capwatch", verb, 0)
    assert shown.out.strip()


def test_the_examples_of_the_whole_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """So do those of `capwatch --help`."""
    examples = helped(capsys=capsys).rpartition("examples:\n")[2].strip().splitlines()
    commands = [shlex.split(line.strip().split("   ")[0]) for line in examples]
    assert [main(words) for _, *words in commands if words[0] in ENDING] == [0] * len(commands)


@pytest.mark.parametrize("words", [[], *([verb] for verb in verbs())], ids=" ".join)
def test_every_command_tells_its_version(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """--version prints the version, at every place."""
    with pytest.raises(SystemExit) as end:
        main([*words, "--version"])
    assert (end.value.code, capsys.readouterr().out) == (0, f"{__version__}\n")


REPLAY = "replay --config.file capwatch.yml "
REFUSED = {
    "": "COMMAND; see `capwatch --help`",
    "nonsense": "'nonsense'",
    "metrics --nonsense": "capwatch metrics: unrecognized arguments: --nonsense; see `capwatch metrics --help`",
    "metrics extra": "extra",
    "formats --jso": "--jso",
    "plan size --nonsense": "capwatch plan size: unrecognized arguments: --nonsense; see `capwatch plan size --help`",
    "replay access.jsonl": "--config.file; see `capwatch replay --help`",
    "replay --config.file missing.yml": "missing.yml",
    "replay --config.file .": "directory",
    "replay --config.file broken.yml": "broken.yml",
    "replay --config.file unknown.yml": "unknown.yml:1: sorces",
    "replay --config.file latin.yml": "UTF-8",
    "replay --config.file bare.yml access.jsonl": "sources",
    REPLAY + "missing.jsonl": "missing.jsonl: no such file",
    REPLAY + "state.d": "state.d: is a directory",
    REPLAY + "/proc/self/mem": "/proc/self/mem: cannot be read",
    REPLAY + "torn.jsonl.gz": "torn.jsonl.gz: cannot be read",
    REPLAY + "torn.jsonl.zst": "torn.jsonl.zst: cannot be read",
    REPLAY + "damaged.jsonl.gz": "damaged.jsonl.gz: cannot be read",
    REPLAY + "--source other access.jsonl": "--source: no source 'other'; one of gateway",
    "replay --config.file two.yml access.jsonl": "--source",
    "replay --config.file none.yml": "nothing-*.jsonl",
    REPLAY + "--step 0s access.jsonl": "--step",
    REPLAY + "--step 5 access.jsonl": "--step",
    REPLAY + "--step soon access.jsonl": "--step",
    REPLAY + "--families nothing access.jsonl": "--families: no metric 'nothing'",
    REPLAY + "--openmetrics-out missing/out.om access.jsonl": "--openmetrics-out: missing/out.om",
    REPLAY + "--openmetrics-out state.d access.jsonl": "--openmetrics-out: state.d",
    "doctor": "--prometheus: is missing",
    "doctor --prometheus 127.0.0.1:9090": "--prometheus: is no address",
    "doctor --prometheus http://127.0.0.1:9 --also missing.json": "--also: missing.json cannot be read",
    "doctor --prometheus http://127.0.0.1:9 --also access.jsonl": "--also: access.jsonl has no expression",
    "check-config": "FILE",
    "check-config missing.yml": "missing.yml",
    "check-config broken.yml": "broken.yml",
    "explain --format nonsense access.jsonl": "--format: no format 'nonsense'",
    "explain --format jsonl --wrapper crio access.jsonl": "--wrapper: found 'crio'",
    "explain --format jsonl --timezone Mars access.jsonl": "--timezone: no time zone 'Mars'",
    "explain --format jsonl --field tenant access.jsonl": "--field tenant: write RECORD_FIELD=PATH",
    "explain --format jsonl --field tenent=a.b access.jsonl": "--field tenent: no field of the record; did you mean",
    "explain --format jsonl --field prompt_tokens=a.b:ms access.jsonl": "--field prompt_tokens",
    "explain --format jsonl missing.jsonl": "missing.jsonl: no such file",
    "explain --format jsonl .": ".: is a directory",
    "explain --source gateway access.jsonl": "--source: needs --config.file",
    "explain --config.file capwatch.yml --format jsonl access.jsonl": "--format: --config.file says that already",
    "explain --config.file capwatch.yml --source other access.jsonl": "--source: no source 'other'; one of gateway",
    "explain --config.file two.yml access.jsonl": "--source: which one?",
    "explain --config.file missing.yml access.jsonl": "missing.yml",
}


@pytest.mark.parametrize("line", REFUSED)
def test_a_refusal_is_one_line_that_names_the_place(line: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, exactly one line on stderr that names what is wrong, nothing on stdout."""
    (folder / "state.d").mkdir()
    (folder / "broken.yml").write_text("sources: [{name: a\n")
    (folder / "unknown.yml").write_text("sorces: []\n")
    (folder / "latin.yml").write_bytes(b"listen: caf\xe9\n")
    (folder / "bare.yml").write_text("pools: []\n")
    (folder / "none.yml").write_text("sources: [{name: a, path: nothing-*.jsonl, format: jsonl}]\n")
    source = "{{name: {}, path: access.jsonl, format: jsonl}}"
    (folder / "two.yml").write_text(f"sources: [{source.format('a')}, {source.format('b')}]\n")
    for suffix in ("gz", "zst"):
        (folder / f"torn.jsonl.{suffix}").write_bytes(b"{}\n")
    (folder / "damaged.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + b"\xff" * 50)
    code = main(shlex.split(line))
    shown = capfd.readouterr()
    assert (code, shown.out, shown.err.count("\n")) == (2, "", 1)
    assert REFUSED[line] in shown.err


@pytest.mark.parametrize("words", ["explain --format jsonl damaged.jsonl.gz", "explain damaged.jsonl.gz"])
def test_a_failure_while_reading_is_one_line(words: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 where a file turns out to be no good on the way."""
    (folder / "damaged.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + b"\xff" * 50)
    code = main(shlex.split(words))
    shown = capfd.readouterr()
    assert (code, shown.out, shown.err.count("\n")) == (1, "", 1)
    assert shown.err.startswith("damaged.jsonl.gz: cannot be read")


def test_check_config_exits_1_where_something_cannot_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A state directory that is a file is a finding, and the configuration is printed all the same."""
    (folder / "file").touch()
    monkeypatch.setenv("CAPWATCH__STATE_DIR", str(folder / "file"))
    code = main(["check-config", "capwatch.yml"])
    shown = capfd.readouterr()
    assert (code, "error: state_dir" in shown.err, "sources:" in shown.out) == (1, True, True)


def test_check_config_prints_what_it_can_read_again(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The effective configuration is a configuration, with the same effect."""
    main(["check-config", "capwatch.yml"])
    first = capfd.readouterr().out
    (folder / "again.yml").write_text(first)
    assert (main(["check-config", "again.yml"]), capfd.readouterr().out) == (0, first)


def test_lists_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    """`metrics --json` and `formats --json` are lists of objects with the promised keys."""
    main(["metrics", "--json"])
    metrics = json.loads(capsys.readouterr().out)
    main(["formats", "--json"])
    formats = json.loads(capsys.readouterr().out)
    assert all({"name", "kind", "unit", "labels", "help"} <= set(one) for one in metrics)
    assert "jsonl" in [one["name"] for one in formats]


def test_lists_for_people_name_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """What --json lists stands in the text, too."""
    for verb in ("metrics", "formats"):
        main([verb, "--json"])
        names = [one["name"] for one in json.loads(capsys.readouterr().out)]
        main([verb])
        text = capsys.readouterr().out
        assert [name for name in names if name not in text] == []


@pytest.mark.parametrize("words", ["metrics", REPLAY + "access.jsonl", "explain --format jsonl access.jsonl"])
def test_a_reader_that_goes_away_is_no_failure(words: str, folder: Path) -> None:
    """As under `| head`: exit code 0 and not a word."""
    (folder / "access.jsonl").write_text(LOG * 500)
    with subprocess.Popen(
        [*COMMAND, *shlex.split(words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (0, b"")


@pytest.mark.parametrize(
    "words",
    [
        REPLAY + "access.jsonl",
        REPLAY + "--openmetrics-out /dev/full access.jsonl",
        "explain --format jsonl --json access.jsonl",
    ],
)
def test_a_full_disk_is_one_line(words: str, folder: Path) -> None:
    """Exit code 1 and one line where what was asked for cannot be written."""
    with open("/dev/full", "wb") as full:
        result = subprocess.run(
            [*COMMAND, *shlex.split(words)], stdout=full, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False
        )
    assert (result.returncode, result.stderr) == (1, b"output: No space left on device\n")


@pytest.mark.parametrize(("closed", "code"), [(">&-", 0), ("2>&-", 2)])
def test_a_closed_stream_is_no_failure(closed: str, code: int) -> None:
    """What would be printed to a stream that the caller has closed goes nowhere, not even to the other."""
    call = shlex.join([*COMMAND, "plan", "hpa", "--replicas", "12", "--target", "3.5"])
    told = "--current 8" if code == 0 else "--current nan"
    result = subprocess.run(["sh", "-c", f"exec {call} {told} {closed}"], capture_output=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (code, b"", b"")


def on_terminal(words: str, env: dict[str, str]) -> tuple[bytes, bytes]:
    """(stdout, what a terminal as stderr shows)."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        command = [*COMMAND, *shlex.split(words)]
        result = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=theirs, stdin=subprocess.DEVNULL, env=os.environ | env, check=True
        )
        os.set_blocking(terminal.fileno(), False)
        shown = terminal.read() or b""
        os.close(theirs)
    return result.stdout, shown


def test_progress_shows_on_a_terminal_only(folder: Path) -> None:
    """A terminal sees a bar that is taken away at the end; a pipe sees nothing, and the page is the same."""
    words = REPLAY + "access.jsonl"
    page, shown = on_terminal(words, {})
    piped = subprocess.run([*COMMAND, *shlex.split(words)], capture_output=True, stdin=subprocess.DEVNULL, check=True)
    assert (page, piped.stderr) == (piped.stdout, b"")
    assert b"100 %" in shown
    assert shown.endswith(b"\r")


def test_no_color_is_obeyed(folder: Path) -> None:
    """With NO_COLOR not even a terminal gets an escape sequence."""
    assert b"\x1b" not in b"".join(on_terminal(REPLAY + "access.jsonl", {"NO_COLOR": "1"}))


def test_the_console_script_is_the_same_command(folder: Path) -> None:
    """`capwatch`, as it is installed, is the program that these tests call."""
    script = Path(sys.executable).with_name("capwatch")
    told = [
        subprocess.run([*command, "formats"], capture_output=True, check=True).stdout for command in (COMMAND, [script])
    ]
    assert told[0] == told[1]
