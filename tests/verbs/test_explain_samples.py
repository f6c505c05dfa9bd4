"""`capwatch explain --json` over every shared sample, with the options that the samples' own README gives."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from capwatch.cli import main
from capwatch.formats import shelf
from tests.formats.compare import NEAR, SAMPLES, differences, read_lines

# Prefixes of the files under `engines/`; pages end in .prom.
ENGINES = ("vllm", "sglang", "tgi", "trtllm", "llamacpp", "ollama", "lmdeploy", "dynamo")


def options() -> dict[str, list[str]]:
    """The options of each sample, by its path: from the tables of the README, for engines from the name."""
    found: dict[str, list[str]] = {}
    folder, before = "", ""
    for line in (SAMPLES / "README.md").read_text().splitlines() if SAMPLES.exists() else []:
        folder = line.split()[1] if line.startswith("## ") else folder
        row = re.fullmatch(r"\| (\S+) \| .* \| (.*) \|", line)
        if row and "--" in row[2]:
            words = re.findall(r"`(.*?)`", row[2])[0]
            before = f"{before.split(' --wrapper', maxsplit=1)[0]} {words}" if row[2].startswith("the same") else words
            found[folder + row[1]] = shlex.split(before)
    for page in (SAMPLES / "engines").glob("*"):
        name = page.name.split("-")[0]
        if name in ENGINES and not page.name.endswith(".jsonl"):
            found[f"engines/{page.name}"] = ["--format", "engine_metrics" if page.suffix == ".prom" else name]
    return found


OPTIONS = options()
JUDGED = sorted(
    str(path.relative_to(SAMPLES)).removesuffix(".expected.jsonl") for path in SAMPLES.rglob("*.expected.jsonl")
)


@pytest.mark.skipif(not JUDGED, reason="the shared samples are not beside this checkout")
@pytest.mark.parametrize("name", JUDGED)
def test_a_sample_is_understood(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Line by line as expected; the exit code tells of drops, and there is nothing but JSON."""
    words = OPTIONS[name]
    chosen = words[words.index("--format") + 1]
    if chosen not in {*shelf(), "engine_metrics"}:
        pytest.skip(f"there is no format {chosen} yet")
    log = tmp_path / Path(name).name
    shutil.copy(SAMPLES / name, log)
    os.utime(log, (NEAR, NEAR))  # logs without a year are read as of the file's time
    code = main(["explain", "--json", *words, str(log)])
    shown = capsys.readouterr()
    got = [json.loads(line) for line in shown.out.splitlines()]
    assert differences(read_lines(SAMPLES / f"{name}.expected.jsonl"), got) == []
    assert (code, shown.err) == (int(any(one["outcome"] == "drop" for one in got)), "")
    assert "CANARY" not in shown.out


def test_every_sample_has_its_options() -> None:
    """The README's tables name every sample that has expected results."""
    assert [name for name in JUDGED if name not in OPTIONS] == []
