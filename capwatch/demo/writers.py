"""The demo's logs: lines as LiteLLM's callback and vLLM write them, in files that rotate by rename."""

from __future__ import annotations

import json
import os
import random
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypedDict

from capwatch.demo.draw import ABORT, LIMIT, Rows
from capwatch.demo.simulation import Statistic
from capwatch.demo.workload import CONTEXT, KINDS, KV_TOKENS, MODEL, PREFIX, REPLICAS, TENANTS

MAX_BYTES: Final = 2 << 20
"""A log is renamed when it is longer: the gateway's about every four minutes."""
KEPT: Final = 4
"""Rotated files that are kept; the oldest is removed."""
CAP: Final = 3 * PREFIX
"""Output tokens that a client asks for at most."""
START_S: Final = 45
"""What an engine takes from its first line to its first request."""


class LogFile:
    """A log that is appended to, and renamed to `.1`, `.2` and so on when it has become long."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES, kept: int = KEPT) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._kept = kept
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)

    def append(self, lines: Sequence[str], at: float) -> None:
        """Write lines at a time (s, epoch), which becomes the file's; then rotate if it is long enough."""
        if not lines:
            return
        os.write(self._file, "".join(f"{line}\n" for line in lines).encode())
        os.utime(self._file, (at, at))  # the clock of the demo, which may run ahead
        if os.fstat(self._file).st_size > self._max_bytes:
            self._rotate()

    def close(self) -> None:
        """Give the file back."""
        os.close(self._file)

    def _rotate(self) -> None:
        self.close()
        for number in range(self._kept, 0, -1):
            older = Path(f"{self._path}.{number}")
            newer = Path(f"{self._path}.{number - 1}") if number > 1 else self._path
            if newer.exists():
                newer.replace(older)
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)


class GatewayLog:
    """What the gateway's callback writes: a line for each request, when it has ended."""

    def __init__(self, file: LogFile, seed: int) -> None:
        self._file = file
        self._chance = random.Random(seed)  # noqa: S311 - ids, not secrets

    def write(self, rows: Rows, at: float) -> None:
        """Write the lines of requests that have ended, in that order."""
        self._file.append([json.dumps(one, separators=(",", ":")) for one in self._payloads(rows)], at)

    def close(self) -> None:
        """Give the file back."""
        self._file.close()

    def _payloads(self, rows: Rows) -> list[dict[str, object]]:
        times = zip(rows.arrived.tolist(), (rows.started + rows.prefill).tolist(), rows.ended.tolist(), strict=True)
        tokens = zip((rows.computed + rows.cached).tolist(), rows.cached.tolist(), rows.output.tolist(), strict=True)
        who = zip(rows.tenant.tolist(), rows.kind.tolist(), strict=True)
        facts = zip(rows.fate.tolist(), rows.gateway.tolist(), who, times, tokens, strict=True)
        return [self._payload(*one) for one in facts]

    def _payload(
        self,
        fate: int,
        gateway: float,
        who: tuple[int, int],
        times: tuple[float, float, float],
        tokens: tuple[int, int, int],
    ) -> dict[str, object]:
        (tenant, kind), (start, first, end), (prompt, cached, output) = who, times, tokens
        usage = {"prompt_tokens_details": {"cached_tokens": cached}} if fate != LIMIT else None
        call = str(uuid.UUID(int=self._chance.getrandbits(128), version=4))
        return {
            "id": f"chatcmpl-{call[:13]}",
            "litellm_call_id": call,
            "trace_id": str(uuid.UUID(int=self._chance.getrandbits(128), version=4)),
            "call_type": "acompletion",
            "cache_hit": False,
            "stream": True,
            "status": "success" if fate not in (ABORT, LIMIT) else "failure",
            "model": f"hosted_vllm/{MODEL}",
            "custom_llm_provider": "hosted_vllm",
            "model_group": MODEL,
            "startTime": start,
            "endTime": end,
            "completionStartTime": end if fate == LIMIT else first,
            "prompt_tokens": prompt,
            "completion_tokens": output,
            "total_tokens": prompt + output,
            "model_parameters": {"stream": True, "max_tokens": CAP},
            "hidden_params": {"litellm_overhead_time_ms": gateway * 1e3, "usage_object": usage},
            "status_fields": {"guardrail_status": "not_run"},
            "error_information": _error(fate),
            "metadata": {
                "user_api_key_team_alias": TENANTS[tenant],
                "user_api_key_request_route": KINDS[kind].route,
                "attempted_retries": 0,
                "usage_object": usage,
            },
            "request_tags": [],
        }


