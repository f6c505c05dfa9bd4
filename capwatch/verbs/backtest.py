"""What the drift detector would have done: alarms over a past, false alarms a week, delays of drifts put in by hand.

Learns from the trace up to --learn-until, then watches the rest as the daemon would: a JSON line on stdout for each
drift that is raised or has gone, and a summary on stderr unless --json is given. The trace is a CSV (or .csv.gz) with a
header and the columns t (s since the epoch, UTC), tenant, route, class, model, prompt_tokens, cached_tokens,
output_tokens, outcome, attempt_group, duration_s and ttft_s, in order of t; all but t may be missing.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

from capwatch.backtest.inject import KINDS, Delays, delays, quantile
from capwatch.backtest.past import Past
from capwatch.backtest.trace import Trace
from capwatch.config.units import number
from capwatch.console.progress import Progress
from capwatch.dialect.value import REFUSED
from capwatch.dialect.value import time as read_time
from capwatch.drift.event import Event
from capwatch.drift.model import Settings
from capwatch.drift.rows import Rows
from capwatch.drift.sentence import sentence
from capwatch.drift.ticks import DAY, TICK_S
from capwatch.errors import UsageError

EXAMPLE = (
    "capwatch backtest --trace requests.csv --learn-until 2026-01-19T00:00:00Z --prefill-tps 4000 --decode-tps 160"
)
POOL = "default"


def describe(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("--trace", metavar="FILE", required=True, help="the requests, .csv or .csv.gz")
    parser.add_argument("--learn-until", metavar="TIME", required=True, help="RFC 3339 or seconds since the epoch")
    parser.add_argument("--prefill-tps", metavar="RATE", required=True, help="prompt tokens/s that a replica computes")
    parser.add_argument("--decode-tps", metavar="RATE", required=True, help="tokens/s that a replica puts out")
    parser.add_argument(
        "--false-alarms-per-month", metavar="N", default="1", help="how many may be raised in four weeks (1)"
    )
    parser.add_argument(
        "--minimum-effect", metavar="SHARE", default="0.04", help="smaller changes are left alone (0.04)"
    )
    kinds = "; ".join(f"{kind}: {words}" for kind, words in KINDS.items())
    parser.add_argument(
        "--inject",
        metavar="KIND=SIZE",
        action="append",
        default=[],
        help=f"also put a drift in by hand and tell its delays, such as output=40%%; {kinds}",
    )
    parser.add_argument("--trials", metavar="N", default="20", help="onsets of each such drift (20)")
    parser.add_argument("--json", action="store_true", help="the events alone, for machines")


def run(arguments: argparse.Namespace) -> int:
    """Watch the past."""
    gc.freeze()
    gc.set_threshold(100_000)
    settings = Settings(
        prefill_rate=_positive("--prefill-tps", arguments.prefill_tps),
        decode_rate=_positive("--decode-tps", arguments.decode_tps),
        false_alarms_per_month=_positive("--false-alarms-per-month", arguments.false_alarms_per_month),
        minimum_effect=_positive("--minimum-effect", arguments.minimum_effect),
    )
    drifts = [_drift(text) for text in arguments.inject]
    trials = int(_positive("--trials", arguments.trials))
    trace = Trace(arguments.trace, settings.prefill_rate)
    past = Past(settings, trace.name, _time(arguments.learn_until), keeps=bool(drifts))
    events = []
    for event in past.events(_shown(trace)):
        print(json.dumps(event.line(POOL) | {"text": sentence(event)}), flush=True)
        if not arguments.json:
            print(f"{_moment(event.at)}  {sentence(event)}", file=sys.stderr)
        events.append(event)
    trace.seen.resent = past.resent
    if not arguments.json:
        print("\n".join(_summary(trace, past, events)), file=sys.stderr)
    if past.model is not None and len(past.watched):
        for drift in drifts:
            found = delays(drift, past.watched, past.model, settings, trace.name, trials=trials)
            print(_told(found, as_json=arguments.json), file=sys.stdout if arguments.json else sys.stderr, flush=True)
    return 0


def _told(found: Delays, *, as_json: bool) -> str:
    """Delays of a drift that was put in."""
    median, worst = (quantile(found, q) for q in (0.5, 0.95))
    if as_json:
        numbers = {"kind": found.kind, "size": found.size, "onsets": found.onsets, "found": len(found.seconds)}
        return json.dumps({"event": "injected", **numbers, "delay_p50_s": median, "delay_p95_s": worst})
    delay = "" if median is None else f"; half of the onsets within {median:.0f} s"
    delay += "" if worst is None else f", 95 % within {worst:.0f} s"
    return f"{found.kind} {100 * found.size:+.0f} % put in: {len(found.seconds)} of {found.onsets} found in 3 h{delay}"


def _drift(text: str) -> tuple[str, float]:
    kind, equals, size = text.partition("=")
    if not equals or kind not in KINDS:
        raise UsageError(f"--inject: {text!r} is not KIND=SIZE; kinds are {', '.join(KINDS)}, such as output=40%")
    value = _positive("--inject", size.removesuffix("%")) / (100 if size.endswith("%") else 1)
    if kind in ("mix", "tenant", "cache") and value > (1 if kind == "cache" else 0.9):
        raise UsageError(f"--inject: {text}: is a part of the requests, so at most 90 % (cache: 100 %)")
    return kind, value


def _shown(trace: Trace) -> Iterator[Rows]:
    progress = None
    for rows, done, size in trace.rows():
        progress = progress or Progress(size, "backtest")
        progress.show(done)
        yield rows
    if progress is not None:
        progress.end()


def _summary(trace: Trace, past: Past, events: list[Event]) -> Iterator[str]:
    yield trace.seen.words()
    if past.first is None:
        yield "nothing was watched: the trace has no requests with token counts after --learn-until"
        return
    weeks = (past.last - past.first) / DAY / 7
    rises = sum(event.event == "raised" and event.direction == "up" for event in events)
    falls = sum(event.event == "raised" and event.direction == "down" for event in events)
    yield f"watched {weeks:.2f} weeks from {_moment(past.first * TICK_S)} UTC: {rises} rises, {falls} falls"
    if past.model is None:
        yield "less than three days of history: only the wide rule was in force (+25 % over ten minutes)"
    else:
        yield f"{rises / max(weeks, 1e-9):.2f} rises a week; each of them is a false alarm where the trace has no drift"


def _moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"


def _positive(option: str, text: str) -> float:
    try:
        value = number(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None
    if not 0 < value < 1e15:
        raise UsageError(f"{option}: must be above 0, found {text}")
    return value


def _time(text: str) -> float:
    at = read_time(text, UTC)
    if at is None or at == REFUSED or at < 0:
        raise UsageError(f"--learn-until: {text!r} is no time; use RFC 3339, such as 2026-01-19T00:00:00Z")
    return at
