"""The rows of capacity texts B (slots and queues) and C (bursts), and the additions P and X."""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np

from capwatch.capacity import crossover, kv, lengths, little, quota, sizing, slots, spike, work
from capwatch.capacity.bursts import bursts, distorted, retry_amplification
from capwatch.capacity.queueing import erlang_c, late_share, mean_wait, single_server_wait, variability

SLOT = slots.slot_time(0.25, 300, 0.040)
FLEET = slots.Demand(40, 32, SLOT, 0.5, 0.01)
SUMMARY = slots.slot_time(8000 * 0.25 / 1500, 200, 0.040)
BLEND = work.mean((0.7, 0.3), (SLOT, SUMMARY))
FULL = slots.slot_rate(32, SLOT)
ISOLATED, POOLED, NAIVE = slots.isolated(FLEET), slots.pooled(FLEET), slots.naive(FLEET)
EACH = 40 / POOLED
ADDER = slots.burst_adder(40, POOLED, 0.5 / 60, 480)
HOUR = np.full(3600, 40.0)
HOUR[600:690] = 400
BURST = bursts(HOUR)
assert BURST is not None
P99 = lengths.quantile(1100, lengths.sigma(1500, 1100) or math.nan, 0.99)
OWNED = crossover.owned_per_million(12, 784)


def late(rate: float) -> float:
    """Late share of one replica in per cent."""
    return 100 * late_share(32, rate, SLOT, 0.5)


def within(edges: list[float], median: float, sigma: float) -> float:
    """The p99 of a lognormal as a histogram with such bucket edges tells it: linear inside the bucket."""
    top = bisect_left([share(edge, median, sigma) for edge in edges], 0.99)
    low, high = edges[top - 1], edges[top]
    below, upto = share(low, median, sigma), share(high, median, sigma)
    return low + (high - low) * (0.99 - below) / (upto - below)


def share(value: float, median: float, sigma: float) -> float:
    """The share of a lognormal up to a value."""
    return (1 + math.erf(math.log(value / median) / sigma / math.sqrt(2))) / 2


SIGMA = lengths.sigma(1500, 1100) or math.nan
DECADES = [digit * 10.0**power for power in range(6) for digit in (1, 2, 5)]
QUARTERS = [4.0**power for power in range(11)]

