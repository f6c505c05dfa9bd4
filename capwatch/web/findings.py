"""What whoever is on call should know, worst first: the sentences of the page, and what to do first.

Kinds: `drift` (an alarm of the detector), `watch` (what a watcher has found), `headroom`, `wait`, `kv` of a pool;
`starting`, `source`, `commit` of capwatch itself; `learning` and `quiet` where nothing is wrong. Remedies are those of
the runbook, in its order: cut the work, tighten admission, add replicas, change the replica.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from capwatch.capacity import sizing
from capwatch.web.now import Finding, PoolHistory, PoolNow, Severity
from capwatch.web.status import Drifts, SourceStatus, Status

_ORDER: Final = ("bad", "warn", "note", "good")
STALE_S: Final = 30.0
"""A commit comes every ten seconds even where nothing happens."""
BEHIND: Final = 16 << 20
"""Bytes not yet read, after which what is shown is not the present; some seconds of a busy log."""
DROPPED: Final = 0.01
"""Part of a source's lines that may be dropped before somebody should look."""
FULL: Final = 0.9
"""KV demand over the pool at which the alert of the runbook fires."""
SOON_S: Final = 900.0
"""KV memory that is full within the time by which its growth is told."""
MOVED: Final = 0.03
"""Of the cost per request before: a drift that was seen early is soon known better."""
_DIMENSIONS: Final = ("tenant", "route", "class")
_CUT: Final = {
    "mix": "Cut the work of {who}: shorter prompts (retrieval, history, documents), capped answers. Minutes.",
    "prompt": "Cut the prompts of {who}: retrieval depth, history, attached documents. Minutes, undone at once.",
    "output": "Cap the answers of {who} (max tokens). Minutes, undone at once.",
    "cache": "Restore the cached prefix of {who}: undo the template change, route by prefix again. Minutes.",
}
_VERDICTS: Final = {
    "composition": "Composition, not queueing: the requests changed, the replicas work as before.",
    "queueing": "Queueing, not composition: the work of a request is as before.",
    "both": "Both composition and queueing.",
    "unknown": "Neither composition nor queueing stands out.",
    None: "The requests changed; whether they also wait longer these logs do not tell.",
}
_FIRST: Final = {
    "decode_step": "Take a slow engine or a throttled card out of routing. Minutes.",
    "in_flight": "In prefill cut prompts, in decode cap answers, in retrieval or tool ask their owner: see the phases.",
    "on_the_hour": "Ask {who} to spread the job over the hour, or give it a limit of its own.",
    "output_caps": "Set a cap on the answers (max tokens) of {who} at the gateway. Minutes.",
    "output_tail": "Cap the answers (max tokens) of {who} at the gateway. Minutes.",
    "prefix_hits": _CUT["cache"],
    "retries": "Answer {who} with a stop (429 with Retry-After), and let the gateway give up earlier. Seconds.",
}
"""By watch, what helps first."""
_NOBODY: Final = "those who grew"


def findings(status: Status, drifts: Drifts, pools: Sequence[PoolNow]) -> list[Finding]:
    """Everything there is to say; never nothing."""
    found = [*_itself(status), *_pools(drifts, pools), *_learning(pools)]
    if {one.kind for one in found} <= {"learning"}:
        found += _calm(pools)
    return _worst_first(found)


def ahead(pools: Sequence[PoolNow], histories: Mapping[str, PoolHistory]) -> list[Finding]:
    """What only the history of the pools tells: KV memory that is not short yet, but soon is full."""
    found = []
    for pool in pools:
        full_s = histories[pool.name].kv_full_s if pool.name in histories else None
        if full_s:
            trend = "if it grows on as in the last quarter of an hour"
            text = f"Pool {pool.name}: KV memory is full in {span(full_s)} {trend}."
            severity: Severity = "bad" if full_s <= SOON_S else "warn"
            found.append(Finding(kind="kv", severity=severity, text=text, pool=pool.name, todo=_less_kv(pool)))
    return _worst_first(found)


def _worst_first(found: Sequence[Finding]) -> list[Finding]:
    return sorted(found, key=lambda one: _ORDER.index(one.severity))


def _itself(status: Status) -> Iterator[Finding]:
    """Is capwatch blind?"""
    commit = status.commit
    if not status.ready:
        yield Finding(
            kind="starting", severity="note", text="Still reading what lay on disk at the start: totals are growing."
        )
    if commit.timestamp is not None and status.at - commit.timestamp > STALE_S:
        text = f"Nothing has been committed for {span(status.at - commit.timestamp)}: all this is as old as that."
        yield Finding(kind="commit", severity="bad", text=text, todo=("Read capwatch's log: is the disk full?",))
    if not status.sources:
        yield Finding(kind="source", severity="warn", text="No source is configured: there is nothing to watch.")
    for source in status.sources:
        yield from _source(source, ready=status.ready)


