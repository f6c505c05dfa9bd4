"""Streams completions at Poisson times and writes what the client saw, in capwatch's own format `jsonl`."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPConnection
from threading import Lock, Thread
from typing import Any

from .server import MODEL
from .tiny_model import words


@dataclass(frozen=True)
class Load:
    """A traffic: its name, requests a second, how long, and ranges of output tokens with their weights."""

    name: str
    rate: float
    seconds: float
    outputs: Sequence[tuple[float, int, int]]


CALM = Load("calm", 1.5, 60, ((1.0, 100, 300),))
SATURATED = Load("saturated", 10.0, 45, ((0.5, 100, 300), (0.5, 300, 900)))  # several times what two cores can do


class Client:
    """Drives one server; `records` is what it saw, one entry for each finished request."""

    def __init__(self, port: int, seed: int = 7) -> None:
        self.records: list[dict[str, Any]] = []
        self._port = port
        self._draw = random.Random(seed)
        self._words = words()
        self._lock = Lock()

    def drive(self, load: Load) -> None:
        """Send a load and wait until the last answer is complete."""
        begun, at = time.monotonic(), 0.0
        threads: list[Thread] = []
        while (at := at + self._draw.expovariate(load.rate)) < load.seconds:
            time.sleep(max(0.0, begun + at - time.monotonic()))
            threads.append(Thread(target=self._request, args=(f"{load.name}-{len(threads)}", *self._one(load))))
            threads[-1].start()
        for thread in threads:
            thread.join()

    def _one(self, load: Load) -> tuple[str, int]:
        weights = [weight for weight, _, _ in load.outputs]
        _, least, greatest = self._draw.choices(load.outputs, weights)[0]
        return " ".join(self._draw.choices(self._words, k=self._draw.randint(40, 160))), self._draw.randint(
            least, greatest
        )

    def _request(self, name: str, prompt: str, output: int) -> None:
        body = {
            "model": MODEL,
            "prompt": prompt,
            "max_tokens": output,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        record: dict[str, Any] = {
            "request_id": name,
            "started_at": time.time(),
            "route": "/v1/completions",
            "model": MODEL,
        }
        connection = HTTPConnection("127.0.0.1", self._port, timeout=600)
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        record |= {"status": answer.status, "stream": True}
        for line in answer:
            if line.startswith(b"data: {"):
                if "ttft_s" not in record:
                    record["ttft_s"] = time.time() - record["started_at"]
                if usage := json.loads(line[6:]).get("usage"):
                    record |= {"prompt_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"]}
        record["finished_at"] = time.time()
        record["duration_s"] = record["finished_at"] - record["started_at"]
        connection.close()
        with self._lock:
            self.records.append(record)
