"""Traffic whose numbers are known: two tenants and two routes for twenty minutes, as rows, log and configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

START: Final = 1_790_000_400.0 - 1_790_000_400.0 % 3600
SECONDS: Final = 1200
CONFIG: Final = """
sources: [{name: gateway, path: x.jsonl, format: jsonl, start: beginning}]
pools:
  - name: chat
    match: {model: chat}
    prefill_tokens_per_second: 4000
    decode_tokens_per_second: 160
    replicas: 6
    slots: 8
    kv_pool_tokens: 30000
    zones: 3
    burst: 1.5
    target_utilisation: 0.6
    cold_start: 170s
    scale_down_window: 10m
classes: [{name: long, match: {route: /long}}, {name: short, match: {}}]
slo: [{match: {}, ttft: 1.5s, tpot: 60ms}]
"""
LONG: Final = (4000 - 2000) / 4000 + 320 / 160
SHORT: Final = 1000 / 4000 + 80 / 160
"""Replica-seconds of a request of either kind."""


def rows() -> list[dict[str, Any]]:
    """Two a second, a quarter of them long ones of one tenant; twice as many short ones in the second five minutes."""
    found = []
    for number in range(2 * SECONDS):
        found.append(row(START + number / 2, long=number % 4 == 0))
        if 300 <= number / 2 < 600 and number % 4:
            found.append(row(START + number / 2 + 0.1, long=False))
    return found


def row(at: float, *, long: bool) -> dict[str, Any]:
    """One request."""
    return {
        "started_at": at, "finished_at": at + 0.25, "model": "chat", "status": 200,
        "tenant": "acme" if long else "bolt", "route": "/long" if long else "/short",
        "prompt_tokens": 4000 if long else 1000, "cached_tokens": 2000 if long else 0,
        "output_tokens": 320 if long else 80, "prefill_s": 0.05, "decode_s": 0.2,
    }  # fmt: skip


def written(folder: Path, config: str = CONFIG) -> Path:
    """The log and its configuration in a folder; the configuration's path."""
    (folder / "x.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in rows()))
    (folder / "capwatch.yml").write_text(config)
    return folder / "capwatch.yml"
