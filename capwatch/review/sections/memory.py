"""KV memory: demand against the pool, as an upper bound and by running sequences; preemptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Final

from capwatch.capacity import work
from capwatch.review.calendar import HOUR
from capwatch.review.facts import Facts, Memory
from capwatch.review.section import Finding, Missing, Section, Table
from capwatch.review.text import exact, number, percent
from capwatch.review.week import Week

ORDER: Final = 100
FULL: Final = 0.9
"""Share of the KV pool from which engines begin to preempt or to queue for memory."""


def SECTION(week: Week, facts: Mapping[str, Facts]) -> Section:
    """KV demand of each pool, before and after its last change."""
    rows, again, findings, missing, numbers = [], [], [], [], {}
    for name, one in facts.items():
        again += _recomputed(name, one)
        if "preemptions" not in one.one.shown:
            missing.append(
                Missing(
                    f"preemptions and recomputed tokens of {name}",
                    "no engine tells of them",
                    "`engines` to scrape, or engine logs (`role: times`)",
                )
            )
        now, then = one.memory(one.after), one.memory(one.before)
        if now is None:
            missing.append(_why(name, one))
            continue
        numbers[name] = {"kv": {"before": None if then is None else asdict(then), "after": asdict(now)}}
        rows.append(
            [
                name, number(one.pool.kv_pool_tokens), number(now.live), _moved(then, now, "bound"),
                _moved(then, now, "running"), _room(one, now),
            ]
        )  # fmt: skip
        findings += _finding(name, one, then, now)
    columns = [
        "pool", "tokens per replica", "tokens of a sequence", "all in the engine (upper bound)", "running sequences",
        "sequences that fit",
    ]  # fmt: skip
    tables = [Table("KV demand of one replica, mean of the stretch", columns, rows)] if rows else []
    if again:
        words = ["pool", "preemptions", "tokens computed once more", "replica-hours", "of the work"]
        tables.append(Table("Preemptions in the week, and what they cost", words, again))
    return Section("KV memory", (), tables, (), findings, missing, numbers)


def _recomputed(name: str, one: Facts) -> list[list[str]]:
    """What preemptions cost: as told, else at most a whole sequence each."""
    count, tokens, at_most = one.one.shown.get("preemptions"), one.one.shown.get("recomputed_tokens"), ""
    if count is None:
        return []
    if tokens is None and one.week is not None:
        prompt, _, output = one.week.lengths
        tokens, at_most = count * (prompt + output), "at most "
    if tokens is None:
        return [[name, exact(count), *["not known"] * 3]]
    cost = work.prefill(tokens, 0.0, one.pool.prefill_tokens_per_second)
    share = cost / one.one.hours.cost if one.one.hours.cost else None
    told = (number(tokens), number(cost / HOUR), percent(share))
    return [[name, exact(count), *(f"{at_most}{word}" for word in told)]]


def _why(name: str, one: Facts) -> Missing:
    what = f"KV memory of {name}"
    if one.pool.kv_pool_tokens is None:
        return Missing(what, "the size of its KV cache is not known", "`pools[].kv_pool_tokens`, or a calibration")
    if one.one.replicas is None:
        return Missing(what, "its replicas are not known", "`pools[].replicas` as a number")
    return Missing(what, "no times or tokens are told", "a log with durations and token counts")


def _moved(then: Memory | None, now: Memory, which: str) -> str:
    values = [None if some is None else getattr(some, which) for some in (then, now)]
    if values[1] is None:
        return "not known"
    return percent(values[1]) if values[0] is None else f"{percent(values[0])} → {percent(values[1])}"


def _room(one: Facts, now: Memory) -> str:
    return number((one.pool.kv_pool_tokens or 0) // now.live) if now.live else "not known"


def _finding(name: str, one: Facts, then: Memory | None, now: Memory) -> list[Finding]:
    known = now.running if now.running is not None else now.bound
    if max(now.bound or 0.0, known or 0.0) < FULL:
        return []
    surely = known is not None and known >= FULL
    return [
        Finding(
            f"{name}: KV memory {_moved(then, now, 'bound')} as upper bound, {_moved(then, now, 'running')} by running "
            f"sequences",
            "warning" if surely else "info",
            [
                (
                    f"{number(now.live)} tokens a sequence, {number(one.pool.kv_pool_tokens)} tokens a replica:"
                    f" {_room(one, now)} sequences fit"
                ),
                "the upper bound takes all requests in the engine; those that wait hold no KV: watch the running ones",
            ],
            ["cut the work: shorter prompts or a lower output cap", "admission: fewer concurrent sequences"],
            asdict(now),
            name,
            "computed",
        )
    ]
