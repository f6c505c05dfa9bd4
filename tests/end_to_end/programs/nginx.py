"""A real nginx in front of the upstream: one location, a retry, a time-out, a rate limit, and its access log as JSON.

Its log format is the one that the dialect's own documentation gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from string import Template
from typing import Final

from capwatch.formats import nginx as dialect

from .plays import LIMITED, TIMEOUT_S
from .process import free_port, program


def log_format() -> str:
    """The `log_format` of the dialect's documentation, as nginx is to be told it."""
    (found,) = re.findall(r"^ +(log_format .*?;)$", dialect.__doc__ or "", flags=re.DOTALL | re.MULTILINE)
    return str(found)


_CONFIG: Final = Template("""
daemon off;
worker_processes 1;
pid $folder/nginx.pid;
error_log $folder/error.log warn;
events {}
http {
  client_body_temp_path $folder/body; proxy_temp_path $folder/proxy; fastcgi_temp_path $folder/fastcgi;
  uwsgi_temp_path $folder/uwsgi; scgi_temp_path $folder/scgi;

  $log_format
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
        _CONFIG.substitute(
            folder=folder, upstream=upstream, port=port, timeout=TIMEOUT_S, limited=LIMITED, log_format=log_format()
        )
    )
    with program([command, "-c", config, "-p", folder], port, folder / "nginx.out"):
        yield port, folder / "access.jsonl"
