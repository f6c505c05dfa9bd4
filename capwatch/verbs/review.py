"""The weekly capacity review: what changed, why, what to do first, and what it would cost to do nothing.

Writes --out (HTML, or Markdown where it ends in .md), and beside it the same as .md and .json. The week is an ISO week,
Monday 00:00 to Sunday 24:00 UTC; what a source cannot tell of it is named, with what would provide it. --compare tells
what changed against an earlier week. Needs `pip install 'capwatch[review]'`.
"""

from __future__ import annotations

import argparse
import sys
import time

from capwatch.observed import given, source

EXAMPLE = "capwatch review --week 2026-W10 --config.file capwatch.yml access.jsonl --out review.html"


def describe(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("--week", metavar="WEEK", required=True, help="the ISO week, such as 2026-W48")
    parser.add_argument("--out", metavar="FILE", required=True, help="the page to write; .md and .json come beside it")
    parser.add_argument("--compare", metavar="WEEK", help="also what changed against that week, such as W47")
    source.describe(parser)


def run(arguments: argparse.Namespace) -> int:
    """Review the week."""
    from capwatch.review import write  # noqa: PLC0415 - what it needs is optional, and seconds to import
    from capwatch.review.calendar import week  # noqa: PLC0415

    which = week("--week", arguments.week)
    other = None if arguments.compare is None else week("--compare", arguments.compare, which.year)
    paths = write.paths(arguments.out)
    found = given(arguments, ["state", "prometheus", "logs"], "review needs a SOURCE")
    document = write.review(found, which, paths, time.time(), other)
    if document.week.end <= document.week.begin:
        print(f"warning: no request of {which} is told; the review says what is missing", file=sys.stderr)
    print("\n".join(paths))
    return 0
