"""The shelf of GPU vendors: one library per file. A module here with an ``OPEN`` is found by itself.

Only reading is done here: a call into a vendor's library may take for ever, so whoever calls has a thread for it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol

from capwatch.record import GpuReading


class Library(Protocol):
    """A vendor's library, open. Every method may raise `capwatch.errors.LibraryError`, and may take for ever."""

    def read(self) -> GpuReading:
        """What all cards tell now."""

    def close(self) -> None:
        """Give the library back."""


def shelf() -> dict[str, Callable[[], Library]]:
    """How to open each vendor's library, by its name, in alphabetical order."""
    return {module.name: import_module(f"{__name__}.{module.name}").OPEN for module in iter_modules(__path__)}
