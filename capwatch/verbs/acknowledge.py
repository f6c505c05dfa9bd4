"""Accept the drift that is active in a pool as the new normal, with the running daemon."""

from __future__ import annotations

import argparse

from capwatch.console.daemon import folder, reach
from capwatch.daemon.control import ask

EXAMPLE = "capwatch acknowledge --pool chat-70b --state-dir /var/lib/capwatch"


def describe(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("--pool", metavar="NAME", required=True, help="the pool whose drift is accepted")
    reach(parser)


def run(arguments: argparse.Namespace) -> int:
    """Send it."""
    ask(folder(arguments), {"do": "acknowledge", "pool": arguments.pool})
    return 0
