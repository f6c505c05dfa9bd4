"""Duplicates in every format on the shelf: a log read twice counts once, and rows without an id are never merged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from capwatch import wrappers
from capwatch.config.schema import Config, Dedupe
from capwatch.dialect import Decoder
from capwatch.formats import shelf
from capwatch.origin import Origin
from capwatch.record import MISSING, Batch
from tests.spine import Spine

from .compare import NEAR, Case, cases, options_of

USUAL = shelf()["jsonl"].duplicates


def batch(case: Case) -> Any:
    """What a golden log decodes to."""
    beside = case.log.with_name(f"{case.log.stem}.options.json")
    said = json.loads(beside.read_text()) if beside.exists() else {}
    wrapper = wrappers.shelf()[said["wrapper"]]() if "wrapper" in said else None
    options = options_of(said.get("fields"), said.get("timezone", "UTC"))
    decoder = Decoder(shelf()[case.log.parent.name], options, wrapper)
    return decoder.decode(case.log.read_bytes(), said.get("near", NEAR))


def keys(rows: Batch) -> list[str]:
    """What duplicates of these rows share, where they tell anything."""
    return [key for key in rows.dedupe_key if key is not None and key not in MISSING]


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.log.parent.name}/{case.log.stem}")
def test_a_log_read_twice_counts_once(case: Case) -> None:
    """Rows with an id are duplicates the second time, rows without one are requests again; lines keep their law."""
    spine = Spine(Config(dedupe=Dedupe(window=1e10)))  # made-up rows lie years apart
    decoded = batch(case)
    requests = decoded.batch.take(~decoded.batch.part)
    rows = len(requests)
    same = len(keys(requests)) - len(set(keys(requests)))
    for _ in range(2):
        spine.pipeline.take(Origin("log"), batch(case), NEAR + 1e9)
    spine.commit()
    twice = len(keys(requests))
    assert spine.total("duplicates_total") == same + twice
    assert spine.total("requests_total") == 2 * rows - same - twice
    fates = ("lines_counted_total", "lines_skipped_total", "lines_dropped_total")
    assert sum(map(spine.total, fates)) == spine.total("lines_read_total") == 2 * decoded.read


@pytest.mark.parametrize("name", shelf())
def test_the_page_says_what_duplicates_share(name: str) -> None:
    """A format that tells duplicates apart by more than the id says by what."""
    found = [batch(case).batch for case in cases() if case.log.parent.name == name]
    own = any(list(one.dedupe_key) != list(one.request_id) for one in found)
    assert (shelf()[name].duplicates != USUAL) == own
