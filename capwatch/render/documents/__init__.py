"""The shelf of documents: `capwatch render NAME` per file, with `EXAMPLE`, `describe(parser)` and `render(arguments)`.

`render` gives the text. A module here is found by itself.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, cast


class Document(Protocol):
    """A module on the shelf; its docstring is the help."""

    __doc__: str | None
    EXAMPLE: str

    def describe(self, parser: argparse.ArgumentParser, /) -> None:
        """Its options."""

    def render(self, arguments: argparse.Namespace, now: float, /) -> str:
        """Its text; ``now`` is s since the epoch."""


def shelf() -> dict[str, Document]:
    """Every document by its name, in alphabetical order."""
    names = sorted(module.name for module in iter_modules(__path__))
    return {name: cast(Document, import_module(f"{__name__}.{name}")) for name in names}
