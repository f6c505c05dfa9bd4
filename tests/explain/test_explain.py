"""`explain`: one result a line, in order, with reasons, hints and nothing of the line itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pytest

from capwatch.dialect import Field, Format, Held, Options, Skip, Stateless, Verdict
from capwatch.explain import Fit, Judged, as_json, as_text, best_fit, explain, find_wrapper
from capwatch.formats import shelf
from capwatch.record import EngineSample, Request
from capwatch.wrappers import shelf as wrappers

GOOD = b'{"finished_at": 1772529302.5, "duration_s": 2.5, "tenant": "acme", "outcome": "ok"}'
CRI = b"2026-03-03T09:15:02.43Z "


def outcomes(lines: Sequence[bytes], wrapper: str | None = None) -> list[tuple[int, str, str]]:
    """Number, outcome and reason of each line."""
    around = wrappers()[wrapper]() if wrapper else None
    return [(one.line, one.outcome, one.reason) for one in explain(lines, shelf()["jsonl"], Options(), around)]


def test_every_line_has_one_result_in_order() -> None:
    """Numbers count from 1; a record has no reason, a drop has one of the fixed ones."""
    assert outcomes([GOOD, b"", b"{cut", b'{"tenant": "a"}', GOOD + b"\r"]) == [
        (1, "record", ""),
        (2, "skip", "blank line"),
        (3, "drop", "malformed"),
        (4, "drop", "bad_time"),
        (5, "record", ""),
    ]


def test_parts_are_skipped_and_their_record_stands_at_the_last() -> None:
    """The record of joined lines is printed where it was completed."""
    lines = [CRI + b"stdout P " + GOOD[:9], CRI + b"stderr F text", CRI + b"stdout F " + GOOD[9:]]
    assert [one[1] for one in outcomes(lines, "cri")] == ["skip", "drop", "record"]


def test_a_part_that_stays_open_is_one_drop_at_its_last_line() -> None:
    """The end of the lines gives it up; the lines after it waited and keep their order."""
    lines = [CRI + b"stdout P a", CRI + b"stdout P b", CRI + b"stderr F " + GOOD]
    assert outcomes(lines, "cri") == [
        (1, "skip", "part of a longer record"),
        (2, "drop", "partial"),
        (3, "record", ""),
    ]


def test_results_come_while_lines_come() -> None:
    """Nothing waits where nothing is open."""
    taken: list[int] = []

    def lines() -> Iterator[bytes]:
        for i in range(5):
            taken.append(i)
            yield GOOD

    results = explain(lines(), shelf()["jsonl"], Options())
    next(results)
    assert taken == [0]


class Joining(Stateless):
    """A dialect that holds a line back until the next one, `b`, says that it is complete."""

    def __init__(self) -> None:
        self.open: list[int] = []
        self.reads = 0

    def read(self, line: str, near: float) -> Verdict:
        self.reads += 1
        if line == "a":
            self.open.append(self.reads)
            return Held("waits for b")
        return Request(tenant="both") if self.open and self.open.pop() else Skip("no a before")

    def released(self) -> int:
        return 0

    def expire(self, now: float) -> list[tuple[int, Request]]:
        return [(self.reads - at, Request(tenant="alone")) for at in self.open]


def test_what_a_reader_holds_at_the_end_is_a_record_of_its_own_line() -> None:
    """A row that nothing followed is printed at its line, the others keep theirs."""
    form = Format("joining", "gateway", "a test", lambda _: Joining(), clock=False)
    told = list(explain([b"a", b"b", b"a", b"", b"a"], form, Options(), near=100.0))
    assert [
        (one.outcome, [record.tenant for record in one.records if isinstance(record, Request)]) for one in told
    ] == [
        ("skip", []),
        ("record", ["both"]),
        ("record", ["alone"]),
        ("skip", []),
        ("record", ["alone"]),
    ]


def test_json_is_one_object_with_the_contracts_names() -> None:
    """Absent is left out, times are floats; several records of a line are `records`."""
    one = Judged(7, "record", [Request(finished_at=1772529302.4299999, tenant="acme", duration_s=0.1 + 0.2)])
    assert json.loads(as_json(one)) == {
        "line": 7,
        "outcome": "record",
        "record": {"finished_at": 1772529302.43, "tenant": "acme", "duration_s": 0.3, "cache_hit": False},
    }
    two = Judged(8, "record", [EngineSample(at=1.0, running=2.0), EngineSample(at=2.0)])
    assert json.loads(as_json(two))["records"] == [{"at": 1.0, "running": 2.0}, {"at": 2.0}]


def test_json_of_a_drop_has_reason_and_detail() -> None:
    """Two keys more for machines."""
    told = json.loads(as_json(Judged(9, "drop", reason="malformed", detail="broken JSON")))
    assert told == {"line": 9, "outcome": "drop", "reason": "malformed", "detail": "broken JSON"}


def test_text_shows_fields_one_below_the_other() -> None:
    """Times as people read them."""
    judged = Judged(1, "record", [Request(finished_at=1772529302.43, tenant="acme", duration_s=2.31)])
    assert as_text(judged, Options()).splitlines() == [
        "line 1: record",
        "  finished_at  2026-03-03T09:15:02.430+00:00",
        "  tenant       acme",
        "  duration_s   2.31",
        "  cache_hit    False",
    ]


def test_text_says_why_a_line_is_no_record() -> None:
    """Reason and detail in one line."""
    assert as_text(Judged(2, "drop", reason="malformed", detail="broken JSON"), Options()) == (
        "line 2: drop, malformed (broken JSON)"
    )


def hints(line: bytes, **fields: str) -> list[str]:
    """What is said about mapped paths."""
    options = Options({name: Field(path) for name, path in fields.items()})
    judged = next(explain([line], shelf()["jsonl"], options))
    return [text.strip() for text in as_text(judged, options).splitlines() if ": " in text and text.startswith("  ")]


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("who", []),
        ("woh", ["tenant: no key woh; nearest: who"]),
        ("meta.team_alais", ["tenant: no key meta.team_alais; nearest: meta.team_alias, meta.empty"]),
        ("text.inner_kye", ["tenant: no key text.inner_kye; nearest: text.inner_key"]),
        ("qqqqqqqq", ["tenant: no key qqqqqqqq; no key is near to it"]),
        ("meta.empty", ["tenant: meta.empty is empty in this line"]),
        ("list", ["tenant: list is there, but its value is not usable as tenant"]),
    ],
)
def test_a_path_that_finds_nothing_is_named_with_the_nearest_keys(path: str, hint: list[str]) -> None:
    """Names of keys only, also below objects and in JSON texts."""
    line = {
        "finished_at": 1,
        "who": "acme",
        "meta": {"team_alias": "x", "empty": None},
        "text": '{"inner_key": 1}',
        "list": [1],
    }
    assert hints(json.dumps(line).encode(), tenant=path) == hint


def test_a_key_that_looks_like_a_secret_is_not_shown() -> None:
    """Some programs make keys of what clients send."""
    line = b'{"finished_at": 1, "jane@example.invalid": 1, "m": {"sk-CANARY-not-a-real-key": 1}}'
    assert hints(line, tenant="jane@example.com") == ["tenant: no key jane@example.com; nearest: ***"]
    assert hints(line, tenant="m.sk-CANARY-not-a-real") == ["tenant: no key m.sk-CANARY-not-a-real; nearest: ***"]


def test_the_format_that_makes_records_fits_best() -> None:
    """Records before lines that are only understood; broken lines lower the share."""
    fits = best_fit([GOOD, GOOD, b"{cut", b""])
    assert fits[0] == Fit("jsonl", 0.75, 2)


def test_of_two_formats_the_one_that_tells_more_fits_better() -> None:
    """Inside a wrapper, whose time serves every record, any object is a line of `jsonl`."""
    row = {"start_time": "2026-03-03T09:15:00Z", "duration": 5, "response_code": 200, "path": "/v1/chat/completions"}
    fits = best_fit([CRI + b"stdout F " + json.dumps(row).encode()], "cri")
    assert [(fit.format, fit.counted) for fit in fits[:2]] == [("envoy", 1), ("jsonl", 1)]


def test_the_best_fit_of_nothing_is_nobody() -> None:
    """No lines, no shares."""
    assert {(fit.share, fit.counted) for fit in best_fit([])} == {(0.0, 0)}


def test_the_best_fit_looks_inside_a_wrapper() -> None:
    """With the wrapper that was found."""
    lines = [CRI + b"stdout F " + GOOD] * 3
    assert find_wrapper(lines) == "cri"
    assert best_fit(lines, "cri")[0] == Fit("jsonl", 1.0, 3)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (b'{"log":"a\\n","stream":"stdout","time":"2026-03-03T09:15:02Z"}', "docker"),
        (b'{"MESSAGE":"a","__REALTIME_TIMESTAMP":"1772529302430000"}', "journald"),
        (GOOD, None),
        (b"text", None),
        (b"", None),
    ],
)
def test_a_wrapper_is_found_by_its_lines(line: bytes, name: str | None) -> None:
    """A wrapper must have something inside for most lines."""
    assert find_wrapper([line] * 10) == name
