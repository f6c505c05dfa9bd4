"""The log formats that can be read, with the programs and versions they come from."""

from __future__ import annotations

import argparse
import json

from capwatch.formats import shelf

EXAMPLE = "capwatch formats"


def describe(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("--json", action="store_true", help="a list of objects for machines")


def run(arguments: argparse.Namespace) -> int:
    """Print the shelf."""
    forms = shelf().values()
    if arguments.json:
        print(json.dumps([{"name": form.name, "kind": form.kind, "title": form.title} for form in forms], indent=2))
        return 0
    width = max(len(form.name) for form in forms)
    for form in forms:
        print(f"{form.name:{width}}  {form.kind:7}  {form.title}")
    return 0
