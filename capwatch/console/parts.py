"""A command with words of its own, as `plan size`: each is a part from a shelf, with a text and an example."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from capwatch import __version__


class Part(Protocol):
    """What stands behind a word; its docstring is the help."""

    EXAMPLE: str


P = TypeVar("P", bound=Part)


def declare_parts(
    parser: argparse.ArgumentParser,
    what: str,
    parts: Iterable[tuple[str, P]],
    describe: Callable[[argparse.ArgumentParser, P], None],
) -> None:
    """Declare a word for each part, with the options that ``describe`` gives it; parsed are ``name`` and ``part``."""
    entries = parser.add_subparsers(metavar=what, required=True)
    for name, part in parts:
        text = part.__doc__ or ""
        entry = entries.add_parser(
            name,
            help=text.partition("\n")[0].replace("%", "%%"),
            description=text,
            epilog=f"example:\n  {part.EXAMPLE}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        describe(entry, part)
        entry.add_argument("--version", action="version", version=__version__)
        entry.set_defaults(part=part, name=name)
