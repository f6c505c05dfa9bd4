"""Request paths as templates: few names for many paths, and nothing in them that a client made up."""

from __future__ import annotations

import re
from typing import Final

from capwatch.redact import is_secret

LONGEST: Final = 256
"""Characters of a route, twice those of a label: what looks like a secret is found before it is cut there."""
NAMED: Final = {"deployments": "{deployment}", "models": "{model}", "model": "{model}", "engines": "{model}"}
"""What follows these segments is a name: Azure's deployments, Gemini's and Bedrock's models."""

_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/]*", re.IGNORECASE)
_ID: Final = re.compile(r"\d+|(?=.*\d)[\w.~=+-]{16,}", re.ASCII)
"""A number, or a long word with digits: UUIDs, hashes, `resp_…`, `file-…`."""


def route(path: str | None) -> str | None:
    """The template of a request path: no origin, no query, names and ids replaced; None for None and for nothing.

    >>> route("/v1/chat/completions?key=secret"), route("/v1/threads/thread_4bX9Qw0yPz7aLm2c/runs")
    ('/v1/chat/completions', '/v1/threads/{id}/runs')
    >>> route("/v1beta/models/gemini-pro:streamGenerateContent?key=secret")
    '/v1beta/models/{model}:streamGenerateContent'
    """
    if not path:
        return None
    bare = re.split(r"[?#]", _ORIGIN.sub("", path, count=1), maxsplit=1)[0]
    if not bare.startswith("/") and is_secret(bare[:LONGEST]):
        return bare[:LONGEST]  # whole, so that the label becomes a hash: a key may have slashes in it
    parts = bare.split("/")
    for i, part in enumerate(parts[1:], 1):
        name, colon, verb = part.partition(":")
        if part and parts[i - 1] in NAMED:
            parts[i] = NAMED[parts[i - 1]] + colon + verb
        elif _ID.fullmatch(name):
            parts[i] = "{id}" + colon + verb
    return "/".join(parts)[:LONGEST] or None
