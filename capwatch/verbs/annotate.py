"""Note a deploy or another change with the running daemon, to be shown beside change points."""

from __future__ import annotations

import argparse
import time
from datetime import UTC

from capwatch.console.daemon import folder, reach
from capwatch.daemon.control import ask, is_utf8
from capwatch.dialect.value import REFUSED
from capwatch.dialect.value import time as read_time
from capwatch.errors import UsageError

EXAMPLE = 'capwatch annotate "retrieval depth 4 to 8" --pool chat-70b --state-dir /var/lib/capwatch'


def describe(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("text", metavar="TEXT", help="what has changed")
    parser.add_argument("--at", metavar="TIME", help="when: RFC 3339 or seconds since the epoch (now)")
    parser.add_argument("--pool", metavar="NAME", help="the pool it is about (all)")
    reach(parser)


def run(arguments: argparse.Namespace) -> int:
    """Send the note."""
    if not arguments.text.strip():
        raise UsageError("TEXT: is empty; say what has changed")
    if not is_utf8(arguments.text):
        raise UsageError("TEXT: is not UTF-8; write it in that encoding")
    at = time.time() if arguments.at is None else read_time(arguments.at, UTC)
    if at is None or at == REFUSED or at < 0:
        raise UsageError(f"--at: {arguments.at!r} is no time; use RFC 3339, such as 2026-11-30T09:41:00Z")
    ask(folder(arguments), {"do": "annotate", "text": arguments.text, "at": at, "pool": arguments.pool})
    return 0
