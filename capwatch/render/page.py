"""Lines of YAML in which every number carries a comment that says where it comes from."""

from __future__ import annotations

import re
import sys
from decimal import Decimal
from typing import Final

import yaml

MARK: Final = "NOT KNOWN"
"""Marks what the source does not tell, and what stands there meanwhile."""
_COMMENT_AT: Final = 43
_LONGEST_KEY: Final = 1000
"""Characters; YAML reads a longer key (from 1024) only after a question mark, and 128 emoji, escaped, are 1280."""


def number(key: str, value: object, why: str, indent: int = 0) -> str:
    """A key with a number, and its origin.

    >>> number("minReplicas", 6, "base promise", 2)
    '  minReplicas: 6                            # base promise'
    """
    pad = " " * indent
    left = f"{pad}{key}: {value}" if len(key) <= _LONGEST_KEY else f"{pad}? {key}\n{pad}: {value}"
    return left.ljust(_COMMENT_AT) + f" # {why}"


def unknown(key: str, why: str, indent: int = 0) -> str:
    """A key that has no number: a comment, so that nothing is made up.

    >>> unknown("burst", "no single requests", 2)
    '  # burst:                                  # NOT KNOWN: no single requests'
    """
    return f"{' ' * indent}# {key}:".ljust(_COMMENT_AT) + f" # {MARK}: {why}"


def text(value: str) -> str:
    """A text as a YAML scalar on one line: plain where that is safe, else in double quotes, all ASCII."""
    plain = re.fullmatch(r"[A-Za-z/][\w/.-]*", value, re.ASCII) and not re.fullmatch(
        r"(?i)y|n|yes|no|on|off|true|false|null", value
    )
    return value if plain else quoted(value)


def quoted(value: str) -> str:
    r"""A text as a YAML scalar in double quotes, all ASCII.

    >>> quoted('0.7'), quoted('a "b" 😀')
    ('"0.7"', '"a \\"b\\" \\U0001F600"')
    """
    return yaml.safe_dump(value, default_style='"', width=sys.maxsize).rstrip("\n")


def named(*parts: str) -> str:
    """A name that Kubernetes takes: lower case, digits, dashes, at most 63.

    >>> named("capwatch", "Chat_70B/eu")
    'capwatch-chat-70b-eu'
    """
    return re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")[:63].strip("-")


def short(value: float) -> str:
    """A number to three digits, without an exponent.

    >>> short(1234567), short(0.70000001), short(12.3456), short(0.0), short(1.5e-12)
    ('1230000', '0.7', '12.3', '0', '0.0000000000015')
    """
    return f"{Decimal(f'{value:.3g}'):f}"
