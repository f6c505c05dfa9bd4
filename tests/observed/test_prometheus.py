"""The query API of a real Prometheus, asked for what is known; and every way in which a server is of no use."""

from __future__ import annotations

import json
import select
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs

import numpy as np
import pytest

from capwatch.errors import CapwatchError
from capwatch.observed import access
from capwatch.observed.columns import any_of, buckets, quantile, selector
from capwatch.observed.prometheus import Server
from tests.end_to_end.prometheus import prometheus

needs_prometheus = pytest.mark.skipif(
    not (shutil.which("promtool") and shutil.which("prometheus")), reason="prometheus is not installed"
)
START = 1_790_000_400
SCRAPE_S = 30
HOURS = 20
EDGES = (1.0, 2.0, 4.0, 8.0)
SHARES = (0.1, 0.4, 0.9, 1.0)


def page() -> str:
    """A counter of two pools for twenty hours, one of them from the tenth on, and a histogram; every 30 s."""
    lines = ["# TYPE work counter"]
    moments = range(START, START + HOURS * 3600 + 1, SCRAPE_S)
    lines += [f'work_total{{pool="old"}} {3 * (at - START)} {at}' for at in moments]
    lines += [f'work_total{{pool="new"}} {at - START - 36000} {at}' for at in moments if at >= START + 36030]
    lines.append("# TYPE length histogram")
    for edge, share in zip((*EDGES, "+Inf"), (*SHARES, 1.0), strict=True):
        lines += [f'length_bucket{{le="{edge}"}} {share * (at - START):.0f} {at}' for at in moments]
    lines += [f"length_count {at - START} {at}" for at in moments]
    return "\n".join([*lines, "# EOF\n"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real one that has scraped that."""
    folder = tmp_path_factory.mktemp("blocks")
    text = folder.with_suffix(".om")
    text.write_text(page())
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text), str(folder)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    with prometheus(folder) as running:
        yield Server(running.url)


@needs_prometheus
def test_more_points_than_it_allows(server: Server) -> None:
    """14,400 moments come in pieces and are one column, each value at its moment."""
    found = server.range("work_total", START, START + HOURS * 3600 - 5, 5)
    assert found.at[[0, -1]].tolist() == [START, START + HOURS * 3600 - 5]
    old, new = found.by("pool")["old",], found.by("pool")["new",]
    assert np.array_equal(old, 3 * ((found.at - START) // SCRAPE_S * SCRAPE_S))
    assert np.isnan(new[found.at < START + 36030]).all()
    assert np.array_equal(new[found.at >= START + 36030][::6], np.arange(30.0, 36000, 30))


@needs_prometheus
def test_what_was_added_is_exact(server: Server) -> None:
    """Sums of rises are the counts, where `increase` extrapolates and misses what a series begins with."""
    rises = server.range("work_total", START, START + HOURS * 3600, 300).rises()
    added = {pool: float(np.nansum(column)) for (pool,), column in rises.by("pool").items()}
    assert added == {"old": 3.0 * HOURS * 3600, "new": HOURS * 3600 - 36000.0}


@needs_prometheus
@pytest.mark.parametrize("q", [0.05, 0.5, 0.95, 0.99])
def test_quantiles_are_those_of_promql(server: Server, q: float) -> None:
    """The same buckets give the same quantile."""
    moment = START + 36000.0
    bounds, counts = buckets(server.at("length_bucket", moment))
    theirs = server.at(f"histogram_quantile({q}, length_bucket)", moment)
    assert quantile(bounds, counts[:, 0], q) == pytest.approx(float(theirs.values[0, 0]), rel=1e-12)


@needs_prometheus
def test_moments_are_multiples_of_the_step(server: Server) -> None:
    """A range that begins in between has its first moment at the next multiple, as caching servers align them."""
    found = server.range(selector("work_total", pool="old"), START + 1, START + 901, 300)
    assert found.at.tolist() == [START + 300, START + 600, START + 900]


@needs_prometheus
def test_values_of_labels(server: Server) -> None:
    """Those of a time, of series that match."""
    assert server.values("pool", START, START + 3600) == ["old"]
    assert server.values("pool", START, START + HOURS * 3600, "work_total") == ["new", "old"]
    assert server.values("pool", START, START + 3600, any_of(["none"])) == []


@needs_prometheus
def test_nothing_there(server: Server) -> None:
    """An expression that finds nothing has the moments, and no series."""
    found = server.range("none", START, START + 600, 300)
    assert (len(found), len(found.at), found.by("pool")) == (0, 3, {})
    assert len(server.at("none", START)) == 0


@needs_prometheus
@pytest.mark.parametrize(
    ("expr", "said"),
    [("sum(", "refuses sum(: "), ("3", "3 gives no series, but a single value"), ("up offset", "refuses")],
)
def test_expressions_that_are_none(server: Server, expr: str, said: str) -> None:
    """The server's own words, in one line."""
    with pytest.raises(CapwatchError) as raised:
        server.at(expr, START)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


Said = tuple[int, str, bytes]
"""Status (0: no answer at all), content type and content."""


@contextmanager
def speaking(say: Callable[[str, Mapping[str, str], str], Said], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """A server that answers by a function of method, headers and query; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            self._answer(self.rfile.read(length).decode())

        def do_GET(self) -> None:
            self._answer(self.path.partition("?")[2])

        def _answer(self, query: str) -> None:
            status, kind, content = say(self.command, dict(self.headers), query)
            if not status:
                return  # and the line is cut
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *words: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        if tls is not None:
            running.socket = tls.wrap_socket(running.socket, server_side=True)
        Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http{'s' if tls else ''}://127.0.0.1:{running.server_address[1]}"
        finally:
            running.shutdown()


def good(query: str, **more: object) -> Said:
    """An answer with the series 1 at each moment of the query."""
    words = {key: float(value[0]) for key, value in parse_qs(query).items() if key != "query"}
    moments = np.arange(words["start"], words["end"] + 0.1, words["step"]).tolist()
    series = {"metric": {}, "values": [[at, "1"] for at in moments]}
    answer = {"status": "success", "data": {"resultType": "matrix", "result": [series]}, **more}
    return 200, "application/json", json.dumps(answer).encode()


JSON = "application/json"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ((200, "text/html", b"<html>"), "is no Prometheus query API (status 200, text/html); give the address before"),
        ((404, "text/plain", b"no"), "is no Prometheus query API (status 404, text/plain)"),
        ((401, "text/plain", b"no"), "wants to know who asks (status 401); give --http.config.file"),
        ((200, JSON, b"{}"), "is no Prometheus query API (status 200, application/json)"),
        ((200, JSON, b'{"status": "success", "data": [{"result": 5}]}'), "e gives no series"),
        ((400, JSON, b'{"status": "error", "error": "bad\\nthing"}'), "refuses e: bad\\nthing"),
        ((503, "text/html", b"busy"), "status 503"),
    ],
)
def test_answers_of_no_use(said: Said, shown: str) -> None:
    """Each is one line that names the server and what to do."""
    with speaking(lambda *_: said) as url, pytest.raises(CapwatchError) as raised:
        Server(url).range("e", 0, 3, 1)
    assert str(raised.value).startswith(url)
    assert shown in str(raised.value)
    assert "\n" not in str(raised.value)


def test_nobody_there() -> None:
    """A port where nothing listens, a host that is none, a server that says nothing, one that speaks something else."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(CapwatchError, match=r"no whole answer within 0\.05 s"):
            Server(f"http://127.0.0.1:{port}", patience=0.05).at("e", 0)
    with pytest.raises(CapwatchError, match="connection refused; does the server run"):
        Server(f"http://127.0.0.1:{port}").at("e", 0)
    with pytest.raises(CapwatchError, match="there is no such host"):
        Server("http://capwatch.invalid").at("e", 0)
    with socket.create_server(("127.0.0.1", 0)) as other:

        def mail() -> None:
            with other.accept()[0] as line:
                line.sendall(b"220 mail.example ESMTP\r\n")
                line.recv(4096)

        thread = Thread(target=mail)
        thread.start()
        with pytest.raises(CapwatchError, match="speaks no HTTP"):
            Server(f"http://127.0.0.1:{other.getsockname()[1]}").at("e", 0)
        thread.join()


def test_an_answer_that_drips() -> None:
    """Patience is for the whole answer, not from one byte to the next."""
    with socket.create_server(("127.0.0.1", 0)) as dripping:

        def drip() -> None:
            with dripping.accept()[0] as line, suppress(OSError):
                line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n")
                while True:
                    line.sendall(b" ")
                    select.select([], [], [], 0.005)

        thread = Thread(target=drip)
        thread.start()
        with pytest.raises(CapwatchError, match=r"no whole answer within 0\.1 s"):
            Server(f"http://127.0.0.1:{dripping.getsockname()[1]}", patience=0.1).at("e", 0)
        thread.join()


def test_too_much_at_once() -> None:
    """A server that manages 1,000 samples of a query is asked in halves until it does; the whole is the same."""

    def say(method: str, headers: Mapping[str, str], query: str) -> Said:
        words = parse_qs(query)
        if float(words["end"][0]) - float(words["start"][0]) >= 1000:
            return 422, JSON, b'{"status": "error", "error": "too many samples"}'
        return good(query)

    with speaking(say) as url:
        found = Server(url).range("e", 0, 9999, 1)
    assert found.total().tolist() == [1.0] * 10_000


def test_warnings_are_kept() -> None:
    """Partial data is used, and said once."""
    with speaking(lambda method, headers, query: good(query, warnings=["a store is away"])) as url:
        server = Server(url)
        server.range("e", 0, 3, 1)
        server.range("e", 0, 3, 1)
    assert server.warnings == ["a store is away"]


def test_servers_that_allow_no_post() -> None:
    """They are asked by GET."""
    with speaking(lambda method, headers, query: good(query) if method == "GET" else (405, JSON, b"")) as url:
        assert Server(url).range("e", 0, 3, 1).total().tolist() == [1.0] * 4


@pytest.fixture
def certificate(tmp_path: Path) -> ssl.SSLContext:
    """A certificate of its own for the name `metrics`, in cert.pem."""
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    command += ["-subj", "/CN=metrics", "-addext", "subjectAltName=DNS:metrics", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, capture_output=True, check=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context


def test_https(certificate: ssl.SSLContext, tmp_path: Path) -> None:
    """Verified by the file and name of tls_config; without them not trusted, and that is said."""
    (tmp_path / "http.yml").write_text("tls_config: {ca_file: cert.pem, server_name: metrics}\n")
    with speaking(lambda method, headers, query: good(query), certificate) as url:
        assert len(Server(url, access.load(str(tmp_path / "http.yml"))).range("e", 0, 3, 1)) == 1
        with pytest.raises(CapwatchError, match="certificate is not trusted"):
            Server(url).range("e", 0, 3, 1)


@pytest.mark.parametrize(
    ("document", "header", "value"),
    [
        ("basic_auth: {username: me, password_file: secret}", "Authorization", "Basic bWU6aHVzaA=="),
        ("authorization: {credentials_file: secret}", "Authorization", "Bearer hush"),
        ("http_headers: {X-Scope-OrgID: {values: [team-a]}}", "X-Scope-OrgID", "team-a"),
    ],
)
def test_who_asks(document: str, header: str, value: str, tmp_path: Path) -> None:
    """Passwords and tokens come from files beside the document."""
    (tmp_path / "secret").write_text("hush\n")
    (tmp_path / "http.yml").write_text(document)
    heard: list[Mapping[str, str]] = []

    def say(method: str, headers: Mapping[str, str], query: str) -> Said:
        heard.append(headers)
        return good(query)

    with speaking(say) as url:
        Server(url, access.load(str(tmp_path / "http.yml"))).range("e", 0, 3, 1)
    assert heard[0][header] == value


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("basic_auth: {username: me, password: hush}", "basic_auth.password: unknown key"),
        ("basic_auth: {username: me, password_file: none}", "none: cannot be read: No such file or directory"),
        ("tls_config: {cert_file: c.pem}", "tls_config: cert_file and key_file belong together"),
        ("tls_config: {ca_file: http.yml}", "http.yml: holds no certificate in PEM"),
    ],
)
def test_documents_of_no_use(document: str, said: str, tmp_path: Path) -> None:
    """One line that names the key or the file, and repeats no secret."""
    (tmp_path / "http.yml").write_text(document)
    with pytest.raises(CapwatchError) as raised:
        Server("https://127.0.0.1:1", access.load(str(tmp_path / "http.yml"))).at("e", 0)
    assert said in str(raised.value)
    assert "hush" not in str(raised.value)
