"""Drives a real vLLM and compares what its log, its page and the client say of the same minutes.

    python -m tests.end_to_end.engine.real_vllm ENVIRONMENT OUT

ENVIRONMENT is a folder for vLLM's own virtual environment (3.4 GB, made if it is not there), OUT takes
the log, the pages sampled every 0.5 s, the client's records and `comparison.md`. Exit 1 where something disagrees.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread

import numpy as np

from capwatch.dialect import Decoder, Options
from capwatch.dialect.vocabulary import Totals
from capwatch.engines import replicas
from capwatch.formats import shelf
from capwatch.record import Batch, EngineSample
from capwatch.scrape.fetch import Failure, fetch
from capwatch.scrape.scraper import Scraper, Target

from ..comparison import Row, markdown
from . import server
from .load import CALM, SATURATED, Client

EVERY_S = 0.5
LOADED = 5.0  # requests in flight; below it vLLM's gauges undercount, which is known and no finding


@dataclass(frozen=True)
class Stretch:
    """The time of one load, s since the epoch."""

    name: str
    begin: float
    end: float

    def holds(self, at: float | None) -> bool:
        """Whether a time lies in it."""
        return at is not None and self.begin <= at <= self.end


class Sampler:
    """Keeps the pages of a server, every half second, and what capwatch's scraper makes of them."""

    def __init__(self, url: str) -> None:
        self.pages: list[tuple[float, str]] = []
        self.samples: list[EngineSample] = []
        self._target = Target(url, "default", "vllm-0", EVERY_S, 30.0)
        self._over = Event()
        self._thread = Thread(target=self._run)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        scraper = Scraper([self._target])
        while not self._over.wait(EVERY_S):
            page, now = fetch(self._target.url, 5.0), time.time()
            if not isinstance(page, Failure):
                self.pages.append((now, page))
            self.samples += [one.sample for one in scraper.take(self._target, page, now) if one.sample]


def main(environment: Path, out: Path) -> int:
    """Run, compare, write the table."""
    out.mkdir(parents=True, exist_ok=True)
    server.prepare(environment)
    server.model(environment, out / "model")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    client, stretches = Client(port), []
    with (
        server.serving(environment, out / "model", out / "engine.log", port),
        Sampler(f"http://127.0.0.1:{port}/metrics") as sampler,
    ):
        for load in (CALM, SATURATED):
            time.sleep(2)  # a page before and after each load
            begin = time.time()
            client.drive(load)
            stretches.append(Stretch(load.name, begin, time.time()))
        time.sleep(12)  # the last statistics line comes within 10 s
    (out / "client.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in client.records))
    (out / "pages").mkdir(exist_ok=True)
    for at, page in sampler.pages:
        (out / "pages" / f"{at:.3f}.prom").write_text(page)
    rows = compare(out, stretches, sampler)
    table = markdown(rows)
    (out / "comparison.md").write_text(table)
    sys.stdout.write(table)
    return 0 if all(row.holds for row in rows) else 1


def compare(out: Path, stretches: list[Stretch], sampler: Sampler) -> list[Row]:
    """Every comparison, load by load."""
    now = time.time()
    here = datetime.now(UTC).astimezone().tzinfo or UTC  # the server prints this machine's local time
    log = Decoder(shelf()["vllm"], Options(zone=here)).decode((out / "engine.log").read_bytes(), now)
    client = Decoder(shelf()["jsonl"], Options()).decode((out / "client.jsonl").read_bytes(), now).batch
    told = [sample.kv_capacity_tokens for _, sample in log.samples if sample.kv_capacity_tokens]
    shown = sampler.samples[-1].kv_capacity_tokens or 0.0
    rows = [
        Row("KV capacity in tokens: log, configured", told[-1], server.CAPACITY_TOKENS, 0),
        Row("KV capacity in tokens: page, configured", shown, server.CAPACITY_TOKENS, 0),
        Row("lines of the log dropped, expected", log.dropped.total(), 0, 0),
    ]
    for one in stretches:
        mine = (client["started_at"] >= one.begin) & (client["finished_at"] <= one.end)
        lines = [sample for _, sample in log.samples if one.holds(sample.at) and sample.running is not None]
        rows += against_counters(one, client.take(mine), sampler)
        rows += against_gauges(one, client.take(mine), lines, [each for each in sampler.samples if one.holds(each.at)])
    preempted = any(each.preemptions for each in sampler.samples)
    return [*rows, Row("the load was enough for preemptions, as meant", float(preempted), 1.0, 0)]


def against_counters(one: Stretch, client: Batch, sampler: Sampler) -> list[Row]:
    """Counts of one load: the client's, and the growth of the engine's counters from before to after it."""
    totals = [(at, replicas(page)[0].totals) for at, page in sampler.pages]
    begin, before = next((at, each) for at, each in reversed(totals) if at < one.begin)
    end, after = next((at, each) for at, each in totals if at > one.end + EVERY_S)
    ours = [each.preemptions or 0.0 for each in sampler.samples if begin < (each.at or 0.0) <= end]
    prompt, output = (float(client[name].sum()) for name in ("prompt_tokens", "output_tokens"))
    return [
        Row(f"{one.name}: requests, client and page", len(client), grown(before, after, "requests", 0), 0),
        Row(f"{one.name}: prompt tokens, client and page", prompt, grown(before, after, "prompt_tokens", 1), 0),
        Row(f"{one.name}: output tokens, client and page", output, grown(before, after, "output_tokens", 0), 0),
        Row(f"{one.name}: preemptions, our samples and page", sum(ours), grown(before, after, "preemptions", 0), 0),
    ]


def against_gauges(one: Stretch, client: Batch, lines: list[EngineSample], pages: list[EngineSample]) -> list[Row]:
    """Means over one load: by the client's records, by the log's lines, and by the pages."""
    inflight = len(client) / (one.end - one.begin) * float(client["duration_s"].mean())
    loaded = inflight > LOADED
    near = [page for page in pages if any(0 <= (page.at or 0) - (line.at or 0) < 1 + EVERY_S for line in lines)]
    name = one.name
    return [
        Row(f"{name}: in flight, λW of client and pages", inflight, mean(pages, in_engine), 0.05 if loaded else None),
        Row(f"{name}: in flight, log lines and pages near them", mean(lines, in_engine), mean(near, in_engine), None),
        Row(f"{name}: KV, log lines and pages near them", mean(lines, kv), mean(near, kv), 0.1 if loaded else None),
        Row(f"{name}: output tokens/s, log and pages", mean(lines, rate), mean(pages, rate), 0.15),
        Row(f"{name}: most waiting, log and pages", most(lines), most(pages), None),
    ]


def grown(before: Totals, after: Totals, quantity: str, way: int) -> float:
    """How much a counter grew, told in one way."""
    return (after[quantity][way] or 0.0) - (before[quantity][way] or 0.0)


def in_engine(sample: EngineSample) -> float:
    """Requests inside the engine."""
    return (sample.running or 0.0) + (sample.waiting or 0.0)


def kv(sample: EngineSample) -> float:
    """KV utilisation, 0..1."""
    return sample.kv_utilisation or 0.0


def rate(sample: EngineSample) -> float:
    """Output tokens a second."""
    return sample.output_tokens_per_s or 0.0


def mean(samples: list[EngineSample], what: Callable[[EngineSample], float]) -> float:
    """Over samples at equal distances."""
    return float(np.mean([what(one) for one in samples])) if samples else 0.0


def most(samples: list[EngineSample]) -> float:
    """The highest number of waiting requests."""
    return max((one.waiting or 0.0 for one in samples), default=0.0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()))
