"""The drift detector's own evaluation: `python -m tests.bench.drift` prints the tables of docs/drift.md, from any seed.

Silence over weeks that nothing was fitted on, silence in cases that look like drifts, delays of drifts in requests and
seconds beside the bound for a detector that knows what to look for, what was named, and what rivals do with the same.
All numbers of the detector were set before the judged seeds were drawn; the defaults below are those seeds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir

import numpy as np

from capwatch.drift.event import EFFECTS, Event

from .drifts import real
from .drifts.bound import requests_to_alarm
from .drifts.protocol import Bench, Trial, span, with_cron
from .drifts.rivals import RIVALS, Series, Tuned, delay, river
from .drifts.traffic import DRIFTS, HOUR, QUIET, Background, Drift, background

SEED = 20275378
KINDS = {
    "prompts": "prompt",
    "output": "output",
    "cache": "cache",
    "lengths": "",
    "mix": "mix",
    "new": "mix",
    "ramp": "mix",
}
"""First word of a drift → the effect that must be the largest; others are of the mix."""


def site(name: str, rate: float) -> Background:
    """A background at a mean rate of ``rate``, in requests/s."""
    found = background(name, rate / 0.9)
    return replace(found, cached=900.0) if name == "rag" else found


def main() -> None:
    """Run the evaluation and write its tables."""
    options = _options()
    folder, begun, found = Path(options.folder), time.time(), []
    for name in filter(None, options.backgrounds.split(",")):
        for line in evaluate(site(name, options.rate), options, folder):
            print(line, flush=True)
            found.append(line)
    if options.real:
        print("\n## ServeGen m-large, two real weeks\n")
        for line in real.evaluate(options.trials, options.seed):
            print(line, flush=True)
            found.append(line)
    found.append(f"\n{time.time() - begun:.0f} s of wall clock, seed {options.seed}")
    if options.out:
        Path(options.out).write_text("\n".join(found) + "\n")


def evaluate(place: Background, options: argparse.Namespace, folder: Path) -> Iterator[str]:
    """The lines of one background's tables."""
    bench = Bench(place, options.seed, folder)
    yield f"\n## {place.name}, {place.rate * 0.9:.1f} requests/s\n"
    up = down = 0
    for week in range(options.weeks):
        raised = bench.week(week)
        up, down = up + sum(e.direction == "up" for e in raised), down + sum(e.direction == "down" for e in raised)
    yield f"{options.weeks} weeks without drift: {up} rises, {down} falls\n"
    rivals = _rivals(bench) if options.rivals else {}
    yield "| drift | median / 95 % s | found | requests, of the bound | change point | kind | rivals, median s |"
    yield "|---|---|---|---|---|---|---|"
    for name, drift in DRIFTS[place.name].items():
        yield _delays(bench, name, drift, options.trials, rivals)
    yield "\n| must stay silent | alarms |\n|---|---|"
    for name, drift in QUIET.items():
        trials = _trials(bench, name, drift, options.trials, 1.5 * HOUR)
        yield f"| {name} | {sum(one.event is not None or one.early for one in trials)} of {options.trials} |"
    if options.cron:
        cron = Bench(with_cron(place), options.seed, folder)
        rises = sum(event.direction == "up" for week in range(2) for event in cron.week(week))
        yield f"| a job every hour, over two weeks | {rises} |"


def _trials(bench: Bench, name: str, drift: Drift, trials: int, after: float) -> list[Trial]:
    onsets = bench.onsets(trials)
    return [bench.trial(name, drift, number, float(onset), after) for number, onset in enumerate(onsets)]


def _delays(bench: Bench, name: str, drift: Drift, trials: int, rivals: dict[str, Tuned]) -> str:
    """One row: the delays of a drift."""
    onsets = bench.onsets(trials)
    ran = _trials(bench, name, drift, trials, span(name))
    judged = [(one, float(onset)) for one, onset in zip(ran, onsets, strict=True) if not one.early]
    delays = np.sort([one.delay for one, _ in judged])
    bound = requests_to_alarm(bench.site, drift, bench.seed)
    requests = float(np.median([one.requests for one, _ in judged]))
    errors = [one.event.started_at - onset for one, onset in judged if one.event]
    points = "/".join(f"{q:+.0f}" for q in np.quantile(errors, (0.1, 0.5, 0.9))) if errors else "–"
    kind = KINDS.get(name.split(maxsplit=1)[0], "mix")
    right = [_kind(one.event) == kind for one, _ in judged if one.event]
    told = f"{sum(right)} of {len(right)}" if kind else "–"
    against = "; ".join(f"{rival} {_median(bench, name, tuned, onsets)}" for rival, tuned in rivals.items())
    ratio = f"{requests:.0f}, {requests / bound:.1f} of {bound:.0f}" if bound else f"{requests:.0f}"
    worst = delays[int(np.ceil(0.95 * len(delays))) - 1]
    return (
        f"| {name} | {np.median(delays):.0f} / {worst:.0f} | {np.isfinite(delays).sum()} of {len(delays)} | {ratio} | "
        f"{points} | {told} | {against or '–'} |"
    )


def _kind(event: Event) -> str:
    return max(EFFECTS, key=lambda effect: abs(event.effects[effect]))


def _rivals(bench: Bench) -> dict[str, Tuned]:
    history = Series.of(bench.history())
    missing = [name for name in ("ADWIN", "PageHinkley") if river(name) is None]
    if missing:
        print(f"river is not installed: without {', '.join(missing)}", file=sys.stderr)
    return {name: Tuned(statistic, history) for name, statistic in RIVALS.items()}


def _median(bench: Bench, name: str, tuned: Tuned, onsets: np.ndarray[tuple[int], np.dtype[np.float64]]) -> str:
    """A rival's median delay over the same trials; its alarms before the onset do not count for it or against it."""
    delays = []
    for number, onset in enumerate(onsets):
        alarms = tuned.alarms(Series.of(bench.trial_ticks(name, number)))
        delays.append(delay(alarms, float(onset)))
    median = float(np.median(delays))
    return f"{median:.0f}" if np.isfinite(median) else "never"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.drift", description=__doc__)
    parser.add_argument("--backgrounds", default="mix,rag,azure")
    parser.add_argument("--rate", type=float, default=7.2, help="mean requests/s")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--weeks", type=int, default=12, help="weeks without drift")
    parser.add_argument("--trials", type=int, default=20, help="onsets of each drift and quiet case")
    parser.add_argument("--folder", default=f"{gettempdir()}/capwatch-drift", help="keeps the made-up traffic")
    parser.add_argument("--rivals", action="store_true")
    parser.add_argument("--cron", action="store_true")
    parser.add_argument("--real", action="store_true", help="also two real weeks by client")
    parser.add_argument("--out", help="also write the tables there")
    return parser.parse_args()


if __name__ == "__main__":
    main()
