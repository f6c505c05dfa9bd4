"""A real HAProxy in front of the upstream: one server, a retry, a time-out, a rate limit; text or JSON goes to stdout.

The JSON is the `log-format` that the dialect's own documentation gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from string import Template
from typing import Final

from capwatch.formats import haproxy as dialect

from .plays import LIMITED, TIMEOUT_S
from .process import free_port, program

TEXT: Final = "option httplog"

_CONFIG: Final = Template("""
global
  log stdout format raw local0
  maxconn 200

defaults
  mode http
  log global
  option dontlognull
  option abortonclose
  option http-buffer-request  # a request is tried again only if it was whole when the answer came
  timeout connect 1s
  timeout client 30s
  timeout server ${timeout}s
  retries 1
  retry-on 503

frontend llm_in
  bind 127.0.0.1:$port
  capture request header x-tenant-id len 64
  $log
  http-request track-sc0 path table limit if { path $limited }
  http-request deny deny_status 429 if { path $limited } { sc_http_req_rate(0) gt 1 }
  default_backend engine

backend engine
  server one 127.0.0.1:$upstream maxconn 32

backend limit
  stick-table type string len 64 size 1k expire 10m store http_req_rate(60s)
""")


def json_format() -> str:
    """The `log-format` of the dialect's documentation, as HAProxy is to be told it: on one line."""
    (found,) = re.findall(r"^ +(log-format '.*?}')\n", dialect.__doc__ or "", flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"\n +", "", str(found))


@contextmanager
def haproxy(command: str, upstream: int, folder: Path, log: str) -> Iterator[tuple[int, Path]]:
    """A running HAProxy that logs by one line of configuration: its port and its log."""
    port, config, out = free_port(), folder / "haproxy.cfg", folder / "access.log"
    config.write_text(_CONFIG.substitute(upstream=upstream, port=port, timeout=TIMEOUT_S, limited=LIMITED, log=log))
    with program([command, "-db", "-f", config], port, out):
        yield port, out
