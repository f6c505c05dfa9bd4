"""The rows of capacity text A: scaling a serving fleet."""

from __future__ import annotations

import math

import numpy as np

from capwatch.capacity import kv, lengths, little, quota, sizing, spike, work
from capwatch.capacity.budget import takes
from capwatch.capacity.chain import capacity
from capwatch.capacity.effects import Cells, effects
from capwatch.capacity.queueing import (
    backlog_wait,
    erlang_c,
    mean_wait,
    single_server_wait,
    variability,
)
from capwatch.capacity.regions import regions
from capwatch.capacity.simulate import Row
from tests.capacity.premises import AFTER, BEFORE, COSTS, DECODE, LENGTHS, PREFILL, simulated

POLICY, ORDER, LONG = LENGTHS.values()
PROMPTS, OUTPUTS = zip(*LENGTHS.values(), strict=True)
C0, C1 = work.mean(BEFORE, COSTS), work.mean(AFTER, COSTS)
SIZE = sizing.promises(800, 100, 0.7, 1.5, 3)
VISITS = {
    "gateway": little.Visit(0.1),
    "retrieval": little.Visit(0.4),
    "tool": little.Visit(2, 0.15),
    "model": little.Visit(4.2),
}
PHASES = little.by_phase(20, VISITS)
SPIKE = spike.spike(20, 12, 170, 29, 10)
STANDING = spike.spike(20, 18, 170, 29)
REGIONS = regions(20, 1, 0.7, {"eu": 0.3, "us": 0.7, "ap": 0.03}, 1)
SCALED = regions(20, 1, 0.7, {"eu": 0.3 * 0.97, "us": 0.7 * 0.97}, 0)
PROMPT_SIGMA, OUTPUT_SIGMA = lengths.sigma(1500, 1100), lengths.sigma(100, 70)
DEEP = {depth: work.cost(prompt, 100.0, PREFILL, DECODE) for depth, prompt in ((4, 1500.0), (8, 2700.0))}
POOL = kv.pool_tokens(kv.pool_bytes(2, 80e9, 140e9, 6e9), 2**18)
FLEET = {rate: simulated(BEFORE, 12, rate) for rate in (8.0, 10.5, 11.5, 12.5)}
WORKERS = {n: simulated(BEFORE, 12, n, closed=True) for n in (12, 24)}
DRIFTED, IDLE = simulated(AFTER, 12, 8.0), simulated(AFTER, 100, 8.0)


def cells(shares: tuple[float, ...]) -> Cells:
    """The three classes of the text."""
    return Cells(np.array(shares), np.array(PROMPTS), np.zeros(3), np.array(OUTPUTS))


MIX = effects(cells(BEFORE), cells(AFTER), PREFILL, DECODE)


def queued(shares: tuple[float, ...]) -> float:
    """Allen-Cunneen's mean wait of a mix at the rate that the simulator drew."""
    cost, cv2 = work.mean(shares, COSTS), work.spread(shares, COSTS)
    rate = FLEET[8.0].arrival_rate
    assert cv2 is not None
    assert rate is not None
    return mean_wait(12, rate, cost, variability(1, cv2))


def classes(row: Row, name: str) -> float:
    """The p95 of a class."""
    figures = row.classes[name]
    assert figures is not None
    return figures.p95


def known(value: float | None) -> float:
    """A value that is there."""
    assert value is not None
    return value


def bucket(count: int) -> tuple[list[bool], float]:
    """Decisions and level of the text's bucket after some of its takes."""
    decisions, left = takes(2, 6, [(0, 4.75), (0, 4.75), (2, 4.75)][:count])
    return decisions, left.level


