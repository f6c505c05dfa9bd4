"""A made-up engine endpoint on loopback whose answer the test chooses, byte by byte where it wants."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

PAGE = (
    "# TYPE llamacpp:requests_processing gauge\n"
    "llamacpp:requests_processing {running}\n"
    "llamacpp:requests_deferred 0\n"
    "llamacpp:tokens_predicted_total {tokens}\n"
)


def page(running: int = 2, tokens: int = 100) -> str:
    """A page of a llama.cpp server."""
    return PAGE.format(running=running, tokens=tokens)


def answer(text: str | bytes, status: str = "200 OK", *headers: str) -> bytes:
    """A whole HTTP answer."""
    body = text.encode() if isinstance(text, str) else text
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


Reply = Callable[[str, socket.socket, Event], None]
"""Answers a request (its whole head) on a socket; the event is set when the test is over."""


def saying(data: bytes) -> Reply:
    """Sends these bytes and hangs up."""
    return lambda _head, line, _over: line.sendall(data)


@contextmanager
def endpoint(reply: Reply) -> Iterator[str]:
    """The base URL of a server that answers one call after the other."""
    over = Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while not over.is_set():
            line, _ = listener.accept()
            with line, suppress(OSError):
                head = b""
                while b"\r\n\r\n" not in head and head[:1] in (b"", b"G") and (more := line.recv(4096)):
                    head += more
                if head:
                    reply(head.decode("latin-1"), line, over)

    thread = Thread(target=serve)
    thread.start()
    port = listener.getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        over.set()
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
        thread.join()
        listener.close()
