"""Capacity arithmetic: how many replicas, how much memory, how long a wait, each with its formula's steps.

Numbers carry units: `170s`, `8min`, `140GB`, `0.25MiB`, `1%`, `0.5/min`. Every calculation prints its inputs, the
steps of the formula and the result; --json prints the result for machines. docs/capacity.md has the formulas, what
they assume and how far they can be trusted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from capwatch.console.answer import as_json, as_text
from capwatch.console.options import asked, declare
from capwatch.console.parts import declare_parts
from capwatch.plans import Calculation, shelf

EXAMPLE = "capwatch plan size --demand-tps 800 --replica-tps 100 --target 0.7 --burst 1.5 --zones 3"


def parts() -> Iterator[tuple[str, Calculation]]:
    """The calculations by name."""
    yield from shelf().items()


def describe(parser: argparse.ArgumentParser) -> None:
    """Options of the verb: a calculation, each with its own."""
    declare_parts(parser, "CALCULATION", parts(), describe_part)


def describe_part(parser: argparse.ArgumentParser, calculation: Calculation) -> None:
    """Options of one calculation."""
    declare(parser, calculation.OPTIONS)


def run(arguments: argparse.Namespace) -> int:
    """Print the answer on stdout and warnings on stderr."""
    calculation: Calculation = arguments.part
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
