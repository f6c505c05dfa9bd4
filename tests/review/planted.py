"""Six hours of a pool with three engines, in which everything that the review tells beside requests is planted.

What is planted is counted while it is written, by plain arithmetic and nothing of the product.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

HOURS: Final = 6
HOUR: Final = 3600
EVERY_S: Final = 30
TOLD_S: Final = 30
PREFILL, DECODE = 4000.0, 100.0
PROMPTS: Final = (200, 3000, 20_000)
TTFT: Final = {200: 0.2, 3000: 1.0, 20_000: 5.0}
OUTPUT: Final = 101
TPOT: Final = 0.02
QUEUE: Final = 0.1
PHASES: Final = {"weights": 40, "kv_cache": 50, "ready": 56}
RUNNING: Final = 3
KV: Final = 0.25


class Planted:
    """The logs of a folder, and what is in them.

    Attributes:
        truth: counts and sums of the whole hours.
        config: the configuration that reads them.
    """

    def __init__(self, folder: Path, begin: int) -> None:
        """Write logs from ``begin`` (s, epoch, a whole hour) on."""
        self.truth: Counter[str] = Counter()
        self.config = folder / "capwatch.yml"
        self._folder, self._begin = folder, begin
        self._end = begin + HOURS * HOUR
        requests, records = self._requests()
        self._write("requests.jsonl", requests)
        self._write("records.jsonl", records)
        self._engine("a", [(0, HOURS * HOUR + 1800)], restart=2 * HOUR)
        self._engine("b", [(1 * HOUR + 600, 3 * HOUR + 600)])
        self._engine("c", [(3 * HOUR + 1800, HOURS * HOUR + 1800)])
        engines = "".join(
            f"  - {{name: vllm-{name}, path: {folder}/{name}.log, format: vllm, engine_from: {name}, pool: chat,"
            " role: times}\n"
            for name in "abc"
        )
        self.config.write_text(
            f"sources:\n  - {{name: gateway, path: {folder}/requests.jsonl, format: jsonl}}\n"
            f"  - {{name: records, path: {folder}/records.jsonl, format: jsonl, role: times}}\n{engines}"
            f"pools:\n  - {{name: chat, match: {{model: m}}, replicas: 3, prefill_tokens_per_second: {PREFILL},"
            f" decode_tokens_per_second: {DECODE}, kv_pool_tokens: 100000}}\n"
        )

    def _write(self, name: str, lines: list[str]) -> None:
        path = self._folder / name
        path.write_text("".join(f"{line}\n" for line in lines))
        os.utime(path, (self._end + HOUR, self._end + HOUR))

    def _plant(self, at: float, **counts: float) -> None:
        if at < self._end:
            self.truth.update(counts)

    def _requests(self) -> tuple[list[str], list[str]]:
        """A request each `EVERY_S`, its lines as the gateway and as an engine write them, by their ends."""
        told: list[tuple[float, str]] = []
        records = []
        for number in range((HOURS * HOUR + 1800) // EVERY_S):
            at = self._begin + number * EVERY_S + 1.0
            prompt = PROMPTS[number % 3]
            row = self._row(f"r{number}", at, prompt)
            if number % 50 == 7:  # fails, and is tried again with another id
                again = self._row(f"r{number}-again", at + 5, prompt) | {"attempt_group": f"g{number}"}
                row |= {"outcome": "timeout", "attempt_group": f"g{number}"}
                told.append((float(again["finished_at"]), json.dumps(again)))
                self._plant(again["finished_at"], retries=1, resent_cost=cost(prompt), requests=1, served=1)
                self._plant(row["finished_at"], abandoned=1, abandoned_cost=cost(prompt))
            if number % 70 == 11:
                row["outcome"] = "client_abort"
                self._plant(row["finished_at"], abandoned=1, abandoned_cost=cost(prompt))
            if number % 90 == 13:
                del row["prompt_tokens"], row["output_tokens"]
                self._plant(row["finished_at"], usage_unknown=row["outcome"] == "ok")
            line = json.dumps(row)
            end = float(row["finished_at"])
            told.append((end, line))
            self._plant(end, requests=1, served=1)
            if number % 100 == 17:
                told.append((end + 0.1, line))
                self._plant(end, duplicates=1)
            if number % 40 == 19 and end < self._end:  # its hour is that of the lines around it
                told.append((end + 0.1, "{no line"))
                self._plant(end, malformed=1)
            if number % 10:  # the engine's own record of nine in ten, and of one more that the gateway does not know
                records.append((end - 0.01, json.dumps(row | {"request_id": f"chatcmpl-r{number}"})))
                self._plant(end, records=1, joined=1)
            if number % 25 == 3:
                records.append((end - 0.01, json.dumps(row | {"request_id": f"elsewhere-{number}"})))
                self._plant(end, records=1)
        return ([line for _, line in sorted(lines)] for lines in (told, records))  # type: ignore[return-value]

    def _row(self, name: str, at: float, prompt: int) -> dict[str, Any]:
        duration = QUEUE + TTFT[prompt] + (OUTPUT - 1) * TPOT
        self._plant(at + duration, in_engine_s=duration)
        return {
            "request_id": name, "started_at": at, "finished_at": round(at + duration, 3), "duration_s": duration,
            "ttft_s": QUEUE + TTFT[prompt], "queue_s": QUEUE, "prefill_s": TTFT[prompt],
            "decode_s": (OUTPUT - 1) * TPOT, "prompt_tokens": prompt, "output_tokens": OUTPUT, "model": "m",
            "tenant": "t", "outcome": "ok", "status": 200,
        }  # fmt: skip

    def _engine(self, name: str, spans: list[tuple[int, int]], restart: int | None = None) -> None:
        """The log of an engine: statistics each `TOLD_S` of its spans, from its start to its sudden end."""
        lines, preempted = [], 0
        for begin, end in spans:
            lines += self._start(begin)
            self._plant(self._begin + begin, came=1)
            self._plant(self._begin + end, left=1)
            last, after = -1, begin + max(PHASES.values()) + 4
            for second in range(after, end, TOLD_S):
                at = self._begin + second
                if restart is not None and restart <= second < restart + 60:
                    if second - restart < TOLD_S:
                        lines += self._start(second)
                        self._plant(at, restarts=1)
                    last, preempted = -1, 0
                    continue
                lines.append(self._line(second, statistics()))
                if last >= 0:
                    self._plant(at, heard_s=second - last, in_flight_s=RUNNING * (second - last))
                if second % 1800 < TOLD_S:
                    preempted += 2
                    lines.append(self._line(second, PREEMPTED + f"{preempted}"))
                    self._plant(at, preemptions=1 if preempted == 2 else 2)  # the first of a process tells of one
                last = second
        self._write(f"{name}.log", lines)

    def _start(self, second: int) -> list[str]:
        for phase, after in PHASES.items():
            self._plant(self._begin + second + after, **{f"start_{phase}": 1, f"start_{phase}_s": after})
        said = (
            (0, "vLLM API server version 0.32.0"),
            (40, "Loading weights took 39.00 seconds"),
            (50, "GPU KV cache size: 100,000 tokens"),
            (56, "Starting vLLM server on http://0.0.0.0:8000"),
        )
        return [self._line(second + after, text) for after, text in said]

    def _line(self, second: int, text: str) -> str:
        stamp = datetime.fromtimestamp(self._begin + second, UTC).strftime("%m-%d %H:%M:%S")
        return f"(APIServer pid=31) INFO {stamp} [loggers.py:366] {text}"


PREEMPTED: Final = (
    "Sequence group 7 is preempted by PreemptionMode.RECOMPUTE mode because there is no memory. "
    "total_num_cumulative_preemption="
)


def statistics() -> str:
    """A line of an engine with so many running requests."""
    return (
        "Engine 000: Avg prompt throughput: 100.0 tokens/s, Avg generation throughput: 0.0 tokens/s, "
        f"Running: {RUNNING} reqs, Waiting: 0 reqs, GPU KV cache usage: {100 * KV:.1f}%, Prefix cache hit rate: 0.0%"
    )


def cost(prompt: int) -> float:
    """Replica-seconds of a request."""
    return prompt / PREFILL + OUTPUT / DECODE
