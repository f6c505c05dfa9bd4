"""Requests as they can be answered: the path as it was sent, the headers of one name as one list."""

from __future__ import annotations

import h11
import pytest

from capwatch.web.request import Asked, understand


def asked(target: str, *headers: tuple[str, str]) -> Asked:
    """A request that is understood."""
    found = understand(h11.Request(method="GET", target=target, headers=[("Host", "here"), *headers]))
    assert isinstance(found, Asked), found
    return found


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/", "/"),
        ("/metrics", "/metrics"),
        ("/metrics?collect[]=a&b=/c", "/metrics"),
        ("//metrics", "//metrics"),
        ("/%2e%2e/etc/passwd", "/%2e%2e/etc/passwd"),
        ("/../metrics", "/../metrics"),
        ("http://here:10077/metrics", "/metrics"),
        ("HTTP://here", "/"),
        ("*", "*"),
    ],
)
def test_a_path_is_taken_as_it_is(target: str, path: str) -> None:
    """Only query and address are taken off; nothing is decoded and no dots are resolved."""
    assert asked(target).path == path


@pytest.mark.parametrize(
    ("name", "value", "body"),
    [
        ("Content-Length", "0", False),
        ("Content-Length", "00", False),
        ("Content-Length", "5", True),
        ("Transfer-Encoding", "chunked", True),
    ],
)
def test_a_body_is_announced_by_its_length(name: str, value: str, body: bool) -> None:
    """A length that is not nothing, or chunks, are a body."""
    assert asked("/", (name, value)).body is body


def test_headers_of_one_name_are_joined() -> None:
    """Several headers of a name are one list."""
    assert asked("/", ("Accept", "a"), ("ACCEPT", "b")).headers == {"host": "here", "accept": "a, b"}
