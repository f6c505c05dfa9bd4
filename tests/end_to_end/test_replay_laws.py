"""Laws, windows and limits: what the page of a seeded log must keep to, whatever is in the log."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.truth import truth
from tests.truth.residence import inflight_by_phase
from tests.truth.traffic import traffic

from .command import Labels, Page, printed
from .logs import DAY, EXACT, MEASURES, PAIR, SETUPS, YESTERDAY, Replayed

QUANTILES = ("0.5", "0.95", "0.99")
WITHIN = 0.008  # of the exact order statistic
SLICE = 30.0


def test_lines_meet_their_fate(log: Replayed) -> None:
    """Law 1: every line is counted, skipped, or dropped under its reason, as many as there are of each."""
    fates = truth.line_counts(log.truth.lines)
    page = log.page
    counted, skipped, read = (fates.pop(fate) for fate in ("counted", "skipped", "read"))
    dropped = {reason: n for (reason,), n in page.values("lines_dropped_total", "reason").items() if n}
    assert dropped == dict(fates)
    assert (page.value("lines_counted_total"), page.value("lines_skipped_total")) == (counted, skipped)
    assert page.value("lines_read_total") == read == counted + skipped + sum(dropped.values())


def test_no_request_is_lost(log: Replayed) -> None:
    """Law 3: the sum over all names, `other` and retired ones is the number of requests."""
    page = log.page
    assert page.value("requests_total") + page.value("retired_requests_total") == len(log.truth.rows)


def test_what_is_silent_for_a_week_is_retired_and_not_lost(tmp_path: Path) -> None:
    """Law 3 over the retirement of names: their totals go to the retired ones, and the sums stay exact."""
    roomy = SETUPS["roomy"]
    roomy.write(tmp_path)
    days = [
        traffic(replace(roomy.options, seed=seed, start=YESTERDAY - ago * DAY, duration_s=300, tenants=tenants))
        for seed, ago, tenants in ((1, 9, 60), (2, 0, 10))
    ]
    for number, day in enumerate(days):
        day.write(tmp_path / f"{number}.jsonl")
    page = Page(printed("replay", "--config.file", "capwatch.yml", "1.jsonl", "0.jsonl", cwd=tmp_path))
    rows = [day.rows for day in days]
    assert 0 < page.value("retired_requests_total") <= len(rows[0])
    assert page.value("requests_total") + page.value("retired_requests_total") == sum(map(len, rows))
    tokens = sum(sum(truth.tokens(one).values()) for one in rows)
    assert page.value("tokens_total") + page.value("retired_tokens_total") == tokens
    cost = sum(sum(truth.cost(one, roomy.options.pools).values()) for one in rows)
    got = page.value("cost_replica_seconds_total") + page.value("retired_cost_replica_seconds_total")
    assert got == pytest.approx(cost, rel=EXACT)


def test_verdicts_add_up_to_requests(log: Replayed) -> None:
    """Law 4: good, missed and unclassified are the requests, per tenant and route."""
    verdicts = Counter[Labels]()
    for name in ("goodput_requests_total", "goodput_missed_total", "goodput_unclassified_total"):
        verdicts.update(log.page.values(name, *PAIR))
    assert dict(verdicts) == log.page.values("requests_total", *PAIR)


def test_phases_add_up_to_residence(log: Replayed) -> None:
    """Law 5: the phases of a pool are the durations of its requests."""
    phases = {pool: seconds for pool, seconds in log.page.values("phase_seconds_total", "pool").items() if seconds}
    assert phases == pytest.approx(log.page.values("route_duration_seconds_sum", "pool"), rel=EXACT)


def test_quantiles_are_those_of_the_window(log: Replayed) -> None:
    """A quantile is within 0.8 % of the value of rank ⌈q·n⌉ over five minutes, for pairs that always had their name."""
    true = truth.quantiles(log.truth.rows, QUANTILES)
    counts = {name: log.page.values(f"{name}_count", *PAIR) for name in MEASURES}
    whole = {key for key, (n, _) in truth.totals(log.truth.rows).items() if counts[key[0]].get(key[1:]) == n}
    got = {
        (name, *key): value
        for name in MEASURES
        for key, value in log.page.values(name, *PAIR, "quantile").items()
        if (name, *key[:2]) in whole
    }
    assert len(got) > 300
    assert got == pytest.approx({key: value for key, value in true.items() if key[:3] in whole}, rel=WITHIN)


def test_bounds_split_exactly(log: Replayed) -> None:
    """The bucket of a configured bound counts the values up to it, the bound included, to the last one."""
    columns = truth.measures(log.truth.rows)
    slos = log.setup.options.slos
    bounds = [
        *(("ttft_seconds", slo.ttft_s) for slo in slos),
        *(("tpot_seconds", slo.tpot_s) for slo in slos),
        *(("duration_seconds", slo.e2e_s) for slo in slos if slo.e2e_s),
    ]
    got = [log.page.value(f"route_{name}_bucket", le=repr(bound)) for name, bound in bounds]
    assert got == [int((columns[name] <= bound).sum()) for name, bound in bounds]


def test_buckets_count_what_is_up_to_their_edges(log: Replayed) -> None:
    """Every edge of a histogram counts the values up to it; the last bucket is the count."""
    columns = truth.measures(log.truth.rows) | {"queue_seconds": log.truth.rows.queue_s}
    for name, column in columns.items():
        buckets = log.page.values(f"route_{name}_bucket", "le")
        assert buckets["+Inf",] == log.page.value(f"route_{name}_count") > 0
        assert buckets == {(le,): int((column <= float(le)).sum()) for (le,) in buckets}


def window(log: Replayed) -> tuple[float, float]:
    """Begin and end of the last five minutes: the newest event, and its slice with the ten before."""
    late, ahead = truth.lateness(log.truth.rows)
    newest = float(log.truth.rows.finished_at[~late & ~ahead].max())
    return (newest // SLICE - 10) * SLICE, newest


def test_the_newest_event_is_told(log: Replayed) -> None:
    """A source's last event is the newest that is of its time, to the microsecond."""
    assert log.page.value("source_last_event_timestamp_seconds") == pytest.approx(window(log)[1], abs=1e-6)


