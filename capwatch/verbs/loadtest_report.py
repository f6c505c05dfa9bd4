"""Grades a load test from its log, on the four points that make it worth something, and says what it found.

The points: lengths are a distribution; arrivals are an open loop (a closed one, whose requests wait for answers, is
told by what its arrivals find); the state was controlled; percentiles by phase. Then: did the queue drain, was anything
served after its client had gone, and at which rate the targets broke. Exit 1 where a point fails. A state directory or
a Prometheus tells it of the window from --since to --until, all but whether the loop was open: only a log tells that.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from capwatch.capacity import grade, outline
from capwatch.console.answer import as_json, number, percent
from capwatch.console.options import DURATION_ABOVE_0, SHARE_BETWEEN, one_value
from capwatch.errors import CapwatchError, UsageError
from capwatch.observed import Requests, given, outlines, requests, source, window
from capwatch.observed.outlines import GONE, UNJUDGED
from capwatch.record import OUTCOMES, PHASE_FIELDS
from capwatch.slo import VERDICTS

EXAMPLE = "capwatch loadtest-report --config.file capwatch.yml loadtest.jsonl"


def describe(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    source.describe(parser)
    window.describe(parser)
    parser.add_argument("--pool", metavar="NAME", help="the requests of this pool alone (all)")
    parser.add_argument("--window", metavar="TIME", default="10s", help="time over which a rate is taken (10s)")
    parser.add_argument(
        "--objective", metavar="SHARE", default="95%", help="share of the requests that has to meet the targets (95%%)"
    )
    parser.add_argument("--profile", metavar="FILE", help="workload profile that the lengths are held against")
    parser.add_argument("--json", action="store_true", help="the report for machines")


def run(arguments: argparse.Namespace) -> int:
    """Print the report."""
    seconds = one_value("--window", DURATION_ABOVE_0, arguments.window)
    objective = one_value("--objective", SHARE_BETWEEN, arguments.objective)
    since, until = window.window(arguments)
    workload = _workload(arguments.profile)
    found = given(arguments, ["logs", "state", "prometheus"], "loadtest-report needs a SOURCE")
    if found.state is not None:
        outlines.whole(since, until)
        report = outline.report(outlines.of_state(found.state, since, until, arguments.pool), objective, workload)
    elif found.prometheus is not None:
        outlines.whole(since, until)
        sums = outlines.of_server(found.prometheus, since, until, arguments.pool, seconds)
        report = outline.report(sums, objective, workload)
    else:
        test = tested(requests(found, "loadtest-report", time.time()).inside(arguments.pool, since, until))
        if not len(test.started):
            raise CapwatchError("no request tells when it came and ended, so there is nothing to grade")
        report = grade.report(test, seconds, objective, workload)
    print(as_json(report) if arguments.json else "\n".join(as_text(report)))
    points: Mapping[str, Mapping[str, str]] = report["points"]  # type: ignore[assignment]
    return int(any(point["grade"] == grade.FAIL for point in points.values()))


def tested(told: Requests) -> grade.Tested:
    """The requests that tell begin and end."""
    told = told.take(~np.isnan(told["started_at"]) & ~np.isnan(told["finished_at"]) & ~told.cache_hit)
    names = np.array(VERDICTS)
    outcomes = np.array([*OUTCOMES, ""])[told.outcome]
    engine = told.labels["engine"]
    return grade.Tested(
        started=told["started_at"],
        ended=told["finished_at"],
        prompt=told["prompt_tokens"],
        cached=told["cached_tokens"],
        output=told["output_tokens"],
        times={name: told[name] for name in (*grade.LATENCIES, *PHASE_FIELDS)},
        cost=told["prefill_cost"] + told["decode_cost"],
        good=names[told.verdict] == "good",
        judged=~np.isin(names[told.verdict], UNJUDGED),
        gone=np.isin(outcomes, GONE),
        failed=~np.isin(outcomes, ("ok", "", *GONE)),
        engines=len({engine.names[code] for code in np.unique(engine.codes).tolist()} - {None}),
    )


def _workload(path: str | None) -> Mapping[str, object] | None:
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            found = json.load(file)
    except OSError as error:
        raise UsageError(f"--profile: {path} cannot be read: {error.strerror}") from None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise UsageError(f"--profile: {path} is no JSON; give a document of `capwatch profile`")
    return found


def as_text(report: Mapping[str, Any]) -> Sequence[str]:
    """The report for people."""
    lines = [f"load test of {report['requests']:,} requests in {number(report['seconds'])} s", ""]
    for name, point in report["points"].items():
        lines.append(f"{point['grade']:8} {name.replace('_', ' ')}: {point['why']}")
        lines += [f"           {key.replace('_', ' ')}: {_flat(value)}" for key, value in point["evidence"].items()]
    queue, gone, slo = report["queue"], report["served_after_client_gone"], report["slo"]
    lines += ["", f"{report['passed']} of 4 points pass", ""]
    lines.append(f"did the queue drain: {_drained(queue)}")
    cost = "" if gone["cost_share"] is None else f", {percent(gone['cost_share'])} of the work"
    served = {True: f"yes, {gone['requests']} requests{cost}", False: "no"}.get(gone["any"], "not told")
    lines.append(f"served after its client had gone: {served}")
    lines.append(f"where the targets broke: {_broken(slo)}")
    return lines


def _drained(queue: Mapping[str, Any] | None) -> str:
    if queue is None:
        return "not known: arrivals are told only when they end"
    drained = "yes" if queue["drained"] else "no, its last requests waited longer than the first ones took"
    return (
        f"{drained} ({queue['in_flight_at_end']} in flight at the last arrival, "
        f"the last ended {number(queue['drain_s'])} s later)"
    )


def _broken(slo: Mapping[str, Any] | None) -> str:
    if slo is None:
        return "not known: no target, or no request tells its times; give `slo` in the configuration"
    share = percent(slo["objective"])
    if slo["broken_at_rps"] is None:
        best, span = number(slo["kept_at_rps"]), number(slo["window_s"])
        return f"nowhere up to {best} requests/s ({share} of the requests of every {span} s met them)"
    kept = "nowhere" if slo["kept_at_rps"] is None else f"up to {number(slo['kept_at_rps'])} requests/s"
    return f"at {number(slo['broken_at_rps'])} requests/s; kept {kept} (by {share} of the requests)"


def _flat(value: object) -> str:
    match value:
        case Mapping():
            return ", ".join(f"{key} {_flat(one)}" for key, one in value.items())
        case bool() | str():
            return str(value)
        case int() | float() | None:
            return number(value)
        case _:
            return str(value)
