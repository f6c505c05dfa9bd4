"""Requests as replayable traces of load generators: times and lengths, no text and no names.

`mooncake`: JSON lines with `timestamp` in ms from the first arrival, `input_length`, `output_length` and `hash_ids`,
one for each block of 512 prompt tokens, equal where the prefix cache could have served it; which blocks were equal no
log tells, so they are all new but for the cached share, which all requests have in common.
`azure`: CSV with `TIMESTAMP,ContextTokens,GeneratedTokens`, as the Azure LLM inference traces have it.
`guidellm`: JSON lines with the default columns of `kind: trace_synthetic`, `timestamp` in s from the first arrival.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

import numpy as np

from capwatch.observed.requests import Requests
from capwatch.record import Floats, zeroed

BLOCK: Final = 512
"""Prompt tokens that one hash of a Mooncake trace stands for."""


def mooncake(requests: Requests) -> Iterator[str]:
    """JSON lines in the order of arrival."""
    rows = zip(*(column.tolist() for column in _columns(requests)), strict=True)
    fresh = int(np.max(zeroed(requests["cached_tokens"]), initial=0.0)) // BLOCK
    for at, prompt, output, cached in rows:
        blocks, common = -(-int(prompt) // BLOCK), int(cached) // BLOCK
        hashes = [*range(common), *range(fresh, fresh + blocks - common)]
        fresh += blocks - common
        line = {"timestamp": round(at * 1000), "input_length": int(prompt), "output_length": int(output)}
        yield json.dumps(line | {"hash_ids": hashes})


def azure(requests: Requests) -> Iterator[str]:
    """CSV in the order of arrival, times to 100 ns as in the public traces."""
    yield "TIMESTAMP,ContextTokens,GeneratedTokens"
    first = float(np.nanmin(requests["started_at"], initial=np.inf))
    for at, prompt, output, _ in zip(*(column.tolist() for column in _columns(requests)), strict=True):
        moment = datetime.fromtimestamp(first + at, UTC)
        yield f"{moment:%Y-%m-%d %H:%M:%S.%f}0,{int(prompt)},{int(output)}"


def guidellm(requests: Requests) -> Iterator[str]:
    """JSON lines in the order of arrival."""
    for at, prompt, output, _ in zip(*(column.tolist() for column in _columns(requests)), strict=True):
        yield json.dumps({"timestamp": round(at, 6), "input_length": int(prompt), "output_length": int(output)})


FORMS: Final[Mapping[str, Callable[[Requests], Iterator[str]]]] = {
    "mooncake": mooncake,
    "azure": azure,
    "guidellm": guidellm,
}


def replayable(requests: Requests) -> Requests:
    """Those that tell when they came and both lengths, and that an engine served; in the order in which they came."""
    told = ~np.isnan(requests["started_at"]) & (requests["prompt_tokens"] > 0) & (requests["output_tokens"] > 0)
    kept = requests.take(told & ~requests.cache_hit)
    return kept.take(np.argsort(kept["started_at"], kind="stable"))


def _columns(requests: Requests) -> tuple[Floats, ...]:
    """S from the first arrival, prompt, output and cached tokens."""
    at = requests["started_at"]
    cached = np.minimum(zeroed(requests["cached_tokens"]), requests["prompt_tokens"])
    return at - at.min(initial=np.inf), requests["prompt_tokens"], requests["output_tokens"], cached
