"""What the drift detector would have done: alarms over a past, false alarms a week, delays of drifts put in by hand.

Learns up to --learn-until, then watches the rest as the daemon would: a JSON line on stdout for each drift that is
raised or has gone, and a summary on stderr unless --json is given. The past is a trace, the history in a state
directory (also while the daemon runs), or logs, which are read as the daemon reads them; of the last two each pool is
judged by its own rates, and deploy notes are told. A trace is a CSV (or .csv.gz) with a header and the columns t (s
since the epoch, UTC), tenant, route, class, model, prompt_tokens, cached_tokens, output_tokens, outcome, attempt_group,
duration_s and ttft_s, in order of t; all but t may be missing.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from capwatch.backtest.inject import KINDS, Delays, delays, quantile
from capwatch.backtest.past import Past
from capwatch.backtest.pools import PoolPast, Told, of_logs, of_state
from capwatch.backtest.trace import Trace
from capwatch.config.schema import Drift
from capwatch.config.units import number
from capwatch.console.progress import Progress
from capwatch.dialect.value import REFUSED
from capwatch.dialect.value import time as read_time
from capwatch.drift.event import Event
from capwatch.drift.marks import SLACK_S
from capwatch.drift.model import LEAST_DAYS, Settings
from capwatch.drift.rows import Rows
from capwatch.drift.sentence import Pool as Seats
from capwatch.drift.sentence import sentence
from capwatch.drift.ticks import DAY, TICK_S
from capwatch.errors import UsageError
from capwatch.observed import source

EXAMPLE = (
    "capwatch backtest --trace requests.csv --learn-until 2026-01-19T00:00:00Z --prefill-tps 4000 --decode-tps 160"
)
POOL = "default"
"""The pool of a trace."""
KNOWN: Final = ("state", "logs")
WHY: Final = "a server with the query API has no sums of ten seconds, which the detector lives on"
LEAST_LEARNT: Final = int(LEAST_DAYS * DAY)
"""Ticks that are learnt where the past has them, or half of it where that is more."""


def describe(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("--trace", metavar="FILE", help="the requests, .csv or .csv.gz")
    source.describe(parser)
    parser.add_argument(
        "--learn-until",
        metavar="TIME",
        help="RFC 3339 or seconds since the epoch; needed with --trace (half of the past, at least three days)",
    )
    parser.add_argument("--prefill-tps", metavar="RATE", help="with --trace: prompt tokens/s that a replica computes")
    parser.add_argument("--decode-tps", metavar="RATE", help="with --trace: tokens/s that a replica puts out")
    parser.add_argument(
        "--false-alarms-per-month", metavar="N", help="how many may be raised in four weeks (as configured, or 1)"
    )
    parser.add_argument(
        "--minimum-effect", metavar="SHARE", help="smaller changes are left alone (as configured, or 0.04)"
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


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked of every pool."""

    drifts: list[tuple[str, float]]
    trials: int
    json: bool


def run(arguments: argparse.Namespace) -> int:
    """Watch the past."""
    gc.freeze()
    gc.set_threshold(100_000)
    asked = _Asked(
        [_drift(text) for text in arguments.inject], int(_positive("--trials", arguments.trials)), arguments.json
    )
    if arguments.trace is not None:
        return _trace(arguments, asked)
    for option in ("prefill_tps", "decode_tps"):
        if getattr(arguments, option) is not None:
            raise UsageError(f"--{option.replace('_', '-')}: belongs to --trace; pools have rates of their own")
    if not (arguments.state_dir or arguments.prometheus or arguments.config or arguments.logs or arguments.source):
        raise UsageError("SOURCE: is missing; give --trace FILE, --state-dir DIR, or --config.file F LOG...")
    given = source.given(arguments, KNOWN, WHY)
    found = of_state(given.state, given.config) if given.state is not None else of_logs(given, time.time())
    for pool in found.pools:
        _pool(arguments, asked, pool, found)
    return 0


def _trace(arguments: argparse.Namespace, asked: _Asked) -> int:
    for name in ("state_dir", "prometheus", "config", "source", "logs"):
        if getattr(arguments, name):
            raise UsageError("--trace: is a source of its own; leave the other one out")
    for name in ("learn_until", "prefill_tps", "decode_tps"):
        if getattr(arguments, name) is None:
            raise UsageError(f"--{name.replace('_', '-')}: is needed with --trace; the trace does not tell it")
    settings = _settings(arguments, _rate(arguments, "prefill_tps"), _rate(arguments, "decode_tps"), Drift())
    trace = Trace(arguments.trace, settings.prefill_rate)
    past = Past(settings, trace.name, _time(arguments.learn_until), keeps=bool(asked.drifts))
    events = _watched(past.events(_shown(trace)), asked, lambda event: event.line(POOL) | {"text": sentence(event)})
    trace.seen.resent = past.resent
    _sum_up(past, events, asked, trace.seen.words())
    return 0