def _source(source: SourceStatus, *, ready: bool) -> Iterator[Finding]:
    name, lines = f"Source {source.name}", source.lines
    if not source.up:
        why = "; ".join(source.problems).encode(errors="replace").decode() or "no file can be read"
        todo = ("Do the globs of `path` match, and may capwatch read the files? `capwatch check-config` tries both.",)
        yield Finding(kind="source", severity="warn", text=f"{name} is silent: {why}.", todo=todo)
    elif ready and source.lag_bytes > BEHIND:
        text = f"{name} is {source.lag_bytes / (1 << 20):,.0f} MiB behind: what is shown is not the present."
        yield Finding(kind="source", severity="warn", text=text)
    dropped = sum(lines.dropped.values())
    if lines.read and dropped > DROPPED * lines.read:
        worst = max(lines.dropped, key=lambda reason: lines.dropped[reason])
        text = f"{name}: {percent(dropped / lines.read)} of its lines were dropped, most as {worst}."
        todo = (f"Ask why: `capwatch explain --format {source.format} FILE`.",)
        yield Finding(kind="source", severity="warn", text=text, todo=todo)


def _pools(drifts: Drifts, pools: Sequence[PoolNow]) -> Iterator[Finding]:
    by_name = {pool.name: pool for pool in pools}
    changes = [_drift(event, by_name.get(event["pool"])) for event in drifts.active]
    changes += [_watch(watch) for watch in drifts.watches if watch["until"] is None]
    # Their sentences name no pool, and need none where there is only one.
    yield from changes if len(pools) <= 1 else (replace(one, text=f"Pool {one.pool}: {one.text}") for one in changes)
    for pool in pools:
        yield from _pool(pool, drifting=any(event["pool"] == pool.name for event in drifts.active))


def _drift(event: Mapping[str, Any], pool: PoolNow | None) -> Finding:
    name = str(event["pool"])
    accept = f"If this is wanted: `capwatch acknowledge --pool {name}` makes it the reference."
    if event["direction"] != "up":
        return Finding(kind="drift", severity="note", text=str(event["sentence"]), pool=name, todo=(accept,))
    effects = event["effects"]
    effect = max(effects, key=lambda one: effects[one])
    who = culprits(event, effect) or [_NOBODY]
    todo = [
        _CUT[effect].format(who=", ".join(who)),
        f"Tighten admission for {who[0]}: a budget, lower priority, fewer at a time. Seconds.",
        _more_replicas(pool, pool.drift.cost_after if pool and pool.drift else float(event["cost_after"])),
        "Change the replica: a pool of its own for the long class, other parallelism. Days.",
        accept,
    ]
    over = pool is not None and pool.utilisation is not None and pool.utilisation > pool.target
    severity: Severity = "bad" if over or event["verdict"] in ("queueing", "both") else "warn"
    text = f"{event['sentence']}{_by_now(event, pool)}"
    return Finding(kind="drift", severity=severity, text=text, why=_VERDICTS[event["verdict"]], pool=name, todo=todo)


def _watch(watch: Mapping[str, Any]) -> Finding:
    who = ", ".join(f"tenant {one['tenant']}" for one in watch["tenants"]) or _NOBODY
    todo = (_FIRST[watch["watch"]].format(who=who),)
    return Finding(kind="watch", severity="warn", text=str(watch["sentence"]), pool=str(watch["pool"]), todo=todo)


def _by_now(event: Mapping[str, Any], pool: PoolNow | None) -> str:
    """How large it is by now, where that is not what its sentence says."""
    if pool is None or pool.drift is None or pool.drift.cost_before <= 0:
        return ""
    change = pool.drift.cost_after / pool.drift.cost_before - 1
    return f" By now {100 * change:+.0f} %." if abs(change - event["cost_change_ratio"]) >= MOVED else ""


def culprits(event: Mapping[str, Any], effect: str) -> list[str]:
    """Who brings an effect: the largest tenant, route and class of it, as far as there are any.

    >>> one = {"dimension": "tenant", "value": "acme", "effect": "mix", "replica_seconds": 0.2}
    >>> culprits({"contributions": [one]}, "mix"), culprits({"contributions": []}, "mix")
    (['tenant acme'], [])
    """
    found = []
    for dimension in _DIMENSIONS:
        mine = [one for one in event["contributions"] if (one["dimension"], one["effect"]) == (dimension, effect)]
        largest = max(mine, key=lambda one: float(one["replica_seconds"]), default=None)
        if largest is not None and largest["replica_seconds"] > 0:
            found.append(f"{dimension} {largest['value']}")
    return found


