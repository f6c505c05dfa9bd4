"""Engine metrics that were renamed, by the alias tables of the engines: what stands there now for what is asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from capwatch.dialect.vocabulary import spelled
from capwatch.engines import shelf


@cache
def aliases() -> dict[str, tuple[str, ...]]:
    """Other names of the same quantity by each name, as `spelled`.

    >>> aliases()["vllm_gpu_cache_usage_perc"]
    ('vllm_kv_cache_usage_perc',)
    """
    found: dict[str, list[str]] = {}
    for engine in shelf().values():
        for table in (engine.gauges, engine.counters):
            for ways in table.values():
                names = [way.terms[0].name for way in ways if len(way.terms) == 1]
                for name in names:
                    found.setdefault(name, []).extend(other for other in names if other != name)
    return {name: tuple(dict.fromkeys(others)) for name, others in found.items() if others}


def of_engine(series: str) -> bool:
    """Whether a series has the name of an engine's metric that the tables know."""
    return any(spelled(series) in engine.names for engine in shelf().values())


def renamed(missing: Iterable[str], live: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(missing, live) pairs of names that tell the same quantity.

    >>> list(renamed(["vllm:gpu_cache_usage_perc"], ["vllm:kv_cache_usage_perc", "up"]))
    [('vllm:gpu_cache_usage_perc', 'vllm:kv_cache_usage_perc')]
    """
    by_spelling = {spelled(name): name for name in live}
    for name in missing:
        other = next((by_spelling[one] for one in aliases().get(spelled(name), ()) if one in by_spelling), None)
        if other is not None:
            yield name, other
