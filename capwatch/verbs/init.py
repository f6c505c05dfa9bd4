"""A commented starter configuration from the log files given: what could not be found is marked in it.

It is printed on stdout; files are only read, and nothing that a client wrote is shown. Exit code 1 where no file is
in a format that there is.
"""

from __future__ import annotations

import argparse

from capwatch.init.look import look
from capwatch.init.write import starter

EXAMPLE = "capwatch init access.jsonl"


def describe(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("logs", metavar="LOG", nargs="+", help="log files of gateways and engines; .gz and .zst too")


def run(arguments: argparse.Namespace) -> int:
    """Look, and print."""
    findings = look(arguments.logs)
    print(starter(findings), end="")
    return int(not any(one.format for one in findings))
