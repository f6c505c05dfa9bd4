"""Joining: what an engine tells of a request goes into the gateway's row of the same id, and never over it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.joins import MOST, MOST_OF_ONE, SLACK_S, WAIT_S, Joins, same
from capwatch.record import PHASE_FIELDS, Batch

from .spine import NOW, decoded, request

ENGINE = {"queue_s": 0.3, "prefill_s": 0.15, "decode_s": 1.4, "cached_tokens": 64, "prompt_tokens": 100}
GATEWAY = {"duration_s": 2.0, "ttft_s": 0.5, "stream": True, "prompt_tokens": 100, "output_tokens": 20}


def rows(*records: dict[str, Any]) -> Batch:
    """Records as a settled batch."""
    return decoded(*records).batch


def held(*records: dict[str, Any]) -> Joins:
    """Joins that hold these engine records."""
    joins, batch = Joins(), rows(*records)
    joins.hold(batch, np.arange(len(batch)))
    return joins


def joined(engine: dict[str, Any], gateway: dict[str, Any]) -> dict[str, float | None]:
    """Phases and cached tokens of a gateway's row after the join."""
    batch = rows(request(request_id="a", **gateway))
    assert held(request(request_id="a", **engine)).join(batch, np.arange(1)).tolist() == [0]
    return {
        name: None if np.isnan(batch[name][0]) else round(float(batch[name][0]), 6)
        for name in (*PHASE_FIELDS, "cached_tokens")
    }


@pytest.mark.parametrize(
    ("engine", "gateway", "expected"),
    [
        (ENGINE, GATEWAY, {"queue_s": 0.3, "prefill_s": 0.15, "decode_s": 1.4, "cached_tokens": 64}),
        (ENGINE, {"duration_s": 2.0}, {"queue_s": 0.3, "prefill_s": 0.15, "decode_s": 1.4}),
        ({"queue_s": 0.3}, GATEWAY, {"queue_s": 0.3, "prefill_s": 0.2, "decode_s": 1.5}),
        ({"queue_s": 0.7}, GATEWAY, {"queue_s": 0.5, "prefill_s": 0.0, "decode_s": 1.5}),
        ({"decode_s": 1.0}, GATEWAY, {"prefill_s": 0.5, "decode_s": 1.0}),
        (
            ENGINE,
            {**GATEWAY, "gateway_s": 0.1},
            {"gateway_s": 0.1, "queue_s": 0.3, "prefill_s": 0.15, "decode_s": 1.4, "cached_tokens": 64},
        ),
        ({}, GATEWAY, {"prefill_s": 0.5, "decode_s": 1.5}),
    ],
    ids=[
        "all",
        "no TTFT",
        "wait taken out of prefill",
        "wait longer than TTFT",
        "decode",
        "beside the gateway's",
        "nothing",
    ],
)
def test_what_the_gateway_does_not_tell_is_filled(
    engine: dict[str, Any], gateway: dict[str, Any], expected: dict[str, float]
) -> None:
    """Also what was only derived from TTFT and duration; the rest stays absent."""
    assert {name: value for name, value in joined(engine, gateway).items() if value is not None} == expected


@pytest.mark.parametrize("name", ["queue_s", "prefill_s", "decode_s", "cached_tokens"])
def test_what_the_gateway_tells_stays(name: str) -> None:
    """Its own number is kept, whatever the engine says."""
    told = {"queue_s": 0.25, "prefill_s": 0.11, "decode_s": 1.21, "cached_tokens": 7.0}[name]
    assert joined(ENGINE, {**GATEWAY, name: told})[name] == told


def test_phases_of_an_engine_that_worked_on_end_with_the_request() -> None:
    """A client that left after half a second: the engine's phases are scaled down to what the gateway's row lasts."""
    found = joined({"queue_s": 0.1, "prefill_s": 0.1, "decode_s": 0.8}, {"duration_s": 0.5})
    assert [found[name] for name in ("queue_s", "prefill_s", "decode_s")] == [0.05, 0.05, 0.4]


def test_cached_tokens_are_a_part_of_the_prompt() -> None:
    """More than the gateway's prompt cannot be cached, and of an unknown prompt nothing is."""
    assert joined({"cached_tokens": 90, "prompt_tokens": 100}, {"prompt_tokens": 80})["cached_tokens"] == 80
    assert joined({"cached_tokens": 90, "prompt_tokens": 100}, {})["cached_tokens"] is None


