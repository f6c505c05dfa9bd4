"""Do all panels and rules have live series, and which known mistakes of capacity does this setup show?

Asks a Prometheus-API server for every expression of the shipped dashboards and rules and says what has no series and
why: not scraped, rules not loaded, an optional source that is absent, a metric that an engine renamed. Then for
mistakes: scaling on GPU busy, no cap on output, one pool for batch and interactive work, a target without headroom,
retries without a budget, stale token rates. --also checks dashboards and rules of your own for their series; with
--config.file settings are looked at as well. Exit 0: fine; 1: findings, errors or warnings; notes are none.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from capwatch import shipped
from capwatch.console.answer import as_json
from capwatch.console.progress import Progress
from capwatch.doctor import loaded, mistakes, settings
from capwatch.doctor.finding import SEVERITIES, Finding
from capwatch.doctor.renames import of_engine
from capwatch.doctor.seen import Seen
from capwatch.doctor.selectors import selectors
from capwatch.doctor.series import Judged, Series, findings
from capwatch.errors import UsageError
from capwatch.observed import source
from capwatch.shipped import Expression

EXAMPLE = "capwatch doctor --prometheus http://127.0.0.1:9090"


def describe(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("--prometheus", metavar="URL", help="a server with the Prometheus query API")
    parser.add_argument(
        "--http.config.file", dest="http", metavar="FILE", help="its passwords, tokens and TLS, as promtool has them"
    )
    parser.add_argument("--config.file", dest="config", metavar="FILE", help="capwatch's configuration, to look at too")
    parser.add_argument(
        "--also", metavar="FILE", nargs="+", default=[], help="dashboards (JSON) and rules (YAML) of yours"
    )
    parser.add_argument("--json", action="store_true", help="findings and every expression, for machines")
    parser.set_defaults(state_dir=None, source=None, logs=[])  # a doctor needs a server


def run(arguments: argparse.Namespace) -> int:
    """Print what was found."""
    if arguments.prometheus is None:
        raise UsageError("--prometheus: is missing; give --prometheus URL, such as http://127.0.0.1:9090")
    given = source.given(arguments, ["prometheus"], "doctor asks a server")
    assert given.prometheus is not None  # noqa: S101 - that is the only kind
    own = [one for path in arguments.also for one in _read(path)]
    seen = Seen(given.prometheus, time.time())
    every = list(shipped.expressions())
    rules = [one for one in every if one.kind != "panel"]
    own += _of_engines(seen, frozenset(one.where for one in rules))
    series = Series(seen, {one.where: one.text for one in rules if one.kind == "record"})
    progress = Progress(len(every) + len(own), "doctor")
    judged = list(series.judge([*every, *own], progress.show))
    progress.end()
    found = [
        *loaded.findings(seen, rules),
        *findings(series, judged),
        *mistakes.findings(seen, frozenset(one.where for one in rules)),
        *(settings.findings(seen, given.config) if given.config is not None else ()),
    ]
    found.sort(key=lambda one: SEVERITIES.index(one.severity))
    if arguments.json:
        print(as_json(_document(seen, judged, found)))
    else:
        print("\n".join(_text(seen, judged, found)))
    return int(any(one.severity != "note" for one in found))


def _of_engines(seen: Seen, ours: frozenset[str]) -> Iterator[Expression]:
    """The server's other rules that read metrics of engines, which may have been renamed."""
    for rule in mistakes.own(seen, ours):
        if any(of_engine(selector.name) for selector in selectors(rule.query)):
            yield Expression(rule.name, rule.query, "alert" if rule.kind == "alerting" else "record")


def _read(path: str) -> list[Expression]:
    """The expressions of a dashboard or a file of rules."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--also: {path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        read = json.loads(text) if text.lstrip().startswith("{") else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError):
        read = None
    document: dict[str, Any] = read if isinstance(read, dict) else {}
    document = document.get("dashboard") or document.get("spec") or document  # as an API or an operator wraps it
    found = [*shipped.of_board(document), *shipped.of_rules(document)]
    if not found:
        raise UsageError(f"--also: {path} has no expression; give a dashboard's JSON or a file of rules")
    return found


def _counts(judged: Sequence[Judged], kinds: Sequence[str]) -> tuple[int, int]:
    """(places with something to show, all places) of some kinds."""
    mine = [one for one in judged if one.expression.kind in kinds]
    places = {one.expression.where for one in mine}
    return len({one.expression.where for one in mine if one.state == "data"}), len(places)


def _text(seen: Seen, judged: Sequence[Judged], found: Sequence[Finding]) -> Iterator[str]:
    yield f"{seen.url}{f', version {seen.version}' if seen.version else ''}"
    shown, panels = _counts(judged, ["panel"])
    live, recorded = _counts(judged, ["record"])
    armed, alerts = _counts(judged, ["alert"])
    yield f"  panels  {shown} of {panels} have something to show"
    yield f"  rules   {live} of {recorded} recorded series are there, {armed} of {alerts} alerts have all their series"
    firing = sorted({f"{rule.name} ({len(rule.firing)})" for rule in seen.rules or () if rule.firing})
    yield f"  firing  {', '.join(firing) or 'nothing'}"
    for one in found:
        yield ""
        yield from one.as_text()
    told = [
        f"{n} {severity}{'s' * (n > 1)}" for severity in SEVERITIES if (n := sum(f.severity == severity for f in found))
    ]
    yield ""
    yield ", ".join(told) or "no findings"


def _document(seen: Seen, judged: Sequence[Judged], found: Sequence[Finding]) -> dict[str, object]:
    kinds = {"panels": ["panel"], "recorded": ["record"], "alerts": ["alert"]}
    counts = {name: _counts(judged, kind) for name, kind in kinds.items()}
    return {
        "server": seen.url,
        "version": seen.version or None,
        **{name: {"with_series": shown, "all": whole} for name, (shown, whole) in counts.items()},
        "firing": [dict(labels) for rule in seen.rules or () for labels in rule.firing],
        "findings": [one.as_object() for one in found],
        "expressions": [
            {
                "where": one.expression.where, "kind": one.expression.kind, "expr": one.expression.text,
                "state": one.state, "missing": [str(selector) for selector in one.missing],
            }
            for one in judged
        ],
    }  # fmt: skip
