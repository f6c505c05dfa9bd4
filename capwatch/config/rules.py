"""What has to hold between the keys of a configuration, and which sources count requests (contract, section 2a)."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from capwatch.config.nearest import nearest
from capwatch.config.schema import Config, Role, Source
from capwatch.config.tree import Path
from capwatch.config.units import found
from capwatch.record import DURATIONS, TIMES, Request

MOST: Final = {"sources": 4000, "engines": 10_000, "pools": 250, "classes": 250, "slo": 1000}
"""Entries of the lists whose names are in every key of the ledger, or tried for each request."""
MOST_DOTS: Final = 8
"""A path with dots is tried in every reading, of which each dot doubles the number."""
DEPLOYS: Final = "deploys"
"""The source that the file of deploy notes is read as, and its format."""
WHOLE_DISK: Final = re.compile(r"/+(?:[^/]*[*?\[][^/]*/+)*\*\*(?:/|$)")
"""A pattern with `**` and no folder's name before it."""
_RECORD_FIELDS = frozenset(Request.__struct_fields__)


def violations(config: Config, formats: frozenset[str]) -> Iterator[tuple[Path, str]]:
    """Every rule that does not hold: the key at fault, and what is wrong with it and possible instead."""
    for key, most in MOST.items():
        if len(getattr(config, key)) > most:
            yield (key,), f"{len(getattr(config, key))} of them; at most {most}"
    for key, named in (("sources", config.sources), ("pools", config.pools), ("classes", config.classes)):
        yield from (((key, index, "name"), text) for index, text in _repeated(each.name for each in named))
    for index, source in enumerate(config.sources):
        yield from ((("sources", index, *path), text) for path, text in _of_source(source, formats))
    yield from _of_pools(config)
    if config.deploys is not None:
        yield from (
            (("sources", index, "name"), f"{found(DEPLOYS)} is the file of deploy notes; take another name")
            for index, source in enumerate(config.sources)
            if source.name == DEPLOYS
        )
    engines = (f"{each.pool}/{engine_label(each.url, each.engine)}" for each in config.engines)
    yield from ((("engines", index, "engine"), text) for index, text in _repeated(engines))


def engine_label(url: str, engine: str | None) -> str:
    """The label of a scraped engine: its given name, else host and port of its URL (never user and password).

    >>> engine_label("http://user:secret@10.0.0.7:8000/metrics", None)
    '10.0.0.7:8000'
    """
    return engine or urlsplit(url).netloc.rpartition("@")[2]


def roles(config: Config, engine_formats: frozenset[str]) -> dict[str, Role]:
    """Which sources count requests and which only add times, by name of the source.

    An engine log without a `role` adds times where a counting gateway can feed its pool, and counts otherwise; every
    other source without a `role` counts. A source without a `pool` can feed every pool.
    """
    gateways = [
        source for source in config.sources if source.format not in engine_formats and source.role in (None, "count")
    ]
    return {
        source.name: source.role
        or ("times" if source.format in engine_formats and any(meet(source, each) for each in gateways) else "count")
        for source in config.sources
    }


def all_sources(config: Config) -> tuple[Source, ...]:
    """The sources, and the file of deploy notes as one more, which is read from its beginning: each note has a time."""
    if config.deploys is None:
        return config.sources
    return *config.sources, Source(DEPLOYS, (glob.escape(config.deploys),), DEPLOYS, start="beginning")


def decided(config: Config, engine_formats: frozenset[str]) -> Config:
    """The same configuration with every role written down."""
    role = roles(config, engine_formats)
    return replace(config, sources=tuple(replace(one, role=role[one.name]) for one in config.sources))


def meet(one: Source, other: Source) -> bool:
    """Whether two sources can feed the same pool."""
    return None in (one.pool, other.pool) or one.pool == other.pool


def _of_source(source: Source, formats: frozenset[str]) -> Iterator[tuple[Path, str]]:
    for index, pattern in enumerate(source.path):
        if WHOLE_DISK.match(pattern):
            yield ("path", index), f"{found(pattern)} would walk the whole disk every second; begin with a folder"
    if source.format not in formats:
        yield ("format",), f"no format {found(source.format)}; {nearest(source.format, formats)}"
    if not _zone_exists(source.timezone):
        yield ("timezone",), f"no time zone {found(source.timezone)}; {nearest(source.timezone, available_timezones())}"
    for name, where in source.fields.items():
        if name not in _RECORD_FIELDS:
            yield ("fields", name), f"no field of the record; {nearest(name, _RECORD_FIELDS)}"
        elif where.unit and name not in (*TIMES, *DURATIONS):
            yield ("fields", name, "unit"), f"{name} is no time; remove the unit"
        elif where.path.count(".") > MOST_DOTS:
            yield ("fields", name), f"{where.path.count('.')} dots; at most {MOST_DOTS}"


def _of_pools(config: Config) -> Iterator[tuple[Path, str]]:
    names = [pool.name for pool in config.pools]
    named: list[tuple[Path, str | None]] = [
        *((("sources", index, "pool"), source.pool) for index, source in enumerate(config.sources)),
        *((("engines", index, "pool"), engine.pool) for index, engine in enumerate(config.engines)),
        *((("quotas", name), name) for name in config.quotas),
    ]
    for path, name in named:
        if name is not None and name not in names:
            yield path, f"no pool {found(name)}; {nearest(name, names)}"
    for index, pool in enumerate(config.pools):
        if pool.zones is not None and pool.zone_sizes is not None:
            yield ("pools", index, "zone_sizes"), "given beside zones; remove one of the two"


def _repeated(names: Iterable[str]) -> Iterator[tuple[int, str]]:
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            yield index, f"{found(name)} is given twice; names must differ"
        seen.add(name)


def _zone_exists(name: str) -> bool:
    if name == "UTC":  # needs no data base, which slim images may lack
        return True
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # not a name at all, a folder of zones, an unknown name
        return False
    return True
