"""Pages of Prometheus text and OpenMetrics, read with tolerance: a bad line costs itself, never the page.

A parser of our own, since `prometheus_client.parser` gives up a page at its first bad line and keeps whole families,
where an engine's dialect wants a few named series of pages that may be cut, mixed or hostile.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Final, NamedTuple

LONGEST_LINE: Final = 65_536
"""Characters; engines write lines of a few hundred. Longer ones are passed over."""

MOST_SERIES: Final = 20_000
"""Wanted series of one page; an engine with many replicas has hundreds. The rest of such a page is not read."""

# Each expression is matched at one place and has one way to match, so that time is linear in the line.
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*", re.ASCII)
_LABEL = re.compile(r'[ ,]*([a-zA-Z_][a-zA-Z0-9_]*)[ ]*=[ ]*"((?:[^"\\]|\\.)*)"', re.ASCII)
_CLOSE = re.compile(r"[ ,]*\}")
_VALUE = re.compile(r"[ \t]*([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?)(?=[ \t\r]|$)", re.ASCII)
_ESCAPE = re.compile(r"\\(.)")


class Series(NamedTuple):
    """One sample line: a finite value under a name with labels. Timestamps and exemplars are passed over."""

    name: str
    labels: Mapping[str, str]
    value: float


def series(page: str, wanted: Callable[[str], bool]) -> list[Series]:
    r"""The series of a page whose name ``wanted`` likes, in order. NaN and infinite values are not told, so not here.

    >>> series('# TYPE a counter\na_total{b="c\\"d"} 2 1712\nbad line\nx 1', lambda name: name != "x")
    [Series(name='a_total', labels={'b': 'c"d'}, value=2.0)]
    """
    found = []
    for line in page.split("\n"):
        name = _NAME.match(line)
        if name and len(line) <= LONGEST_LINE and wanted(name[0]):
            one = _series(name[0], line, name.end())
            if one:
                found.append(one)
            if len(found) == MOST_SERIES:
                break
    return found


def _series(name: str, line: str, at: int) -> Series | None:
    labels: dict[str, str] = {}
    if line.startswith("{", at):
        at += 1
        while label := _LABEL.match(line, at):
            labels[label[1]] = _ESCAPE.sub(lambda sign: "\n" if sign[1] == "n" else sign[1], label[2])
            at = label.end()
        close = _CLOSE.match(line, at)
        if not close:
            return None
        at = close.end()
    value = _VALUE.match(line, at)
    if not value or not isfinite(float(value[1])):
        return None
    return Series(name, labels, float(value[1]))
