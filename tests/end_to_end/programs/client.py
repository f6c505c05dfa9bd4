"""A client of the gateways in these tests: it asks, streams, gives up half-way, and tells what it saw."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Final

PATH: Final = "/v1/chat/completions"


@dataclass(frozen=True)
class Saw:
    """One answer as its client saw it; times in s."""

    status: int
    duration_s: float
    ttft_s: float | None
    """Of streams: until the first event."""


def ask(
    port: int, model: str, *, stream: bool = False, path: str = PATH, headers: Mapping[str, str] | None = None
) -> Saw:
    """Ask and read the whole answer."""
    begun, first = time.monotonic(), None
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(
        "POST", path, _body(model, stream=stream), {"Content-Type": "application/json", **(headers or {})}
    )
    answer = connection.getresponse()
    for line in answer:
        if first is None and line.startswith(b"data:"):
            first = time.monotonic() - begun
    connection.close()
    return Saw(answer.status, time.monotonic() - begun, first)


def leave(
    port: int, model: str, *, path: str = PATH, headers: Mapping[str, str] | None = None, after: bytes = b"data:"
) -> None:
    """Ask for a stream and be gone once this has come of it; by default its first event."""
    body = _body(model, stream=True)
    given = {"Host": f"127.0.0.1:{port}", "Content-Type": "application/json", "Content-Length": len(body)}
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in {**given, **(headers or {})}.items())]
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        seen = b""
        while after not in seen:
            more = connection.recv(4096)
            assert more, seen
            seen += more
        time.sleep(0 if after else 0.2)  # who waits for nothing lets the request at least arrive


def _body(model: str, *, stream: bool) -> bytes:
    body: dict[str, object] = {"model": model, "messages": [{"role": "user", "content": "words"}], "max_tokens": 16}
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return json.dumps(body).encode()
