"""Manifests and documents from live numbers: autoscalers, limits, load tests; and the rules and dashboards themselves.

Every number carries a comment that says where it comes from; what the source does not tell is marked NOT KNOWN, and
never made up. Nothing is applied: look it over, then hand it to kubectl or to the gateway.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

from capwatch.console.parts import declare_parts
from capwatch.render.documents import Document, shelf

EXAMPLE = "capwatch render hpa --config.file capwatch.yml access.jsonl"


def parts() -> Iterator[tuple[str, Document]]:
    """The documents by name."""
    yield from shelf().items()


def describe(parser: argparse.ArgumentParser) -> None:
    """Options of the verb: a document, each with its own."""
    declare_parts(parser, "DOCUMENT", parts(), describe_part)


def describe_part(parser: argparse.ArgumentParser, document: Document) -> None:
    """Options of one document."""
    document.describe(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print it."""
    document: Document = arguments.part
    print(document.render(arguments, time.time()))
    return 0
