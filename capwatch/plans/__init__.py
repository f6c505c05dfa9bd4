"""The shelf of calculations: `capwatch plan NAME` per file, with `EXAMPLE`, `OPTIONS` and `plan(arguments) -> Answer`.

The arithmetic is that of `capwatch.capacity`; here stands how a question is asked and how its answer is told. A module
here is found by itself.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, cast

from capwatch.console.answer import Answer
from capwatch.console.options import Option


class Calculation(Protocol):
    """A module on the shelf; its docstring is the help."""

    __doc__: str | None
    EXAMPLE: str
    OPTIONS: Sequence[Option]

    def plan(self, arguments: argparse.Namespace, /) -> Answer:
        """Answer the question; raises `capwatch.errors.UsageError` that names the option."""


def shelf() -> dict[str, Calculation]:
    """Every calculation by its name, in alphabetical order."""
    names = sorted(module.name for module in iter_modules(__path__))
    return {name: cast(Calculation, import_module(f"{__name__}.{name}")) for name in names}
