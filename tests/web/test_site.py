"""Paths and methods: what there is, what there is not, and what goes with every answer."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from capwatch.exporters.protobuf import PROTOBUF
from capwatch.exporters.text import OPENMETRICS, PROMETHEUS
from capwatch.web import files

from .talk import STATUS, Address, Daemon, request, serving


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    """A server with nothing special about it."""
    with serving() as found:
        yield found


@pytest.mark.parametrize(
    ("path", "type_"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/metrics", PROMETHEUS),
        ("/metrics?collect[]=x", PROMETHEUS),
        ("/api/v1/status", "application/json"),
        ("/api/v1/drift", "application/json"),
        ("/api/v1/now", "application/json"),
        ("/api/v1/recent", "application/json"),
        ("/api/v1/history", "application/json"),
        (f"{files.BASE}main.js", "text/javascript; charset=utf-8"),
        (f"{files.BASE}page.css", "text/css; charset=utf-8"),
        ("/-/healthy", "text/plain; charset=utf-8"),
        ("/-/ready", "text/plain; charset=utf-8"),
    ],
)
def test_what_there_is(address: Address, path: str, type_: str) -> None:
    """Each path of the contract answers, with its type."""
    reply = address.get(path)
    assert (reply.status, reply.headers["content-type"]) == (200, type_)


@pytest.mark.parametrize(
    "path",
    [
        *("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//", "//metrics", "/metrics/", "/Metrics", "/metrics%00"),
        *("/page/", files.BASE, f"{files.BASE}page.html", f"{files.BASE}../page.py", "/page/0/main.js", "/main.js"),
        *("/index.html", "/favicon.ico", "/-/reload", "/debug/pprof", "/api/v1", "/" + "a" * 8000, "*"),
    ],
)
def test_everything_else_is_not_there(address: Address, path: str) -> None:
    """No other path exists, however it is spelt, and no file is ever served."""
    reply = address.get(path)
    assert (reply.status, reply.body) == (404, b"nothing is here; see / for what there is\n")


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "TRACE", "OPTIONS", "PATCH", "CONNECT", "get", "FOO"])
@pytest.mark.parametrize("path", ["/metrics", "/-/reload", "/nowhere"])
def test_no_other_method(address: Address, method: str, path: str) -> None:
    """Whatever the path, only GET and HEAD are allowed, and the answer says so."""
    reply = address.ask(request(method, path))
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("path", ["/", "/metrics", "/api/v1/status", "/-/ready", "/nowhere"])
def test_head_is_get_without_a_body(address: Address, path: str) -> None:
    """HEAD gives the headers of GET, the length of its body included, and nothing after them."""
    client = address.connect()
    head = client.say(request("HEAD", path, connection="close")).answer(body=False)
    assert client.ended()
    client.close()
    full = address.ask(request("GET", path, connection="close"))
    assert (head.status, head.headers) == (full.status, full.headers)


@pytest.mark.parametrize(
    ("accept", "type_", "form"),
    [
        (PROTOBUF, PROTOBUF, b"protobuf plain\n"),
        ("application/openmetrics-text;version=1.0.0", OPENMETRICS, b"openmetrics plain\n"),
        ("text/plain", PROMETHEUS, b"text plain\n"),
    ],
)
def test_the_metrics_come_as_they_are_asked_for(address: Address, accept: str, type_: str, form: bytes) -> None:
    """The format is negotiated, and the type says which it is."""
    reply = address.get("/metrics", accept=accept)
    assert (reply.headers["content-type"], reply.body) == (type_, form)


def test_compression_is_negotiated_and_said(address: Address) -> None:
    """A compressed page says so, a plain one does not, and caches are told what it depends on."""
    packed = address.get("/metrics", accept_encoding="gzip")
    assert (packed.headers["content-encoding"], packed.body) == ("gzip", b"text gzip\n")
    plain = address.get("/metrics", accept_encoding="gzip;q=0")
    assert ("content-encoding" in plain.headers, plain.body) == (False, b"text plain\n")
    assert plain.headers["vary"] == "Accept, Accept-Encoding"


@pytest.mark.parametrize("path", ["/", f"{files.BASE}main.js"])
def test_what_people_load_is_compressed_too(address: Address, path: str) -> None:
    """Page and files come as gzip where that is asked for, and are the same as without."""
    packed, plain = address.get(path, accept_encoding="gzip"), address.get(path)
    assert (packed.headers["content-encoding"], packed.headers["vary"]) == ("gzip", "Accept-Encoding")
    assert gzip.decompress(packed.body) == plain.body


def test_files_may_be_kept(address: Address) -> None:
    """What is named by its content may be kept for a year; it is no answer to anybody's question."""
    assert address.get(f"{files.BASE}main.js").headers["cache-control"] == "private, max-age=31536000, immutable"


@pytest.mark.parametrize("path", ["/", "/metrics", "/nowhere"])
def test_headers_of_every_answer(address: Address, path: str) -> None:
    """Every answer forbids guessing, caching, framing and loading, and tells no versions."""
    headers = address.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["server"] == "capwatch"
    for rule in ("default-src 'none'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"):
        assert rule in headers["content-security-policy"]


def test_not_ready_until_caught_up() -> None:
    """A daemon that is still catching up is alive, but not ready."""
    with serving(Daemon(replace(STATUS, ready=False))) as address:
        assert (address.get("/-/healthy").status, address.get("/-/ready").status) == (200, 503)


@pytest.mark.parametrize(("good", "status"), [(True, 200), (False, 500)])
def test_reload_where_it_is_enabled(good: bool, status: int) -> None:
    """POST reloads and says whether that went well; other methods say what is possible."""
    calls = []

    def reload() -> bool:
        calls.append(good)
        return good

    with serving(reload=reload) as address:
        assert address.ask(request("POST", "/-/reload", content_length="0")).status == status
        refused = address.get("/-/reload")
        assert (refused.status, refused.headers["allow"]) == (405, "POST")
        assert address.ask(request("POST", "/metrics")).status == 405
    assert calls == [good]


def test_the_status_is_json(address: Address) -> None:
    """The status can be read by a program."""
    assert json.loads(address.get("/api/v1/status").body)["version"] == "1.2.3"


@pytest.mark.parametrize(
    "headers", [{"content_length": "5"}, {"transfer_encoding": "chunked"}, {"content_length": "x"}]
)
def test_a_body_ends_the_connection(address: Address, headers: dict[str, str]) -> None:
    """A request with a body is refused and nothing after it is taken for a request."""
    client = address.connect().say(request("GET", "/metrics", **headers) + b"zz\r\n" + request("GET", "/-/healthy"))
    reply = client.answer()
    assert (reply.status, reply.headers["connection"], client.ended()) == (400, "close", True)
    client.close()
