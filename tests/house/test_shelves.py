"""Shelves are open: one more file is one more thing, with no list to edit and nothing of its own forgotten."""

import ast
import json
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from capwatch.formats import shelf

ROOT = Path(__file__).resolve().parents[2]
PLANNED = ["engines", "exporters", "formats", "gpus", "meters", "plans", "wrappers"]
SAID = ("Program", "Switched on", "Example", "Units", "Missing")
SHELVES = [name for name in PLANNED if (ROOT / "capwatch" / name / "__init__.py").exists()]


def members(folder: Path) -> list[str]:
    """The names of the things on a shelf, one file (or folder) each."""
    return sorted(module.name for module in pkgutil.iter_modules([str(folder)]))


def names_in(source: str) -> Iterator[str]:
    """Every name that a module imports, and every text that stands alone in its code."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.name.split(".")[-1] for alias in node.names)
            yield getattr(node, "module", None) or ""
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def listed(folder: Path) -> list[str]:
    """The members that the shelf's own `__init__.py` calls by name."""
    called = {name.split(".")[-1] for name in names_in((folder / "__init__.py").read_text())}
    return [name for name in members(folder) if name in called]


def missing_samples(formats: Path, samples: Path) -> list[str]:
    """What the formats on a shelf lack of a sample log, its expected outcome, and one line that is dropped."""
    found = [f"{folder}: samples of no format" for folder in sorted(set(folders(samples)) - set(members(formats)))]
    for name in members(formats):
        logs = [log for kind in ("*.log", "*.jsonl") for log in sorted((samples / name).glob(kind))]
        expected = {log: expected_of(log) for log in logs if not log.name.endswith(".expected.jsonl")}
        if not expected:
            found.append(f"{name}: no sample in tests/formats/{name}/")
            continue
        found += [f"{name}: {log.name} has no expected outcome" for log, path in expected.items() if not path.exists()]
        lines = [line for path in expected.values() if path.exists() for line in path.read_text().splitlines()]
        outcomes = {json.loads(line).get("outcome") for line in lines}
        if "drop" not in outcomes:
            found.append(f"{name}: no sample with a line that is dropped")
    return found


def missing_words(formats: Path, pages: Path) -> list[str]:
    """What the formats on a shelf lack of the labels of their docstring and of the page that is built from it."""
    found = [
        f"{page.name}: a page of no format" for page in sorted(pages.glob("*.md")) if page.stem not in members(formats)
    ]
    for name in members(formats):
        doc = ast.get_docstring(ast.parse((formats / f"{name}.py").read_text())) or ""
        labels = re.findall(rf"^({'|'.join(SAID)})(?: \([^)]*\))?: \S", doc, flags=re.MULTILINE)
        found += [f"{name}: its docstring has no line '{label}: …'" for label in SAID if label not in labels]
        if list(dict.fromkeys(labels)) != [label for label in SAID if label in labels]:
            found.append(f"{name}: its docstring has not the order {', '.join(SAID)}")
        if not (pages / f"{name}.md").exists():
            found.append(f"{name}: no page docs/formats/{name}.md; python docs/build.py writes it")
    return found


def expected_of(log: Path) -> Path:
    """Where the expected outcome of a sample log lies: `case.log` beside `case.expected.jsonl`."""
    return log.with_name(f"{log.stem}.expected.jsonl")


def folders(samples: Path) -> list[str]:
    """The names under `tests/formats/` that hold samples."""
    return [path.name for path in samples.iterdir() if path.is_dir() and path.name != "__pycache__"]


@pytest.mark.parametrize("name", SHELVES)
def test_a_shelf_keeps_no_list(name: str) -> None:
    """A shelf finds its members by looking: its `__init__.py` names none of them."""
    assert listed(ROOT / "capwatch" / name) == []


def test_a_list_is_noticed(tmp_path: Path) -> None:
    """A shelf that imports one member and names another in a list is caught at both."""
    (tmp_path / "__init__.py").write_text('"""One shelf."""\nfrom shelf import first\nEVERY = [first, "second"]\n')
    for name in ("first", "second", "third"):
        (tmp_path / f"{name}.py").touch()
    assert listed(tmp_path) == ["first", "second"]


def test_a_file_bears_the_name_of_its_format() -> None:
    """The shelf of formats offers exactly the files that lie on it, under their own names."""
    assert list(shelf()) == members(ROOT / "capwatch" / "formats")


def test_every_format_has_its_samples() -> None:
    """A format comes with a sample log, what is understood of it, and at least one line that is dropped."""
    assert missing_samples(ROOT / "capwatch" / "formats", ROOT / "tests" / "formats") == []


def test_every_format_has_its_page() -> None:
    """A format says how its log is switched on and what it lacks, and a page of the reference is built from that."""
    assert missing_words(ROOT / "capwatch" / "formats", ROOT / "docs" / "formats") == []


def test_what_a_docstring_lacks_is_named(tmp_path: Path) -> None:
    """Labels missing or out of order, a page that was not built, a page of a format that is gone: each is named."""
    formats, pages = tmp_path / "formats", tmp_path / "pages"
    formats.mkdir()
    pages.mkdir()
    whole = "".join(f"{label}: words\n" for label in SAID)
    bare = "Program: words\nExample (text): words\nMissing:\nUnits: words\n"
    back = "".join(f"{label}: words\n" for label in reversed(SAID))
    for name, doc in {"bare": bare, "back": back, "whole": whole}.items():
        (formats / f"{name}.py").write_text(f'"""One.\n\n{doc}"""\n')
    for name in ("back", "gone", "whole"):
        (pages / f"{name}.md").touch()
    assert missing_words(formats, pages) == [
        "gone.md: a page of no format",
        "back: its docstring has not the order Program, Switched on, Example, Units, Missing",
        "bare: its docstring has no line 'Switched on: …'",
        "bare: its docstring has no line 'Missing: …'",
        "bare: no page docs/formats/bare.md; python docs/build.py writes it",
    ]


def test_what_a_format_lacks_is_named(tmp_path: Path) -> None:
    """A format without samples, without an outcome, without a dropped line; samples without a format: each is named."""
    formats, samples = tmp_path / "formats", tmp_path / "samples"
    formats.mkdir()
    for name in ("bare", "complete", "half", "kind"):
        (formats / f"{name}.py").touch()
    for name in ("complete", "half", "kind", "orphan"):
        (samples / name).mkdir(parents=True)
        (samples / name / "case.log").write_text("a line\n")
    (samples / "complete" / "case.expected.jsonl").write_text('{"line": 1, "outcome": "drop"}\n')
    (samples / "kind" / "case.expected.jsonl").write_text('{"line": 1, "outcome": "record"}\n')
    assert missing_samples(formats, samples) == [
        "orphan: samples of no format",
        "bare: no sample in tests/formats/bare/",
        "half: case.log has no expected outcome",
        "half: no sample with a line that is dropped",
        "kind: no sample with a line that is dropped",
    ]
