"""Whether capwatch is scraped and the shipped rules run: targets, versions, rules, thresholds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from capwatch import __version__, shipped
from capwatch.doctor.finding import Finding
from capwatch.doctor.seen import Rule, Seen, Target
from capwatch.shipped import Expression

WHO: Final = "last_over_time(capwatch_build_info[1d])"
SLOW_S: Final = 30.0
"""Evaluation interval from which on an alert with `for: 15s` is late; the shipped groups of a minute are meant so."""
SPARSE_S: Final = 60.0
"""Scrape interval from which on a window of five minutes holds too few samples."""
PORT: Final = 10077


def findings(seen: Seen, rules: Sequence[Expression]) -> Iterator[Finding]:
    """All of it; ``rules`` are the shipped ones."""
    yield from _scraped(seen)
    yield from _sparse(seen)
    yield from _versions(seen)
    recorded = [rule.where for rule in rules if rule.kind == "record"]
    if seen.rules is None or (
        not seen.rules and seen.live(recorded)
    ):  # another program evaluates them, as vmalert does
        yield Finding(
            "note", "rules-unknown", "the server does not tell its rules", ["/api/v1/rules tells none"],
            "Whether they are loaded and healthy is not known.", "ask the server that evaluates them (the ruler)",
        )  # fmt: skip
        return
    there = {rule.name: rule for rule in seen.rules}
    yield from _loaded(there, rules)
    for rule in seen.rules:
        if rule.error:
            yield Finding(
                "error", "rule-fails", f"rule {rule.name} fails", [rule.error],
                "It records nothing, or cannot fire.", "see the server's log; restore the shipped file",
            )  # fmt: skip
    yield from _others(there, rules)
    yield from _slow(there, rules)


def _scraped(seen: Seen) -> Iterator[Finding]:
    down = seen.ask(f"up == 0 and on (job, instance) {WHO}")
    for labels, _ in down:
        place = f"{labels.get('job', '')} at {labels.get('instance', '')}"
        error = next((one.error for one in seen.targets if _same(one, labels)), "")
        yield Finding(
            "error", "target-down", f"capwatch does not answer: {place}",
            ["up is 0, and it was there within the last day", *filter(None, [error])],
            "Its panels stand still, and no alert but CapwatchBlind can fire.",
            "start it, or look at its log; it goes on where it stopped",
        )  # fmt: skip
    if seen.ask("capwatch_build_info") or down:
        return
    likely = [one for one in seen.targets if f":{PORT}" in one.url]
    told = [f"{one.url} is {one.health}: {one.error or 'no error'}" for one in likely]
    yield Finding(
        "error", "not-scraped", "capwatch is not scraped",
        ["no series capwatch_build_info", *(told or ["no target at its port 10077"])],
        "Every panel and alert is empty.",
        f"add a job: scrape_configs: [{{job_name: capwatch, static_configs: [{{targets: ['HOST:{PORT}']}}]}}]",
    )  # fmt: skip


def _same(target: Target, labels: Mapping[str, str]) -> bool:
    told = target.labels or {}
    return all(told.get(name) == labels.get(name) for name in ("job", "instance"))


def _sparse(seen: Seen) -> Iterator[Finding]:
    jobs = {labels.get("job", "") for labels, _ in seen.ask("capwatch_build_info")}
    for target in seen.targets:
        labels, text = target.labels or {}, target.interval
        if labels.get("job") in jobs and _seconds(text) > SPARSE_S:
            yield Finding(
                "warning", "scrape-interval", f"{labels.get('instance')} is scraped every {text}",
                [f"scrape interval {text}"], "Rates over five minutes rest on too few samples, and alerts are late.",
                "scrape capwatch every 15 s",
            )  # fmt: skip


def _versions(seen: Seen) -> Iterator[Finding]:
    found = sorted(seen.by("version", "count by (version) (capwatch_build_info)").items())
    if len(found) > 1:
        told = [f"{int(count)} of version {version}" for version, count in found]
        yield Finding(
            "warning", "versions", "instances of capwatch have several versions", told,
            "The same metric may mean another thing on each.", "bring all to one version",
        )  # fmt: skip
    elif found and found[0][0] not in ("", __version__):
        yield Finding(
            "warning", "versions", "capwatch that is scraped has another version than this doctor",
            [f"scraped {found[0][0]}, this is {__version__}"],
            "Rules and boards that are compared here are those of this version.", "run the doctor of that version",
        )  # fmt: skip


def _loaded(there: Mapping[str, Rule], rules: Sequence[Expression]) -> Iterator[Finding]:
    missing = [rule for rule in rules if rule.where not in there]
    if not missing:
        return
    alerts = [rule.where for rule in missing if rule.kind == "alert"]
    thresholds = [rule.where for rule in missing if rule.where.startswith("capwatch:threshold:")]
    whole = len(missing) == len(rules)
    seen = [f"{len(rules) - len(missing)} of {len(rules)} shipped rules are loaded; {len(alerts)} alerts are not"]
    if thresholds and not whole:
        seen.append("alerts without a threshold never fire; missing: " + ", ".join(thresholds))
    yield Finding(
        "error", "rules-missing", "the rules are not loaded" if whole else "some rules are not loaded", seen,
        "Alerts that are not there do not fire, and look like calm.",
        f"name {', '.join(shipped.RULE_FILES)} in rule_files; they are in {shipped.folder('rules')}, "
        "and `capwatch render rules --out DIR` writes them",
        () if whole else [rule.where for rule in missing],
    )  # fmt: skip


def _others(there: Mapping[str, Rule], rules: Sequence[Expression]) -> Iterator[Finding]:
    """Thresholds are the user's own; other expressions are of another version."""
    others = [
        rule.where
        for rule in rules
        if not rule.where.startswith("capwatch:threshold:")
        and rule.where in there
        and normal(there[rule.where].query) != normal(rule.text)
    ]
    if others:
        yield Finding(
            "warning", "rules-differ", f"{len(others)} rules have other expressions than those of this version",
            [", ".join(others)], "They are of another version, or were changed by hand.",
            "load the files of the version that is scraped; keep own numbers in thresholds.yml",
        )  # fmt: skip


def _slow(there: Mapping[str, Rule], rules: Sequence[Expression]) -> Iterator[Finding]:
    late = [rule.where for rule in rules if rule.kind == "alert" and rule.where in there]
    slowest = max((there[name].interval for name in late), default=0.0)
    if slowest > SLOW_S:
        yield Finding(
            "warning", "evaluation-interval", f"alerts are evaluated every {slowest:g} s",
            [f"evaluation interval {slowest:g} s"], "A drift is told of up to two intervals later.",
            "evaluation_interval: 15s",
        )  # fmt: skip


def normal(expression: str) -> str:
    """An expression without blanks, in one spelling of durations and of what a server puts in or leaves out.

    >>> normal("sum by (a) (rate(b[5m] offset 23h30m))") == normal("sum by(a)(rate(b[300s] offset 84600s))")
    True
    """
    text = re.sub(r"(?<![\w.])((?:\d+(?:ms|[smhdwy]))+)(?!\w)", lambda found: f"{_seconds(found[1]):g}s", expression)
    return re.sub(r"(group_(?:left|right))\(\)", r"\1", re.sub(r"\s+", "", text))


def _seconds(text: str) -> float:
    units = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "y": 31536000}
    return sum(float(number) * units[unit] for number, unit in re.findall(r"(\d+)(ms|[smhdwy])", text))
