"""The sections of the review, one topic each, in the order of their `ORDER`.

A section is a function of the week and its facts. It tells what it can, and names what is missing for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pkgutil import iter_modules

from capwatch.review.facts import Facts
from capwatch.review.section import Section
from capwatch.review.week import Week

Maker = Callable[[Week, Mapping[str, Facts]], Section]


def shelf() -> list[Maker]:
    """All sections in order."""
    modules = [import_module(f"{__name__}.{one.name}") for one in iter_modules(__path__)]
    return [module.SECTION for module in sorted(modules, key=lambda module: module.ORDER)]
