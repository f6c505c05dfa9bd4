"""Measures what one replica can do, from what it did: prefill and decode rates, slots and their errors.

SOURCE is a log whose requests tell tokens and times (TTFT is enough); waiting and interference are accounted for, so
ordinary traffic will do, if it varies. A state directory or a Prometheus tells only means of five minutes, and the
rates to a fifth. --results reads runs of a load generator against one replica instead: vllm bench
serve or sweep, guidellm (benchmarks.json), AIPerf (profile_export.jsonl). What is written is a calibration file, to be
named by `pools[].calibration`. Needs the extra `review` (pip install 'capwatch[review]').
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from capwatch import sourcing
from capwatch.calibrate import history, means, results
from capwatch.calibrate.document import About, Measured, as_yaml, document
from capwatch.calibrate.extra import regression
from capwatch.calibrate.fit import fit, fit_points
from capwatch.calibrate.memory import Memory, memory
from capwatch.calibrate.served import served
from capwatch.config.schema import DEFAULT_POOL, Config
from capwatch.console.answer import as_json, number
from capwatch.console.options import DURATION_ABOVE_0, SHARE_BETWEEN, one_value
from capwatch.errors import CapwatchError, UsageError
from capwatch.observed import Given, Requests, given, requests, source, window

EXAMPLE = "capwatch calibrate --config.file capwatch.yml loadtest.jsonl --tpot 60ms --out chat-70b.calibration.yml"


def describe(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    source.describe(parser)
    window.describe(parser)
    parser.add_argument("--results", metavar="FILE", nargs="+", help="instead of SOURCE: results of a load generator")
    parser.add_argument("--pool", metavar="NAME", help="the pool to calibrate, where several have requests")
    parser.add_argument("--tpot", metavar="TIME", help="time per output token that slots have to keep (that of `slo`)")
    parser.add_argument(
        "--share", metavar="SHARE", default="95%", help="share of the requests that has to keep it (95%%)"
    )
    parser.add_argument("--engine", metavar="NAME", help="what runs, to be written down")
    parser.add_argument("--engine-version", metavar="TEXT", help="its version")
    parser.add_argument("--model", metavar="NAME", help="the model (that of the requests)")
    parser.add_argument("--flags", metavar="TEXT", help="how it was started")
    parser.add_argument("--out", metavar="FILE", help="write the calibration file here, and a summary on stdout")
    parser.add_argument("--json", action="store_true", help="the calibration as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print the calibration file, or write it."""
    regression()
    share = one_value("--share", SHARE_BETWEEN, arguments.share)
    tpot = None if arguments.tpot is None else one_value("--tpot", DURATION_ABOVE_0, arguments.tpot)
    since, until = window.window(arguments)
    if arguments.results:
        measured = _of_results(arguments, tpot, share)
    else:
        found = given(arguments, ["logs", "state", "prometheus"], "calibrate needs a SOURCE")
        if found.kind == "logs":
            told = requests(found, "calibrate", time.time()).inside(None, since, until)
            measured = _of_requests(found, told, arguments, tpot, share)
        else:
            measured = _of_means(found, arguments, since, until)
    made = document(measured)
    if arguments.out:
        try:
            with open(arguments.out, "w", encoding="utf-8") as file:
                file.write(as_yaml(made))
        except OSError as error:
            raise UsageError(f"--out: {arguments.out} cannot be written: {error.strerror}") from None
        print("\n".join(summary(made)))
    else:
        print(as_json(made) if arguments.json else as_yaml(made), end="" if not arguments.json else "\n")
    return 0


def _of_results(arguments: argparse.Namespace, tpot: float | None, share: float) -> Measured:
    """From the results of a load generator."""
    if arguments.logs or arguments.config or arguments.state_dir or arguments.prometheus:
        raise UsageError("--results: given beside a SOURCE; give one of the two")
    told = results.read(arguments.results)
    about = _about(arguments, arguments.pool, None, told.model, told.tool)
    target = None if tpot is None else (tpot, share)
    at = told.measured_at
    if at is None:
        raise CapwatchError(f"{arguments.results[0]}: tells no date, so that the calibration would have no age")
    if len(told.observed.first):
        seen = told.observed
        notes = [f"{len(told.points)} runs without single requests are left out"] if told.points else []
        return Measured(about, fit(seen), at, target, seen.computed, seen.output, observed=seen, notes=notes)
    found = fit_points(told.points)
    prompt, output = (np.array([getattr(point, name) for point in told.points]) for name in ("prompt", "output"))
    notes = ["from the means of runs: intervals and range are rough; --save-detailed tells every request"]
    return Measured(about, found, at, None, prompt, output, notes=notes)


