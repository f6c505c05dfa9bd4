"""The oldest request without a first token, where a log tells of requests while they go on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from capwatch.config.schema import Config, Match, Pool
from capwatch.dialect import Decoded, Decoder, Options
from capwatch.formats import shelf
from capwatch.keep.codec import pack, unpack
from capwatch.origin import Origin
from capwatch.pipeline import Pipeline
from capwatch.waits import PATIENCE_S, SILENT_S
from tests.spine import NOW, samples

CONFIG = Config(pools=(Pool("chat", Match(model=("chat-*",))), Pool("code", Match(model=("code-*",)))))


def row(one: str, start: float, kind: str, after: float, sent: int = 0, **more: Any) -> bytes:
    """An access log line of Envoy about a request that began at `NOW` + ``start``, written ``after`` seconds later."""
    told = {
        "start_time": NOW + start, "duration": round(1000 * after), "access_log_type": f"Downstream{kind}",
        "bytes_sent": sent, "response_code": 200 if sent else 0, "x-request-id": one, "method": "POST",
        "path": "/v1/chat/completions", "response_model": "chat-70b",
    }  # fmt: skip
    return json.dumps(told | more).encode()


class Log:
    """A pipeline that reads such lines."""

    def __init__(self) -> None:
        self.pipeline = Pipeline(CONFIG)
        self.totals = self.pipeline.totals()

    def read(self, *lines: bytes, at: float) -> Decoded:
        """Take lines, and commit at `NOW` + ``at``."""
        found = Decoder(shelf()["envoy"], Options()).decode(b"\n".join(lines), NOW)
        self.pipeline.take(Origin("gateway"), found, NOW + at)
        self.commit(at)
        return found

    def commit(self, at: float) -> None:
        """Let time pass and commit."""
        self.pipeline.tick(NOW + at)
        self.totals.apply(self.pipeline.freeze())

    def restart(self, *, by_checkpoint: bool) -> None:
        """Go on from what was saved, or from the deltas alone."""
        saved, fresh = unpack(pack(self.pipeline.save())), Pipeline(CONFIG, self.totals.names.copy())
        if by_checkpoint:
            fresh.load(saved)
        else:
            fresh._memory.waits.absorb(unpack(pack(self.pipeline.news()))["waits"])
            fresh._time.at = self.pipeline.clock
        self.pipeline = fresh

    @property
    def oldest(self) -> dict[str, float]:
        """What is shown, by pool."""
        found = samples(self.pipeline, self.totals)
        return {
            labels[0][1]: value for (name, labels), value in found.items() if name.endswith("oldest_waiting_seconds")
        }


def test_a_request_waits_from_its_arrival_to_the_first_byte_of_its_body() -> None:
    """The oldest counts; headers are no token; rows of requests that go on are skipped lines."""
    log = Log()
    found = log.read(row("a", 0, "Start", 0), row("b", 4, "Start", 0), at=5)
    assert (found.read, found.counted, found.skipped) == (2, 0, 2)
    assert log.oldest == pytest.approx({"chat": 5}, abs=1.01)
    log.read(row("a", 0, "Periodic", 10, response_code=200), row("b", 4, "Periodic", 6), at=10)
    assert log.oldest == pytest.approx({"chat": 10}, abs=0.01)
    log.read(row("a", 0, "Periodic", 12, sent=90), at=12)
    assert log.oldest == pytest.approx({"chat": 8}, abs=0.01)
    log.read(row("b", 4, "End", 11, sent=900), at=15)
    assert log.oldest == {"chat": 0}


def test_time_goes_on_while_nothing_ends() -> None:
    """A stall in which not one request finishes is what the gauge is for."""
    log = Log()
    for second in range(0, 120, 5):
        log.read(row("a", 0, "Periodic", second), at=second)
        assert log.oldest["chat"] == pytest.approx(second, abs=1)


def test_an_end_that_nobody_saw() -> None:
    """A gateway that dies tells of its requests no more: they wait no longer than its rows are late."""
    log = Log()
    log.read(row("a", 0, "Start", 0), row("z", 0, "End", 1, sent=1), at=1)
    log.commit(PATIENCE_S - 5)
    assert log.oldest["chat"] == pytest.approx(PATIENCE_S - 5, abs=2)
    log.commit(PATIENCE_S + 5)
    assert log.oldest == {"chat": 0}
    log.commit(SILENT_S + 10)
    assert log.oldest == {}


def test_a_log_of_ends_tells_of_nobody() -> None:
    """Without rows before the end, or without the bytes that were sent, it is not known who waits."""
    log = Log()
    log.read(row("a", 0, "End", 2, sent=7), row("b", 0, "Periodic", 2, bytes_sent=None), at=2)
    assert log.oldest == {}


def test_pools_wait_apart() -> None:
    """And a model that is told later moves its request."""
    log = Log()
    log.read(row("a", 0, "Start", 0, response_model=None), row("b", 3, "Start", 0), at=3)
    log.read(row("a", 0, "Periodic", 5, response_model="code-7b"), row("b", 3, "Periodic", 2), at=5)
    assert {pool: log.oldest[pool] for pool in ("chat", "code")} == pytest.approx({"chat": 2, "code": 5}, abs=0.01)


@pytest.mark.parametrize("by_checkpoint", [True, False])
def test_a_restart_forgets_nobody(by_checkpoint: bool) -> None:
    """Who waited before it waits after it, until its end is told."""
    log = Log()
    log.read(row("a", 0, "Start", 0), row("b", 1, "Periodic", 1), at=2)
    log.restart(by_checkpoint=by_checkpoint)
    log.read(row("b", 1, "Periodic", 6), row("a", 0, "Periodic", 7), at=7)
    assert log.oldest == pytest.approx({"chat": 7}, abs=0.01)
    log.read(row("a", 0, "End", 8), row("b", 1, "Periodic", 7), at=8)
    assert log.oldest == pytest.approx({"chat": 7}, abs=0.01)
