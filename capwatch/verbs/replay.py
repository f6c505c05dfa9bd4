"""What finished logs amount to: the daemon's own pipeline over files, printed as a Prometheus page.

The clock comes from the records. Without LOG all files of all sources are read once; with LOG those files are read
as the configuration's only source, or as the one that --source names. Files ending in .gz and .zst are decompressed.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from typing import TextIO

from capwatch.config.units import duration
from capwatch.console.configured import load
from capwatch.console.progress import Progress
from capwatch.errors import UsageError
from capwatch.exporters.text import Writer
from capwatch.metrics import CATALOGUE
from capwatch.replay import chosen, replay, told_until
from capwatch.replay.backfill import OpenMetricsFile
from capwatch.replay.keeping import kept
from capwatch.view import names, view

EXAMPLE = "capwatch replay --config.file capwatch.yml access.jsonl"


def describe(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("--config.file", dest="config", metavar="FILE", required=True, help="the configuration")
    parser.add_argument("--source", metavar="NAME", help="the source that LOG belongs to")
    parser.add_argument(
        "--openmetrics-out", metavar="FILE", help="also write samples with record time, for promtool's backfill"
    )
    parser.add_argument("--step", metavar="TIME", default="15s", help="record time between those samples (15s)")
    parser.add_argument("--families", metavar="A,B", help="only these metrics in --openmetrics-out")
    parser.add_argument(
        "--events-out", metavar="FILE", help="also write drifts that were raised or have gone, a JSON line each"
    )
    parser.add_argument(
        "--state-dir", metavar="DIR", help="keep the history there, for reviews and for a daemon to learn from"
    )
    parser.add_argument("logs", metavar="LOG", nargs="*", help="files to read")


def run(arguments: argparse.Namespace) -> int:
    """Replay, and print the page."""
    gc.freeze()  # batches are large, short-lived and without cycles: the collector finds nothing in them
    gc.set_threshold(100_000)
    config = load(arguments.config)
    logs = chosen(config, arguments.source, arguments.logs)
    families = _families(arguments.families)
    step = _step(arguments.step)
    progress = Progress(sum(os.path.getsize(log.path) for log in logs if os.path.exists(log.path)), "replay")
    now, disabled = told_until(config, logs, time.time()), frozenset(config.metrics.disable)
    with (
        kept(config, arguments.state_dir) as history,
        _openmetrics(arguments.openmetrics_out, families, disabled) as file,
        _events(arguments.events_out) as told,
    ):
        secret = b"" if history is None else history.secret
        every = step if arguments.openmetrics_out else None
        for pipeline, totals, done in replay(config, logs, now, step=every, kept=history is not None, secret=secret):
            progress.show(done)
            events = pipeline.drifts.fresh()
            if history is not None:
                history.keep(pipeline, totals, events)
            if told is not None:
                told.writelines(json.dumps(event) + "\n" for event in events)
            if file is not None:
                file.write(pipeline, totals)
        progress.end()
        sys.stdout.buffer.write(Writer(totals.names).page(view(pipeline.meters, totals, disabled=disabled)))
        if history is not None:
            history.finish(pipeline, totals)
    return 0


def _openmetrics(
    path: str | None, families: frozenset[str] | None, disabled: frozenset[str]
) -> AbstractContextManager[OpenMetricsFile | None]:
    try:
        return OpenMetricsFile(path, families, disabled) if path else nullcontext()
    except OSError as error:
        raise UsageError(f"--openmetrics-out: {path}: cannot be written: {error.strerror}") from None


def _events(path: str | None) -> AbstractContextManager[TextIO | None]:
    try:
        return open(path, "w", encoding="utf-8") if path else nullcontext()
    except OSError as error:
        raise UsageError(f"--events-out: {path}: cannot be written: {error.strerror}") from None


def _families(text: str | None) -> frozenset[str] | None:
    if text is None:
        return None
    chosen = frozenset(name.strip() for name in text.split(",") if name.strip())
    known = {name for metric in CATALOGUE.values() for name in names(metric)}
    for name in sorted(chosen - known):
        raise UsageError(f"--families: no metric {name!r}; `capwatch metrics` lists them")
    return chosen


def _step(text: str) -> float:
    try:
        step = duration(text)
    except ValueError as error:
        raise UsageError(f"--step: {error}") from None
    if step < 1:
        raise UsageError("--step: must be at least 1s, such as 15s")
    return step
