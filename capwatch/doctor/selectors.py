"""Which series an expression reads: the selectors of PromQL, found without a parser of the whole language.

A lexer is enough: a name that is no keyword, is not called and does not stand in a list of labels selects series. The
tests hold it against a real parser on all that is shipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from capwatch.observed.columns import escaped

AGGREGATORS: Final = frozenset(
    ("sum", "min", "max", "avg", "group", "stddev", "stdvar", "count", "count_values", "bottomk", "topk", "quantile")
) | {"limitk", "limit_ratio"}
LISTS: Final = frozenset(("by", "without", "on", "ignoring", "group_left", "group_right"))
"""Words before a list of labels in parentheses; the last two may stand alone."""
WORDS: Final = frozenset(("and", "or", "unless", "atan2", "offset", "bool", "inf", "nan", "start", "end"))
_LETTERS: Final = {"n": "\n", "t": "\t", "r": "\r"}
"""What a letter after a backslash stands for, where it is not itself."""

_TOKEN = re.compile(
    r"""(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`)
      | (?P<comment>\#[^\n]*)
      | (?P<name>[a-zA-Z_:][\w:]*)
      | (?P<number>[0-9.][\w.]*)
      | (?P<sign>=~|!~|!=|\S)""",
    re.VERBOSE | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Selector:
    """A selection of series.

    Attributes:
        name: of the metric; empty where only labels are matched.
        matchers: (label, operator, value), `__name__` left out.
        offset: whether it reads the past.
    """

    name: str
    matchers: tuple[tuple[str, str, str], ...] = ()
    offset: bool = False

    def __str__(self) -> str:
        inside = ",".join(f'{label}{sign}"{escaped(value)}"' for label, sign, value in self.matchers)
        return f"{self.name}{{{inside}}}" if inside or not self.name else self.name


def selectors(expression: str) -> list[Selector]:
    """The selectors of an expression in the order of their appearance, each once.

    >>> list(map(str, selectors('sum by (pool) (rate(a_total{x="1"}[5m])) / on (pool) b:c and absent(up offset 1d)')))
    ['a_total{x="1"}', 'b:c', 'up']
    """
    tokens = [(found.lastgroup or "", found[0]) for found in _TOKEN.finditer(expression) if not found["comment"]]
    return list(dict.fromkeys(_selectors(tokens)))


def _selectors(tokens: list[tuple[str, str]]) -> Iterator[Selector]:
    at = 0
    while at < len(tokens):
        kind, text = tokens[at]
        following = tokens[at + 1][1] if at + 1 < len(tokens) else ""
        if kind == "name" and text.lower() in LISTS and following == "(":
            at = _after(tokens, at + 1, ")")
        elif text == "[":
            at = _after(tokens, at, "]")
        elif text == "{" or (kind == "name" and following != "(" and not _keyword(text)):
            name, at = ("", at) if text == "{" else (text, at + 1)
            matchers: list[tuple[str, str, str]] = []
            if at < len(tokens) and tokens[at][1] == "{":
                end = _after(tokens, at, "}")
                name, matchers = _matched(name, tokens[at + 1 : end - 1])
                at = end
            behind = _after(tokens, at, "]") if at < len(tokens) and tokens[at][1] == "[" else at
            yield Selector(name, tuple(matchers), tokens[behind : behind + 1] == [("name", "offset")])
        else:
            at += 1


def _keyword(word: str) -> bool:
    return word.lower() in WORDS | LISTS or word.lower() in AGGREGATORS


def _after(tokens: list[tuple[str, str]], at: int, closing: str) -> int:
    """The place behind the closing sign; lists, windows and matchers do not nest."""
    while at < len(tokens) and tokens[at][1] != closing:
        at += 1
    return at + 1


def _matched(name: str, inside: list[tuple[str, str]]) -> tuple[str, list[tuple[str, str, str]]]:
    """Name and matchers of what stands in braces; a text alone there is a name."""
    found: list[tuple[str, str, str]] = []
    part: list[tuple[str, str]] = []
    for kind, text in [*inside, ("sign", ",")]:
        if text != ",":
            part.append((kind, text))
            continue
        if len(part) == 1 and part[0][0] == "text":
            name = _unquoted(part[0][1])
        elif len(part) == 3:
            label, sign, value = _unquoted(part[0][1]), part[1][1], _unquoted(part[2][1])
            if (label, sign) == ("__name__", "="):
                name = value
            else:
                found.append((label, sign, value))
        part = []
    return name, found


def _unquoted(text: str) -> str:
    r"""A text as PromQL means it.

    >>> _unquoted(r'"a\n\"b"'), _unquoted("`a`"), _unquoted("job")
    ('a\n"b', 'a', 'job')
    """
    if text[:1] == "`":
        return text[1:-1]
    return re.sub(r"\\(.)", lambda found: _LETTERS.get(found[1], found[1]), text[1:-1]) if text[:1] in "\"'" else text
