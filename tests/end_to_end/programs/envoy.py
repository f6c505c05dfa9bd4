"""A real Envoy in front of the upstream: one listener, a retry, a time-out, a rate limit; its access log is JSON."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from .plays import LIMITED, TIMEOUT_S
from .process import free_port, program

LOG_KEYS: Final = {
    "start_time": "%START_TIME%",
    "duration": "%DURATION%",
    "method": "%REQ(:METHOD)%",
    "path": "%REQ(:PATH)%",
    "response_code": "%RESPONSE_CODE%",
    "response_flags": "%RESPONSE_FLAGS%",
    "response_code_details": "%RESPONSE_CODE_DETAILS%",
    "upstream_host": "%UPSTREAM_HOST%",
    "upstream_request_attempt_count": "%UPSTREAM_REQUEST_ATTEMPT_COUNT%",
    "x-request-id": "%REQ(X-REQUEST-ID)%",
    "x-tenant-id": "%REQ(X-TENANT-ID)%",
}
GOING_KEYS: Final = {"access_log_type": "%ACCESS_LOG_TYPE%", "bytes_sent": "%BYTES_SENT%"}
"""Those that tell of requests that go on."""
_V3: Final = "type.googleapis.com/envoy.extensions"


def binary() -> str | None:
    """Envoy's program: of this environment, or of the machine."""
    beside = Path(sys.executable).with_name("envoy")
    return str(beside) if beside.exists() else shutil.which("envoy")


@contextmanager
def envoy(command: str, upstream: int, folder: Path, *, every: str = "") -> Iterator[tuple[int, Path]]:
    """A running Envoy: its port and its access log, which tells of requests that go on so often, where that is said."""
    port, log = free_port(), folder / "access.jsonl"
    config = folder / "envoy.yaml"
    config.write_text(yaml.safe_dump(_config(port, upstream, log, every)))
    arguments: list[str | Path] = ["-c", config, "--use-dynamic-base-id", "--disable-hot-restart", "--concurrency", "1"]
    arguments += ["--file-flush-interval-msec", "50", "--log-level", "warn"]
    with program([command, *arguments], port, folder / "envoy.out"):
        yield port, log


def _config(port: int, upstream: int, log: Path, every: str) -> dict[str, Any]:
    listener = {
        "name": "gateway",
        "address": _address(port),
        "filter_chains": [{"filters": [_typed("network.http_connection_manager", _manager(log, every))]}],
    }
    cluster = {
        "name": "engine",
        "type": "STATIC",
        "connect_timeout": "1s",
        "load_assignment": {
            "cluster_name": "engine",
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _address(upstream)}}]}],
        },
    }
    return {"static_resources": {"listeners": [listener], "clusters": [cluster]}}


def _manager(log: Path, every: str) -> dict[str, Any]:
    to_engine = {
        "cluster": "engine",
        "timeout": f"{TIMEOUT_S}s",
        "retry_policy": {"retry_on": "5xx", "num_retries": 1, "retry_back_off": {"base_interval": "0.01s"}},
    }
    limit = {
        "@type": f"{_V3}.filters.http.local_ratelimit.v3.LocalRateLimit",
        "stat_prefix": "limit",
        "token_bucket": {"max_tokens": 1, "tokens_per_fill": 1, "fill_interval": "600s"},
        "filter_enabled": {"default_value": {"numerator": 100}},
        "filter_enforced": {"default_value": {"numerator": 100}},
    }
    name = "envoy.filters.http.local_ratelimit"
    routes = [
        {"match": {"prefix": LIMITED}, "route": to_engine, "typed_per_filter_config": {name: limit}},
        {"match": {"prefix": "/"}, "route": to_engine},
    ]
    going = {"flush_access_log_on_new_request": True, "access_log_flush_interval": every}
    return {
        "stat_prefix": "gateway",
        "generate_request_id": True,
        **({"access_log_options": going} if every else {}),
        "access_log": [
            _typed(
                "access_loggers.file",
                {"path": str(log), "log_format": {"json_format": LOG_KEYS | (GOING_KEYS if every else {})}},
            )
        ],
        "http_filters": [_typed("http.local_ratelimit", {"stat_prefix": "limit"}), _typed("http.router", {})],
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}]},
    }


_TYPES: Final = {
    "network.http_connection_manager": "filters.network.http_connection_manager.v3.HttpConnectionManager",
    "access_loggers.file": "access_loggers.file.v3.FileAccessLog",
    "http.local_ratelimit": "filters.http.local_ratelimit.v3.LocalRateLimit",
    "http.router": "filters.http.router.v3.Router",
}


def _typed(name: str, config: dict[str, Any]) -> dict[str, Any]:
    prefix = "envoy.filters" if _TYPES[name].startswith("filters") else "envoy"
    return {"name": f"{prefix}.{name}", "typed_config": {"@type": f"{_V3}.{_TYPES[name]}", **config}}


def _address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}
