"""The workload profile: rates, bursts, lengths, classes, tenants and cost of a window, as one JSON document.

What a source does not tell is null, with the reason in `notes`. A state directory tells it from its seconds and
rollups, in whole ones; a Prometheus from the counters of capwatch, of the week before now where no window is given.
--format writes the requests of the window as a trace
for load generators instead, times and lengths and no text: mooncake (JSON lines), azure (CSV), guidellm (JSON lines,
its `kind: trace_synthetic`). `capwatch plan whatif --profile FILE` begins from a profile.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from capwatch.capacity.profile import Requests as Columns
from capwatch.capacity.profile import profile
from capwatch.console.answer import as_json
from capwatch.errors import UsageError
from capwatch.observed import Given, Requests, given, requests, rollups, scraped, source, window
from capwatch.observed.traces import FORMS, replayable

EXAMPLE = "capwatch profile --config.file capwatch.yml access.jsonl"
MOST_S = 400 * 86400
"""A window that is longer has a wrong clock in it, and a count for each of its seconds."""


def describe(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    source.describe(parser)
    window.describe(parser)
    parser.add_argument("--pool", metavar="NAME", help="the requests of this pool alone (all)")
    parser.add_argument("--format", dest="form", metavar="FORM", help=f"a trace instead: {', '.join(FORMS)}")


def run(arguments: argparse.Namespace) -> int:
    """Print the document, or the trace."""
    if arguments.form is not None and arguments.form not in FORMS:
        raise UsageError(f"--format: no form {arguments.form!r}; one of {', '.join(FORMS)}")
    since, until = window.window(arguments)
    found = given(arguments, ["logs", "state", "prometheus"], "profile needs a SOURCE")
    if found.kind != "logs" and arguments.form is not None:
        raise UsageError("--format: a history has no single requests; give --config.file F LOG...")
    if found.state is not None:
        print(as_json(rollups.profile(found.state, since, until, arguments.pool)))
        return 0
    if found.prometheus is not None:
        print(as_json(scraped.profile(found.prometheus, since, until, arguments.pool, time.time())))
        return 0
    told = requests(found, "profile", time.time()).inside(arguments.pool, since, until)
    if arguments.form is not None:
        kept = replayable(told)
        if len(kept) < len(told):
            print(f"warning: {len(told) - len(kept)} requests without a time or lengths are left out", file=sys.stderr)
        for line in FORMS[arguments.form](kept):
            print(line)
        return 0
    print(as_json(document(found, told, since, until)))
    return 0


def document(found: Given, told: Requests, since: float, until: float) -> dict[str, object]:
    """The profile of these requests."""
    arrived = told.arrived
    begin = since if np.isfinite(since) else float(np.floor(arrived.min(initial=np.inf)))
    end = until if np.isfinite(until) else float(np.floor(arrived.max(initial=-np.inf))) + 1
    if not (np.isfinite(begin) and np.isfinite(end)):
        begin, end = (since, since + 1) if np.isfinite(since) else (0.0, 1.0)
    if end - begin > MOST_S:
        raise UsageError(f"--since: the requests span {(end - begin) / 86400:.0f} days; give --since and --until")
    labels = {name: told.labels[name] for name in ("class", "tenant", "model", "route")}
    columns = Columns(
        arrived, told["prompt_tokens"], told["cached_tokens"], told["output_tokens"],
        told["prefill_cost"], told["decode_cost"], told.stream, labels,
    )  # fmt: skip
    return profile(columns, begin, end, calibration(found, told))


def calibration(found: Given, told: Requests) -> str | None:
    """What the rates behind the cost are called: files of calibrations, or `configured`; None where any is assumed."""
    assert found.config is not None  # noqa: S101 - that is what logs come with
    pools = {pool.name: pool for pool in found.config.pools}
    names = {told.labels["pool"].names[code] for code in np.unique(told.labels["pool"].codes).tolist()}
    used = [pools.get(str(name)) for name in sorted(map(str, names))]
    if not used or any(pool is None or pool.assumed for pool in used):
        return None
    return ", ".join(dict.fromkeys((pool.calibration or "configured") for pool in used if pool is not None))
