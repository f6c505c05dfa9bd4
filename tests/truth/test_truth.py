"""The truth holds against hand-made cases and against itself."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from .options import DAMAGES, Options, Slo
from .residence import inflight, inflight_by_phase, residences
from .rows import Rows, blank, texts
from .traffic import GARBAGE, RECORD, SKIP, Traffic, configuration, traffic
from .truth import (
    abandoned,
    cost,
    duplicates,
    goodput,
    lateness,
    line_counts,
    order_statistic,
    phase_seconds,
    pool_of,
    prefill_saved,
    quantiles,
    requests,
    retries,
    tokens,
    totals,
    usage_unknown,
)

OPTIONS = Options(duration_s=600, rate=5)


@pytest.fixture(scope="module")
def log() -> Traffic:
    """Ten minutes of traffic, shared since nobody changes it."""
    return traffic(OPTIONS)


def by_hand(n: int, **columns: object) -> Rows:
    """`n` requests that ended well with 1000 + 100 tokens of acme, one second apart, with the given columns."""
    rows = blank(n)
    rows.tenant, rows.route, rows.model = texts(["acme"] * n), texts(["/chat"] * n), texts(["chat-70b"] * n)
    rows.outcome, rows.stream = texts(["ok"] * n), np.ones(n, dtype=bool)
    rows.prompt_tokens, rows.output_tokens = np.full(n, 1000.0), np.full(n, 100.0)
    rows.finished_at = np.arange(n, dtype=float)
    for name, values in columns.items():
        setattr(rows, name, values)
    return rows


def test_the_sweep_finds_the_published_numbers_in_flight() -> None:
    """20/s through 0.1 s, 0.4 s, 2 s in 15 % of the requests and 4.2 s holds 2, 8, 6 and 84 requests."""
    n = 20 * 300
    tool = np.where(np.arange(n) % 20 < 3, 2.0, 0.0)
    rows = by_hand(
        n,
        started_at=np.arange(n) / 20,
        duration_s=4.7 + tool,
        gateway_s=np.full(n, 0.1),
        retrieval_s=np.full(n, 0.4),
        tool_s=tool,
        decode_s=np.full(n, 4.2),
    )
    held = inflight_by_phase(rows, 100.0, 200.0)
    assert {phase: round(held[phase], 6) for phase in ("gateway", "retrieval", "tool", "decode", "other")} == {
        "gateway": 2,
        "retrieval": 8,
        "tool": 6,
        "decode": 84,
        "other": 0,
    }


def test_the_sweep_equals_the_overlap_summed(log: Traffic) -> None:
    """The time average by the sweep is the sum of what each stay shares with the stretch, over its length."""
    rows = log.rows.take(~np.isnan(log.rows.duration_s))
    starts, ends = rows.started_at, rows.started_at + rows.duration_s
    since, until = OPTIONS.start + 100, OPTIONS.start + 400
    shared = np.maximum(np.minimum(ends, until) - np.maximum(starts, since), 0).sum() / (until - since)
    assert inflight(starts, ends, since, until) == pytest.approx(shared, rel=1e-6)


def test_counts_tokens_and_cost_of_a_case_made_by_hand() -> None:
    """Two requests, one with 600 of its 1000 prompt tokens cached, one a cache hit that costs nothing."""
    rows = by_hand(2, cached_tokens=np.array([600, np.nan]), cache_hit=np.array([False, True]))
    assert requests(rows) == {("acme", "/chat", "chat-70b", "ok"): 2}
    assert tokens(rows) == {
        ("acme", "/chat", "chat-70b", "prompt_computed"): 1400,
        ("acme", "/chat", "chat-70b", "prompt_cached"): 600,
        ("acme", "/chat", "chat-70b", "output"): 200,
    }
    assert cost(rows, OPTIONS.pools) == {
        ("acme", "/chat", "large", "prefill"): 400 / 4000,
        ("acme", "/chat", "large", "decode"): 100 / 160,
    }
    assert prefill_saved(rows, OPTIONS.pools) == {("acme", "/chat", "large"): 600 / 4000}


def test_one_token_count_is_charged_alone() -> None:
    """A row that tells only its prompt costs its prefill."""
    rows = by_hand(1, output_tokens=np.array([np.nan]))
    assert cost(rows, OPTIONS.pools) == {("acme", "/chat", "large", "prefill"): 0.25}


def test_abandoned_work_is_that_of_aborts_and_timeouts() -> None:
    """Of ok, client_abort and timeout with equal tokens, two thirds of the cost is abandoned."""
    rows = by_hand(3, outcome=texts(["ok", "client_abort", "timeout"]))
    assert abandoned(rows, OPTIONS.pools) == {("large",): pytest.approx(2 * (0.25 + 0.625))}


def test_phases_not_given_follow_from_the_ttft() -> None:
    """What of the TTFT no phase before explains is prefill, what follows is decode."""
    rows = by_hand(1, duration_s=np.array([3.0]), ttft_s=np.array([1.0]), gateway_s=np.array([0.25]))
    rows.queue_s = np.array([0.5])
    assert {phase: seconds[0] for phase, seconds in residences(rows).items() if seconds[0]} == {
        "gateway": 0.25,
        "queue": 0.5,
        "prefill": 0.25,
        "decode": 2.0,
    }


def test_phases_longer_than_the_whole_are_scaled_to_it() -> None:
    """Phases of 1 s and 3 s in a duration of 2 s count 0.5 s and 1.5 s."""
    rows = by_hand(1, duration_s=np.array([2.0]), queue_s=np.array([1.0]), decode_s=np.array([3.0]))
    assert [residences(rows)[phase][0] for phase in ("queue", "decode", "other")] == [0.5, 1.5, 0.0]


def test_phases_add_up_to_the_durations(log: Traffic) -> None:
    """Law 5: the phases of all pools together are the sum of the durations."""
    whole = float(np.nansum(log.rows.duration_s))
    assert sum(phase_seconds(log.rows, OPTIONS.pools).values()) == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize(
    ("columns", "verdict"),
    [
        ({}, ("good", "")),
        ({"ttft_s": [0.6]}, ("missed", "ttft")),
        ({"duration_s": [9.0]}, ("missed", "tpot")),
        ({"ttft_s": [0.6], "duration_s": [9.0]}, ("missed", "both")),
        ({"duration_s": [0.5], "ttft_s": [0.5]}, ("good", "")),
        ({"output_tokens": [1], "duration_s": [2.5]}, ("good", "")),
        ({"output_tokens": [1], "duration_s": [9.0]}, ("missed", "e2e")),
        ({"ttft_s": [np.nan]}, ("unclassified", "no_timing")),
        ({"ttft_s": [np.nan], "stream": [False]}, ("good", "")),
        ({"ttft_s": [np.nan], "stream": [False], "duration_s": [9.0]}, ("missed", "e2e")),
        ({"output_tokens": [np.nan]}, ("unclassified", "no_tokens")),
        ({"cache_hit": [True], "outcome": ["timeout"]}, ("unclassified", "cache_hit")),
        ({"outcome": ["content_filter"]}, ("unclassified", "client")),
        ({"outcome": ["client_abort"]}, ("unclassified", "client")),
        ({"outcome": ["client_abort"], "ttft_s": [np.nan], "output_tokens": [0]}, ("missed", "ttft")),
        ({"outcome": ["timeout"]}, ("missed", "error")),
        ({"outcome": ["rate_limited"], "rate_limited_by": ["gateway"]}, ("unclassified", "client")),
        ({"outcome": ["rate_limited"]}, ("missed", "error")),
    ],
)
def test_goodput_by_its_rules(columns: dict[str, list[object]], verdict: tuple[str, str]) -> None:
    """The first rule that applies decides, bounds are inclusive, and missing data neither hits nor misses."""
    usual = {"ttft_s": [0.4], "duration_s": [3.0]} | columns
    rows = by_hand(1, **{name: np.array(value, dtype=getattr(blank(0), name).dtype) for name, value in usual.items()})
    assert goodput(rows, [Slo(0.5, 0.03, 5.0)]) == {("acme", "/chat", *verdict): 1}


def test_goodput_without_a_service_level_is_unclassified() -> None:
    """No SLO for the route: no_slo."""
    assert goodput(by_hand(1), [Slo(1, 1, route="/elsewhere")]) == {("acme", "/chat", "unclassified", "no_slo"): 1}


def test_goodput_adds_up_to_the_requests(log: Traffic) -> None:
    """Law 4: good, missed and unclassified are all requests, per tenant and route."""
    asked = Counter((tenant, route) for tenant, route, _, _ in requests(log.rows).elements())
    judged = Counter((tenant, route) for tenant, route, _, _ in goodput(log.rows, OPTIONS.slos).elements())
    assert judged == asked


def test_a_quantile_is_the_value_of_rank_q_times_n_rounded_up() -> None:
    """Of 1..20 the 0.95 quantile is 19, of 1..21 it is 20."""
    assert [order_statistic(range(1, n + 1), "0.95") for n in (20, 21)] == [19, 20]


def test_the_window_is_the_current_slice_and_ten_before() -> None:
    """At 600 s the window reaches back to 300 s, and a value from 299 s is outside."""
    rows = by_hand(3, finished_at=np.array([299.0, 300.0, 600.0]), prompt_tokens=np.array([1.0, 2.0, 3.0]))
    assert quantiles(rows, ["0.5"])["prompt_tokens", "acme", "/chat", "0.5"] == 2.0


def test_what_comes_late_or_too_early_stays_out_of_the_window() -> None:
    """Ten minutes late is late; a year ahead is ahead and does not move the clock."""
    rows = by_hand(4, finished_at=np.array([1000.0, 400.0, 4e7, 1001.0]))
    late, ahead = lateness(rows)
    assert (late.tolist(), ahead.tolist()) == ([False, True, False, False], [False, False, True, False])


def test_cached_answers_have_no_ttft() -> None:
    """A cache hit counts in lengths and durations, and is outside TTFT and TPOT."""
    rows = by_hand(1, ttft_s=np.array([0.1]), duration_s=np.array([0.2]), cache_hit=np.array([True]))
    assert {measure for measure, _, _ in totals(rows)} == {"prompt_tokens", "output_tokens", "duration_seconds"}


def test_lines_are_counted_by_their_fate(log: Traffic) -> None:
    """Law 1: lines read are those counted, skipped and dropped; what is counted are the rows."""
    counts = line_counts(log.lines)
    assert counts.pop("read") == counts.total() == len(log.lines)
    assert counts["counted"] == len(log.rows)


def test_the_rows_stand_in_the_order_of_the_file(log: Traffic) -> None:
    """The k-th line that is a record tells of row k."""
    assert [line.row for line in log.lines if line.fate == RECORD] == list(range(len(log.rows)))


def test_every_kind_of_line_occurs(log: Traffic) -> None:
    """No fault that the generator knows is missing from a log of some size."""
    written = {line.text for line in log.lines}
    assert [text for text, _ in GARBAGE if text not in written] == []
    assert line_counts(log.lines)["too_long"] > 0
    assert set(log.rows.damage.tolist()) == set(range(-1, len(DAMAGES)))
    assert int(log.rows.moved.sum()) == OPTIONS.ancient_rows + OPTIONS.future_rows


def test_a_duplicate_is_the_same_line_again(log: Traffic) -> None:
    """A skipped line that tells of a row repeats the bytes of that row's line, and follows it."""
    first: dict[int, bytes] = {}
    for line in log.lines:
        if line.fate == RECORD:
            first[line.row] = line.text
        elif line.row >= 0:
            assert (line.fate, line.text) == (SKIP, first[line.row])
    assert sum(duplicates(log).values()) > 0


