"""The watchers on weeks in which nothing changes but what always does: findings a week, and what a request costs.

    python -m tests.bench.watches --weeks 2

Traffic is that of the drift bench (days, weekends, wandering rates, clusters of one class). What it lacks is made up
around it without any change: residence and pace from the tokens with a wandering pace, half of each prompt cached,
retries after failures, caps by tenant. So every finding is a false one, but for bursts of clusters.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

import numpy as np

from capwatch.config.schema import Config
from capwatch.dialect import Decoded
from capwatch.drift.rows import Rows
from capwatch.meters.watches import Watches, found_in
from capwatch.origin import Origin
from capwatch.pipeline import Pipeline
from capwatch.record import LABELS, NUMBERS, OUTCOMES, USAGES, Batch, Texts
from tests.bench.drifts.traffic import EPOCH, TENANTS, WEEK, Site, background

STEP = 6 * 3600
"""Seconds of traffic that are made at once."""
UNCAPPED = 4
"""Every so manyeth tenant asks for no caps."""


def columns(rows: Rows, generator: np.random.Generator) -> Batch:
    """The requests as a log tells them that tells everything."""
    n = len(rows)
    minutes = ((rows.at - EPOCH) // 60).astype(np.int64)
    # A pace that wanders by a tenth over the day, and varies by a tenth between requests.
    wander = 0.1 * np.sin(2 * np.pi * minutes / 397) + 0.05 * np.sin(2 * np.pi * minutes / 61)
    pace = 0.02 * (1 + wander) * generator.lognormal(0, 0.1, n)
    hits = np.round(rows.prompt * generator.beta(8, 8, n))
    ttft = 0.1 + (rows.prompt - hits) / 4000 + generator.exponential(0.1, n)
    nothing = np.full(n, np.nan)
    numbers = dict.fromkeys(NUMBERS, nothing) | {
        "finished_at": rows.at,
        "duration_s": ttft + pace * (rows.output - 1),
        "ttft_s": ttft,
        "prompt_tokens": rows.prompt,
        "cached_tokens": hits,
        "output_tokens": rows.output,
        "max_output_tokens": np.where(rows.tenant % UNCAPPED, 4096.0, np.nan),
        "retries": (generator.random(n) < 0.01).astype(np.float64),
    }
    numbers["started_at"] = rows.at - numbers["duration_s"]
    silent = Texts(np.zeros(n, np.int64), [None])
    labels = dict.fromkeys(LABELS, silent) | {
        "tenant": Texts(rows.tenant, [f"tenant{one}" for one in range(TENANTS + 1)])
    }
    none: list[str | None] = [None] * n
    return Batch(
        numbers=numbers,
        labels=labels,
        request_id=none,
        attempt_group=none,
        dedupe_key=none,
        outcome=np.full(n, OUTCOMES.index("ok")),
        usage=np.full(n, USAGES.index("provider")),
        status=np.full(n, 200),
        stream=np.ones(n, np.int64),
        limiter=np.full(n, -1),
        cache_hit=np.zeros(n, np.bool_),
        uncapped=rows.tenant % UNCAPPED == 0,
        part=np.zeros(n, np.bool_),
    )


def watched(name: str, weeks: float, rate: float, seed: int) -> tuple[Counter[str], float, float]:
    """(findings by watch, µs a request of the meter, µs a minute of the watchers) of one background."""
    generator = np.random.default_rng(seed)
    site = Site(background(name, rate), generator)
    pipeline = Pipeline(Config())
    pipeline.meters = [one for one in pipeline.meters if isinstance(one, Watches)]
    pipeline.watches = False
    totals = pipeline.totals()
    found: Counter[str] = Counter()
    seconds = {"take": 0.0, "apply": 0.0}
    requests = 0
    for begin in np.arange(EPOCH, EPOCH + weeks * WEEK, STEP):
        rows = site.rows(begin, begin + STEP)
        for part in np.array_split(np.arange(len(rows)), 24):
            batch = columns(rows.take(part), generator)
            requests += len(batch)
            start = time.process_time()
            whole = Decoded(batch, np.arange(len(batch)), [], 0, 0, 0, Counter())
            pipeline.take(Origin("log"), whole, float(batch["finished_at"][-1]))
            middle = time.process_time()
            totals.apply(pipeline.freeze())
            totals.kept(len(totals.closed))
            seconds["take"] += middle - start
            seconds["apply"] += time.process_time() - middle
        found.update(one.watch for one in found_in(totals).fresh() if one.until is None)
    return found, seconds["take"] / requests * 1e6, seconds["apply"] / (weeks * WEEK / 60) * 1e6


def main() -> None:
    """Print a line for each background."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weeks", type=float, default=1.0)
    parser.add_argument("--rate", type=float, default=8.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for name in ("mix", "rag"):
        found, request, minute = watched(name, given.weeks, given.rate, given.seed)
        told = ", ".join(f"{count} {watch}" for watch, count in sorted(found.items())) or "none"
        print(f"{name}: {told} in {given.weeks:g} weeks; {request:.2f} µs a request, {minute:.0f} µs a minute")


if __name__ == "__main__":
    main()
