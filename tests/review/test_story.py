"""The Friday story (golden scenario G3): retrieval depth 4 → 8 on a Wednesday comes out whole."""

from __future__ import annotations

from typing import Any

import pytest

from capwatch.keep.past import HOUR
from capwatch.record import Note
from capwatch.review.calendar import DAY, WEEK
from capwatch.review.document import Document, as_plain

from . import made

RATE = 8
WEDNESDAY = made.WEEK.since + 2 * DAY + 10 * HOUR


def rows(prompt: int, queue: float, prefill: float, decode: float) -> Any:
    """Eight requests a second, evenly, with these tokens and times."""

    def hour(begin: float) -> list[dict[str, Any]]:
        found = []
        for number in range(RATE * HOUR):
            at = begin + number / RATE
            residence = queue + prefill + decode
            found.append(
                {
                    "started_at": at, "finished_at": at + residence, "duration_s": residence, "outcome": "ok",
                    "ttft_s": queue + prefill, "queue_s": queue, "prefill_s": prefill, "decode_s": decode,
                    "tenant": f"team-{number % 5}", "route": "/v1/chat", "model": "chat-70b", "stream": True,
                    "prompt_tokens": prompt, "cached_tokens": 0, "output_tokens": 100,
                }
            )  # fmt: skip
        return found

    return hour


@pytest.fixture(scope="module")
def document() -> Document:
    """Two weeks of 1,500 tokens and 5 s; from Wednesday on 2,700 tokens and 16 s, of which 5.6 s wait."""
    before = made.kind(made.CONFIG, rows(1500, 0.0, 0.375, 4.625))
    after = made.kind(made.CONFIG, rows(2700, 5.62, 0.675, 9.705))
    note = Note(WEDNESDAY - 90.0, "chat-70b", "retrieval depth 4 to 8")
    past = made.Made(
        lambda at: after if at >= WEDNESDAY else before, made.WEEK.since - 2 * WEEK, made.WEEK.until, [note]
    )
    return past.review()


def test_the_numbers(document: Document) -> None:
    """Cost 1.000 → 1.300, utilisation 66.7 → 86.7 %, fifteen replicas."""
    pool = as_plain(document)["pools"]["chat-70b"]
    assert pool["cost_before"] == pytest.approx(1.000)
    assert pool["cost_after"] == pytest.approx(1.300)
    assert pool["utilisation_before"] == pytest.approx(0.6667, abs=1e-3)
    assert pool["utilisation_after"] == pytest.approx(0.8667, abs=1e-3)
    assert (pool["replicas"], pool["replicas_needed"], pool["headroom_replicas"]) == (12, 15, -3)
    assert pool["changed_at"] == WEDNESDAY


def test_all_of_it_is_prompt_effect(document: Document) -> None:
    """0.300 of 0.300 replica-seconds."""
    (event,) = as_plain(document)["drifts"]
    assert event["effects"] == pytest.approx({"mix": 0, "prompt": 0.3, "output": 0, "cache": 0}, abs=1e-6)
    assert sum(event["effects"].values()) == pytest.approx(event["cost_after"] - event["cost_before"])


def test_memory_has_two_readings(document: Document) -> None:
    """17 % → 98 % with all in flight; 64 % by the sequences that run, since those that wait hold none."""
    memory = as_plain(document)["pools"]["chat-70b"]["kv"]
    assert memory["before"]["bound"] == pytest.approx(0.175, abs=0.001)
    assert memory["after"]["bound"] == pytest.approx(0.979, abs=0.002)
    assert memory["after"]["running"] == pytest.approx(0.635, abs=0.002)


def test_long_requests_are_running_more_often_than_they_finish() -> None:
    """Every second one of 1,000 tokens for 1 s and one of 10,000 for 9 s: on each of 12 replicas 91,000 / 12 tokens."""

    def hour(begin: float) -> list[dict[str, Any]]:
        short, long = rows(960, 0.0, 0.5, 0.5)(begin), rows(9900, 0.0, 1.0, 8.0)(begin)
        both = [
            *({**row, "output_tokens": 40} for row in short[::RATE]),
            *({**row, "tenant": "long"} for row in long[::RATE]),
        ]
        return sorted(both, key=lambda row: row["finished_at"])

    kind = made.kind(made.CONFIG, hour)
    past = made.Made(lambda at: kind, made.WEEK.since - WEEK, made.WEEK.until, [])
    memory = as_plain(past.review())["pools"]["chat-70b"]["kv"]
    assert memory["after"]["running"] == pytest.approx(91_000 / 12 / 30_500, rel=0.01)


def test_the_finding_names_cause_and_remedies_in_order(document: Document) -> None:
    """First the prompt back to 1,500 tokens (67 %), then admission and overflow, then three replicas (69 %)."""
    first = as_plain(document)["findings"][0]
    assert "longer prompts" in first["title"]
    assert "+30 %" in first["title"]
    rungs = [one["rung"] for one in first["numbers"]["remedies"]]
    assert rungs == ["cut the work", "admission", "overflow", "replicas", "shape"]
    cut, *_, more, _ = first["numbers"]["remedies"]
    assert "1,500 tokens" in cut["text"]
    assert cut["utilisation"] == pytest.approx(0.6667, abs=1e-3)
    assert (more["replicas"], more["utilisation"]) == (15, pytest.approx(0.6933, abs=1e-3))
    assert any("1 min before" in text or "90 s before" in text for text in first["evidence"])
    assert any("retrieval depth 4 to 8" in text for text in first["evidence"])