def test_ids_that_may_be_merged_are_unique(log: Traffic) -> None:
    """Apart from absent, empty and None ids, no two rows share one."""
    ids = Counter(log.rows.request_id)
    assert all(ids[no_id] > 1 for no_id in (None, "", "None"))
    assert {name for name, count in ids.items() if count > 1} == {None, "", "None"}


def test_a_whole_line_tells_the_row(log: Traffic) -> None:
    """Numbers read back from an undamaged line are the row's, to the last bit."""
    names = ("prompt_tokens", "output_tokens", "duration_s", "ttft_s", "queue_s", "decode_s", "retries")
    for line in log.lines:
        if line.fate == RECORD and log.rows.damage[line.row] < 0:
            told = json.loads(line.text)
            for name in names:
                value = float(getattr(log.rows, name)[line.row])
                assert told.get(name) == (None if np.isnan(value) else value)


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, log: Traffic) -> None:
    """A log is a function of its options; another seed gives another log."""
    for name, options in (("a", OPTIONS), ("b", OPTIONS), ("c", replace(OPTIONS, seed=8))):
        traffic(options).write(tmp_path / name)
    a, b, c = ((tmp_path / name).read_bytes() for name in "abc")
    assert (a == b, a == c) == (True, False)


def test_clusters_are_burstier_than_poisson() -> None:
    """Variance over mean of the 1 s counts is about 1 for Poisson arrivals and well above for clusters."""

    def dispersion(options: Options) -> float:
        rows = traffic(options).rows
        starts = rows.started_at[~rows.moved & ~np.isnan(rows.started_at)]
        counts = np.bincount((starts - options.start).astype(int))
        return float(counts.var() / counts.mean())

    assert dispersion(OPTIONS) == pytest.approx(1, abs=0.3)
    assert dispersion(replace(OPTIONS, clustered=True)) > 2


