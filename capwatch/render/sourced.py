"""The SOURCE of a document, and the pool that it is about."""

from __future__ import annotations

import argparse

import numpy as np

from capwatch.errors import CapwatchError
from capwatch.observed import given, requests, source, window
from capwatch.observed.source import Given
from capwatch.render.kept import from_state
from capwatch.render.observed import Observed, from_requests, from_server


def describe(parser: argparse.ArgumentParser) -> None:
    """Options of a SOURCE, a window and a pool."""
    source.describe(parser)
    window.describe(parser)
    parser.add_argument("--pool", metavar="NAME", help="the pool, where several have requests")


def sourced(arguments: argparse.Namespace, now: float) -> Observed:
    """What the source tells.

    Raises:
        UsageError: there is no such source or pool.
        CapwatchError: no request in it has a cost.
    """
    found = observed(given(arguments, ["logs", "state", "prometheus"], "render needs a SOURCE"), arguments, now)
    if not (found.costed > 0 and np.nansum(found.demand) > 0):
        raise CapwatchError(f"{found.source}: no request of pool {found.pool} tells token counts, so there is no work")
    return found


def observed(found: Given, arguments: argparse.Namespace, now: float) -> Observed:
    """The numbers of the pool."""
    since, until = window.window(arguments)
    if found.state is not None:
        return from_state(found.state, since, until, arguments.pool)
    if found.prometheus is not None:
        return from_server(found.prometheus, (since, until), arguments.pool, now, found.config)
    return from_requests(
        requests(found, "render", now).inside(arguments.pool, since, until), found.config, arguments.pool
    )