def _pool(pool: PoolNow, *, drifting: bool) -> Iterator[Finding]:
    spare, waits = pool.headroom.get("none"), pool.expected_wait_s
    over = pool.utilisation is not None and pool.utilisation >= 1
    if over or (waits is not None and waits > pool.wait_budget_s):
        text = f"Pool {pool.name} is beyond what its replicas can do: utilisation {percent(pool.utilisation or 0)}."
        if waits is not None:
            text = f"Pool {pool.name}: a wait of {span(waits)} is expected, the budget is {span(pool.wait_budget_s)}."
        todo: tuple[str, ...] = (
            () if drifting else ("Tighten admission: budgets, priorities. Seconds.", _more_replicas(pool))
        )
        yield Finding(kind="wait", severity="bad", text=text, pool=pool.name, todo=todo)
    elif spare is not None and spare < 0 and not drifting:
        missing = f"{-spare:,.0f} replica{'s' if spare < -1 else ''}"
        text = f"Pool {pool.name} misses {missing} for its target of {percent(pool.target)}."
        yield Finding(kind="headroom", severity="warn", text=text, pool=pool.name, todo=(_more_replicas(pool),))
    if pool.kv_demand_ratio is not None and pool.kv_demand_ratio > FULL:
        text = f"Pool {pool.name}: running requests may need {percent(pool.kv_demand_ratio)} of its KV cache."
        severity: Severity = "bad" if pool.kv_demand_ratio > 1 else "warn"
        yield Finding(kind="kv", severity=severity, text=text, pool=pool.name, todo=_less_kv(pool))


def _less_kv(pool: PoolNow) -> tuple[str, ...]:
    return "Cut prompts or cap answers. Minutes.", "Fewer requests at a time. Seconds.", _more_replicas(pool)


def _more_replicas(pool: PoolNow | None, cost: float = 0.0) -> str:
    """What the present load needs, at least at this cost per request: the last five minutes lag behind a drift."""
    base = None if pool is None else pool.needed.get("base")
    if pool is not None and base is not None:
        base = max(base, sizing.needed(pool.rate * cost, 1.0, pool.target))
    if pool is None or base is None or pool.replicas is None:
        return "Add replicas. Minutes and money."
    figures = f"the present load needs {base:,.0f} for {percent(pool.target)}, {pool.replicas:,.0f} are there"
    if base <= pool.replicas:
        return f"No more replicas are needed yet: {figures}."
    return f"Add replicas: {figures}. Minutes and money."


def _learning(pools: Sequence[PoolNow]) -> Iterator[Finding]:
    """Of a pool whose history is too short only a great change would be told."""
    learning = [pool.name for pool in pools if pool.learning]
    if learning:
        text = (
            f"Still learning what is usual for {', '.join(learning)}: only a wide rule watches (+25 % in ten minutes)."
        )
        yield Finding(kind="learning", severity="note", text=text)


def _calm(pools: Sequence[PoolNow]) -> Iterator[Finding]:
    """Nothing is wrong: is that because nothing changed, or because nobody would have seen it?"""
    if not pools:
        yield Finding(kind="quiet", severity="note", text="No request has been seen yet.")
    known = [pool for pool in pools if not pool.learning]
    if known:
        text = "Nothing has changed: cost per request is as expected" + (
            f" ({_as_expected(known[0])})." if len(known) == 1 else " in every pool."
        )
        yield Finding(kind="quiet", severity="good", text=text)


def _as_expected(pool: PoolNow) -> str:
    if pool.cost is None:
        return f"{pool.rate:.3g} requests/s"
    return f"{pool.cost:.3g} replica-seconds at {pool.rate:.3g} requests/s"


def percent(share: float) -> str:
    """A share for a reader.

    >>> percent(0.834), percent(0.0042)
    ('83 %', '0.4 %')
    """
    return f"{100 * share:.1f} %" if 0 < share < 0.0095 else f"{100 * share:.0f} %"


def span(seconds: float) -> str:
    """A length of time for a reader.

    >>> span(0.25), span(12.25), span(170.0), span(7200.0), span(2e5)
    ('250 ms', '12 s', '3 min', '2 h', '2 d')
    """
    for size, unit in ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s")):
        if seconds >= 1.5 * size or (unit == "s" and seconds >= 1):
            return f"{seconds / size:.0f} {unit}"
    return f"{1000 * seconds:.0f} ms"
