"""The habits of the house that no linter knows: read from the syntax trees of the package, named by file and line."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "capwatch"

# These hold the clock and hand out the time; everything else is told what time it is.
CLOCK_KEEPERS = {"cli.py", "daemon", "verbs"}
CLOCKS = {
    *(f"time.{name}{suffix}" for name in ("time", "monotonic", "perf_counter") for suffix in ("", "_ns")),
    *("datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today"),
}
# Built-in functions that touch the world; the shell below may, the core may not (its imports are import-linter's part).
WORLD = {"open", "print", "input", "breakpoint"}
SHELL = {
    *("cli", "demo", "daemon", "review", "backtest", "calibrate", "doctor", "init", "render", "replay", "explain"),
    *("verbs", "console", "web", "tail", "scrape", "gpus", "keep", "config", "observed"),
}
EMPTY_WORDS = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}
MOST_LINES = 300  # what one reads in one sitting; a longer file says in its docstring why it "may exceed" this


@cache
def modules() -> dict[str, tuple[str, ast.Module]]:
    """Text and syntax tree of every module, by its path inside the package."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        found[path.relative_to(PACKAGE).as_posix()] = (text, ast.parse(text))
    return found


def full_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of whatever a module takes from an imported name, aliases resolved."""
    imported: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]  # `import a.b` binds a, `import a.b as c` binds a.b
                imported[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            first, dot, rest = ast.unparse(node).partition(".")
            if first in imported:
                yield node.lineno, imported[first] + dot + rest


def clock_readings(tree: ast.Module) -> list[tuple[int, str]]:
    """Where a module takes a clock in its hand, called or passed on."""
    return sorted({(line, name) for line, name in full_names(tree) if name in CLOCKS})


def broad_handlers(tree: ast.Module) -> list[int]:
    """Lines of the handlers that catch every error."""
    handlers = [node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and not passes_on(node)]
    return [handler.lineno for handler in handlers if handler.type is None or catches_all(handler.type)]


def passes_on(handler: ast.ExceptHandler) -> bool:
    """Whether a handler only cleans up: it ends by raising again what it caught."""
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def catches_all(kind: ast.expr) -> bool:
    """Whether a handler's expression has Exception or BaseException in it."""
    return any(isinstance(node, ast.Name) and node.id in {"Exception", "BaseException"} for node in ast.walk(kind))


@pytest.mark.parametrize(
    "text",
    [
        "import time\nnow = time.time()",
        "from time import monotonic as tick\nnow = tick()",
        "import time as t\nclock = t.perf_counter_ns",
        "from datetime import UTC, datetime\nnow = datetime.now(UTC)",
        "import datetime\nnow = datetime.date.today()",
    ],
)
def test_the_clock_check_sees_every_spelling(text: str) -> None:
    """A clock is recognised however it is imported, and whether it is called or handed on."""
    assert [line for line, _ in clock_readings(ast.parse(text))] == [2]


def test_the_clock_check_lets_arithmetic_be() -> None:
    """Time arithmetic that reads no clock is no finding."""
    text = "import datetime, time\nat = datetime.datetime.fromtimestamp(0, datetime.UTC)\ntime.sleep(1)\nnow = at.now"
    assert clock_readings(ast.parse(text)) == []


def test_only_the_daemon_and_the_command_line_read_the_clock() -> None:
    """Time is a parameter everywhere else."""
    found = [
        f"{name}:{line} {clock}"
        for name, (_, tree) in modules().items()
        if name.split("/")[0] not in CLOCK_KEEPERS
        for line, clock in clock_readings(tree)
    ]
    assert found == []


@pytest.mark.parametrize("handler", ["except:", "except Exception:", "except (ValueError, BaseException) as e:"])
def test_the_handler_check_sees_every_spelling(handler: str) -> None:
    """A handler for everything is recognised alone and in a tuple."""
    assert broad_handlers(ast.parse(f"try:\n    f()\n{handler}\n    pass")) == [3]


def test_only_the_daemon_catches_every_error() -> None:
    """Everywhere else an error is caught by its name, so that a mistake of ours is never taken for bad input."""
    found = [
        f"{name}:{line}"
        for name, (_, tree) in modules().items()
        if name.split("/")[0] != "daemon"
        for line in broad_handlers(tree)
    ]
    assert found == []


def test_the_core_touches_nothing() -> None:
    """No built-in function that reads or writes the world is called outside the shell."""
    found = [
        f"{name}:{node.lineno} {node.func.id}"
        for name, (_, tree) in modules().items()
        if name.removesuffix(".py").split("/")[0] not in SHELL
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in WORLD
    ]
    assert found == []


def test_every_module_says_what_it_owns() -> None:
    """Every module begins with a docstring."""
    assert [name for name, (_, tree) in modules().items() if not ast.get_docstring(tree)] == []


def test_files_are_short_or_say_why_not() -> None:
    """A file over the length of one sitting has its reason in its docstring, after the words "may exceed"."""
    found = [
        f"{name} ({lines} lines)"
        for name, (text, tree) in modules().items()
        if (lines := text.count("\n")) > MOST_LINES and "may exceed" not in (ast.get_docstring(tree) or "")
    ]
    assert found == []


def test_nothing_is_left_for_later() -> None:
    """What is not done is not promised in a comment."""
    left = re.compile(r"\b([T]ODO|[F]IXME|[X]XX|[H]ACK)\b")
    found = [
        f"{name}:{number}"
        for name, (text, _) in modules().items()
        for number, line in enumerate(text.splitlines(), 1)
        if left.search(line)
    ]
    assert found == []


def test_names_say_something() -> None:
    """No module or room has a name that fits everything."""
    named = [(name, set(name.removesuffix(".py").replace("/", "_").split("_"))) for name in modules()]
    assert [name for name, words in named if words & EMPTY_WORDS] == []
