"""The pipeline adds up the same whatever way its lines were cut into batches, commits and lives."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capwatch.config.schema import Class, Config, Match, Pool, Slo
from capwatch.dialect import Decoded
from capwatch.keep.codec import pack, unpack
from capwatch.origin import Origin
from capwatch.pipeline import Pipeline
from capwatch.sketch import SLICES
from tests.spine import NOW, Spine, decoded, request

CONFIG = Config(
    pools=(Pool("chat", Match(model=("m0", "m1"))),),
    classes=(Class("even", Match(route=("/r0", "/r2"))),),
    slo=(Slo(ttft=0.5, tpot=0.05),),
)


def traffic(seed: int, n: int = 120) -> list[dict[str, Any]]:
    """Requests over twenty minutes, some late, some repeated, some that tell little."""
    draw = np.random.default_rng(seed)
    rows = []
    for number in range(n):
        ttft = float(draw.lognormal(-1, 0.7))
        rows.append(
            request(
                request_id=str(int(draw.integers(0, n * 2))),
                finished_at=NOW + number * 10 - (700 if draw.random() < 0.05 else 0),
                tenant=f"t{draw.integers(0, 4)}",
                route=f"/r{draw.integers(0, 4)}",
                model=f"m{draw.integers(0, 3)}",
                ttft_s=ttft if draw.random() < 0.8 else None,
                duration_s=ttft + float(draw.lognormal(0, 0.5)),
                queue_s=float(draw.exponential(0.2)) if draw.random() < 0.5 else None,
                prompt_tokens=int(draw.integers(1, 5000)),
                cached_tokens=int(draw.integers(0, 50)) if draw.random() < 0.5 else None,
                output_tokens=int(draw.integers(0, 300)),
                outcome=str(draw.choice(["ok", "timeout", "client_abort"])),
            )
        )
    return rows


WHOLE = {seed: traffic(seed) for seed in range(3)}


def whole(seed: int) -> dict[Any, float]:
    """What the page shows when all comes in one batch."""
    spine = Spine(CONFIG)
    spine.feed(*WHOLE[seed])
    return spine.samples()


@given(st.sampled_from([*WHOLE]), st.lists(st.integers(0, 120), max_size=8), st.lists(st.booleans(), max_size=9))
@settings(max_examples=25)
def test_the_merge_of_parts_is_the_whole(seed: int, cuts: list[int], commits: list[bool]) -> None:
    """Any split into batches, any grouping of batches into commits: the same page, floats to 1e-9."""
    spine = Spine(CONFIG)
    edges = [0, *sorted(cuts), len(WHOLE[seed])]
    for number, (begin, end) in enumerate(pairwise(edges)):
        spine.pipeline.take(Origin("log"), decoded(*WHOLE[seed][begin:end]), NOW + 3600)
        if number < len(commits) and commits[number]:
            spine.commit()
    spine.commit()
    assert spine.samples() == pytest.approx(whole(seed), rel=1e-9, abs=1e-9)


@given(st.sampled_from([*WHOLE]), st.integers(0, 120))
@settings(max_examples=10)
def test_a_restart_in_the_middle_changes_nothing(seed: int, cut: int) -> None:
    """What is saved is all there is."""
    begun, straight = Spine(CONFIG), Spine(CONFIG)
    for spine in (begun, straight):
        spine.feed(*WHOLE[seed][:cut])
    totals, remembered = unpack(pack([begun.totals.save(), begun.pipeline.save()]))
    again = Spine(CONFIG)
    again.totals.load(totals)
    again.pipeline = Pipeline(CONFIG, again.totals.names.copy())
    again.pipeline.load(remembered)
    again.pipeline.recall(again.totals)
    for spine in (again, straight):
        spine.feed(*WHOLE[seed][cut:])
    assert again.samples() == pytest.approx(straight.samples(), rel=1e-12)


def test_the_newest_event_of_a_source_never_goes_back() -> None:
    """Not by a late record, nor after a restart; one of the future is no news."""
    spine = Spine(CONFIG)
    key = ("capwatch_source_last_event_timestamp_seconds", (("source", "log"),))
    spine.feed(request(finished_at=NOW), now=NOW)
    spine.feed(request(finished_at=NOW - 3600), request(finished_at=NOW + 7200), now=NOW)
    assert spine.samples()[key] == NOW
    pipeline = Pipeline(CONFIG, spine.pipeline.names)
    pipeline.load(spine.pipeline.save())
    spine.pipeline = pipeline
    spine.feed(request(finished_at=NOW - 3600), now=NOW)
    assert spine.samples()[key] == NOW


def test_a_delta_survives_its_bytes() -> None:
    """Totals are the sum of deltas, live and after a restart, to the last bit."""
    spine, other = Spine(CONFIG), Spine(CONFIG)
    for part in (WHOLE[0][:50], WHOLE[0][50:]):
        spine.pipeline.take(Origin("log"), decoded(*part), NOW)
        delta = spine.pipeline.freeze()
        spine.totals.apply(delta)
        other.totals.apply(delta)
    assert other.samples() == spine.samples()


def test_what_a_reload_finds_half_done_is_not_lost() -> None:
    """A new pipeline of the same names goes on with what the old one gathered and did not freeze."""
    spine, straight = Spine(CONFIG), Spine(CONFIG)
    straight.feed(*WHOLE[0])
    spine.pipeline.take(Origin("log"), decoded(*WHOLE[0][:50]), NOW + 3600)
    new = Pipeline(CONFIG, spine.pipeline.names)
    new.load(spine.pipeline.save())
    new.inherit(spine.pipeline)
    spine.pipeline = new
    spine.feed(*WHOLE[0][50:])
    assert spine.samples() == pytest.approx(straight.samples(), rel=1e-9, abs=1e-9)


def test_series_of_pools_and_sources_start_at_zero() -> None:
    """So that a rate sees their first step; series of tenants appear with their first event."""
    spine = Spine(CONFIG)
    spine.commit()
    zeros = {name for (name, _), value in spine.samples().items() if value == 0}
    assert {
        f"capwatch_{name}_total" for name in ("arrivals", "departures", "phase_seconds", "abandoned_replica_seconds")
    } < zeros
    assert {"capwatch_class_requests_total", "capwatch_label_overflow_total", "capwatch_littles_law_valid"} < zeros
    assert [key for key in spine.samples() if "tenant" in dict(key[1])] == []


def test_a_source_of_times_makes_no_requests() -> None:
    """Its lines are counted as lines, and nothing else of it."""
    spine = Spine(CONFIG)
    spine.pipeline.take(Origin("engine", counts=False), decoded(request(duration_s=1.0)), NOW)
    spine.commit()
    assert (spine.value("lines_counted_total", source="engine"), spine.total("requests_total")) == (1, 0)


def test_lines_have_one_fate() -> None:
    """Law 1: read = counted + skipped + dropped, repeats being skipped."""
    spine = Spine(CONFIG)
    spine.feed(request(request_id="1"), request(request_id="1"), b"", b"{", b"\xff", b'{"tenant":"a"}')
    read, counted, skipped = (
        spine.value(f"lines_{fate}_total", source="log") for fate in ("read", "counted", "skipped")
    )
    dropped = {dict(key)["reason"]: value for key, value in spine.values("lines_dropped_total").items() if value}
    assert (read, counted, skipped) == (6, 1, 2)
    assert dropped == {"malformed": 1, "bad_utf8": 1, "bad_time": 1}


def test_an_empty_batch_is_nothing() -> None:
    """Lines that are no records move no clock."""
    spine = Spine(CONFIG)
    spine.feed(b"")
    assert (spine.pipeline.clock, spine.total("requests_total")) == (0.0, 0.0)


def test_the_clock_goes_on_after_a_restart_from_where_it_was() -> None:
    """What was written while nobody read is not late; silence goes on counting."""
    spine = Spine(CONFIG)
    spine.feed(request(duration_s=1.0), now=NOW)
    again = Pipeline(CONFIG, spine.pipeline.names)
    again.load(spine.pipeline.save())
    spine.pipeline = again
    spine.tick(NOW + 7200)
    spine.feed(request(duration_s=1.0, finished_at=NOW + 10), now=NOW + 7201)
    assert spine.value("late_records_total", source="log") == 0
    spine.tick(NOW + 7201 + 400)
    assert spine.value("duration_seconds", quantile="0.5") is None


def test_what_waits_to_be_frozen_is_told() -> None:
    """Lines taken since the last freeze."""
    pipeline = Pipeline(CONFIG)
    taken: Decoded = decoded(request(), b"{")
    pipeline.take(Origin("log"), taken, NOW)
    before = pipeline.pending
    pipeline.freeze()
    assert (before, pipeline.pending) == (2, 0)


def test_what_waits_weighs_by_the_slots_of_time_it_touches() -> None:
    """A week with a line a minute takes far more than as many lines of one second, and reading stops by that."""
    busy, sparse = Spine(CONFIG), Spine(CONFIG)
    for spine, step in ((busy, 0), (sparse, 60)):
        spine.pipeline.take(
            Origin("log"), decoded(*(request(finished_at=NOW + step * n) for n in range(500))), NOW + 1e6
        )
    assert busy.pipeline.held < 500 * 400 < 500 * 3000 < sparse.pipeline.held
    sparse.commit()
    assert sparse.pipeline.held == 0


def test_a_delta_has_no_more_slots_of_the_window_than_the_window() -> None:
    """What is older counts for life, or goes to the history or to watchers: a backlog's deltas stay small."""
    spine = Spine(CONFIG)
    rows = [request(finished_at=NOW + 60 * n, ttft_s=0.5, duration_s=1.0, output_tokens=9) for n in range(500)]
    spine.pipeline.take(Origin("log"), decoded(*rows), NOW + 1e6)
    delta = spine.pipeline.freeze()
    tables = spine.totals.tables
    assert {name for name in delta.slots if tables[name].closes} == {
        *("seconds", "rollup", "minutes", "cover", "books"),
    }
    over = [name for name, slots in delta.slots.items() if not tables[name].closes and len(slots) > tables[name].slots]
    assert (over, len(delta.slots["seconds"]), len(delta.slots["rollup"])) == ([], 1000, 100)
    assert max(len(slots) for name, slots in delta.cells.items() if name != "rollup") <= SLICES + 1
