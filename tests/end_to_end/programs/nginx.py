"""A real nginx in front of the upstream: one location, a retry, a time-out, a rate limit, and its access log as JSON.

There is no format for nginx here: its `map` gives outcome, retries and limiter under keys of the operator's own, which
the format `jsonl` finds by `fields:`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from string import Template
from typing import Final

from .plays import LIMITED, TIMEOUT_S
from .process import free_port, program

FIELDS: Final = {
    "request_id": "id",
    "finished_at": "msec",
    "duration_s": "request_time",
    "tenant": "tenant",
    "route": "uri",
    "status": "status",
    "outcome": "outcome",
    "retries": "retries",
    "rate_limited_by": "limiter",
}
"""Record field → key of the log format below. Numbers stand there without quotes, as JSON wants them."""

_CONFIG: Final = Template("""
daemon off;
worker_processes 1;
pid $folder/nginx.pid;
error_log $folder/error.log warn;
events {}
http {
  client_body_temp_path $folder/body; proxy_temp_path $folder/proxy; fastcgi_temp_path $folder/fastcgi;
  uwsgi_temp_path $folder/uwsgi; scgi_temp_path $folder/scgi;

  # A client that leaves in mid-stream is logged with the status it was sent; only the completion is empty then.
  map "$$status:$$request_completion" $$outcome {
    "~^499:"    client_abort;
    "~^[23]..:$$" client_abort;
    default     "";
  }
  # Statuses of attempts are joined by commas, also where the last one was good.
  map "$$upstream_status" $$retries { default 0; "~^[^,]+,[^,]+$$" 1; "~^[^,]+,[^,]+,[^,]+$$" 2; }
  map "$$status:$$upstream_status" $$limiter { default ""; "~^429:$$" gateway; "~^429:.+$$" upstream; }

  log_format capwatch escape=json
    '{"msec":$$msec,"id":"$$request_id","uri":"$$uri","status":$$status,"request_time":$$request_time,'
    '"tenant":"$$http_x_tenant_id","outcome":"$$outcome","retries":$$retries,"limiter":"$$limiter"}';
  access_log $folder/access.jsonl capwatch;

  limit_req_zone $$uri zone=once:1m rate=1r/m;
  limit_req_status 429;
  upstream engine {
    server 127.0.0.1:$upstream max_fails=0;
    server 127.0.0.1:$upstream max_fails=0;
  }
  server {
    listen 127.0.0.1:$port;
    proxy_http_version 1.1;
    proxy_buffering off;
    proxy_read_timeout ${timeout}s;
    proxy_next_upstream http_503 non_idempotent;
    proxy_next_upstream_tries 2;
    location / { proxy_pass http://engine; }
    location $limited { limit_req zone=once; proxy_pass http://engine; }
  }
}
""")


@contextmanager
def nginx(command: str, upstream: int, folder: Path) -> Iterator[tuple[int, Path]]:
    """A running nginx: its port and its access log."""
    port, config = free_port(), folder / "nginx.conf"
    config.write_text(
        _CONFIG.substitute(folder=folder, upstream=upstream, port=port, timeout=TIMEOUT_S, limited=LIMITED)
    )
    with program([command, "-c", config, "-p", folder], port, folder / "nginx.out"):
        yield port, folder / "access.jsonl"