SECONDS = st.none() | st.floats(0, 100, allow_nan=False)


@given(
    engine=st.fixed_dictionaries(dict.fromkeys(("queue_s", "prefill_s", "decode_s"), SECONDS)),
    gateway=st.fixed_dictionaries(dict.fromkeys(("gateway_s", "queue_s", "ttft_s", "duration_s"), SECONDS)),
)
def test_a_join_never_makes_phases_longer_than_the_request(
    engine: dict[str, float | None], gateway: dict[str, float | None]
) -> None:
    """Unless the gateway's own were longer before."""
    batch = rows(request(request_id="a", **gateway))
    before = sum(np.nan_to_num(batch[name]) for name in PHASE_FIELDS)
    duration = np.nan_to_num(batch["duration_s"], nan=np.inf)
    held(request(request_id="a", **engine)).join(batch, np.arange(1))
    after = sum(np.nan_to_num(batch[name]) for name in PHASE_FIELDS)
    assert (after <= np.maximum(duration, before) + 1e-9).all()
    assert all((np.isnan(batch[name]) | (batch[name] >= 0)).all() for name in PHASE_FIELDS)


def stages(*records: dict[str, Any], **row: Any) -> dict[str, float | None]:
    """Phases and visits of a row of the trace `t`, from 2 s before `NOW` to `NOW`, after a join with records."""
    batch = rows(request(attempt_group="t", **{"duration_s": 2.0, **row}))
    held(*(request(**record) for record in records)).join(batch, np.arange(1))
    names = (*PHASE_FIELDS, "retrieval_visits", "tool_visits", "model_visits")
    return {name: float(batch[name][0]) for name in names if not np.isnan(batch[name][0])}


def test_stages_of_one_trace_add_up() -> None:
    """Each record is a visit, or as many as it says."""
    found = stages(
        {"attempt_group": "t", "retrieval_s": 0.25},
        {"attempt_group": "t", "tool_s": 0.5},
        {"attempt_group": "t", "tool_s": 0.25, "tool_visits": 3},
    )
    assert found == {"retrieval_s": 0.25, "tool_s": 0.75, "retrieval_visits": 1, "tool_visits": 4}


def test_calls_of_one_request_add_up() -> None:
    """A prefill engine and a decode engine, or an agent's calls: seconds and visits of all, cached tokens but once."""
    found = stages(
        {"request_id": "p", "attempt_group": "t", "queue_s": 0.25, "prefill_s": 0.5, "cached_tokens": 10},
        {"request_id": "d", "attempt_group": "t", "decode_s": 1.0, "cached_tokens": 10, "prompt_tokens": 20},
    )
    assert found == {"queue_s": 0.25, "prefill_s": 0.5, "decode_s": 1.0, "model_visits": 2}


def test_stages_are_taken_out_of_what_was_derived() -> None:
    """Retrieval and tools lie inside TTFT as far as there is room, then inside decode; the sum stays the same."""
    found = stages({"attempt_group": "t", "tool_s": 0.75}, ttft_s=0.5, stream=True)
    assert found == {"tool_s": 0.75, "prefill_s": 0.0, "decode_s": 1.25, "tool_visits": 1}


@pytest.mark.parametrize(
    ("at", "joins"),
    [(NOW, True), (NOW - 2, True), (NOW - 2 - SLACK_S, True), (NOW - 3.1, False), (NOW + SLACK_S + 0.1, False)],
)
def test_a_trace_is_larger_than_a_request(at: float, joins: bool) -> None:
    """By the trace alone only that is joined which happened within the request."""
    assert bool(stages({"attempt_group": "t", "finished_at": at, "tool_s": 0.5})) is joins


def test_the_same_id_is_the_same_request_at_any_time() -> None:
    """Clocks of two machines may differ."""
    batch = rows(request(request_id="a", duration_s=2.0))
    held(request(request_id="a", tool_s=0.5, finished_at=NOW - 60)).join(batch, np.arange(1))
    assert batch["tool_s"][0] == 0.5


