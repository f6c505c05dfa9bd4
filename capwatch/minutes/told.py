"""Findings for people and programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from capwatch.ledger import POOL, TENANT, Names
from capwatch.minutes.findings import Finding, Findings
from capwatch.minutes.table import MINUTE_S


def line(finding: Finding, findings: Findings, names: Names) -> dict[str, Any]:
    """A finding as the API tells it; times are s since the epoch."""
    pools, tenants = names.texts(POOL.name), names.texts(TENANT.name)
    change = finding.change
    who = [{"tenant": tenants.get(one.tenant, "other"), "part": one.part} for one in change.who]
    since, until = change.since * MINUTE_S, finding.until
    return {
        "pool": pools.get(finding.pool, "other"),
        "watch": finding.watch,
        "since": since,
        "raised_at": (finding.raised + 1) * MINUTE_S,
        "until": None if until is None else (until + 1) * MINUTE_S,
        "before": change.before,
        "after": change.after,
        "now": finding.now,
        "tenants": who,
        "sentence": _sentence(findings.watchers[finding.watch].said(change), since, who, over=until is not None),
    }


def _sentence(said: str, since: float, who: Iterable[Mapping[str, Any]], *, over: bool) -> str:
    named = ", ".join(f"tenant {one['tenant']} ({100 * one['part']:.0f} % of it)" for one in who)
    begun = f"{said} since {datetime.fromtimestamp(since, UTC):%H:%M} UTC"
    return f"{'Over: ' if over else ''}{begun}{f': {named}' if named else ''}."


def lines(findings: Findings, pools: Iterable[int], names: Names) -> list[dict[str, Any]]:
    """What holds now in these pools, by the numbers of their names, then what is over, the newest first."""
    active = [one for pool in pools for one in findings.active(pool)]
    return [line(one, findings, names) for one in (*active, *reversed(findings.ended))]
