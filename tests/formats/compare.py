"""How expected and found results of `explain` are compared (formats README, section 3), and how a case is run.

A case is `tests/formats/<format>/<name>.log` (or `.jsonl`) with `<name>.expected.jsonl` beside it and, where the
source needs them, `<name>.options.json` with any of: "wrapper", "timezone", "fields" {record field: "path" or
"path:unit"}, "near" (s, epoch: when the lines were read).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeGuard
from zoneinfo import ZoneInfo

import pytest

from capwatch import wrappers
from capwatch.dialect import Field, Options
from capwatch.dialect.value import UNITS
from capwatch.explain import as_json, explain
from capwatch.formats import shelf

CASES = Path(__file__).parent
SAMPLES = CASES.parents[1].parent / "shared" / "samples"
NEAR = 1772530000.0  # 2026-03-03 09:26:40 UTC, minutes after the times in the made-up samples

Line = Mapping[str, Any]


def run_case(form: str, options: Options, wrapper: str | None, data: bytes, near: float = NEAR) -> list[dict[str, Any]]:
    """What `capwatch explain --json` prints for the lines in ``data``: one object a line."""
    around = wrappers.shelf()[wrapper]() if wrapper else None
    lines = data.removesuffix(b"\n").split(b"\n")
    return [json.loads(as_json(one)) for one in explain(lines, shelf()[form], options, around, near)]


def options_of(fields: Mapping[str, str] | None = None, timezone: str = "UTC") -> Options:
    """Options from what the configuration says: `path` or `path:unit` per record field."""
    return Options({name: _field(spelled) for name, spelled in (fields or {}).items()}, ZoneInfo(timezone))


def _field(spelled: str) -> Field:
    path, colon, unit = spelled.rpartition(":")
    return Field(path, unit) if colon and unit in UNITS else Field(spelled)


def differences(expected: Sequence[Line], got: Sequence[Line], *, exact: bool = False) -> list[str]:
    """Every way in which the lines of a whole file differ from what was expected.

    With ``exact``, a field that was found and not expected is a difference too.
    """
    if any(line.get("page") for line in expected):
        return [f"page: {line} not found" for line in expected if not any(_on_page(line, one) for one in got)]
    if [line["line"] for line in expected] != [line["line"] for line in got]:
        return [f"lines {[line['line'] for line in got]} instead of {[line['line'] for line in expected]}"]
    at = {line["line"]: line for line in got}
    found = []
    for line in expected:
        ways = [compare(line, at[number], exact=exact) for number in line.get("lines", [line["line"]])]
        found += [] if [] in ways else [f"line {line['line']}: {text}" for text in ways[0]]
    return found


def compare(expected: Line, got: Line, *, exact: bool = False) -> list[str]:
    """How one line differs from what was expected of it: an empty list where it agrees."""
    wanted = expected.get("outcome")
    if wanted is None:
        return []
    wanted = wanted if isinstance(wanted, list) else [wanted]
    if got["outcome"] not in wanted:
        return [f"outcome {got['outcome']!r} ({got.get('reason')}) instead of {wanted}"]
    if got["outcome"] != "record" or not {"record", "records"} & set(expected):
        return []
    one = _records(expected)
    other = _records(got)
    if expected.get("match") == "last":
        other = other[-1:]
    if len(one) != len(other):
        return [f"{len(other)} records instead of {len(one)}"]
    how = expected.get("at_match", "")
    return [text for a, b in zip(one, other, strict=True) for text in _compare_records(a, b, how, exact=exact)]


def _records(line: Line) -> list[Line]:
    return line["records"] if "records" in line else [line["record"]]


def _on_page(expected: Line, got: Line) -> bool:
    return any(not _compare_records(expected["record"], one, "", exact=False) for one in _records(got))


def _compare_records(expected: Line, got: Line, at_match: str, *, exact: bool) -> list[str]:
    found = [
        f"{name} {got.get(name)!r} instead of {value!r}"
        for name, value in expected.items()
        if not _agrees(name, value, got.get(name), at_match)
    ]
    extra = {name for name, value in got.items() if value is not None} - set(expected) if exact else set()
    return found + [f"{name} {got[name]!r} instead of nothing" for name in sorted(extra)]


def _agrees(name: str, expected: object, got: object, at_match: str) -> bool:
    if isinstance(expected, dict):
        return any(_agrees(name, one, got, at_match) for one in expected["any"])
    if not _is_number(expected):
        return type(expected) is type(got) and expected == got
    if not _is_number(got):
        return False
    if name == "at" and at_match == "no-year":
        return abs(_without_year(expected) - _without_year(got)) <= 1e-3
    if name == "at" and at_match == "time-of-day":
        return abs((expected - got + 43200) % 86400 - 43200) <= 1e-3
    if name == "at" or name.endswith(("_at", "_s")):
        return abs(expected - got) <= 1e-3
    return abs(expected - got) <= 1e-6 * max(1.0, abs(expected))


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _without_year(at: float) -> float:
    return datetime.fromtimestamp(at, UTC).replace(year=2000).timestamp()  # a leap year, so that no day is missing


@dataclass(frozen=True)
class Case:
    """A log with the results expected of it."""

    log: Path

    @property
    def expected(self) -> Path:
        """Where the expected results lie."""
        return self.log.with_name(f"{self.log.stem}.expected.jsonl")

    def said(self) -> dict[str, Any]:
        """What the file of options beside it says."""
        beside = self.log.with_name(f"{self.log.stem}.options.json")
        return json.loads(beside.read_text()) if beside.exists() else {}

    def options(self) -> Options:
        """The options of its source."""
        return options_of(self.said().get("fields"), self.said().get("timezone", "UTC"))

    def run(self) -> list[dict[str, Any]]:
        """What is understood of the log today."""
        said = self.said()
        data = self.log.read_bytes()
        return run_case(self.log.parent.name, self.options(), said.get("wrapper"), data, said.get("near", NEAR))

    def wanted(self) -> list[Line]:
        """The expected results."""
        return read_lines(self.expected)

    def update(self) -> None:
        """Write down what is understood today as what is expected; to be read before it is believed."""
        self.expected.write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in self.run()))


def cases() -> list[Case]:
    """Every case under `tests/formats/`."""
    logs = [*CASES.glob("*/*.log"), *CASES.glob("*/*.jsonl")]
    return [Case(log) for log in sorted(logs) if not log.name.endswith(".expected.jsonl")]


def read_lines(path: Path) -> list[Line]:
    """The objects of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def sample(name: str) -> Path:
    """A sample file of the project's shared material, by its path there; skips the test where that is not at hand."""
    path = SAMPLES / name
    if not path.exists():
        pytest.skip(f"the shared sample {name} is not beside this checkout")
    return path


def sample_differences(
    name: str,
    form: str,
    fields: Mapping[str, str] | None = None,
    wrapper: str | None = None,
) -> list[str]:
    """How what is understood of a shared sample differs from the expected file beside it."""
    log = sample(name)
    got = run_case(form, options_of(fields), wrapper, log.read_bytes())
    return differences(read_lines(log.with_name(f"{log.name}.expected.jsonl")), got)
