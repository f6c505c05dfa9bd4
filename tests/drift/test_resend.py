"""A resend follows a failure with the same key; everything else is a request of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from capwatch.drift.resend import TRIES, WITHIN_S, ResendFilter
from capwatch.drift.rows import Rows

from .sample import LATER, rows


def requests(at: list[float], failed: list[bool], **columns: object) -> Rows:
    """Requests with one key, unless columns say otherwise."""
    n = len(at)
    some = rows(LATER, 100 * n, 1).take(np.zeros(n, np.int64))
    return replace(some, at=np.array(at), failed=np.array(failed), **{k: np.array(v) for k, v in columns.items()})


def kept(some: Rows) -> list[bool]:
    """Which are first attempts."""
    return [bool(one) for one in ResendFilter().keep(some)]


def test_a_request_after_a_failure_is_a_resend() -> None:
    """The first attempt counts though it failed, the second does not, the third is new after a success."""
    assert kept(requests([0, 10, 400], [True, False, False])) == [True, False, True]


def test_equal_requests_without_a_failure_all_count() -> None:
    """Chance collisions are no resends: dropping them would grow with the rate."""
    assert kept(requests([0, 1, 2], [False, False, False])) == [True, True, True]


def test_a_failure_is_forgotten_after_five_minutes() -> None:
    """Just inside the time a request is a resend, just outside it is not."""
    assert kept(requests([0, WITHIN_S], [True, False])) == [True, False]
    assert kept(requests([0, WITHIN_S + 1], [True, False])) == [True, True]


def test_one_failure_explains_three_resends() -> None:
    """A chain of successes ends, so that a length many requests share is not dropped for ever."""
    n = TRIES + 2
    assert kept(requests([10.0 * i for i in range(n)], [True] + [False] * (n - 1))) == [True, *[False] * TRIES, True]


def test_a_failed_resend_explains_more() -> None:
    """As long as attempts fail, what follows is a resend."""
    assert kept(requests([10.0 * i for i in range(8)], [True] * 8)) == [True] + [False] * 7


def test_another_key_is_another_request() -> None:
    """Tenant, class, route, model and computed tokens all belong to the key."""
    for column in ("tenant", "klass", "route", "model"):
        assert kept(requests([0, 1], [True, False], **{column: [0, 1]})) == [True, True], column
    assert kept(requests([0, 1], [True, False], prompt=[500.0, 501.0])) == [True, True]
    assert kept(requests([0, 1], [True, False], prompt=[500.0, 600.0], cached=[0.0, 100.0])) == [True, False]


def test_the_attempt_group_is_the_key_where_there_is_one() -> None:
    """Attempts of one group may differ in all else; different groups never match."""
    assert kept(requests([0, 1], [True, False], group=[7, 7], prompt=[500.0, 900.0])) == [True, False]
    assert kept(requests([0, 1], [True, False], group=[7, 8])) == [True, True]


def test_a_failure_without_tokens_excuses_one_request() -> None:
    """It cannot tell which request it was: the next of its tenant, route and model is left out, and only that one."""
    some = requests([0, 1, 2], [True, False, False], prompt=[np.nan, 700.0, 800.0], output=[np.nan, 50.0, 60.0])
    assert kept(some) == [True, False, True]


def test_blocks_and_restarts_change_nothing() -> None:
    """Row by row with a restart between any two, the same requests are resends as in one block."""
    rng = np.random.default_rng(8)
    n = 400
    some = replace(
        rows(LATER, 1000, 9).take(np.arange(n)),
        failed=rng.random(n) < 0.3,
        prompt=rng.integers(1, 4, n).astype(float),
        output=np.ones(n),
        tenant=np.zeros(n, np.int64),
    )
    filtered, pieces = ResendFilter(), []
    for i in range(n):
        filtered = ResendFilter.from_state(filtered.state())
        pieces += filtered.keep(some.take(np.array([i]))).tolist()
    whole = kept(some)
    assert pieces == whole
    assert 0.2 < np.mean(whole) < 0.9


def test_a_storm_keeps_its_first_attempts() -> None:
    """In a storm each request counts once; few are lost, to a failure of an equal request within five minutes."""
    some = rows(LATER, 600, 10)
    failed = np.random.default_rng(1).random(len(some)) < 0.5
    first = replace(some, failed=failed)
    again = replace(first.take(failed), at=first.at[failed] + 15.0, failed=np.zeros(int(failed.sum()), np.bool_))
    both = Rows(**{one: np.concatenate([getattr(first, one), getattr(again, one)]) for one in Rows.__slots__})
    stormy = both.take(np.argsort(both.at, kind="stable"))
    assert 0.92 * len(some) < ResendFilter().keep(stormy).sum() <= len(some)
