"""KV memory as engines tell it at their start: tokens that fit, and bytes of each.

    vLLM          Available KV cache memory: 31.25 GiB … GPU KV cache size: 262,144 tokens      of one GPU
    SGLang        KV Cache is allocated. #tokens: 180000, K size: 20.60 GB, V size: 20.60 GB    of one GPU, GB is 2^30
    llama.cpp     llama_kv_cache: size = 1024.00 MiB (8192 cells, 32 layers, 2/2 seqs)          cells of each stream
    TensorRT-LLM  Allocated 40.00 GiB for max tokens in paged KV cache (327680)                 of one GPU

The last start in the logs counts. Of models whose layers keep different contexts, bytes over tokens is a mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from capwatch.errors import UsageError
from capwatch.replay.files import UNREADABLE, opened

_GIB: Final = 2**30
_MIB: Final = 2**20
_WORDS: Final = (b"KV cache", b"KV Cache", b"llama_kv_cache")
"""One of them is in every line that matters: the others are not looked at."""
_AVAILABLE = re.compile(r"Available KV cache memory: (\d{1,7}\.\d+) GiB")
_SIZE = re.compile(r"KV cache size: ([\d,]{1,20}) tokens")
_SGLANG = re.compile(
    r"KV Cache is allocated\.(?: dtype: [^,]{1,40},)? #tokens: (\d{1,15}),"
    r" (?:K size: (\d{1,7}\.\d+) GB, V size: (\d{1,7}\.\d+) GB|KV size: (\d{1,7}\.\d+) GB)"
)
_LLAMA = re.compile(
    r"llama_kv_cache: size = +(\d{1,10}\.\d+) MiB \( *(\d{1,12}) cells, +\d+ layers, +\d+/(\d{1,5}) seqs\)"
)
_TRT = re.compile(r"Allocated (\d{1,7}\.\d+) GiB for max tokens in paged KV cache \((\d{1,15})\)")


class Memory(NamedTuple):
    """The KV cache of one replica, as far as one GPU of it tells."""

    tokens: int
    bytes_per_token: float | None


def memory(paths: Iterable[str]) -> Memory | None:
    """What the logs of engines tell; None where they do not.

    Raises:
        UsageError: one cannot be read.
    """
    found = None
    for path in paths:
        try:
            with opened(path) as stream:
                lines = (line.decode(errors="replace") for line in stream if any(word in line for word in _WORDS))
                found = told(lines) or found
        except UNREADABLE as error:
            raise UsageError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return found


def told(lines: Iterable[str]) -> Memory | None:
    """The last that some lines tell.

    >>> told(["x Available KV cache memory: 8.00 GiB", "y GPU KV cache size: 32,768 tokens"])
    Memory(tokens=32768, bytes_per_token=262144.0)
    """
    found: Memory | None = None
    available = 0.0
    for line in lines:
        if match := _AVAILABLE.search(line):
            available = float(match[1]) * _GIB
        elif match := _SIZE.search(line):
            found = _memory(int(match[1].replace(",", "") or 0), available) or found
        elif match := _SGLANG.search(line):
            found = _memory(int(match[1]), sum(float(part or 0) for part in match.groups()[1:]) * _GIB) or found
        elif match := _LLAMA.search(line):
            found = _memory(int(match[2]) * int(match[3]), float(match[1]) * _MIB) or found
        elif match := _TRT.search(line):
            found = _memory(int(match[2]), float(match[1]) * _GIB) or found
    return found


def _memory(tokens: int, size: float) -> Memory | None:
    return Memory(tokens, size / tokens if size else None) if tokens else None
