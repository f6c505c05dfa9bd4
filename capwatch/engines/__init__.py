"""The shelf of engines' metric names: one engine per file. A module here with a ``VOCABULARY`` is found by itself."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from msgspec.structs import astuple

from capwatch.dialect.exposition import series
from capwatch.dialect.iterations import hands_out_once, newest
from capwatch.dialect.vocabulary import Replica, spelled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from capwatch.dialect.vocabulary import Vocabulary
    from capwatch.record import EngineSample


@cache
def shelf() -> Mapping[str, Vocabulary]:
    """Every engine's vocabulary by its name, in alphabetical order."""
    found = (import_module(f"{__name__}.{module.name}").VOCABULARY for module in iter_modules(__path__))
    return {one.name: one for one in sorted(found, key=lambda one: one.name)}


def replicas(page: str) -> list[Replica]:
    """What a saved or fetched `/metrics` page tells of each engine replica on it; empty where it knows no engine.

    The page is read in the vocabulary that tells most of it: a front end's page may pass its engine's series on. A list
    of JSON statistics, as TensorRT-LLM's `/metrics` answers, is read up to its newest iteration.
    """
    if hands_out_once(page):
        told = newest(page)
        return [Replica(told[0].sample, {name: [count] for name, count in told[1].items()})] if told else []
    engines = shelf()
    names = frozenset().union(*(engine.names for engine in engines.values()))
    found = series(page, lambda name: spelled(name) in names)
    return max((engine.read(found) for engine in engines.values()), key=_told, default=[])


def page(text: str) -> list[EngineSample]:
    """The engine samples of one page (format `engine_metrics`): gauges only, since counters need two pages."""
    return [replica.sample for replica in replicas(text)]


def _told(found: list[Replica]) -> int:
    return sum(value is not None for one in found for value in astuple(one.sample))