def test_small_sums(log: Traffic) -> None:
    """Retries are those told, and unknown usage is that of requests that ended well."""
    assert retries(by_hand(3, retries=np.array([2.0, np.nan, 1.0]))) == {("/chat",): 3}
    assert usage_unknown(by_hand(2, prompt_tokens=np.full(2, np.nan), output_tokens=np.array([np.nan, 1.0]))) == 1
    assert pool_of(by_hand(2, model=texts(["chat-70b", "new"])), OPTIONS.pools) == ["large", "small"]


def test_more_tenants_than_the_product_names(log: Traffic) -> None:
    """A long log has more tenants than names are granted, and the first ones hold most of the traffic."""
    counts = Counter(traffic(replace(OPTIONS, rate=20)).rows.tenant)
    top = sum(count for _, count in counts.most_common(10))
    assert (len(counts) > 200, top > counts.total() / 3) == (True, True)


def test_the_configuration_names_the_log(tmp_path: Path) -> None:
    """The set-up is YAML with the one source, all pools, classes and service levels."""
    document = yaml.safe_load(configuration(OPTIONS, tmp_path / "x.jsonl", tmp_path / "state"))
    assert [len(document[key]) for key in ("sources", "pools", "classes", "slo")] == [1, 2, 4, 2]
    assert document["sources"][0]["path"] == str(tmp_path / "x.jsonl")
