"""The shelf of watchers: one change of traffic or service a file. A module here with a ``WATCHER`` is found by itself.

They stand beside the drift detector: cheap looks at the last minutes against the hour before, each with its threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules

from capwatch.minutes.watcher import Watcher


def shelf() -> Sequence[Watcher]:
    """Every watcher, in alphabetical order of their files."""
    return [import_module(f"{__name__}.{module.name}").WATCHER for module in iter_modules(__path__)]
