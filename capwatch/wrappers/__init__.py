"""The shelf of wrappers: what container runtimes put around lines. A module with a ``WRAPPER`` is found by itself."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from capwatch.dialect import Wrapper


def shelf() -> dict[str, Callable[..., Wrapper]]:
    """Every wrapper's factory by its name, in alphabetical order; a factory takes ``line_bytes``, the longest line."""
    names = sorted(module.name for module in iter_modules(__path__))
    return {name: import_module(f"{__name__}.{name}").WRAPPER for name in names}