def test_what_one_request_of_a_trace_does_not_take_waits_for_the_next() -> None:
    """Two rows of a trace one after the other, each with its own tool."""
    joins = held(*(request(attempt_group="t", finished_at=at, tool_s=0.5) for at in (NOW, NOW + 10)))
    batch = rows(*(request(attempt_group="t", finished_at=at, duration_s=2.0) for at in (NOW, NOW + 10)))
    joins.join(batch, np.array([0]))
    assert len(joins.save()) == 1
    joins.join(batch, np.array([1]))
    assert batch["tool_s"].tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("7ead13c1", "7ead13c1"),
        ("chatcmpl-7ead13c1", "7ead13c1"),
        ("cmpl-7ead13c1", "7ead13c1"),
        ("resp_7ead13c1", "7ead13c1"),
        ("chatcmpl-", "chatcmpl-"),
        ("00-1064823872612859B63EA9CFAADD3422-947A4DFF9CE809D4-01", "1064823872612859b63ea9cfaadd3422"),
        ("1064823872612859B63EA9CFAADD3422", "1064823872612859b63ea9cfaadd3422"),
        (None, ""),
        ("-", ""),
    ],
)
def test_ids_are_the_same_in_other_spellings(told: str | None, expected: str) -> None:
    """An engine puts a word before the id that it was given; a trace context holds the trace's."""
    assert same(told) == expected


def test_records_of_one_id_are_bounded() -> None:
    """A trace without end costs no memory without end: the oldest go."""
    joins = held(*(request(attempt_group="t", tool_s=1.0, started_at=NOW + n / 100) for n in range(MOST_OF_ONE + 5)))
    assert len(joins.save()) == MOST_OF_ONE


def test_each_record_is_joined_once() -> None:
    """A second row of one id finds nothing any more, and neither does another id."""
    joins, batch = held(request(request_id="a", **ENGINE)), rows(*(request(request_id=one) for one in "baa"))
    assert joins.join(batch, np.arange(3)).tolist() == [1]


def test_rows_without_an_id_are_nobodys() -> None:
    """An absent id, and a text that stands for one, joins nothing."""
    nameless = [request(**ENGINE), request(request_id="-", **ENGINE)]
    assert held(*nameless).save() == []
    assert held(request(request_id="a")).join(rows(*nameless), np.arange(2)).tolist() == []


def test_only_the_rows_asked_for_take_part() -> None:
    """Repeats are neither held nor joined."""
    joins, batch = Joins(), rows(request(request_id="a", **ENGINE), request(request_id="b", **ENGINE))
    joins.hold(batch, np.array([1]))
    assert joins.join(batch, np.array([0])).tolist() == []
    assert joins.join(batch, np.array([1])).tolist() == [1]


def test_a_record_waits_for_fifteen_minutes() -> None:
    """Of event time; then it is forgotten."""
    joins = held(request(request_id="old", finished_at=NOW), request(request_id="new", finished_at=NOW + 1))
    joins.expire(NOW + WAIT_S + 0.5)
    assert joins.join(rows(request(request_id="old"), request(request_id="new")), np.arange(2)).tolist() == [1]


def test_memory_is_bounded() -> None:
    """Where ids never match, the oldest records go."""
    batch = Batch.of_columns(
        {"request_id": [str(n) for n in range(MOST + 10)], "finished_at": [NOW] * (MOST + 10)}, MOST + 10
    )
    joins = Joins()
    joins.hold(batch, np.arange(MOST + 10))
    assert [len(joins.save()), joins.join(batch, np.array([9, 10])).tolist()] == [MOST, [10]]


def test_what_is_held_is_remembered() -> None:
    """`load` takes over what `save` gave, and `absorb` what `news` gave since: held and joined ones."""
    joins = held(*(request(request_id=one, **ENGINE) for one in "abc"))
    checkpoint, _ = joins.save(), joins.news()
    extra = rows(request(request_id="d", **ENGINE), request(request_id="b"))
    joins.hold(extra, np.array([0]))
    joins.join(extra, np.array([1]))
    again = Joins()
    again.load(checkpoint)  # type: ignore[arg-type]
    again.absorb(joins.news())  # type: ignore[arg-type]
    assert [again.save(), again.news()] == [joins.save(), []]