ROWS: dict[tuple[str, str], object] = {
    ("B03", "service time"): SLOT,
    ("B04", "slot capacity, req/s"): FULL,
    ("B04", "output tokens/s"): FULL * 300,
    ("B04", "32 streams x 25 tok/s"): 32 / 0.040,
    ("B05", "in flight at 40/s"): little.in_flight(40, SLOT),
    ("B05", "replicas' worth"): slots.floor(40, 32, SLOT),
    ("B06", "prefill of 8,000 tokens at the measured rate"): work.prefill(8000.0, 0.0, 6000.0),
    ("B06", "T of summaries"): SUMMARY,
    ("B06", "blended T (text: 11.38)"): BLEND,
    ("B06", "blended capacity"): slots.slot_rate(32, BLEND),
    ("B07", "erlang_c two routes agree (512, 490)"): erlang_c(512, 490),
    ("B08", "wait budget: 1 s TTFT - 0.25 s prefill leaves 0.75; the text budgets 0.5"): 1 - 0.25,
    ("B09", "max_qps(32, 12.25, 0.5, 0.01)"): slots.usable_rate(FLEET),
    ("B09", "idle slots %"): 100 * (1 - slots.usable_rate(FLEET) / FULL),
    ("B10", "late share multiplies by 'four', 77% -> 88%"): late(0.88 * FULL) / late(0.77 * FULL),
    **{("B10", f"derived: late share at {rho}% util, %"): late(rho / 100 * FULL) for rho in (65, 77, 88)},
    **{("B10", f"derived: late share at {rate} req/s, %"): late(rate) for rate in (1.5, 1.7, 2.0, 2.3, 2.5)},
    ("B11", "derived: Allen-Cunneen factor, exponential both"): variability(1, 1),
    ("B11", "derived: Ca2 = 4, Cs2 = 1 -> factor"): variability(4, 1),
    ("B11", "derived: factor scales the mean wait (not P(wait))"): mean_wait(544, 40, SLOT, variability(4, 1))
    / mean_wait(544, 40, SLOT),
    ("B12", "mean-based replicas"): NAIVE,
    ("B12", "its utilisation %"): 100 * slots.floor(40, 32, SLOT) / NAIVE,
    ("B12", "its late share %"): 100 * FLEET.late_at(NAIVE),
    ("B13", "isolated queues"): ISOLATED,
    ("B14", "replicas_pooled(40, 32, 12.25, 0.5, 0.01)"): POOLED,
    ("B14", "utilisation %"): 100 * slots.floor(40, 32, SLOT) / POOLED,
    ("B14", "late share %"): 100 * FLEET.late_at(POOLED),
    ("B15", "saved"): ISOLATED - POOLED,
    ("B15", "share saved ('about 30%')"): 100 * (ISOLATED - POOLED) / ISOLATED,
    ("B16", "headroom QPS"): 0.5 / 60 * 480,
    ("B16", "per replica at the pooled point"): EACH,
    ("B16", "headroom replicas"): ADDER,
    ("B17", "plan"): POOLED + ADDER + 1,
    ("B18", "tokens/s"): quota.per_minute(40, 1800) / 60,
    ("B18", "million tokens/minute"): quota.per_minute(40, 1800) / 1e6,
    ("B18", "tokens per request"): quota.per_minute(40, 1800) / 60 / 40,
    ("B21", "4,000-token response holds a slot, minutes ('minutes')"): slots.slot_time(0, 4000, 0.040) / 60,
    ("C02", "20 s at 10x inside 300 s"): distorted(10, 20, 300),
    ("C03", "derived: p99/median of one-second counts (90 s of 3,600 at 10x)"): BURST.p99_to_usual,
    ("C03", "derived: longest stretch above 2x median, s"): BURST.longest_s,
    ("C03", "derived: fastest ramp, req/s per s"): BURST.max_ramp,
    ("C03", "derived: the same hour as 5-minute buckets, max/median"): HOUR.reshape(12, 300).sum(axis=1).max()
    / np.median(HOUR.reshape(12, 300).sum(axis=1)),
    ("C05", "in flight 40/s x 3 s"): little.in_flight(40, 3),
    ("C05", "replicas of 30 seats"): little.seats(120, 30),
    ("C05", "seats at 5x"): little.in_flight(5 * 40, 3),
    ("C06", "M/M/1 wait factor at 90% ('nine')"): single_server_wait(0.9),
    ("C06", "derived: at 50%, 65%, 80%"): single_server_wait(0.5),
    ("C06", "derived: wait factor at 0.65"): single_server_wait(0.65),
    ("C06", "derived: wait factor at 0.80"): single_server_wait(0.8),
    ("C06", "derived: wait factor at 0.95"): single_server_wait(0.95),
    ("C08", "weights GB"): 70e9 * 2 / 1e9,
    ("C08", "step-rate ceiling, 3350/70"): kv.steps_per_second(3.35e12, 2, 140e9),
    ("C09", "KV bytes per token"): kv.bytes_per_token(80, 8, 128, 2),
    ("C09", "KiB per token"): kv.bytes_per_token(80, 8, 128, 2) / 1024,
    ("C10", "4,000 tokens of context, GB"): 4000 * kv.bytes_per_token(80, 8, 128, 2) / 1e9,
    ("C10", "the same with 4,096 tokens in GiB"): 4096 * kv.bytes_per_token(80, 8, 128, 2) / 2**30,
    ("C10", "memory left, GB"): kv.pool_bytes(2, 80, 140),
    ("C10", "sequences at 4,000 tokens ('about sixteen')"): kv.pool_tokens(20e9, 327_680) / 4000,
    ("C10", "derived: with the other capacity text's 6 GB/GPU reserve"): kv.sequences(8e9, 4000, 327_680),
    ("C11", "32k on an endpoint sized for 4k: fleet factor ('quadruple')"): (20e9 / 327_680 / 4000)
    / (20e9 / 327_680 / 32_000),
    ("C13", "weights at 1 GB/s, s"): kv.load_seconds(140e9, 1e9),
    ("C13", "weights at 2 GB/s, s"): kv.load_seconds(140e9, 2e9),
    ("C14", "a 6 min replica vs a 20 s ramp: replicas contributed"): int(spike.in_time(360, 20)),
    ("C16", "each client retries three times: offered load factor ('triples')"): retry_amplification(4, 1),
    ("C27", "headroom at 65%: burst absorbed ('roughly 1.5x')"): sizing.absorbed(0.65),
    ("C27", "derived: at 55%"): sizing.absorbed(0.55),
    ("C25", "derived: 12 USD/h, 784 tok/s -> USD per M output tokens"): OWNED,
    ("C25", "derived: utilisation at which 3 USD/M rented costs the same is above 1"): crossover.break_even(OWNED, 3),
    ("C25", "derived: break-even utilisation at 8 USD/M"): crossover.break_even(OWNED, 8),
    ("P01", "derived: p99 6,873 read from 1-2-5 buckets"): within(DECADES, 1100, SIGMA),
    ("P01", "derived: p99 6,873 read from x4 buckets"): within(QUARTERS, 1100, SIGMA),
    ("X01", "KV per token: capacity text A assumes 0.25 MiB, capacity text C derives 320 KiB"): kv.bytes_per_token(
        80, 8, 128, 2
    )
    / 2**20,
}
