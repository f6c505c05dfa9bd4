"""Calls of the command line, taken apart and put together again."""

from __future__ import annotations

import shlex

import pytest

from capwatch.cli import main
from capwatch.console.options import Option
from capwatch.plans import shelf
from capwatch.verbs import simulate

CALLS: dict[str, tuple[str, tuple[Option, ...]]] = {
    f"plan {name}": (one.EXAMPLE, tuple(one.OPTIONS)) for name, one in shelf().items()
}
CALLS["simulate"] = (simulate.EXAMPLE.replace("60000", "200"), simulate.OPTIONS)
"""Every calculation: its example, and its options."""
EACH = [pytest.param(call, option, id=f"{call} {option.name}") for call, (_, some) in CALLS.items() for option in some]
"""Every option of every calculation."""


def pairs(call: str) -> list[tuple[str, str]]:
    """The options of a calculation's example with their values, in order."""
    words = shlex.split(CALLS[call][0].partition(f"capwatch {call} ")[2])
    return list(zip(words[::2], words[1::2], strict=True))


def typed(call: str, options: list[tuple[str, str]]) -> list[str]:
    """What is typed for a calculation; = keeps a value that begins with a dash at its option."""
    return [*call.split(), *(f"{option}={value}" for option, value in options)]


def changed(call: str, option: str, value: str) -> list[str]:
    """The example with one value of an option changed, or the option added."""
    found = pairs(call)
    places = [i for i, (name, _) in enumerate(found) if name == option]
    found[slice(places[0], places[0] + 1) if places else slice(len(found), None)] = [(option, value)]
    return typed(call, found)


def without(call: str, option: str) -> list[str]:
    """The example without an option."""
    return typed(call, [pair for pair in pairs(call) if pair[0] != option])


def told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    code = main(arguments)
    shown = capsys.readouterr()
    return code, shown.out, shown.err
