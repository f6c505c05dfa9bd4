"""Pool, class and targets of a request: the first match of the configuration, on the labels as the log tells them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.classes import Classifier, grouped
from capwatch.config.schema import Class, Config, Match, Pool, Slo
from capwatch.record import Batch, Request

CONFIG = Config(
    pools=(Pool("large", Match(model=("chat-70b", "chat-70b-*"))), Pool("eu", Match(source=("eu-*",)))),
    classes=(Class("summary", Match(route=("/v1/summaries",))), Class("acme", Match(tenant=("acme",)))),
    slo=(Slo(Match(route=("/v1/*",)), ttft=1.0), Slo(ttft=2.0, tpot=0.05)),
)


def found(told: dict[str, Any], source: str = "log", pool: str | None = None) -> tuple[str, str, float]:
    """Pool, class and TTFT target of one request."""
    classifier = Classifier(CONFIG)
    one = classifier.classify(source, pool, Batch.of([Request(**told)]))
    return classifier.pools[one.pool[0]].name, classifier.classes[one.klass[0]], float(one.targets.ttft[0])


@pytest.mark.parametrize(
    ("told", "source", "pool", "expected"),
    [
        ({"model": "chat-70b"}, "log", None, ("large", "unknown", 2.0)),
        ({"model": "chat-70b-fp8", "tenant": "acme"}, "eu-1", None, ("large", "acme", 2.0)),
        ({"model": "other", "tenant": "acme", "route": "/v1/summaries"}, "eu-1", None, ("eu", "summary", 1.0)),
        ({"model": "other"}, "log", None, ("default", "unknown", 2.0)),
        ({}, "log", None, ("default", "unknown", 2.0)),
        ({"model": "other"}, "log", "large", ("large", "unknown", 2.0)),
    ],
)
def test_the_first_match_wins(told: dict[str, Any], source: str, pool: str | None, expected: object) -> None:
    """A pool that the source names comes before all matches; what fits none is `default` and `unknown`."""
    assert found(told, source, pool) == expected


LABELS = st.fixed_dictionaries(
    {
        "tenant": st.sampled_from(["acme", "b", None]),
        "route": st.sampled_from(["/v1/summaries", "/x", None]),
        "model": st.sampled_from(["chat-70b", "chat-70b-fp8", "m"]),
        "engine": st.sampled_from(["e", None]),
    }
)


@given(st.lists(LABELS, min_size=1, max_size=30))
def test_a_batch_is_its_requests_one_by_one(told: list[dict[str, Any]]) -> None:
    """Grouping changes no answer, and a group's texts are those of its requests."""
    classifier = Classifier(CONFIG)
    one = classifier.classify("log", None, Batch.of([Request(**each) for each in told]))
    answers = [
        (classifier.pools[one.pool[g]].name, classifier.classes[one.klass[g]], float(one.targets.ttft[g]))
        for g in one.of.tolist()
    ]
    assert answers == [found(each) for each in told]
    texts = [{name: column[g] for name, column in one.texts.items()} for g in one.of.tolist()]
    assert texts == told


def test_many_names_in_every_label_are_told_apart() -> None:
    """The number of combinations may pass what an integer holds."""
    n = 70_000
    requests = [Request(tenant=str(i), route=str(i), model=str(-i), engine=str(i)) for i in range(n)]
    one = Classifier(Config()).classify("log", None, Batch.of(requests))
    assert (len(one.pool), len(np.unique(one.of))) == (n, n)
    assert [one.texts["tenant"][int(g)] for g in one.of[[0, 7, n - 1]]] == ["0", "7", str(n - 1)]


@given(st.lists(st.integers(0, 5), max_size=20))
def test_groups_hold_equal_keys(keys: list[int]) -> None:
    """A row of each group has the key of all of its rows."""
    column = np.array(keys, np.int64)
    first, of = grouped(column)
    assert (column[first][of].tolist(), len(first)) == (keys, len(set(keys)))
