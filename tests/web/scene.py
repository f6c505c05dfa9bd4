"""A real daemon on made-up logs, for the page: six quiet hours, then a tenant brings long contracts at the same rate.

The rise is more than a quarter in ten minutes, which the detector tells without days of history. The tenant's client
sends each of its requests ten times, which a watcher tells.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError

import numpy as np
import yaml

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"
QUIET_S, CHANGED_S = 6 * 3600, 12 * 60
PREFILL, DECODE = 4000.0, 160.0
KINDS = {"/v1/chat/policy": (1300, 80), "/v1/orders/lookup": (3200, 150), "/v1/summaries": (9000, 400)}
"""Mean prompt and output tokens by route; of the capacity texts."""
USUAL, CHANGED = (0.85, 0.14, 0.01), (0.78, 0.12, 0.10)
TENANTS = ("claims", "billing", "support", "legal", "a-tenant-whose-name-goes-on-and-on-and-on-for-ever", HOSTILE)
WEIGHTS = (0.4, 0.25, 0.15, 0.1, 0.06, 0.04)
READY_S = 60.0


@dataclass(frozen=True)
class Scene:
    """A daemon that runs."""

    folder: Path
    address: str
    process: subprocess.Popen[bytes]

    def log(self, lines: list[str]) -> None:
        """Write lines of the gateway."""
        with (self.folder / "access.jsonl").open("a") as file:
            file.writelines(lines)

    def stop(self) -> None:
        """End the daemon."""
        self.process.terminate()
        self.process.wait(READY_S)


def lines(end: float, rate: float, tenants: Sequence[str] = TENANTS, seed: int = 7) -> list[str]:
    """Requests that finished up to a time (s, epoch), one line each, in order."""
    draw = np.random.default_rng(seed)
    n = int(rate * (QUIET_S + CHANGED_S))
    at = np.sort(draw.uniform(end - QUIET_S - CHANGED_S, end - 2, n))
    changed = at >= end - CHANGED_S
    kinds = np.where(changed, draw.choice(3, n, p=CHANGED), draw.choice(3, n, p=USUAL))
    whose = draw.choice(len(tenants), n, p=WEIGHTS)
    prompt, output = (np.array([kind[which] for kind in KINDS.values()])[kinds] for which in (0, 1))
    prompt, output = (np.maximum(2, mean * draw.lognormal(-0.08, 0.4, n)).astype(int) for mean in (prompt, output))
    ttft = 0.05 + prompt / PREFILL * draw.uniform(1.6, 2.8, n)
    duration = ttft + output * draw.uniform(0.02, 0.028, n)
    routes = list(KINDS)
    return [
        json.dumps(
            {
                "finished_at": float(at[i]),
                "duration_s": float(duration[i]),
                "ttft_s": float(ttft[i]),
                "gateway_s": 0.02,
                "tenant": "acme" if changed[i] and kinds[i] == 2 else tenants[whose[i]],
                "route": routes[kinds[i]],
                "model": "chat-70b",
                "prompt_tokens": int(prompt[i]),
                "cached_tokens": 0,
                "output_tokens": int(output[i]),
                "retries": 9 if changed[i] and kinds[i] == 2 else 0,
                "outcome": "ok" if i % 97 else "rate_limited",
                "status": 200 if i % 97 else 429,
            }
        )
        + "\n"
        for i in range(n)
    ]


def engines(end: float, replicas: int) -> list[str]:
    """What vLLM replicas say of themselves over the last minutes; the first has preempted."""
    found = []
    for ago in range(120, 0, -10):
        stamp = time.strftime("%m-%d %H:%M:%S", time.gmtime(end - ago))
        for engine in range(replicas):
            running, used = 2 + (engine + ago // 10) % 4, 20.0 + 9 * ((engine * 5 + ago) % 7)
            found.append(
                f"(APIServer pid=55) INFO {stamp} [loggers.py:366] Engine {engine:03}: Avg prompt throughput: 410.2 "
                f"tokens/s, Avg generation throughput: 201.0 tokens/s, Running: {running} reqs, Waiting: 0 reqs, "
                f"{'Preemptions: 3, ' if engine == 0 and ago == 10 else ''}"
                f"GPU KV cache usage: {used:.1f}%, Prefix cache hit rate: 0.0%\n"
            )
    return found


@contextmanager
def playing(folder: Path, rate: float, replicas: int, tenants: Sequence[str] = TENANTS) -> Iterator[Scene]:
    """The daemon, once it has read everything and the detector has spoken."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    end = time.time()
    (folder / "access.jsonl").write_text("".join(lines(end, rate, tenants)))
    (folder / "vllm-0.log").write_text("".join(engines(end, replicas)))
    (folder / "capwatch.yml").write_text(yaml.safe_dump(_configuration(folder, port, replicas)))
    command = [sys.executable, "-m", "capwatch.cli", "run", "--config.file", str(folder / "capwatch.yml")]
    with (folder / "daemon.log").open("wb") as told:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=told, stderr=told)
    scene = Scene(folder, f"http://127.0.0.1:{port}/", process)
    try:
        _until_ready(scene)
        yield scene
    finally:
        scene.stop()


def _configuration(folder: Path, port: int, replicas: int) -> dict[str, object]:
    pool = {
        "name": "chat-70b",
        "match": {"model": ["chat-70b"]},
        "replicas": replicas,
        "prefill_tokens_per_second": PREFILL,
        "decode_tokens_per_second": DECODE,
        "slots": 32,
        "kv_pool_tokens": 30_500,
        "zones": 3,
    }
    logs = {"name": "engines", "path": [str(folder / "vllm-*.log")], "format": "vllm", "pool": "chat-70b"}
    return {
        "listen": f"127.0.0.1:{port}",
        "state_dir": str(folder / "state"),
        "sources": [
            {"name": "gateway", "path": [str(folder / "access.jsonl")], "format": "jsonl", "start": "beginning"},
            {**logs, "start": "beginning", "timezone": "UTC", "role": "times"},
        ],
        "pools": [pool],
        "classes": [{"name": "long", "match": {"route": "/v1/summaries"}}],
        "slo": [{"match": {}, "ttft": "6s", "tpot": "60ms"}],
        "limits": {"tenants": 50},
    }


def _until_ready(scene: Scene) -> None:
    deadline = time.monotonic() + READY_S
    while True:
        try:
            with urllib.request.urlopen(f"{scene.address}api/v1/drift") as answer:
                if json.load(answer)["active"]:
                    return
        except (URLError, ConnectionError):
            pass
        log = (scene.folder / "daemon.log").read_text()
        assert scene.process.poll() is None, log[-3000:]
        assert time.monotonic() < deadline, log[-3000:]
        time.sleep(0.05)
