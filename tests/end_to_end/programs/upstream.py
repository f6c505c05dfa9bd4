"""A small, slow server that speaks like OpenAI's: what it does with a request is said by the model asked for."""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, Final

PROMPT_TOKENS: Final = 11
CHUNKS: Final = 6
"""Output tokens, one a chunk."""
THINKS_S: Final = 0.12
"""Before the first token."""
GAP_S: Final = 0.05
"""Between two tokens."""
LONG_S: Final = 3.0
"""Until `hang` sends its headers; longer than any time-out that the tests set."""
STATUS: Final = {"limit": 429, "fail": 503, "refuse": 400}
"""Models that fail, and how; `flaky` fails every first of two times with 503."""


class Upstream(ThreadingHTTPServer):
    """The server; `calls` counts what reached it, by model."""

    daemon_threads = True

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self._lock = Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def port(self) -> int:
        """Chosen by the kernel."""
        return int(self.server_address[1])

    def call(self, model: str) -> int:
        """Count a call; the number of this one, from 1."""
        with self._lock:
            self.calls[model] += 1
            return self.calls[model]


@contextmanager
def upstream() -> Iterator[Upstream]:
    """A server until the block ends."""
    with Upstream() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Upstream

    def do_POST(self) -> None:
        """One completion."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        model = asked["model"]
        number = self.server.call(model)
        status = 503 if model == "flaky" and number % 2 else STATUS.get(model, 200)
        with contextlib.suppress(ConnectionError):  # the client is gone, as some tests want
            if model == "hang":
                time.sleep(LONG_S)
            if status != 200:
                self._whole(status, {"error": {"message": "as asked", "type": "test", "code": status}})
            elif asked.get("stream"):
                self._stream(model)
            else:
                time.sleep(THINKS_S + CHUNKS * GAP_S)
                message = {"role": "assistant", "content": "word " * CHUNKS}
                self._whole(200, _completion(model, "chat.completion", message=message) | {"usage": _usage()})

    def _whole(self, status: int, answer: dict[str, Any]) -> None:
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, model: str) -> None:
        """Headers at once, as real servers do, then a token now and then, then the usage."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        time.sleep(THINKS_S)
        for _ in range(CHUNKS):
            self._event(json.dumps(_completion(model, "chat.completion.chunk", delta={"content": "word "})))
            time.sleep(GAP_S)
        self._event(json.dumps(_completion(model, "chat.completion.chunk", delta={}) | {"usage": _usage()}))
        self._event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def _event(self, data: str) -> None:
        event = f"data: {data}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that the server gives it
        """Nothing."""


def _completion(model: str, kind: str, **choice: object) -> dict[str, Any]:
    finished = None if choice.get("delta") else "stop"
    return {
        "id": "c1",
        "object": kind,
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "finish_reason": finished, **choice}],
    }


def _usage() -> dict[str, int]:
    return {
        "prompt_tokens": PROMPT_TOKENS,
        "completion_tokens": CHUNKS,
        "total_tokens": PROMPT_TOKENS + CHUNKS,
    }
