"""The shelf of meters: one measure per file. A module here with a ``METER`` is found by itself.

A meter looks at batches and gathers increments into its tables; from the totals it shows its metrics.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from capwatch.config.schema import Config
    from capwatch.seen import Meter


def fill_history(meters: Sequence[Meter]) -> Sequence[Meter]:
    """Those whose measures go into slots that close; a history is made of nothing else."""
    return [meter for meter in meters if any(table.closes for table in meter.tables)]


def shelf(config: Config, *, history: bool = True) -> Sequence[Meter]:
    """Every meter, made for this configuration, in alphabetical order of their files.

    ``history`` False leaves out those that only fill the history.
    """
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    return [module.METER(config) for module in modules if history or not getattr(module, "HISTORY_ONLY", False)]