class _Error(TypedDict):
    error_code: str
    error_class: str
    llm_provider: str
    error_rate_limit_category: str | None


def _error(fate: int) -> _Error | None:
    if fate == LIMIT:
        return _Error(
            error_code="429",
            error_class="RateLimitError",
            llm_provider="",
            error_rate_limit_category="litellm_rate_limit",
        )
    if fate == ABORT:
        return _Error(
            error_code="499", error_class="ClientDisconnected", llm_provider="", error_rate_limit_category=None
        )
    return None


class EngineLog:
    """What one replica's server prints: its start, its statistics, and a line for each answer."""

    def __init__(self, file: LogFile, replica: int) -> None:
        self._file = file
        self._replica = replica
        self._server, self._core = 31 + 100 * replica, 58 + 100 * replica
        """Process numbers."""

    def begin(self, at: float) -> None:
        """Print what an engine prints until it is ready at a time (s, epoch)."""
        room = (
            f"{KV_TOKENS:,} tokens, Maximum concurrency for {CONTEXT:,} tokens per request: {KV_TOKENS / CONTEXT:.2f}x"
        )
        lines = [
            f"{self._prefix(at - START_S)} [entry.py:140] vLLM API server version 0.32.0",
            f"{self._prefix(at - 12, core=True)} [gpu_worker.py:759] Available KV cache memory: 9.31 GiB",
            f"{self._prefix(at - 11, core=True)} [kv_cache_utils.py:1067] GPU KV cache size: {room}",
            f"INFO:     Started server process [{self._server}]",
            "INFO:     Application startup complete.",
        ]
        self._file.append(lines, at)

    def write(self, answers: int, statistic: Statistic | None, at: float) -> None:
        """Print a line for each answer, and after them the statistics if it is their time (s, epoch)."""
        host = f"10.40.2.{self._replica + 7}"
        lines = [f'INFO:     {host}:{50_000 + n} - "POST /v1/chat/completions HTTP/1.1" 200 OK' for n in range(answers)]
        if statistic is not None:
            lines.append(
                f"{self._prefix(at)} [loggers.py:366] Engine 000: "
                f"Avg prompt throughput: {statistic.prompt_tokens_per_s:.1f} tokens/s, "
                f"Avg generation throughput: {statistic.output_tokens_per_s:.1f} tokens/s, "
                f"Running: {statistic.running} reqs, Waiting: {statistic.waiting} reqs, "
                f"GPU KV cache usage: {statistic.kv_share:.1%}, Prefix cache hit rate: {statistic.hit_share:.1%}"
            )
        self._file.append(lines, at)

    def close(self) -> None:
        """Give the file back."""
        self._file.close()

    def _prefix(self, at: float, *, core: bool = False) -> str:
        name, pid = ("EngineCore", self._core) if core else ("APIServer", self._server)
        return f"({name} pid={pid}) INFO {time.strftime('%m-%d %H:%M:%S', time.gmtime(at))}"


class Writers:
    """All logs of the demo in one folder."""

    def __init__(self, gateway: Path, engines: Path, seed: int, max_bytes: int = MAX_BYTES, kept: int = KEPT) -> None:
        """Open the logs: ``gateway`` is the path of the one, ``engines`` the folder of the others."""
        gateway.parent.mkdir(parents=True, exist_ok=True)
        engines.mkdir(parents=True, exist_ok=True)
        self._gateway = GatewayLog(LogFile(gateway, max_bytes, kept), seed)
        self._engines = [
            EngineLog(LogFile(engines / f"vllm-{replica}.log", max_bytes, kept), replica) for replica in range(REPLICAS)
        ]

    def begin(self, at: float) -> None:
        """Write what is there before the first request (s, epoch)."""
        for engine in self._engines:
            engine.begin(at)

    def write(self, ended: Rows, statistics: Sequence[Statistic], at: float) -> None:
        """Write what has ended, and the statistics of this moment (s, epoch) if it is their time."""
        self._gateway.write(ended, at)
        said = {one.replica: one for one in statistics}
        answers = [0] * REPLICAS
        for replica in ended.replica[ended.replica >= 0].tolist():
            answers[replica] += 1
        for replica, engine in enumerate(self._engines):
            engine.write(answers[replica], said.get(replica), at)

    def close(self) -> None:
        """Give all files back."""
        self._gateway.close()
        for engine in self._engines:
            engine.close()
