"""KV memory from the lines that engines print at their start."""

from __future__ import annotations

from pathlib import Path

import pytest

from capwatch.calibrate.memory import Memory, memory, told
from capwatch.capacity.kv import bytes_per_token

LLAMA_70B = bytes_per_token(80, 8, 128, 2)
GIB = 2**30
LINES = {
    "vllm": (
        (
            "(EngineCore pid=58) INFO 10-05 08:30:28 [gpu_worker.py:759] Available KV cache memory: 40.00 GiB\n"
            "(EngineCore pid=58) INFO 10-05 08:30:29 [kv_cache_utils.py:1067] GPU KV cache size: 131,072 tokens\n"
        ),
        Memory(131072, LLAMA_70B),
    ),
    "vllm, size alone": ("INFO GPU KV cache size: 131,072 tokens\n", Memory(131072, None)),
    "sglang": (
        (
            "[2026-10-12 14:00:20] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 131072, K size: 20.00 GB, "
            "V size: 20.00 GB\n"
        ),
        Memory(131072, LLAMA_70B),
    ),
    "sglang, latent": ("KV Cache is allocated. #tokens: 1024, KV size: 1.00 GB\n", Memory(1024, GIB / 1024)),
    "llama.cpp": (
        "llama_kv_cache: size = 1024.00 MiB (  4096 cells,  32 layers,  2/2 seqs), K (f16):  512.00 MiB\n",
        Memory(8192, GIB / 8192),
    ),
    "trt": (
        (
            "[TensorRT-LLM][INFO] [MemUsageChange] Allocated 1.00 GiB for max tokens in paged KV cache (4096).\n"
            "[TensorRT-LLM][INFO] [MemUsageChange] Allocated 40.00 GiB for max tokens in paged KV cache (131072).\n"
        ),
        Memory(131072, LLAMA_70B),
    ),
    "no tokens": ("GPU KV cache size: 0 tokens\nGPU KV cache size: , tokens\n", None),
    "nothing": ("GET /health 200\n", None),
    "empty": ("", None),
}


@pytest.mark.parametrize("name", LINES)
def test_what_a_start_tells(name: str, tmp_path: Path) -> None:
    """Tokens, and bytes over tokens where both are told; the last start counts."""
    text, expected = LINES[name]
    (tmp_path / "engine.log").write_text(text)
    found = memory([str(tmp_path / "engine.log")])
    assert found == expected


def test_a_line_of_any_length_takes_no_time() -> None:
    """A hostile line with the words in it."""
    assert told(["KV cache size: " + "9" * 100_000 + " tokens", "llama_kv_cache: size = " + " " * 100_000]) is None
