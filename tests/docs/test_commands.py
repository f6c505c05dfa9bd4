"""Commands for developers that the pages name are there: those too long to run here are planned by make, and found."""

from __future__ import annotations

import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = "\n".join(page.read_text() for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))))
TARGETS = sorted(set(re.findall(r"(?:`|^)make ([a-z]+)(?:`|$)", TEXT, flags=re.MULTILINE)))
MODULES = sorted(set(re.findall(r"`python -m ([\w.]+)", TEXT)))


def test_they_are_found_on_the_pages() -> None:
    """The long ones are among them."""
    assert {"demo", "test", "check", "faults", "engine", "bench"} <= set(TARGETS)
    assert {"tests.bench.mtail", "tests.bench.commits"} <= set(MODULES)


@pytest.mark.parametrize("target", TARGETS)
def test_make_knows_the_target(target: str) -> None:
    """It would run something."""
    planned = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (planned.returncode, planned.stderr) == (0, "")
    assert planned.stdout.strip()


@pytest.mark.parametrize("module", MODULES)
def test_the_module_is_there(module: str) -> None:
    """`python -m` finds it."""
    assert find_spec(module) is not None
