"""A load test by the observed profile: rates around one replica's capacity, mix and lengths, as an open loop.

With the keys of `vllm bench serve` and guidellm. One distribution of lengths is what these draw; the requests as they
were, times included, are `capwatch profile --format mooncake|azure|guidellm`.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from capwatch.capacity.profile import Requests as Columns
from capwatch.capacity.profile import profile
from capwatch.config.schema import Config
from capwatch.console.options import DURATION_ABOVE_0, one_value
from capwatch.errors import CapwatchError
from capwatch.observed import given, requests, rollups, scraped, window
from capwatch.observed.source import Given
from capwatch.render import sourced
from capwatch.render.observed import Observed
from capwatch.render.page import number, quoted, short, text, unknown

EXAMPLE = "capwatch render loadtest --config.file capwatch.yml access.jsonl"
LOADS: Final = (0.5, 0.7, 0.8, 0.9, 0.95, 1.05)
"""Shares of one replica's capacity: the knee lies between the fourth and the last, where no queue drains."""
MOST_RANGE: Final = 0.9
"""Of `random-range-ratio`, so that no length is nearly nothing."""
Document = Mapping[str, Any]


def describe(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    sourced.describe(parser)
    parser.add_argument("--seconds", metavar="TIME", default="10m", help="at each rate (10m)")


def render(arguments: argparse.Namespace, now: float) -> str:
    """The document."""
    seconds = one_value("--seconds", DURATION_ABOVE_0, arguments.seconds)
    found = given(arguments, ["logs", "state", "prometheus"], "render needs a SOURCE")
    seen = sourced.sourced(arguments, now)
    told = _profile(found, arguments, seen, now)
    if not told.get("prompt_tokens") or not told.get("output_tokens"):
        raise CapwatchError(
            f"{seen.source}: no request of pool {seen.pool} tells its lengths, so there is no load to make"
        )
    return "\n".join(_lines(seen, told, found.config, seconds))


def _profile(found: Given, arguments: argparse.Namespace, seen: Observed, now: float) -> Document:
    """The workload profile of the pool."""
    since, until = window.window(arguments)
    if found.state is not None:
        return rollups.profile(found.state, since, until, seen.pool)
    if found.prometheus is not None:
        return scraped.profile(found.prometheus, since, until, seen.pool, now)
    told = requests(found, "render", now).inside(seen.pool, since, until)
    columns = Columns(
        told.arrived, told["prompt_tokens"], told["cached_tokens"], told["output_tokens"],
        told["prefill_cost"], told["decode_cost"], told.stream,
        {name: told.labels[name] for name in ("class", "tenant", "model", "route")},
    )  # fmt: skip
    begin, end = float(np.floor(told.arrived.min())), float(np.floor(told.arrived.max())) + 1
    return profile(columns, begin, end)


def _lines(seen: Observed, told: Document, config: Config | None, seconds: float) -> Iterator[str]:
    capacity = 1 / seen.cost
    rates = [capacity * load for load in LOADS]
    yield f"# Load test for one replica of pool {text(seen.pool)}, written by capwatch."
    yield f"# {seen.told}"
    yield "# An open loop: arrivals do not wait for answers, so that a queue shows. Judge the log of the test with"
    yield "# `capwatch loadtest-report`; a replica's capacity is the highest rate that keeps the targets."
    yield "load:"
    yield number("cost_replica_seconds", short(seen.cost), "of a request, mean of the window", 2)
    yield number("capacity_rps", short(capacity), "1 / cost: one replica, fully busy", 2)
    shares = ", ".join(f"{load:.0%}" for load in LOADS)
    yield number("rates_rps", f"[{', '.join(map(short, rates))}]", f"{shares} of that", 2)
    yield number("seconds", short(seconds), "at each rate; --seconds", 2)
    yield from _arrivals(told["arrivals"])
    yield from _mix(told["classes"])
    yield from _vllm(told, rates, seconds, config)
    yield from _guidellm(told, rates, seconds)


def _arrivals(arrivals: Document) -> Iterator[str]:
    yield "arrivals:  # of the whole pool, as they were"
    for key, why in (
        ("mean_rps", "mean of the window"),
        ("p99_5min_rps", "99th percentile of five minutes"),
        ("p99_1s_to_median", "99th percentile / median of single seconds"),
        ("cv2", "squared coefficient of variation of the gaps; 1 is Poisson"),
    ):
        value = arrivals.get(key)
        yield unknown(key, why, 2) if value is None else number(key, short(value), why, 2)


def _mix(classes: Mapping[str, Document]) -> Iterator[str]:
    yield "mix:"
    for name, one in classes.items():
        lengths = {"prompt": one.get("mean_computed_prompt_tokens"), "output": one.get("mean_output_tokens")}
        known = {key: short(value) for key, value in lengths.items() if value is not None}
        value = ", ".join(f"{key}: {one}" for key, one in {"share": short(one["share"]), **known}.items())
        lacks = "" if len(known) == len(lengths) else "; lengths by class are not told"
        yield number(text(name), f"{{{value}}}", f"class: share of requests, mean computed prompt and output{lacks}", 2)


def _vllm(told: Document, rates: list[float], seconds: float, config: Config | None) -> Iterator[str]:
    prompt, output, hit = told["prompt_tokens"], told["output_tokens"], told.get("prefix_cache_hit_rate")
    cached = round(prompt["mean"] * hit) if hit else 0
    yield "vllm_bench_serve:  # each key is an option: --dataset-name random …; once for each rate"
    yield "  dataset-name: random"
    why = "mean prompt" + (f" {prompt['mean']:.0f} less what the prefix cache took" if cached else "")
    yield number("random-input-len", max(1, round(prompt["mean"]) - cached), why, 2)
    if hit is None:
        yield unknown("random-prefix-len", "the prefix cache is not told", 2)
    else:
        yield number("random-prefix-len", cached, f"mean prompt x hit rate {short(hit)}", 2)
    yield number("random-output-len", max(1, round(output["mean"])), "mean output", 2)
    spread = _spread(prompt)
    if spread is None:
        yield unknown("random-range-ratio", "the lengths fit no lognormal", 2)
    else:
        ratio = min(MOST_RANGE, math.sqrt(3) * spread / prompt["mean"])
        yield number(
            "random-range-ratio", short(ratio), f"a uniform range as wide as the prompts' deviation {spread:.0f}", 2
        )
    yield number("request-rate", f"[{', '.join(map(short, rates))}]", "load.rates_rps", 2)
    cv2 = told["arrivals"].get("cv2")
    if cv2:
        yield number("burstiness", short(1 / cv2), f"1 / arrivals.cv2 {short(cv2)}", 2)
    else:
        yield unknown("burstiness", "the gaps between arrivals are not told; 1 is Poisson", 2)
    counts = ", ".join(str(math.ceil(rate * seconds)) for rate in rates)
    yield number("num-prompts", f"[{counts}]", "rate x seconds", 2)
    yield number("metric-percentiles", quoted("50,95,99"), "those that capwatch shows", 2)
    yield from _goodput(config)


def _goodput(config: Config | None) -> Iterator[str]:
    """The first targets of the configuration, in ms."""
    slo = config.slo[0] if config is not None and config.slo else None
    named = () if slo is None else (("ttft", slo.ttft), ("tpot", slo.tpot), ("e2el", slo.e2e))
    told = [f"{name}:{short(value * 1000)}" for name, value in named if value is not None]
    if told:
        yield number("goodput", quoted(" ".join(told)), "slo[0], in ms", 2)
    else:
        yield unknown("goodput", "no slo; give --config.file", 2)


def _guidellm(told: Document, rates: list[float], seconds: float) -> Iterator[str]:
    yield "guidellm:  # guidellm run --backend kind=openai_http,target=URL and these; once for each rate"
    yield number("profile", "{kind: poisson, rate: [" + ", ".join(map(short, rates)) + "]}", "load.rates_rps", 2)
    yield number("constraint", f"{{kind: max_duration, seconds: {short(seconds)}}}", "load.seconds", 2)
    yield "  data:"
    yield "    kind: synthetic_text"
    for name in ("prompt_tokens", "output_tokens"):
        lengths = told[name]
        yield number(name, max(1, round(lengths["mean"])), "mean", 4)
        spread = _spread(lengths)
        if spread is None:
            yield unknown(f"{name}_stdev", "the lengths fit no lognormal", 4)
        else:
            yield number(
                f"{name}_stdev", round(spread), f"of a lognormal with sigma {short(lengths['lognormal_sigma'])}", 4
            )
        most, why = (lengths["max"], "the longest") if lengths["max"] else (lengths["p99"], "99th percentile")
        yield number(f"{name}_max", math.ceil(most), why, 4)


def _spread(lengths: Document) -> float | None:
    """Standard deviation of the lognormal with this mean and sigma."""
    sigma = lengths.get("lognormal_sigma")
    return None if not sigma else float(lengths["mean"]) * math.sqrt(math.expm1(sigma**2))
