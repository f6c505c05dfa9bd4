"""What TensorRT-LLM tells of single iterations: a line of its log, or an object of its JSON statistics."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple, cast

from capwatch.dialect.path import walk
from capwatch.dialect.value import REFUSED, epoch, number, time
from capwatch.dialect.verdict import Drop
from capwatch.record import EngineSample

_PART = re.compile(r"(?:^|, )(\w+)(?: = |: )([^,]*)", re.ASCII)
_STATES = re.compile(r"(?:, )?states = \{[^{}]*\}")
_SHARE = re.compile(r"[01](?:\.\d+)?|N/A", re.ASCII)


class Iteration(NamedTuple):
    """One iteration of one rank."""

    number: int
    """Counts from 1 in each process."""
    rank: int
    sample: EngineSample


def iteration(message: str, zone: tzinfo) -> Iteration | Drop | None:
    """The iteration in a message of the log; None where the message is another one.

    Parts are read by name, in any order, with ` = ` or `: ` between name and value; a line without the whole Python
    literal of its states was cut. Times without a zone are in ``zone``.

    >>> found = iteration("iter = 7, timestamp = 2026-04-20 05:11:00, num_scheduled_requests: 3, states = {}", UTC)
    >>> found.number, found.sample.running
    (7, 3.0)
    """
    begin = message.find("iter = ")
    if begin < 0:
        return None
    body, states = _STATES.subn("", message[begin:], count=1)
    parts = dict(_PART.findall(body.rstrip(", ")))
    number_, running = parts.get("iter", ""), parts.get("num_scheduled_requests", "")
    rank = parts.get("global_rank") or parts.get("rank") or "0"
    util = parts.get("kv_cache_util", "N/A")
    whole = all(value.isascii() and value.isdecimal() for value in (number_, running, rank))
    if not (states and whole and _SHARE.fullmatch(util)):
        return Drop("malformed", "iteration cut short")
    share = None if util == "N/A" else float(util)
    if share is not None and share > 1:
        return Drop("malformed", "a share over 1")
    at = time(parts.get("timestamp"), zone)
    if at is None or at == REFUSED:
        return Drop("bad_time")
    return Iteration(int(number_), int(rank), EngineSample(at=at, running=float(running), kv_utilisation=share))


def statistic(found: object, zone: tzinfo) -> Iteration | Drop:
    """The iteration in one object of the JSON statistics."""
    number_, running = number(walk(found, "iter")), number(walk(found, "numActiveRequests"))
    if number_ is None or number_ == REFUSED or running is None or running == REFUSED:
        return Drop("malformed", "statistics without their counts")
    try:
        moment = datetime.strptime(str(walk(found, "timestamp")), "%m-%d-%Y %H:%M:%S.%f")  # noqa: DTZ007 - has no zone
    except ValueError:
        return Drop("bad_time")
    at = epoch(moment, zone)
    used, most, each = (
        _told(walk(found, f"kvCacheStats.{name}")) for name in ("usedNumBlocks", "maxNumBlocks", "tokensPerBlock")
    )
    sample = EngineSample(
        at=at,
        running=running,
        waiting=_told(walk(found, "numQueuedRequests")),
        kv_utilisation=used / most if used is not None and most and used <= most else None,
        kv_capacity_tokens=most * each if most and each else None,
    )
    return Iteration(int(number_), int(_told(walk(found, "rank")) or 0), sample)


def _told(value: object) -> float | None:
    read = number(value)
    return None if read is None or read == REFUSED or read < 0 else read


def hands_out_once(page: str) -> bool:
    """Whether an answer is a list of statistics that its server forgets when it has told them.

    >>> hands_out_once('[{"iter": 1}]'), hands_out_once("[]"), hands_out_once("# TYPE a counter")
    (True, True, False)
    """
    return page.lstrip().startswith("[")


def newest(page: str) -> tuple[Iteration, Mapping[str, float]] | None:
    """The last iteration of the first rank in an answer, and its counters; None where there is none.

    The prefix cache is counted in blocks, since the start of the process.
    """
    try:
        found = cast("object", json.loads(page))
    except (ValueError, RecursionError):
        return None
    for one in reversed(found if isinstance(found, list) else []):
        told = statistic(one, UTC)
        if isinstance(told, Iteration) and not told.rank:
            hit, missed = (_told(walk(one, f"kvCacheStats.{name}")) for name in ("reusedBlocks", "missedBlocks"))
            blocks = {} if hit is None or missed is None else {"prefix_hits": hit, "prefix_queries": hit + missed}
            return told, {"steps": float(told.number)} | blocks
    return None
