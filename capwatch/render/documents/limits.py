"""Limits for a gateway: budgets of tenants in replica-seconds and tokens a minute, requests in flight, output caps.

They are what was taken, so that nothing that was seen is refused: a begin, to be tightened. `budgets:` is also the form
of capwatch's own configuration, which counts what they would refuse before anything is refused.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator

import numpy as np

from capwatch.console.answer import percent
from capwatch.console.options import COUNT, one_value
from capwatch.render import sourced
from capwatch.render.observed import STEP_S, Observed
from capwatch.render.page import number, short, text, unknown

EXAMPLE = "capwatch render limits --config.file capwatch.yml access.jsonl"


def describe(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    sourced.describe(parser)
    parser.add_argument(
        "--tenants", metavar="N", default="20", help="tenants with limits of their own, dearest first (20)"
    )


def render(arguments: argparse.Namespace, now: float) -> str:
    """The document."""
    most = int(one_value("--tenants", COUNT, arguments.tenants))
    return "\n".join(_lines(sourced.sourced(arguments, now), most))


def _lines(seen: Observed, most: int) -> Iterator[str]:
    yield f"# Limits for pool {text(seen.pool)}, written by capwatch."
    yield f"# {seen.told}"
    yield from _budgets(seen, most)
    yield from _tokens(seen, most)
    yield from _inflight(seen)
    yield from _outputs(seen)


def _budgets(seen: Observed, most: int) -> Iterator[str]:
    rates = {name: float(np.nanmax(column)) for name, column in seen.tenants.items()}
    rates = {name: rate for name, rate in rates.items() if rate > 0}
    share = float(seen.setting("target_utilisation"))
    whole = sum(rates.values())
    yield "# Replica-seconds that a tenant may spend in a second, and at once: its own busiest five minutes;"
    room = "" if seen.replicas is None else f", of {short(seen.replicas * share)} that the replicas give at the target"
    yield f"# all together {short(whole)}{room}. Tenants are seldom busy at once: the sum is a choice."
    yield "budgets:"
    for name in list(rates)[:most]:
        rate, burst = _up(rates[name], 3), seen.buckets.get(name)
        told = f"busiest 5 min {short(rates[name])}, mean {short(float(np.nanmean(seen.tenants[name])))}; burst: "
        told += "5 min of it, finer is not told" if burst is None else "what it ran ahead of that"
        bucket = _up(rate * STEP_S if burst is None else burst, 3)
        yield number(text(name), f"{{rate: {short(rate)}, burst: {short(bucket)}}}", told, 2)
    rest = list(rates)[most:]
    if rest:
        yield f"# {len(rest)} more tenants took at most {short(max(rates[name] for name in rest))} each."


def _tokens(seen: Observed, most: int) -> Iterator[str]:
    yield "# Prompt and output tokens a minute, cached ones included, as quotas count them."
    if seen.tokens is None:
        yield unknown("tokens_per_minute", "tokens are not told by pool; several pools are there")
        return
    yield "tokens_per_minute:"
    for name in [name for name in seen.tenants if name in seen.tokens][:most]:
        busiest = float(np.nanmax(seen.tokens[name]))
        if busiest > 0:
            yield number(text(name), int(_up(busiest, 3)), f"busiest 5 min {busiest:.0f}", 2)


def _inflight(seen: Observed) -> Iterator[str]:
    """Slots, and sequences that fit the KV cache: the smaller of both."""
    slots, kv = seen.setting("slots"), seen.setting("kv_pool_tokens")
    tokens = _mean_tokens(seen)
    fits = None if kv is None or tokens is None else max(1, math.floor(kv / tokens))
    yield "# Requests inside a replica at a time; more wait in front of it, where they can be refused."
    if slots is None and fits is None:
        yield unknown("max_in_flight_per_replica", "set pools[].slots (`capwatch calibrate`), or give --config.file")
        return
    told = [(slots, "pools[].slots"), (fits, f"kv_pool_tokens {kv} / {tokens or 0:.0f} tokens of a mean request")]
    known = [(int(value), why) for value, why in told if value is not None]
    value, why = min(known)
    yield number("max_in_flight_per_replica", value, why)
    if seen.replicas is not None:
        yield number("max_in_flight", round(value * seen.replicas), f"{value} x {short(seen.replicas)} replicas")


def _mean_tokens(seen: Observed) -> float | None:
    """Prompt and output tokens of a mean request."""
    if seen.tokens is None:
        return None
    whole = sum(float(np.nansum(column)) for column in seen.tokens.values()) * STEP_S / 60
    return whole / seen.costed if whole > 0 else None


def _outputs(seen: Observed) -> Iterator[str]:
    yield "# Caps on the output, by route: the longest answer that was seen, so that none is cut."
    if not seen.outputs:
        yield unknown("max_output_tokens", "no request tells its output tokens")
        return
    yield "max_output_tokens:"
    for route, one in seen.outputs.items():
        told = f"the longest of {one.n:.0f} answers; 99 % have up to {one.p99:.0f}"
        if one.most > 0:
            told += f", {percent(one.p99 / one.most)} of it"
        yield number(text(route), math.ceil(one.most), told, 2)


def _up(value: float, digits: int) -> float:
    """Rounded up to some digits: a limit is not below what was seen."""
    if value <= 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return math.ceil(value / step - 1e-9) * step
