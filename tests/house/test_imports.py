"""The import contracts of pyproject.toml hold, and each of them catches the mistake it is there for."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# What each contract must catch: the contract's id, the planted file, its text, and the words that name the mistake.
PLANTS = [
    pytest.param(
        "shelves",
        {"formats/planted_a.py": "", "formats/planted_b.py": "import capwatch.formats.planted_a\n"},
        "capwatch.formats.planted_b -> capwatch.formats.planted_a (l.1)",
        id="a neighbour on the shelf",
    ),
    pytest.param(
        "layers",
        {"meters/planted.py": "", "record.py": "import capwatch.meters.planted\n"},
        "capwatch.record -> capwatch.meters.planted (l.1)",
        id="an upward import",
    ),
    pytest.param(
        "circles",
        {
            "drift/planted_a.py": "import capwatch.drift.planted_b\n",
            "drift/planted_b.py": "import capwatch.drift.planted_a\n",
        },
        "No cycles are allowed in capwatch.drift.",
        id="a circle inside a room",
    ),
    pytest.param(
        "core",
        {"meters/planted.py": "from time import monotonic\n"},
        "capwatch.meters.planted -> time (l.1)",
        id="the core reads the clock",
    ),
    pytest.param(
        "layers",
        {"planted.py": ""},
        "- capwatch.planted",
        id="a module without a place",
    ),
    pytest.param(
        "heavy",
        {"meters/planted.py": "import pandas\n"},
        "capwatch.meters.planted -> pandas (l.1)",
        id="data frames in the core",
    ),
]


def lint_imports(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The verdict of import-linter on the package `capwatch` in `tree`, by the tree's own pyproject.toml."""
    program = Path(sys.executable).with_name("lint-imports")
    environment = {**os.environ, "PYTHONPATH": str(tree), "COLUMNS": "500", "NO_COLOR": "1"}
    return subprocess.run(
        [program, "--no-logo", "--no-cache", *arguments],
        cwd=tree,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_contract_holds() -> None:
    """The tree as it is breaks no contract."""
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(("contract", "files", "words"), PLANTS)
def test_a_planted_mistake_is_caught(contract: str, files: dict[str, str], words: str, tmp_path: Path) -> None:
    """A mistake planted into a copy of the package is named by the contract that forbids it."""
    shutil.copytree(ROOT / "capwatch", tmp_path / "capwatch", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name, text in files.items():
        target = tmp_path / "capwatch" / name
        target.parent.mkdir(exist_ok=True)
        (target.parent / "__init__.py").touch()
        target.write_text(text)
    result = lint_imports(tmp_path, "--contract", contract)
    assert (result.returncode, words in result.stdout) == (1, True), result.stdout + result.stderr
