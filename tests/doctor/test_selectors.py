"""Selectors are those that a real parser finds, in everything that is shipped and in spellings that others use."""

from __future__ import annotations

import promql_parser as parser
import pytest

from capwatch.doctor.selectors import Selector, selectors
from capwatch.shipped import expressions, plain

SPELLINGS = [
    "up",
    'sum without (le) (rate(http_request_duration_seconds_bucket{le="0.5",code!~"5..|4.."}[5m] offset -1h))',
    "a:b:c / on () group_left d",
    'max_over_time((x{y="}{"} and z)[1h:5m]) # a comment with names',
    "topk by (pool) (3, a) unless ignoring (le, job) b * on (x) group_right (c) d",
    'label_replace(up, "to", "$1", "from", "(.*)") == bool 1',
    '{__name__=~"a|b",c="d"}',
    "count_values('version', build_info) atan2 Inf + nan - 0x1F",
    "rate(a[5m] @ start()) + a @ 1609746000 + quantile(0.9, sum(b))",
    "SUM BY (x) (a) OR b offset 5m",
    'sum(rate({__name__="vllm:tokens_total",pool=`x`}[1m]))',
    "-a{} % (b) ^ 2",
]


def real(expression: str) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
    """Name, and labels with values, of the selectors that the parser sees."""
    found: list[object] = []
    parser.walk(parser.parse(expression), pre_visit=found.append)
    return {
        (one.name or "", tuple(sorted((each.name, each.value) for each in one.matchers.matchers)))
        for one in found
        if isinstance(one, parser.VectorSelector)
    }


def ours(expression: str) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
    """The same by our own reading."""
    return {
        (one.name, tuple(sorted((label, value) for label, _, value in one.matchers))) for one in selectors(expression)
    }


@pytest.mark.parametrize("expression", SPELLINGS)
def test_a_spelling_is_understood(expression: str) -> None:
    """Keywords in any case, lists of labels, offsets, windows, texts with braces in them, comments."""
    wanted = {
        (dict(labels).get("__name__", "") or name, tuple(one for one in labels if one[0] != "__name__"))
        if '__name__="' in expression
        else (name, labels)
        for name, labels in real(expression)
    }
    assert ours(expression) == wanted


def test_everything_that_is_shipped_is_understood() -> None:
    """All expressions of boards and rules, by a parser that is not ours."""
    every = [plain(one.text) for one in expressions()]
    assert [text for text in every if ours(text) != real(text)] == []
    assert len(every) > 300


def test_the_past_is_told_apart() -> None:
    """An offset belongs to the selector before it."""
    assert selectors("a offset 1d / b") == [Selector("a", (), offset=True), Selector("b")]
