"""Cold starts as engines' logs tell them: the shared samples, each with the phases that were read off it by hand."""

from __future__ import annotations

import pytest

from capwatch.dialect import Decoder, Options
from capwatch.formats import shelf

from .compare import NEAR, sample

STARTS: dict[tuple[str, str], list[dict[str, float]]] = {
    ("vllm", "engines/vllm-v1-0.32.log"): [
        {"start": 0, "kv_cache": 29, "ready": 29, "first_request": 60},
        {"start": 0, "kv_cache": 30},
    ],
    ("vllm", "engines/vllm-v1-0.8.5.log"): [
        {"start": 0, "kv_cache": 31, "ready": 42, "first_request": 66},
        {"start": 0, "kv_cache": 34},
    ],
    ("vllm", "captured/vllm-0.32-calm/engine.log"): [
        {"start": 0, "weights": 18, "kv_cache": 18, "ready": 19, "first_request": 189},
    ],
    ("sglang", "engines/sglang-0.5.23.log"): [
        {"start": 0, "weights": 18, "kv_cache": 20},
        {"start": 0, "kv_cache": 33},
    ],
    ("sglang", "engines/sglang-0.4.4.log"): [
        {"start": 0, "kv_cache": 21, "ready": 31, "first_request": 44},
        {"start": 0, "kv_cache": 30},
    ],
    ("tgi", "engines/tgi-3.3.7-text.log"): [
        {"start": 0, "weights": 40, "kv_cache": 55, "ready": 56, "first_request": 69.876545},
        {"start": 0, "kv_cache": 20, "first_request": 29.87655},
    ],
    ("llamacpp", "captured/llama_server_text.log"): [
        {"start": 0, "kv_cache": 0.02073, "weights": 0.022153, "ready": 0.022169, "first_request": 21.963182},
    ],
    ("llamacpp", "engines/llamacpp-b11434-jsonl.log"): [
        {"start": 0, "kv_cache": 4.210345, "weights": 4.3, "ready": 4.300111, "first_request": 18.1006},
    ],
    ("ollama", "engines/ollama-0.32.log"): [{"start": 0, "ready": 4.148, "first_request": 10.26}],
    ("trtllm", "engines/trtllm-1.x-iterlog.log"): [{"start": 0, "kv_cache": 30, "ready": 33}, {"start": 0}],
    ("lmdeploy", "engines/lmdeploy-0.18.log"): [{"start": 0, "first_request": 36.612}, {"start": 0}],
}


@pytest.mark.parametrize(("form", "name"), STARTS)
def test_a_sample_tells_its_starts(form: str, name: str) -> None:
    """Seconds from each start in the log to each phase that it tells of."""
    found: list[dict[str, float]] = []
    for _, reached in Decoder(shelf()[form], Options()).decode(sample(name).read_bytes(), NEAR).reached:
        if reached.phase == "start":
            found.append({})
        found[-1][reached.phase] = round(reached.seconds, 3)
    assert found == [{phase: round(seconds, 3) for phase, seconds in one.items()} for one in STARTS[form, name]]
