"""Loads a real llama.cpp server, and compares what its log, its page and its clients say of the same seconds.

    python -m tests.end_to_end.programs.real_llamacpp OUT [SECONDS]

The same as the test beside it, for longer. OUT takes the log, the clients' records and `llamacpp.md`. Exit 1 where
something disagrees.
"""

from __future__ import annotations

import json
import random
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Final

import numpy as np

from capwatch.engines import replicas
from capwatch.metrics import TOKEN_KINDS
from capwatch.scrape.fetch import Failure, fetch

from ..command import Page, printed
from ..comparison import Row, markdown
from .process import free_port, program, until
from .tiny_gguf import write

SLOTS: Final = 3
CLIENTS: Final = 8
SECONDS: Final = 3.5
EVERY_S: Final = 0.02
"""Between two samples of the page."""
CLOSE: Final = 0.05
"""How far apart two ways to measure what is in flight may be: the page is a sample, the log has whole tasks."""
CONFIG: Final = """
sources:
  - {name: engine, path: %s, format: llamacpp, pool: tiny}
  - {name: client, path: %s, format: jsonl, pool: clients}
pools:
  - {name: tiny}
  - {name: clients}
"""


Counted = dict[str, float]
"""The server's own counters, by quantity (see `capwatch.dialect.vocabulary.Vocabulary`)."""


class Gauges:
    """Samples of the page while the block runs: what is running and waiting, by time."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.seen: list[tuple[float, float, float]] = []
        self._over = Event()
        self._thread = Thread(target=self._run)

    def __enter__(self) -> Gauges:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(EVERY_S):
            sample = replicas(page(self._url))[0].sample
            self.seen.append((time.monotonic(), sample.running or 0.0, sample.waiting or 0.0))

    def mean(self, begin: float, end: float, *, waiting: bool) -> float:
        """The mean over a stretch of (monotonic) time, each sample weighing until the next."""
        at, running, queued = np.array(self.seen).T
        value = running + queued if waiting else running
        inside = (at >= begin) & (at <= end)
        edges = np.append(at[inside], end)
        return float((value[inside] * np.diff(edges)).sum() / (end - edges[0]))


class Clients:
    """More clients than slots, each asking again as soon as it is answered; `records` is what they saw."""

    def __init__(self, port: int) -> None:
        self.records: list[dict[str, Any]] = []
        self._port = port
        self._lock = Lock()

    def drive(self, seconds: float) -> tuple[float, float]:
        """Load the server for some seconds, and wait for the last answers; begin and end (monotonic)."""
        begin = time.monotonic()
        threads = [Thread(target=self._ask_on, args=(number, begin + seconds)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return begin, time.monotonic()

    def _ask_on(self, number: int, until: float) -> None:
        draw = random.Random(number)
        connection = HTTPConnection("127.0.0.1", self._port, timeout=60)
        while time.monotonic() < until:
            prompt = "".join(draw.choices("abcdefgh ", k=draw.randint(20, 300)))
            body = {"prompt": prompt, "n_predict": draw.randint(20, 200), "ignore_eos": True}
            record: dict[str, Any] = {"started_at": time.time(), "stream": False, "model": "tiny"}
            connection.request("POST", "/completion", json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            told = json.loads(answer.read())
            record |= {"finished_at": time.time(), "status": answer.status}
            record |= {"prompt_tokens": told["tokens_evaluated"], "output_tokens": told["tokens_predicted"]}
            with self._lock:
                self.records.append(record)
        connection.close()


def page(url: str) -> str:
    """The server's page."""
    found = fetch(url, 10.0)
    assert not isinstance(found, Failure), found
    return found


def run(out: Path, seconds: float) -> list[Row]:
    """Run a server under load in ``out``, and compare."""
    model, log, records = out / "tiny.gguf", out / "server.log", out / "clients.jsonl"
    write(model)
    port = free_port()
    script = Path(__file__).with_name("llama_server.py")
    server: list[str | Path] = [sys.executable, script, model, str(port), str(SLOTS)]
    clients = Clients(port)
    with program(server, port, log):
        url = f"http://127.0.0.1:{port}/metrics"
        until(lambda: not isinstance(fetch(url, 10.0), Failure), "the model is not loaded")
        with Gauges(url) as gauges:
            begin, end = clients.drive(seconds)
        time.sleep(0.2)  # the log is written by a thread of its own
        totals = replicas(page(url))[0].totals
    records.write_text("".join(f"{json.dumps(one)}\n" for one in clients.records))
    config = out / "capwatch.yml"
    config.write_text(CONFIG % (log, records))
    told = Page(printed("replay", "--config.file", config, cwd=out))
    counted = {name: value or 0.0 for name, (value, *_) in totals.items()}
    return compare(told, counted, gauges, begin, end)


def compare(told: Page, counted: Counted, gauges: Gauges, begin: float, end: float) -> list[Row]:
    """What capwatch tells of log and clients, beside what the server counted."""
    log, clients = (_tokens(told, model) for model in ("unknown", "tiny"))
    seconds = {pool: told.value("phase_seconds_total", pool=pool) / (end - begin) for pool in ("tiny", "clients")}
    requests = {pool: told.value("departures_total", pool=pool) for pool in seconds}
    return [
        Row("requests: log, clients", requests["tiny"], requests["clients"]),
        Row("lines of the log dropped, expected", told.value("lines_dropped_total", source="engine"), 0),
        Row("prompt tokens: log, clients", log["prompt_computed"] + log["prompt_cached"], clients["prompt_computed"]),
        Row("computed prompt tokens: log, page", log["prompt_computed"], counted["prompt_tokens"]),
        Row("cached prompt tokens: log, page", log["prompt_cached"], counted["prefix_hits"]),
        Row("output tokens: log, clients", log["output"], clients["output"]),
        Row("output tokens: log, page", log["output"], counted["output_tokens"]),
        Row("running: λW of the log, page", seconds["tiny"], gauges.mean(begin, end, waiting=False), CLOSE),
        Row("in flight: λW of the clients, page", seconds["clients"], gauges.mean(begin, end, waiting=True), CLOSE),
    ]


def _tokens(told: Page, model: str) -> dict[str, float]:
    return {kind: told.value("tokens_total", model=model, kind=kind) for kind in TOKEN_KINDS}


def main(out: Path, seconds: float) -> int:
    """Run, compare, write the table."""
    out.mkdir(parents=True, exist_ok=True)
    rows = run(out, seconds)
    table = markdown(rows)
    (out / "llamacpp.md").write_text(table)
    sys.stdout.write(table)
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), float(sys.argv[2]) if len(sys.argv) > 2 else 60.0))
