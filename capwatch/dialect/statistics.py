"""The statistics that vLLM prints at intervals, and engines and front ends that took its words over."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from capwatch.dialect.verdict import Drop
from capwatch.record import EngineSample

BEGINNINGS: Final = ("Avg prompt throughput: ", "Running: ")
"""How statistics begin, after the engine that they are of."""

_PART = re.compile(r"([^:]+): (.+)")
_ENGINE = re.compile(r"(?:Engine (\d{1,6})|\d{1,6} Engines Aggregated): ", re.ASCII)
_REQUESTS = re.compile(r"(\d{1,12}) reqs", re.ASCII)
_RATE = re.compile(r"(\d{1,12}(?:\.\d+)?) tokens/s", re.ASCII)
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d+)?)%", re.ASCII)
_COUNT = re.compile(r"(\d{1,12})", re.ASCII)
_PARTS: Final[Mapping[str, tuple[str, re.Pattern[str]]]] = {
    "Avg prompt throughput": ("prompt_tokens_per_s", _RATE),
    "Avg generation throughput": ("output_tokens_per_s", _RATE),
    "Running": ("running", _REQUESTS),
    "Waiting": ("waiting", _REQUESTS),
    "Pending": ("waiting", _REQUESTS),
    "Preemptions": ("preemptions", _COUNT),
    "KV cache usage": ("kv_utilisation", _PERCENT),
    "Prefix cache hit rate": ("prefix_hit_ratio", _PERCENT),
}
"""What a part of the statistics fills, and how its value must look. Other parts are passed over."""
_CAPACITY = re.compile(r"(?:[A-Z][\w+ ]* )?KV cache size: ")
_TOKENS = re.compile(r"(\d[\d,]{0,15}) tokens\b", re.ASCII)


def statistics(message: str) -> EngineSample | Drop | None:
    """The sample in a message of statistics, percent as shares; None where the message is another one.

    >>> statistics("Engine 001: Avg prompt throughput: 1.5 tokens/s, Avg generation throughput: 0.0 tokens/s, "
    ...            "Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 5.0%").kv_utilisation
    0.05
    """
    head = _ENGINE.match(message)
    body = message[head.end() :] if head else message
    if body.startswith(BEGINNINGS):
        return parts(body, engine=head[1] if head else None)
    if body and BEGINNINGS[0].startswith(body):
        return Drop("malformed", "statistics cut short")
    return None


def parts(body: str, engine: str | None) -> EngineSample | Drop:
    """Read `key: value` parts by name. A known part of another shape, or one missing, means that the line was cut."""
    values: dict[str, float] = {}
    for part in body.removesuffix(".").rstrip(", ").split(", "):
        pair = _PART.fullmatch(part)
        if not pair:
            if part[:1].isdecimal():  # the value before it goes on, as in `KV fetch: 1 waiting, 2 in progress`
                continue
            return Drop("malformed", "statistics cut short")
        key = "KV cache usage" if pair[1].endswith(" KV cache usage") else pair[1]
        if key not in _PARTS:
            continue
        field, shape = _PARTS[key]
        value = shape.fullmatch(pair[2])
        if not value:
            return Drop("malformed", "statistics cut short")
        values.setdefault(field, float(value[1]) / (100 if shape is _PERCENT else 1))  # V0: GPU before CPU
    wanted = {"running", "waiting"} | ({"kv_utilisation"} if "prompt_tokens_per_s" in values else set())
    if not wanted <= values.keys() or max(values.get(share, 0) for share in ("kv_utilisation", "prefix_hit_ratio")) > 1:
        return Drop("malformed", "statistics cut short")
    return EngineSample(engine=str(int(engine)) if engine else None, **values)


def capacity(message: str) -> EngineSample | Drop | None:
    """The KV capacity in a message about it; None where the message is another one.

    >>> capacity("GPU KV cache size: 262,144 tokens").kv_capacity_tokens
    262144.0
    """
    told = _CAPACITY.match(message)
    if not told:
        return None
    tokens = _TOKENS.match(message, told.end())
    if not tokens:
        return Drop("malformed", "capacity without tokens")
    return EngineSample(kv_capacity_tokens=float(whole(tokens[1])))


def whole(digits: str) -> int:
    """A whole number printed with commas.

    >>> whole("1,234")
    1234
    """
    return int(digits.replace(",", ""))
