"""A callback for the LiteLLM proxy that writes what capwatch reads: one JSON line for each finished request.

How to: put this file beside the proxy's `config.yaml` and add

    litellm_settings:
      callbacks: ["capwatch_callback.writer"]

Lines go to /var/log/litellm/requests.jsonl, or to the file named in CAPWATCH_LITELLM_LOG. In capwatch:

    sources:
      - {name: gateway, format: litellm, path: [/var/log/litellm/requests.jsonl, /var/log/litellm/requests.jsonl.*]}

Only the keys in KEEP are written: no messages, no answers, no keys, no users, no addresses. If your tenants are told
apart by another key of the payload, name it in CAPWATCH_LITELLM_KEEP (such as "end_user") and map it in capwatch.
Workers and threads may share the file: each line is one write to a file opened for appending. Rotate it by renaming
(logrotate without copytruncate): the file is opened anew as soon as its name is gone or belongs to another file.
"""

from __future__ import annotations

import json
import logging
import os
from threading import Lock
from typing import Any

from litellm.integrations.custom_logger import CustomLogger

ERROR = dict.fromkeys(("error_code", "error_class", "llm_provider", "error_rate_limit_category"))
USAGE = {"prompt_tokens_details": {"cached_tokens": None}, "cache_read_input_tokens": None}
ALIASES = ("team_alias", "team_id", "org_alias", "org_id", "alias", "request_route")
KEEP: dict[str, Any] = {
    **dict.fromkeys(("id", "litellm_call_id", "trace_id", "call_type", "cache_hit", "stream", "status", "model")),
    **dict.fromkeys(("custom_llm_provider", "model_group", "startTime", "endTime", "completionStartTime")),
    **dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens")),
    "model_parameters": dict.fromkeys(("stream", "max_tokens", "max_completion_tokens", "max_output_tokens")),
    "hidden_params": {"litellm_overhead_time_ms": None, "usage_object": USAGE},
    "status_fields": {"guardrail_status": None},
    "error_information": ERROR,
    "metadata": {
        **dict.fromkeys(f"user_api_key_{name}" for name in ALIASES),
        "attempted_retries": None,
        "usage_object": USAGE,
        "vector_store_request_metadata": {"start_time": None, "end_time": None},
    },
}
"""Keys that are written, and below them the keys that are written there; None keeps a plain value."""


def kept(value: Any, keep: dict[str, Any] | None) -> Any:
    """The part of a value that may be written: plain values where ``keep`` ends, else the objects' kept keys."""
    if keep is None:
        return value if isinstance(value, str | int | float | bool) else None
    if isinstance(value, list):
        return [kept(one, keep) for one in value]
    return {key: kept(value[key], keep[key]) for key in keep if key in value} if isinstance(value, dict) else None


class Writer(CustomLogger):
    """Appends a line for each request that the proxy reports, good or failed."""

    def __init__(self, path: str, also: list[str]) -> None:
        super().__init__()
        self._path = path
        self._keep = KEEP | dict.fromkeys(also)
        self._lock = Lock()
        self._file = -1

    async def async_log_success_event(self, kwargs: dict[str, Any], *_: object, **__: object) -> None:
        """LiteLLM calls this when a request succeeded."""
        self.write(kwargs.get("standard_logging_object"))

    async def async_log_failure_event(self, kwargs: dict[str, Any], *_: object, **__: object) -> None:
        """LiteLLM calls this when a request failed."""
        self.write(kwargs.get("standard_logging_object"))

    def write(self, payload: dict[str, Any] | None) -> None:
        """Append one payload's line; a disk that is full costs the line, never the request."""
        if not payload:
            return
        row = kept(payload, self._keep)
        tags = payload.get("request_tags") or []  # headers that `extra_spend_tag_headers` copies, and no other tags
        row["request_tags"] = [tag for tag in tags if isinstance(tag, str) and tag.startswith("x-")]
        line = json.dumps(row, separators=(",", ":")).encode() + b"\n"
        try:
            with self._lock:
                os.write(self._opened(), line)
        except OSError as error:
            logging.getLogger("capwatch").warning("cannot write %s: %s", self._path, error.strerror)

    def _opened(self) -> int:
        """The open file, opened anew where its name has gone to another."""
        try:
            if self._file >= 0 and os.path.samestat(os.fstat(self._file), os.stat(self._path)):
                return self._file
        except FileNotFoundError:
            pass
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
        return self._file


writer = Writer(
    os.environ.get("CAPWATCH_LITELLM_LOG", "/var/log/litellm/requests.jsonl"),
    [key for key in os.environ.get("CAPWATCH_LITELLM_KEEP", "").split(",") if key],
)
