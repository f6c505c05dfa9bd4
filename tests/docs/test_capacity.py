"""The page on capacity arithmetic: its functions exist, its formulas are all there, its table is what is measured."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest

from capwatch.cli import main
from tests.capacity.trust import ROWS, row

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "capacity.md").read_text()
(BLOCK,) = re.findall(r"^```\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
COMMANDS = BLOCK.replace("\\\n", "").splitlines()
FUNCTIONS = sorted(set(re.findall(r"\[`(\w+)\.(\w+)`\]\((\S+?)\)", PAGE)))


@pytest.mark.parametrize(("module", "name", "file"), FUNCTIONS)
def test_a_function_is_where_its_link_leads(module: str, name: str, file: str) -> None:
    """The file is there, and the function is in it."""
    path = (DOCS / file).resolve().relative_to(DOCS.parent)
    assert path.stem == module
    assert hasattr(import_module(".".join(path.with_suffix("").parts)), name)


def test_every_formula_has_its_row() -> None:
    """F1 to F57."""
    cells = " ".join(re.findall(r"^\| ((?:F\d+(?:, )?)+) \|", PAGE, flags=re.MULTILINE))
    assert sorted(map(int, re.findall(r"F(\d+)", cells))) == list(range(1, 58))


def test_every_formula_of_the_code_is_on_the_page() -> None:
    """A function whose docstring names a formula is linked."""
    rooms = (DOCS.parent / "capwatch" / "capacity").glob("*.py")
    found = {
        (path.stem, name)
        for path in rooms
        for name, text in re.findall(r'^def ([a-z]\w*)\(.*?"""(.*?)"""', path.read_text(), flags=re.M | re.S)
        if re.search(r"\(F\d", text)
    }
    assert found - {(module, name) for module, name, _ in FUNCTIONS} == set()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_on_the_page_runs(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a word on stderr."""
    code = main(shlex.split(command)[1:])
    shown = capsys.readouterr()
    assert (code, shown.err, bool(shown.out)) == (0, "", True)


@pytest.mark.parametrize("case", ROWS, ids=str)
def test_the_table_of_trust_is_what_is_found(case: tuple[int, float, float, float]) -> None:
    """Both approximations to the digit; a shorter simulation within three tenths of the page's."""
    start = "| " + " | ".join(map(str, case)) + " | "
    (line,) = (one for one in PAGE.splitlines() if one.startswith(start))
    told = [[float(one) for one in cell.split(" / ")] for cell in line.removeprefix(start).rstrip(" |").split(" | ")]
    simulated, *formulas = row(*case, requests=300_000)
    assert [[float(f"{one:.3g}") for one in cell] for cell in formulas] == told[1:]
    assert simulated[0] == pytest.approx(told[0][0], rel=0.3)
    assert simulated[2] == pytest.approx(told[0][2], rel=0.3)
