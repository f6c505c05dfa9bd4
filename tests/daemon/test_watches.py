"""What the watchers find, in the daemon: a line in its log when it begins and when it is over, and in the API."""

from __future__ import annotations

import logging
import random
from functools import partial
from pathlib import Path

import pytest

from capwatch.config.schema import Config
from capwatch.daemon.committing import Committing
from capwatch.daemon.package import Package
from capwatch.daemon.shown import Shown
from capwatch.daemon.start import begin, fresh_history, opened_history
from capwatch.daemon.status import Board
from tests.watchers.test_watchers import END, Row, sends_again, taken, traffic


def for_a_while(row: Row, draw: random.Random) -> Row:
    """Twenty minutes of retries."""
    return sends_again(row, draw) if row["finished_at"] < END else row


def test_a_finding_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Over a restart, too: what was told is not told again, and what holds still holds."""
    config = Config(state_dir=str(tmp_path))
    rows = [*traffic(for_a_while, END + 1500, rate=1.5)]
    parts = [rows[begin : begin + 600] for begin in range(0, len(rows), 600)]
    caplog.set_level(logging.WARNING)
    active = []
    for half in (parts[: len(parts) - 5], parts[len(parts) - 5 :]):
        begun = begin(config, reset=False)
        history = opened_history(config)
        shown = Shown(begun.totals, begun.pipeline.meters)
        committing = Committing(begun.state, history, begun.ledger, shown, partial(fresh_history, config))
        for part in half:
            taken(begun.pipeline, part)
            committing.hand_over(Package(begun.pipeline.freeze(), {}, begun.pipeline.news()))
            assert committing._commit(committing._package)  # type: ignore[arg-type]
        active.append([one["watch"] for one in Board(shown, config).drifts().watches if one["until"] is None])
        history.close()
        begun.state.close()
    told = [record.getMessage() for record in caplog.records if "Attempts" in record.getMessage()]
    assert active == [["retries"], []]
    assert [line.split(": ")[1] for line in told] == [told[0].split(": ")[1], "Over"]
    assert told[0].startswith("pool default: Attempts per request 1.00 → ")
    assert "tenant acme" in told[0]