def _pool(arguments: argparse.Namespace, asked: _Asked, pool: PoolPast, found: Told) -> None:
    """Watch one pool."""
    one = pool.pool
    settings = _settings(arguments, one.prefill_tokens_per_second, one.decode_tokens_per_second, found.drift)
    if arguments.learn_until is not None:
        until = _time(arguments.learn_until)
    else:
        span = pool.last - pool.first
        until = float(TICK_S * (pool.first + (max(LEAST_LEARNT, span // 2) if span > LEAST_LEARNT else 0)))
    past = Past(settings, pool.name, until, keeps=bool(asked.drifts))
    told = Seats(one.replicas, one.target_utilisation) if isinstance(one.replicas, int) else None

    def line(event: Event) -> dict[str, object]:
        note = found.marks.near(
            event.started_at, one.name, event.at - event.started_at if past.model is None else SLACK_S
        )
        deploy = {} if note is None else {"deploy": note._asdict()}
        return event.line(one.name) | deploy | {"text": sentence(event, told, note)}

    events = _watched(past.events_of(pool.parts()), asked, line)
    _sum_up(past, events, asked, f"pool {one.name}:", {"pool": one.name})


def _settings(arguments: argparse.Namespace, prefill_rate: float, decode_rate: float, drift: Drift) -> Settings:
    alarms, effect = arguments.false_alarms_per_month, arguments.minimum_effect
    return Settings(
        prefill_rate=prefill_rate,
        decode_rate=decode_rate,
        false_alarms_per_month=drift.false_alarms_per_month
        if alarms is None
        else _positive("--false-alarms-per-month", alarms),
        minimum_effect=drift.minimum_effect if effect is None else _positive("--minimum-effect", effect),
    )


def _watched(events: Iterable[Event], asked: _Asked, line: Callable[[Event], dict[str, object]]) -> list[Event]:
    """Tell events as they come; all of them."""
    told = []
    for event in events:
        said = line(event)
        print(json.dumps(said), flush=True)
        if not asked.json:
            print(f"{_moment(event.at)}  {said['text']}", file=sys.stderr)
        told.append(event)
    return told


def _sum_up(
    past: Past, events: list[Event], asked: _Asked, head: str, about: Mapping[str, str] = MappingProxyType({})
) -> None:
    """The summary, and the delays of drifts that are put in; ``about`` is what the lines of these also say."""
    if not asked.json:
        print("\n".join([head, *_summary(past, events)]), file=sys.stderr)
    if past.model is not None and len(past.watched):
        for drift in asked.drifts:
            found = delays(drift, past.watched, past.model, past.settings, past.names, trials=asked.trials)
            print(_told(found, about, as_json=asked.json), file=sys.stdout if asked.json else sys.stderr, flush=True)


def _told(found: Delays, about: Mapping[str, str], *, as_json: bool) -> str:
    """Delays of a drift that was put in."""
    median, worst = (quantile(found, q) for q in (0.5, 0.95))
    if as_json:
        numbers = {"kind": found.kind, "size": found.size, "onsets": found.onsets, "found": len(found.seconds)}
        return json.dumps({"event": "injected", **about, **numbers, "delay_p50_s": median, "delay_p95_s": worst})
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


def _summary(past: Past, events: list[Event]) -> Iterator[str]:
    if past.first is None:
        yield "nothing was watched: there are no requests with token counts after --learn-until"
        return
    weeks = (past.last - past.first) / DAY / 7
    rises = sum(event.event == "raised" and event.direction == "up" for event in events)
    falls = sum(event.event == "raised" and event.direction == "down" for event in events)
    yield f"watched {weeks:.2f} weeks from {_moment(past.first * TICK_S)} UTC: {rises} rises, {falls} falls"
    if past.model is None:
        yield "less than three days of history: only the wide rule was in force (+25 % over ten minutes)"
    else:
        yield f"{rises / max(weeks, 1e-9):.2f} rises a week; each of them is a false alarm where there was no drift"


def _moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"


def _rate(arguments: argparse.Namespace, name: str) -> float:
    return _positive(f"--{name.replace('_', '-')}", getattr(arguments, name))


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