def test_in_flight_is_the_time_average(log: Replayed) -> None:
    """λW of a pool's phase is within 5 % of the mean number of requests in it, wherever that is one or more."""
    rows = log.truth.rows
    served = np.array(truth.pool_of(rows, log.setup.options.pools))
    busy = {
        (pool.name, phase): mean
        for pool in log.setup.options.pools
        for phase, mean in inflight_by_phase(rows.take(served == pool.name), *window(log)).items()
        if mean >= 1
    }
    got = log.page.values("inflight_littles_law", "pool", "phase")
    assert len(busy) >= 3
    assert {key: got[key] for key in busy} == pytest.approx(busy, rel=0.05)


def test_the_published_numbers_in_flight(tmp_path: Path) -> None:
    """20/s through 0.1 s, 0.4 s, 2 s in 15 % of the requests and 4.2 s hold 2, 8, 6 and 84 requests."""
    start, stays = YESTERDAY, {"gateway_s": 0.1, "retrieval_s": 0.4, "decode_s": 4.2}
    rows = []
    for n in range(20 * 600):
        row = stays | ({"tool_s": 2.0} if n % 20 in (0, 7, 14) else {})
        rows.append({"started_at": start + n / 20, "duration_s": round(sum(row.values()), 3), **row})
    steady = [row for row in rows if row["started_at"] + row["duration_s"] <= start + 600]  # nothing has run empty yet
    steady.sort(key=lambda row: row["started_at"] + row["duration_s"])
    (tmp_path / "access.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in steady))
    (tmp_path / "capwatch.yml").write_text("sources: [{name: gateway, path: access.jsonl, format: jsonl}]\n")
    page = Page(printed("replay", "--config.file", "capwatch.yml", cwd=tmp_path))
    assert page.values("inflight_littles_law", "phase") == pytest.approx(
        {
            ("gateway",): 2,
            ("retrieval",): 8,
            ("tool",): 6,
            ("queue",): 0,
            ("prefill",): 0,
            ("decode",): 84,
            ("other",): 0,
        },
        rel=0.005,
        abs=1e-9,
    )
    assert page.value("littles_law_valid", pool="default") == 1


@pytest.mark.parametrize("log", [name for name, setup in SETUPS.items() if not setup.capped], indirect=True)
def test_the_dearest_tenants_are_told(log: Replayed) -> None:
    """The five largest shares of a pool's cost, of what is of its time."""
    late, ahead = truth.lateness(log.truth.rows)
    paid: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for (tenant, _, pool, _), cost in truth.cost(log.truth.rows.take(~late & ~ahead), log.setup.options.pools).items():
        paid[pool][tenant] += cost
    shares = {
        (pool, str(rank)): cost / sum(costs.values())
        for pool, costs in paid.items()
        for rank, cost in enumerate(sorted(costs.values(), reverse=True)[:5], 1)
    }
    assert log.page.values("tenant_share_ratio", "pool", "rank") == pytest.approx(shares, rel=EXACT)


def test_names_stay_within_the_limits(log: Replayed) -> None:
    """At most as many names as the limit grants, with `other` and `unknown` on top; only capped labels overflow."""
    for label in ("tenant", "route", "model"):
        names = {name for (name,) in log.page.values("requests_total", label)}
        assert ("other" in names) == (label in log.setup.capped)
        assert len(names - {"other", "unknown"}) <= log.setup.limits.get(f"{label}s", 1000)
    pairs = {pair for pair in log.page.values("requests_total", *PAIR) if pair[1] not in ("other", "unknown")}
    assert len(pairs) <= log.setup.limits.get("tenant_routes", 3000)


def test_overflow_counts_what_has_no_name(log: Replayed) -> None:
    """Requests of tenants without a name are those counted under `other`."""
    assert log.page.value("label_overflow_total", label="tenant") == log.page.value("requests_total", tenant="other")


def test_the_page_knows_its_size(log: Replayed) -> None:
    """`capwatch_series` is the number of samples on the page."""
    assert log.page.value("series") == sum(map(len, log.page.samples.values()))


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
def test_the_page_is_clean(log: Replayed) -> None:
    """`promtool check metrics` finds nothing to say."""
    check = subprocess.run(
        ["promtool", "check", "metrics"], input=log.page.text, capture_output=True, text=True, check=False
    )
    assert (check.returncode, check.stdout, check.stderr) == (0, "", "")
