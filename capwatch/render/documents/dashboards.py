"""The Grafana dashboards of this version, written from the installed package into a folder.

dashboards/README.md says how they are imported or provisioned.
"""

from __future__ import annotations

import argparse

from capwatch import shipped
from capwatch.errors import UsageError

EXAMPLE = "capwatch render dashboards --out dashboards"


def describe(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument("--out", metavar="DIR", help="the folder")


def render(arguments: argparse.Namespace, now: float) -> str:  # noqa: ARG001 - boards are of a version, not of a moment
    """The names of what was written."""
    if arguments.out is None:
        raise UsageError("--out: is missing; give the folder for the JSON files, --out DIR")
    return shipped.write(shipped.files("dashboards"), arguments.out)
