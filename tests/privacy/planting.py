"""Canaries, and the lines of every format with one of them in each place that can hold a text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from itertools import cycle
from typing import Any, Final

from tests.formats.compare import Case, cases

MARK: Final = "canary"
"""Every canary has it, in capitals or not; nothing else in any log has."""
SECRETS: Final = {
    "key": "sk-CANARY0123456789abcdefghij",
    "bearer": "Bearer CANARY0123456789abcdefghij",
    "token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJDQU5BUlkifQ.CANARY0123456789",
    "access key": "AKIACANARY0123456789",
    "secret key": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYCANARY7890",
    "address": "canary.person@example.org",
    "path": "/v1/users/canary@example.org/chat?key=sk-CANARY0123456789abcdefghij",
}
PROMPT: Final = "SYNTHETIC CANARY: what does this letter from my doctor mean?"
NAMES: Final = ("tenant", "route", "model", "engine", "priority", "request_id", "attempt_group")
"""Fields of the record that hold a text of the log."""
SPELLED: Final = re.compile(r"[^\s\"'\[\](){},=:|]+")
"""A word of a line that is no JSON."""
MOST_LINES: Final = 6
"""Of each golden log; the rest repeats their shapes."""


def forms() -> dict[str, list[Case]]:
    """The golden logs of every format on the shelf."""
    found: dict[str, list[Case]] = {}
    for case in cases():
        found.setdefault(case.log.parent.name, []).append(case)
    return found


def planted(name: str, canaries: list[str]) -> Iterator[bytes]:
    """Lines of a format's golden logs, one canary in each: every text, every key and a key more, or every word."""
    endless = cycle(canaries)
    for case in forms()[name]:
        for line in case.log.read_bytes().splitlines()[:MOST_LINES]:
            yield from (one for one in _planted(line, endless) if b"\n" not in one)


def _planted(line: bytes, endless: Iterator[str]) -> Iterator[bytes]:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if isinstance(found, dict | list):
        yield from (json.dumps(one).encode() for one in _in_json(found, endless))
        return
    text = line.decode("utf-8", "replace")
    for word in SPELLED.finditer(text):
        yield (text[: word.start()] + next(endless) + text[word.end() :]).encode()


def _in_json(found: Any, endless: Iterator[str]) -> Iterator[Any]:
    for path in list(_paths(found)):
        for change in ("value", "key", "extra"):
            copy = deepcopy(found)
            inner = copy
            for step in path[:-1]:
                inner = inner[step]
            if change == "value":
                if not isinstance(inner[path[-1]], str):
                    inner[path[-1]] = {"text": next(endless)}
                else:
                    inner[path[-1]] = _inside(inner[path[-1]], endless)
            elif isinstance(inner, dict):
                inner[next(endless)] = inner.pop(path[-1]) if change == "key" else next(endless)
            else:
                continue
            yield copy


def _inside(text: str, endless: Iterator[str]) -> str:
    """A canary in place of a text; in one that is JSON itself, in place of the texts in that."""
    if text.startswith("{"):
        try:
            return json.dumps({key: next(endless) for key in json.loads(text)})
        except ValueError:
            pass
    return next(endless)


def _paths(value: Any, before: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        if not isinstance(one, dict | list):
            yield (*before, key)
        yield from _paths(one, (*before, key))