ROWS: dict[tuple[str, str], object] = {
    ("A01", "in flight, 20/s x 5 s"): little.in_flight(20, 5),
    ("A02", "demand tokens/s, 8 x 100"): quota.per_minute(8, 100) / 60,
    ("A02", "usable tokens/s per replica"): 100 * 0.7,
    ("A02", "replicas, expected load"): sizing.needed(800, 100, 0.7),
    ("A05", "policy prefill s"): work.prefill(POLICY[0], 0.0, PREFILL),
    ("A05", "policy decode s"): work.decode(POLICY[1], DECODE),
    ("A05", "policy replica-seconds"): COSTS[0],
    ("A05", "order prefill s"): work.prefill(ORDER[0], 0.0, PREFILL),
    ("A05", "order decode s"): work.decode(ORDER[1], DECODE),
    ("A05", "order replica-seconds"): COSTS[1],
    ("A05", "long prefill s"): work.prefill(LONG[0], 0.0, PREFILL),
    ("A05", "long decode s"): work.decode(LONG[1], DECODE),
    ("A05", "long replica-seconds"): COSTS[2],
    ("A06", "mean cost, 85/14/1"): C0,
    ("A06", "req/s per replica at 100% busy"): work.capacity(1, C0),
    ("A06", "req/s, 12 replicas"): work.capacity(12, C0),
    ("A06", "utilisation % at 8/s"): 100 * work.utilisation(8, C0, 12),
    ("A07", "mean cost, 80/12/8"): C1,
    ("A07", "work per request up, %"): 100 * (C1 / C0 - 1),
    ("A07", "utilisation % after"): 100 * work.utilisation(8, C1, 12),
    ("A07", "derived: mix effect, policy"): float(MIX.mix[0]),
    ("A07", "derived: mix effect, order"): float(MIX.mix[1]),
    ("A07", "derived: mix effect, long"): float(MIX.mix[2]),
    ("A07", "derived: effects sum to the change"): float(MIX.total.sum()),
    ("A07", "derived: prefill part of the mean cost, before"): work.mean(BEFORE, PROMPTS) / PREFILL,
    ("A07", "derived: decode part of the mean cost, before"): work.mean(BEFORE, OUTPUTS) / DECODE,
    ("A07", "derived: prefill part, after"): work.mean(AFTER, PROMPTS) / PREFILL,
    ("A07", "derived: decode part, after"): work.mean(AFTER, OUTPUTS) / DECODE,
    ("A07", "derived: prompt tokens/s before"): 8 * work.mean(BEFORE, PROMPTS),
    ("A07", "derived: prompt tokens/s after"): 8 * work.mean(AFTER, PROMPTS),
    ("A07", "derived: output tokens/s before"): 8 * work.mean(BEFORE, OUTPUTS),
    ("A07", "derived: output tokens/s after"): 8 * work.mean(AFTER, OUTPUTS),
    ("A08", "simulated p95 before"): FLEET[8.0].all.p95,
    ("A08", "simulated p95 after drift"): DRIFTED.all.p95,
    ("A08", "derived: after-drift pooled p95 with 100 replicas (no queue at all)"): IDLE.all.p95,
    ("A08", "derived: mean wait before, s"): FLEET[8.0].all.mean_wait,
    ("A08", "derived: mean wait after, s"): DRIFTED.all.mean_wait,
    ("A08", "derived: p95 of policy questions before"): classes(FLEET[8.0], "policy"),
    ("A08", "derived: p95 of policy questions after"): classes(DRIFTED, "policy"),
    ("A08", "derived: p95 of long summaries after"): classes(DRIFTED, "long"),
    ("A09", "derived: mean cost at blend 0.5 = average of both"): work.mean(work.blend(BEFORE, AFTER, 0.5), COSTS),
    ("A11", "prompt sigma"): PROMPT_SIGMA,
    ("A11", "prompt p95 ('about 4,000')"): lengths.quantile(1100, known(PROMPT_SIGMA), 0.95),
    ("A11", "prompt p99 ('about 6,900')"): lengths.quantile(1100, known(PROMPT_SIGMA), 0.99),
    ("A11", "output sigma"): OUTPUT_SIGMA,
    ("A11", "output p95 ('near 280')"): lengths.quantile(70, known(OUTPUT_SIGMA), 0.95),
    ("A11", "output p99 ('near 500')"): lengths.quantile(70, known(OUTPUT_SIGMA), 0.99),
    ("A12", "profile mean prompt vs the class table"): work.mean(BEFORE, PROMPTS),
    ("A12", "profile mean output vs the class table"): work.mean(BEFORE, OUTPUTS),
    ("A12", "derived: cost of the profile means"): DEEP[4],
    ("A12", "regions sum to 1"): math.fsum((0.3, 0.7)),
    ("A12", "classes sum to 1"): math.fsum(BEFORE),
    ("A13", "derived: 35% hit on prefill only, cost"): work.cost(1500.0, 100.0, PREFILL, DECODE, 525.0),
    ("A13", "derived: reduction % (not 35)"): 100 * (1 - work.cost(1500.0, 100.0, PREFILL, DECODE, 525.0) / DEEP[4]),
    ("A14", "L at W = 8 s"): little.in_flight(20, 8),
    ("A14", "in-flight growth %"): 100 * (little.in_flight(20, 8) / little.in_flight(20, 5) - 1),
    ("A15", "tool stage mean, 2 s x 15%"): little.residence([VISITS["tool"]]),
    ("A15", "stages sum to 5 s"): little.residence(list(VISITS.values())),
    ("A15", "in flight at gateway"): PHASES["gateway"],
    ("A15", "in flight at retrieval"): PHASES["retrieval"],
    ("A15", "in flight at tool"): PHASES["tool"],
    ("A15", "in flight at model"): PHASES["model"],
    ("A15", "stage populations sum"): sum(PHASES.values()),
    ("A17", "sequences per replica"): PHASES["model"] / 12,
    ("A17", "KV GB for 7 x 400 MB"): kv.demand_tokens(7, 0.4),
    ("A20", "tokens per minute at 8/s"): quota.per_minute(8, 1600),
    ("A20", "tokens per minute at 20/s"): quota.per_minute(20, 1600),
    ("A21", "weights GB of 70e9 x 2 B"): 70e9 * 2 / 1e9,
    ("A21", "KV GB per GPU, TP2"): kv.pool_bytes(2, 80, 140, 6) / 2,
    ("A21", "KV GB per replica, TP2"): kv.pool_bytes(2, 80, 140, 6),
    ("A21", "KV GB per GPU, TP4"): kv.pool_bytes(4, 80, 140, 6) / 4,
    ("A21", "KV GB per replica, TP4"): kv.pool_bytes(4, 80, 140, 6),
    ("A21", "'nearly 20 times'"): kv.pool_bytes(4, 80, 140, 6) / kv.pool_bytes(2, 80, 140, 6),
    ("A21", "tokens in 8 GB at 0.25 MiB ('about 30,500')"): POOL,
    ("A21", "tokens in 156 GB ('about 595,000')"): kv.pool_tokens(kv.pool_bytes(4, 80e9, 140e9, 6e9), 2**18),
    ("A23", "800/70"): 800 / 70,
    ("A23", "1200/70"): 1200 / 70,
    ("A23", "1200/(70 x 2/3)"): 1200 / (100 * sizing.zone_target(0.7, 3)),
    ("A23", "zonal need before rounding to zones"): sizing.needed(1200, 100, sizing.zone_target(0.7, 3)),
    ("A23", "replicas base"): SIZE.base,
    ("A23", "replicas burst"): SIZE.burst,
    ("A23", "replicas zonal"): SIZE.zonal,
    ("A23", "per zone"): SIZE.per_zone,
    **{("A25", f"M/M/1 response / S at {rho:.2f}"): 1 + single_server_wait(rho) for rho in (0.5, 0.7, 0.8, 0.9, 0.95)},
    **{
        ("A26", f"M/M/12 response / S at {rho:.2f}"): 1 + mean_wait(12, 12 * rho, 1.0)
        for rho in (0.7, 0.8, 0.9, 0.95, 0.98)
    },
    ("A27", "derived: erlang_c two routes agree (c=12, a=10.8)"): erlang_c(12, 10.8),
    ("A27", "derived: Cs2 of the 85/14/1 mix"): work.spread(BEFORE, COSTS),
    ("A27", "derived: Cs2 of the 80/12/8 mix"): work.spread(AFTER, COSTS),
    ("A27", "service times 'far more variable than exponential' (Cs2 > 1) for the text's own mixes"): all(
        known(work.spread(shares, COSTS)) > 1 for shares in (BEFORE, AFTER)
    ),
    ("A27", "derived: Allen-Cunneen mean wait before vs simulated 0.024 s (within 15%)"): queued(BEFORE),
    ("A27", "derived: Allen-Cunneen mean wait after vs simulated 0.286 s (within 15%)"): queued(AFTER),
    ("A28", "long prefill blocks for s"): work.prefill(LONG[0], 0.0, PREFILL),
    ("A29", "derived: 40 queued policy, expected wait s on 12"): backlog_wait(40 * COSTS[0], 12),
    ("A29", "derived: 40 queued long, expected wait s on 12"): backlog_wait(40 * COSTS[2], 12),
    ("A31", "tool quota in requests/s"): capacity(10, visits=0.15),
    ("A31", "fleet requests/s at planning utilisation"): capacity(12, 0.7),
    ("A31", "bottleneck 'by a factor of five'"): capacity(45) / capacity(12, 0.7),
    ("A31", "29 replicas"): capacity(29, 0.7),
    ("A34", "target in flight, 70% of 5"): 0.7 * 5,
    ("A34", "12 x 8 / 3.5"): 12 * 8 / 3.5,
    ("A34", "desired replicas"): sizing.hpa(12, 8, 3.5),
    ("A34", "replicas by tokens for 20/s"): sizing.needed(2000, 100, 0.7),
    ("A36", "readiness s"): 30 + 60 + 40 + 30 + 10,
    ("A36", "backlog"): SPIKE.backlog,
    ("A36", "last waits s"): SPIKE.last_wait,
    ("A36", "drain s"): SPIKE.drain,
    ("A36", "clear by t"): SPIKE.clear_at,
    ("A37", "10 s bound in requests"): SPIKE.backlog - known(SPIKE.shed),
    ("A37", "shed"): SPIKE.shed,
    ("A38", "standing 18: backlog"): STANDING.backlog,
    ("A38", "standing 18: last waits s"): STANDING.last_wait,
    ("A41", "one pool"): REGIONS.pooled,
    ("A41", "EU"): REGIONS.regions["eu"] - 1,
    ("A41", "US"): REGIONS.regions["us"] - 1,
    ("A41", "two regions + one spare each"): REGIONS.regions["eu"] + REGIONS.regions["us"],
    ("A41", "third region req/s"): 20 * 0.03,
    ("A41", "third region utilisation %"): 100 * 20 * 0.03 / REGIONS.regions["ap"],
    ("A41", "total"): REGIONS.total,
    ("A41", "region shares sum to 100%"): math.isclose(0.3 + 0.7 + 0.03, 1),
    ("A41", "derived: EU with shares scaled"): SCALED.regions["eu"],
    ("A41", "derived: US with shares scaled"): SCALED.regions["us"],
    ("A42", "derived: 90 ms of a 1,500 ms TTFT budget, %"): 100 * 90 / 1500,
    ("A43", "TokenBudget first and second take"): bucket(2)[0] == [True, False],
    ("A43", "level after"): bucket(2)[1],
    ("A43", "level before third"): bucket(3)[1] + 4.75,
    ("A43", "third take"): bucket(3)[0][2],
    **{
        ("A46", f"open {rate} {name}"): value
        for rate, row in FLEET.items()
        for name, value in (
            ("thr column", row.arrival_rate),
            ("p50", row.all.p50),
            ("p95", row.all.p95),
            ("p99", row.all.p99),
        )
    },
    **{
        ("A46", f"closed {workers} {name}"): value
        for workers, row in WORKERS.items()
        for name, value in (
            ("thr", row.completion_rate),
            ("p50", row.all.p50),
            ("p95", row.all.p95),
            ("p99", row.all.p99),
        )
    },
    ("A46", "'throughput stops at capacity': thr column at 12.5 vs 12/0.992"): FLEET[12.5].arrival_rate,
    ("A46", "derived: completions/s at 12.5 offered"): FLEET[12.5].completion_rate,
    ("A47", "open-loop knee is between 10.5 and 11.5 (p95 more than doubles)"): FLEET[11.5].all.p95
    > 2 * FLEET[10.5].all.p95,
    ("A50", "survivors carry, of normal"): 0.7 / sizing.zone_target(0.7, 3),
    ("A50", "derived: utilisation each zone is planned at"): sizing.zone_target(0.7, 3),
    ("A55", "prompt before"): 4 * 300 + 300,
    ("A55", "prompt after"): 8 * 300 + 300,
    ("A55", "prefill before"): work.prefill(1500.0, 0.0, PREFILL),
    ("A55", "prefill after"): work.prefill(2700.0, 0.0, PREFILL),
    ("A55", "decode"): work.decode(100.0, DECODE),
    ("A55", "cost before"): DEEP[4],
    ("A55", "cost after"): DEEP[8],
    ("A55", "req/s per replica after"): work.capacity(1, DEEP[8]),
    ("A55", "utilisation before"): work.utilisation(8, DEEP[4], 12),
    ("A55", "utilisation after"): work.utilisation(8, DEEP[8], 12),
    ("A55", "lambda per replica"): 8 / 12,
    ("A55", "L before"): little.in_flight(8, 5) / 12,
    ("A55", "tokens before ('5,300')"): kv.demand_tokens(little.in_flight(8, 5) / 12, 1600),
    ("A55", "KV % before"): 100 * kv.demand_tokens(little.in_flight(8, 5) / 12, 1600) / 30_500,
    ("A55", "L after"): little.in_flight(8, 16) / 12,
    ("A55", "tokens after ('29,900')"): kv.demand_tokens(little.in_flight(8, 16) / 12, 2800),
    ("A55", "KV % after"): 100 * kv.demand_tokens(little.in_flight(8, 16) / 12, 2800) / 30_500,
    ("A55", "fleet at 70%"): 8 * DEEP[8] / 0.7,
    ("A55", "fleet at 70%, whole"): sizing.needed(8 * DEEP[8], 1, 0.7),
    ("A55", "more replicas"): sizing.needed(8 * DEEP[8], 1, 0.7) - 12,
    ("A55", "prefill work up, %"): 100 * (2700 / 1500 - 1),
    ("A56", "KV % after, counting only running sequences (128 in flight - 45 queued)"): 100
    * kv.demand_tokens((little.in_flight(8, 16) - 45) / 12, 2800)
    / 30_500,
    ("A58", "derived: exact cache h = 0.2 leaves lambda"): work.past_cache(8, 0.2),
}
