"""Capacity arithmetic: how many replicas, how much memory, how long a wait, each with its formula's steps.

Numbers carry units: `170s`, `8min`, `140GB`, `0.25MiB`, `1%`, `0.5/min`. Every calculation prints its inputs, the
steps of the formula and the result; --json prints the result for machines. docs/capacity.md has the formulas, what
they assume and how far they can be trusted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from capwatch import __version__
from capwatch.console.answer import as_json, as_text
from capwatch.console.options import asked, declare
from capwatch.plans import Calculation, shelf

EXAMPLE = "capwatch plan size --demand-tps 800 --replica-tps 100 --target 0.7 --burst 1.5 --zones 3"


def parts() -> Iterator[tuple[str, Calculation]]:
    """The calculations by name."""
    yield from shelf().items()


def describe(parser: argparse.ArgumentParser) -> None:
    """Options of the verb: a calculation, each with its own."""
    entries = parser.add_subparsers(metavar="CALCULATION", required=True)
    for name, calculation in parts():
        text = calculation.__doc__ or ""
        entry = entries.add_parser(
            name,
            help=text.partition("\n")[0].replace("%", "%%"),
            description=text,
            epilog=f"example:\n  {calculation.EXAMPLE}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        describe_part(entry, calculation)
        entry.add_argument("--version", action="version", version=__version__)
        entry.set_defaults(calculation=calculation, name=name)


def describe_part(parser: argparse.ArgumentParser, calculation: Calculation) -> None:
    """Options of one calculation."""
    declare(parser, calculation.OPTIONS)


def run(arguments: argparse.Namespace) -> int:
    """Print the answer on stdout and warnings on stderr."""
    calculation: Calculation = arguments.calculation
    answer = calculation.plan(asked(calculation.OPTIONS, arguments))
    if arguments.json:
        print(as_json(answer.result))
    else:
        options = calculation.OPTIONS
        given = [(option.name, text, option.help) for option in options for text in option.texts(arguments)]
        print(as_text(f"capwatch plan {arguments.name}", given, answer))
    for warning in answer.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return 0
