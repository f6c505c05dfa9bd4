"""Note a deploy or another change with the running daemon, to be shown beside change points."""

from __future__ import annotations

import argparse
import os
import time
from datetime import UTC

from capwatch.config.load import default_state_dir
from capwatch.console.configured import load
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
    parser.add_argument("--config.file", dest="config", metavar="FILE", help="the daemon's configuration")
    parser.add_argument("--state-dir", metavar="DIR", help="the daemon's state directory")


def run(arguments: argparse.Namespace) -> int:
    """Send the note."""
    if not arguments.text.strip():
        raise UsageError("TEXT: is empty; say what has changed")
    if not is_utf8(arguments.text):
        raise UsageError("TEXT: is not UTF-8; write it in that encoding")
    at = time.time() if arguments.at is None else read_time(arguments.at, UTC)
    if at is None or at == REFUSED or at < 0:
        raise UsageError(f"--at: {arguments.at!r} is no time; use RFC 3339, such as 2026-11-30T09:41:00Z")
    ask(_folder(arguments), {"do": "annotate", "text": arguments.text, "at": at, "pool": arguments.pool})
    return 0


def _folder(arguments: argparse.Namespace) -> str:
    if arguments.state_dir is not None:
        return str(arguments.state_dir)
    if arguments.config is not None:
        return load(arguments.config).state_dir
    return default_state_dir(os.environ, is_root=os.geteuid() == 0)