def _of_requests(
    found: Given, told: Requests, arguments: argparse.Namespace, tpot: float | None, share: float
) -> Measured:
    """From the requests of a log."""
    assert found.config is not None  # noqa: S101 - that is what logs come with
    name = _pool(told, arguments.pool)
    told = told.take(told.where("pool", name))
    pool = next((one for one in found.config.pools if one.name == name), None)
    notes: list[str] = []
    seen, kept = served(told, pool, notes)
    formats = {log.source.format for log in found.logs}
    models = kept.labels["model"]
    model = models.names[int(np.bincount(models.codes).argmax())]
    engine = formats.pop() if len(formats) == 1 and formats <= sourcing.engines() else None
    about = _about(arguments, name, engine, None if model == "unknown" else model, "requests")
    target = tpot if tpot is not None else _target(found.config)
    both = ~np.isnan(kept["cached_tokens"])
    prompts = float(kept["prompt_tokens"][both].sum())
    return Measured(
        about,
        fit(seen),
        float(kept["finished_at"].max()),
        None if target is None else (target, share),
        kept["prompt_tokens"],
        kept["output_tokens"],
        hit_rate=float(kept["cached_tokens"][both].sum()) / prompts if prompts else None,
        observed=seen,
        memory=memory(log.path for log in found.logs),
        notes=notes,
    )


def _of_means(found: Given, arguments: argparse.Namespace, since: float, until: float) -> Measured:
    """From the five minutes of a history, or of what a Prometheus scraped."""
    if found.state is not None:
        told = history.of_state(found.state, since, until, arguments.pool)
    else:
        assert found.prometheus is not None  # noqa: S101 - the third kind
        told = history.of_server(found.prometheus, since, until, arguments.pool, time.time())
    if arguments.tpot is not None:
        raise UsageError("--tpot: means tell no share of requests that keeps it; calibrate slots from a log")
    where = told.about
    notes = [
        "from means of five minutes: rates are good to a fifth; a log of single requests tells them to 3 %",
        "range: of means of five minutes; single requests are longer and shorter",
        *where.notes,
    ]
    return Measured(
        _about(arguments, where.pool, None, None, where.source),
        means.fit(told.windows),
        where.until,
        None,
        *told.lengths,
        hit_rate=told.hit_rate,
        memory=Memory(where.kv_tokens, None) if where.kv_tokens else None,
        notes=notes,
    )


def _about(
    arguments: argparse.Namespace, pool: str | None, engine: str | None, model: str | None, source: str
) -> About:
    """What a calibration is of: as the options say, else as it was told."""
    return About(
        pool=pool,
        engine=arguments.engine or engine,
        engine_version=arguments.engine_version,
        model=arguments.model or model,
        flags=arguments.flags,
        source=source,
    )


def _pool(told: Requests, asked: str | None) -> str:
    """The pool to calibrate."""
    column = told.labels["pool"]
    there = sorted({str(column.names[code]) for code in np.unique(column.codes).tolist()})
    if asked is not None and asked not in there:
        raise UsageError(f"--pool: no request of {asked!r}; there are {', '.join(there) or 'none'}")
    if asked is None and len(there) > 1:
        raise UsageError(f"--pool: several have requests; give one of {', '.join(there)}")
    return asked or (there[0] if there else DEFAULT_POOL)


def _target(config: Config) -> float | None:
    """The one time per output token that is configured; None where there is none, or several."""
    targets = {slo.tpot for slo in config.slo if slo.tpot is not None}
    return targets.pop() if len(targets) == 1 else None


def summary(made: Mapping[str, Any]) -> list[str]:
    """The calibration for people."""
    rates, slots, error = made["rates"], made["slots"], made["busy_time_error_ratio"]
    lines = []
    for name, rate in rates.items():
        at = f", with {number(rate['at_occupancy'])} at once" if "at_occupancy" in rate else ""
        lines.append(
            f"{name.replace('_', ' ')}: {number(rate['value'])} ({number(rate['low'])} to {number(rate['high'])}{at})"
        )
    if slots and slots["value"]:
        least = "at least " if slots["at_least"] else ""
        lines.append(f"slots: {least}{slots['value']} keep {number(slots['tpot_seconds'])} s per output token")
    if error is not None:
        lines.append(f"busy time, each half predicted by the other: {error:+.1%}")
    return [*lines, *(f"note: {note}" for note in made["notes"])]
