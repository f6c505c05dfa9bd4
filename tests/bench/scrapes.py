"""How long a scrape takes, alone and among rude clients, in the clear and by TLS with certificate and password.

`python -m tests.bench.scrapes [SCRAPES]` prints the table of docs/performance.md, section "The door": so many scrapes
(200) one after the other, each over a connection of its own and then all over one, of the real daemon with 3,000 pairs
of tenant and route. Rude are 200 connections that never finish their handshake or their headers, 20 readers of a byte a
second, and four clients who try passwords as fast as they can; whoever is cut off comes again at once.
"""

from __future__ import annotations

import socket
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from statistics import median

from tests.end_to_end.door.guarded import CLIENTS, documented, guarded
from tests.end_to_end.programs.process import until
from tests.web.door.authority import Authority, basic

from .commits import ROUTES, TENANTS, Lines

HALF_OPEN, READERS, GUESSERS = 200, 20, 4
COST = 10
"""Of the hashes, as the documentation of exporters has it."""
PATIENCE_S = 60.0
GZIP = {"Accept-Encoding": "gzip", "Accept": "application/openmetrics-text;version=1.0.0"}


class Target:
    """A daemon, and how one speaks to it."""

    def __init__(self, port: int, tls: ssl.SSLContext | None, headers: dict[str, str]) -> None:
        self.port = port
        self.tls = tls
        self.headers = headers

    def connect(self) -> HTTPConnection:
        """A connection that is not open yet."""
        if self.tls is None:
            return HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        return HTTPSConnection("127.0.0.1", self.port, timeout=PATIENCE_S, context=self.tls)

    def scrape(self, connection: HTTPConnection, headers: dict[str, str]) -> tuple[int, bytes]:
        """Status and page."""
        connection.request("GET", "/metrics", headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def seconds(self, count: int, *, anew: bool) -> list[float]:
        """How long scrapes take, each over a connection of its own or all over one."""
        took = []
        connection = self.connect()
        for _ in range(count):
            begun = time.perf_counter()
            if anew:
                connection.close()
            status, _ = self.scrape(connection, {**GZIP, **self.headers})
            took.append(time.perf_counter() - begun)
            assert status == 200, status
        connection.close()
        return took


@contextmanager
def repeated(count: int, once: Callable[[threading.Event], None]) -> Iterator[None]:
    """So many threads that do something again and again until the block ends."""
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            with suppress(OSError):
                once(over)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(PATIENCE_S)


def rude(target: Target) -> list[tuple[int, Callable[[threading.Event], None]]]:
    """How many do what."""

    def half(over: threading.Event) -> None:
        with socket.create_connection(("127.0.0.1", target.port), 1.0) as line:
            line.sendall(b"\x16\x03\x01\x02" if target.tls else b"GET /metrics HTTP/1.1\r\nHost: he")
            while not over.is_set():
                with suppress(TimeoutError):
                    if not line.recv(1):
                        return

    def read(over: threading.Event) -> None:
        with closing(target.connect()) as connection:
            connection.connect()
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.request("GET", "/metrics", headers=target.headers)
            while not over.wait(1.0) and connection.sock.recv(1):
                pass

    def guess(over: threading.Event) -> None:
        with closing(target.connect()) as connection:
            target.scrape(connection, {"Authorization": basic("alice", str(time.perf_counter()))})

    return [(HALF_OPEN, half), (READERS, read), (GUESSERS if target.headers else 0, guess)]


def measured(title: str, target: Target, count: int) -> None:
    """Print two rows."""
    for name, crowd in (("alone", False), ("among rude clients", True)):
        with ExitStack() as stack:
            for number, once in rude(target) if crowd else []:
                stack.enter_context(repeated(number, once))
            time.sleep(2.0)
            for anew in (True, False):
                took = sorted(1000 * one for one in target.seconds(count, anew=anew))
                way = "a connection each" if anew else "one connection"
                told = (median(took), took[int(0.99 * len(took))], took[-1])
                print(f"| {title}, {way} | {name} | " + " | ".join(f"{one:.1f}" for one in told) + " |", flush=True)


def counted(target: Target, lines: int) -> bool:
    """Whether so many lines have been read."""
    with closing(target.connect()) as connection:
        _, page = target.scrape(connection, target.headers)
    return b'capwatch_lines_read_total{source="gateway"} %d' % lines in page


def main(count: int) -> None:
    """The table."""
    print("| scrape | clients | median ms | 99 % ms | longest ms |\n|---|---|---|---|---|")
    lines = Lines().take(3 * TENANTS * ROUTES, time.time())
    for shut in (False, True):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "daemon").mkdir()
            authority = Authority(folder / "authority")
            authority.server()
            client = authority.client(authority.pair("client"))
            document = documented(tls=CLIENTS, users=True, cost=COST) if shut else None
            with guarded(folder / "daemon", authority, document) as found:
                headers = {"Authorization": basic("prometheus", "sesame")} if shut else {}
                target = Target(found.port, client if shut else None, headers)
                with (found.folder / "requests.jsonl").open("ab") as log:
                    log.write(lines)
                until(partial(counted, target, lines.count(b"\n")), "everything is counted")
                measured("TLS, certificate and password" if shut else "in the clear", target, count)
                _, page = target.scrape(target.connect(), {**GZIP, **headers})
                print(f"a page has {len(page):,} bytes, compressed", file=sys.stderr)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
