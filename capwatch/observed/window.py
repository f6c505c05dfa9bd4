"""The window of a command: `--since` and `--until`."""

from __future__ import annotations

import argparse
import math
from datetime import UTC

from capwatch.dialect.value import REFUSED
from capwatch.dialect.value import time as read_time
from capwatch.errors import UsageError


def describe(parser: argparse.ArgumentParser) -> None:
    """The options of a window."""
    parser.add_argument(
        "--since", metavar="TIME", help="begin: RFC 3339 or seconds since the epoch (the first request)"
    )
    parser.add_argument("--until", metavar="TIME", help="end, itself outside (after the last request)")


def window(arguments: argparse.Namespace) -> tuple[float, float]:
    """(since, until), s since the epoch, whole; minus and plus infinity where they are not given.

    Raises:
        UsageError: one is no time, or they are the wrong way round.
    """
    since, until = (_time(f"--{name}", getattr(arguments, name)) for name in ("since", "until"))
    begin = -math.inf if since is None else math.floor(since)
    end = math.inf if until is None else math.ceil(until)
    if begin >= end:
        raise UsageError("--until: is not after --since")
    return begin, end


def _time(option: str, text: str | None) -> float | None:
    if text is None:
        return None
    at = read_time(text, UTC)
    if at is None or at == REFUSED or not 0 <= at < 1e11:
        raise UsageError(f"{option}: {text!r} is no time; use RFC 3339, such as 2026-11-30T09:41:00Z")
    return at
