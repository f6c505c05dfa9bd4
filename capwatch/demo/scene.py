"""The scene: where the demo's files lie, and the configuration by which the daemon reads them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from capwatch.demo.workload import DECODE_RATE, KINDS, KV_TOKENS, MODEL, PREFILL_RATE, REPLICAS, SLOTS

GATEWAY: Final = "gateway"
"""The source that counts requests."""
TARGETS: Final = {"policy": "3s", "order": "8s", "long": "25s"}
"""Time to first token that is good enough, by class: at 66 % utilisation more than nine in ten keep it."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The files of a demo, all under one folder."""

    folder: Path

    @property
    def gateway(self) -> Path:
        """The gateway's log."""
        return self.folder / "litellm" / "requests.jsonl"

    @property
    def engines(self) -> Path:
        """The folder of the engines' logs."""
        return self.folder / "vllm"

    @property
    def configuration(self) -> Path:
        """The daemon's configuration."""
        return self.folder / "capwatch.yml"

    @property
    def state(self) -> Path:
        """The daemon's state."""
        return self.folder / "state"

    def set_up(self, listen: str) -> None:
        """Write the configuration of a daemon that listens on an address."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.configuration.write_text(
            "# Written by capwatch demo: read by `capwatch run` as well.\n"
            + yaml.safe_dump(self._document(listen), sort_keys=False, width=120)
        )

    def _document(self, listen: str) -> dict[str, object]:
        gateway, engines = str(self.gateway), str(self.engines)
        return {
            "listen": listen,
            "state_dir": str(self.state),
            "sources": [
                {"name": GATEWAY, "path": [gateway, f"{gateway}.*"], "format": "litellm", "start": "beginning"},
                {
                    "name": "engine-logs",
                    "path": [f"{engines}/*.log", f"{engines}/*.log.*"],
                    "format": "vllm",
                    "pool": MODEL,
                    "start": "beginning",
                },
            ],
            "pools": [
                {
                    "name": MODEL,
                    "match": {"model": MODEL},
                    "replicas": REPLICAS,
                    "prefill_tokens_per_second": PREFILL_RATE,
                    "decode_tokens_per_second": DECODE_RATE,
                    "slots": SLOTS,
                    "kv_pool_tokens": KV_TOKENS,
                }
            ],
            "classes": [{"name": kind.name, "match": {"route": kind.route}} for kind in KINDS],
            "slo": [{"match": {"route": kind.route}, "ttft": TARGETS[kind.name], "tpot": "60ms"} for kind in KINDS],
        }
