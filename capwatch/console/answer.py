"""The answer of a calculation, for people (inputs, steps, result, a picture) and for machines (JSON)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_DIGITS = 6
_WIDTH = 40


@dataclass(frozen=True, slots=True)
class Answer:
    """What a calculation found.

    Attributes:
        result: the keys and values of --json.
        steps: the formulas with their numbers, one a line.
        warnings: what the reader should know about the inputs, one a line.
        picture: lines of a plot.
    """

    result: Mapping[str, object]
    steps: Sequence[str]
    warnings: Sequence[str] = ()
    picture: Sequence[str] = ()


def number(value: float | None) -> str:
    """A number to six digits, thousands apart; `none` where there is none.

    >>> number(327680), number(0.0010747309), number(2.612244898), number(None), number(1e18 / 3)
    ('327,680', '0.00107473', '2.61224', 'none', '3.33333e+17')
    """
    if value is None:
        return "none"
    if value == 0 or (float(value).is_integer() and abs(value) < 10**15):
        return f"{int(value):,}"
    exponent = math.floor(math.log10(abs(value)))
    if not -_DIGITS <= exponent < 15:
        return f"{value:.{_DIGITS}g}"
    text = f"{value:,.{max(0, _DIGITS - 1 - exponent)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(share: float) -> str:
    """A share in per cent, to three digits.

    >>> percent(0.0010747), percent(0.9007), percent(1e-9), percent(0.0)
    ('0.107 %', '90.1 %', '< 0.0001 %', '0 %')
    """
    return "< 0.0001 %" if 0 < share < 1e-6 else f"{100 * share:.3g} %"


def bars(rows: Sequence[tuple[str, float, str]]) -> list[str]:
    r"""A bar for each (label, value ≥ 0, note), the longest as wide as there is room.

    >>> print("\n".join(bars([("8/s", 1.0, "1 s"), ("12/s", 4.0, "4 s")])))
     8/s |##########                               1 s
    12/s |######################################## 4 s
    """
    most = max((value for _, value, _ in rows), default=0.0) or 1.0
    wide = max((len(label) for label, _, _ in rows), default=0)
    return [f"{label:>{wide}} |{'#' * round(_WIDTH * value / most):{_WIDTH}} {note}" for label, value, note in rows]


def as_json(result: object) -> str:
    """A result for machines; NaN and infinity are no JSON and raise ValueError."""
    return json.dumps(result, indent=2, allow_nan=False, ensure_ascii=False)


def as_text(title: str, given: Sequence[tuple[str, str, str]], answer: Answer) -> str:
    """A result for people.

    Args:
        title: of the calculation.
        given: the inputs, as (option, what was typed, meaning).
        answer: what came out.
    """
    lines = [title, "", "given", *columns(given), "", "steps", *(f"  {step}" for step in answer.steps)]
    if answer.picture:
        lines += ["", *(f"  {line}" for line in answer.picture)]
    found = [(key, _flat(value)) for key, value in _spread(answer.result)]
    return "\n".join([*lines, "", "result", *columns(found)])


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of texts under one another.

    >>> columns([("a", "10", "x"), ("bb", "9", "y")])
    ['  a   10  x', '  bb  9   y']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["".join(f"  {text:{width}}" for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _spread(result: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """The keys and values of a result; a value that is a mapping as one of its own for each of its keys."""
    for key, value in result.items():
        if isinstance(value, Mapping):
            yield from ((f"{key} {name}", one) for name, one in value.items())
        else:
            yield key, value


def _flat(value: object) -> str:
    """A value of a result on one line."""
    match value:
        case bool():
            return "yes" if value else "no"
        case int() | float() | None:
            return number(value)
        case Mapping():
            return ", ".join(f"{name} {_flat(one)}" for name, one in value.items())
        case list() | tuple():
            return ", ".join(f"({_flat(one)})" if isinstance(one, list | tuple) else _flat(one) for one in value)
        case _:
            return str(value)
