"""The metric catalogue: every name that capwatch exports, with kind, unit, labels and meaning."""

from __future__ import annotations

import argparse

from capwatch.metrics import CATALOGUE, as_json, as_text

EXAMPLE = "capwatch metrics --json"


def describe(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("--json", action="store_true", help="a list of objects for machines")


def run(arguments: argparse.Namespace) -> int:
    """Print the catalogue."""
    print((as_json if arguments.json else as_text)(CATALOGUE.values()))
    return 0
