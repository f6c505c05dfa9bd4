"""The shelf of log dialects: one product per file. A module here with a ``FORMAT`` is found by itself."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capwatch.dialect import Format


def shelf() -> dict[str, Format]:
    """Every format by its name, in alphabetical order."""
    found = (import_module(f"{__name__}.{module.name}").FORMAT for module in iter_modules(__path__))
    return {form.name: form for form in sorted(found, key=lambda form: form.name)}
