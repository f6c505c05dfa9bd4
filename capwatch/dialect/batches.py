"""What SGLang's scheduler says of its batches, its memory and what it took back, in the words of all versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from capwatch.dialect.verdict import Drop
from capwatch.record import EngineSample

_HEAD = re.compile(r"(?:Prefill|Decode) batch(?:\(mixed #running-req: (\d{1,9})\))?(?: ?\[\d+\])?[.,]? ", re.ASCII)
_CUT_HEAD = re.compile(r"(?:Prefill|Decode) batch\b")
_COUNT = re.compile(r"(\d{1,12})", re.ASCII)
_DECIMAL = re.compile(r"(\d{1,12}\.\d\d)", re.ASCII)
_PERCENT = re.compile(r"(\d{1,3}\.\d\d)%", re.ASCII)
_PARTS: Final[Mapping[str, tuple[str, re.Pattern[str]]]] = {
    "#running-req": ("running", _COUNT),
    "#queue-req": ("waiting", _COUNT),
    "token usage": ("kv_utilisation", _DECIMAL),
    "full token usage": ("kv_utilisation", _DECIMAL),
    "swa token usage": ("kv_utilisation", _DECIMAL),
    "input throughput (token/s)": ("prompt_tokens_per_s", _DECIMAL),
    "gen throughput (token/s)": ("output_tokens_per_s", _DECIMAL),
    "cache hit rate": ("prefix_hit_ratio", _PERCENT),
}
"""What a part of a batch line fills, and how its value must look: usages are shares, the hit rate is a percentage."""
_RETRACTED = re.compile(r".*#retracted_reqs: (\d{1,9})(?:,|$)", re.ASCII)
_MEMORY = re.compile(r"max_total_num_tokens=(?:(\d{1,15}),)?", re.ASCII)


def batch(message: str) -> EngineSample | Drop | None:
    """The sample in a message of a batch, a retraction or the memory; None where the message is another one.

    Of the pools of a hybrid model the fullest is taken. Requests in a mixed prefill batch are those that decode in it.

    >>> batch("Decode batch. #running-req: 3, #token: 41, token usage: 0.02, gen throughput (token/s): 131.00, "
    ...       "#queue-req: 0, ").kv_utilisation
    0.02
    """
    if message.startswith("max_total_num_tokens="):
        memory = _MEMORY.match(message)
        if not memory or not memory[1]:
            return Drop("malformed", "capacity cut short")
        return EngineSample(kv_capacity_tokens=float(memory[1]))
    if "#retracted_reqs: " in message:
        retracted = _RETRACTED.match(message)
        return EngineSample(preemptions=float(retracted[1])) if retracted else Drop("malformed", "retraction cut short")
    head = _HEAD.match(message)
    if head:
        return _parts(message[head.end() :], head[1])
    return Drop("malformed", "batch line cut short") if _CUT_HEAD.match(message) else None


def _parts(body: str, mixed: str | None) -> EngineSample | Drop:
    values: dict[str, float] = {"running": float(mixed)} if mixed else {}
    for part in body.rstrip(", ").split(", "):
        key, _, told = part.partition(": ")
        if key not in _PARTS:
            continue
        field, shape = _PARTS[key]
        value = shape.fullmatch(told)
        if not value:
            return Drop("malformed", "batch line cut short")
        read = float(value[1]) / (100 if shape is _PERCENT else 1)
        values[field] = max(values.get(field, 0.0), read)
    if (
        not {"running", "waiting"} <= values.keys()
        or max(values.get("kv_utilisation", 0), values.get("prefix_hit_ratio", 0)) > 1
    ):
        return Drop("malformed", "batch line cut short")
    return EngineSample(engine=None, **values)
