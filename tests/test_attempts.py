"""Retries: a row tries again what its group failed at, and each retry counts once however often a log tells of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.attempts import AGAIN_S, MOST, Attempts
from capwatch.origin import Origin
from capwatch.pipeline import Pipeline

from .spine import NOW, Spine, decoded, request


def attempt(outcome: str = "ok", group: str | None = "g", at: float = 0.0, **told: Any) -> dict[str, Any]:
    """A row of an attempt, so many seconds after `NOW`."""
    return request(attempt_group=group, outcome=outcome, finished_at=NOW + at, **told)


def counted(*rows: dict[str, Any]) -> float:
    """Retries that these rows make, in one batch; one batch each gives the same."""
    whole, parted = Spine(), Spine()
    whole.feed(*rows)
    for row in rows:
        parted.feed(row)
    assert parted.total("retries_total") == whole.total("retries_total")
    assert whole.total("requests_total") == len(rows)
    return whole.total("retries_total")


@pytest.mark.parametrize(
    ("rows", "retries"),
    [
        ([attempt("timeout"), attempt()], 1),
        ([attempt("timeout"), attempt("overload"), attempt("rate_limited"), attempt()], 3),
        ([attempt(), attempt()], 0),
        ([attempt("client_error"), attempt()], 0),
        ([attempt("timeout"), attempt(), attempt()], 1),
        ([attempt("timeout"), attempt(group="other")], 0),
        ([attempt("timeout", None), attempt(group=None)], 0),
        ([attempt("timeout", "None"), attempt(group="None")], 0),
        ([attempt("timeout"), attempt(at=AGAIN_S)], 1),
        ([attempt("timeout"), attempt(at=AGAIN_S + 1)], 0),
        ([attempt(retries=2)], 2),
        ([attempt("timeout"), attempt("timeout", retries=1), attempt(retries=2)], 2),
        ([attempt("timeout"), attempt(retries=3)], 3),
        ([attempt("timeout", retries=2), attempt(retries=2)], 2),
    ],
    ids=[
        *("one", "three", "success before", "refused by its own fault", "success ends it", "another group"),
        *("no group", "group None", "in time", "too late", "told alone", "told twice", "told more", "told before"),
    ],
)
def test_a_row_after_a_failure_of_its_group_is_a_retry(rows: list[dict[str, Any]], retries: float) -> None:
    """Within five minutes; every attempt stays a request of its own outcome."""
    assert counted(*rows) == retries


def test_groups_are_told_apart_by_source() -> None:
    """Two gateways may number alike."""
    spine = Spine()
    spine.feed(attempt("timeout"), source="one")
    spine.feed(attempt(), source="two")
    assert spine.total("retries_total") == 0


def test_a_duplicate_row_is_no_retry() -> None:
    """It counts as a duplicate alone."""
    spine = Spine()
    spine.feed(*(attempt("timeout", request_id="a") for _ in range(2)))
    assert (spine.total("retries_total"), spine.total("duplicates_total")) == (0, 1)


@pytest.mark.parametrize("checkpointed", [True, False], ids=["checkpoint", "deltas"])
def test_failures_outlive_a_restart(checkpointed: bool) -> None:
    """A group that failed before a restart is remembered after it, one that has ended is not."""
    spine = Spine()
    empty = spine.pipeline.save()
    rows = attempt("timeout"), attempt("timeout", "h"), attempt(group="h")
    spine.pipeline.take(Origin("log"), decoded(*rows), NOW + 3600)
    full, delta, news = spine.pipeline.save(), spine.pipeline.freeze(), spine.pipeline.news()
    spine.totals.apply(delta)
    again = Pipeline(spine.config, spine.totals.names.copy())
    again.load(full if checkpointed else empty)
    if not checkpointed:
        again.absorb(delta, news)
    spine.pipeline = again
    before = spine.total("retries_total")
    spine.feed(attempt(), attempt(group="h"))
    assert spine.total("retries_total") - before == 1


@given(st.lists(st.tuples(st.sampled_from("gh"), st.booleans(), st.integers(0, 200)), max_size=12))
def test_retries_are_attempts_less_requests(steps: list[tuple[str, bool, int]]) -> None:
    """Against the rule told another way: a run of attempts, each soon after the failure before, is one request."""
    rows, at = [], 0.0
    runs: dict[str, float] = {}
    expected = 0
    for group, fails, step in steps:
        at += step
        expected += group in runs and at - runs[group] <= AGAIN_S
        runs.pop(group, None)
        if fails:
            runs[group] = at
        rows.append(attempt("overload" if fails else "ok", group, at))
    assert not rows or counted(*rows) == expected


def test_memory_is_bounded() -> None:
    """The oldest failures go first; no text of a group is kept."""
    spine = Spine()
    spine.feed(*(attempt("timeout", f"secret-{n}") for n in range(MOST + 10)))
    saved = spine.pipeline.save()["attempts"]
    assert isinstance(saved, list)
    assert (len(saved), "secret" in repr(saved)) == (MOST, False)
    spine.feed(attempt(group="secret-9"), attempt(group="secret-10"))
    assert spine.total("retries_total") == 1


def test_old_failures_are_forgotten() -> None:
    """By event time, with the clock."""
    spine = Spine()
    spine.feed(attempt("timeout"))
    spine.tick(NOW + 3600)
    spine.tick(NOW + 3600 + AGAIN_S + 100)
    assert spine.pipeline.save()["attempts"] == Attempts().save() == []
