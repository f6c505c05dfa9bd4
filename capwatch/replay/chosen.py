"""Which files a command reads, each with the source it belongs to."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence

from capwatch import sourcing
from capwatch.config.rules import roles
from capwatch.config.schema import Config, Source
from capwatch.errors import UsageError
from capwatch.replay.road import Log


def chosen(config: Config, name: str | None, paths: Sequence[str]) -> list[Log]:
    """The files at ``paths``, of the only source or of the one called ``name``; without paths those of all sources.

    Raises:
        UsageError: there is none, or it is not said whose they are.
    """
    role = roles(config, sourcing.engines())
    if not config.sources:
        raise UsageError("sources: none is configured, so nothing says how to read a log; add one")
    if name is None and paths and len(config.sources) > 1:
        names = ", ".join(source.name for source in config.sources)
        raise UsageError(f"--source: which source do the logs belong to? one of {names}")
    sources = [source for source in config.sources if name in (None, source.name)]
    if not sources:
        names = ", ".join(source.name for source in config.sources)
        raise UsageError(f"--source: no source {name!r}; one of {names}")
    if paths:
        return [_log(path, sources[0], role) for path in paths]
    found = [_log(path, source, role) for source in sources for path in _matches(source)]
    if not found:
        globs = ", ".join(glob for source in sources for glob in source.path)
        raise UsageError(f"sources: no file matches {globs}; name files, or correct `path`")
    return found


def _log(path: str, source: Source, role: Mapping[str, str]) -> Log:
    if not os.path.isfile(path):
        raise UsageError(f"{path}: {'is a directory' if os.path.isdir(path) else 'no such file'}")
    return Log(path, source, counts=role[source.name] == "count")


def _matches(source: Source) -> list[str]:
    """Files of a source, each once whatever its names, oldest first."""
    files = {os.path.realpath(path): path for pattern in source.path for path in sorted(glob.glob(pattern))}
    return sorted((path for real, path in files.items() if os.path.isfile(real)), key=os.path.getmtime)
