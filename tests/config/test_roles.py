"""Which source counts a request (contract, section 2a), and what a match hits."""

import pytest

from capwatch.config import Config, Match, Role, Source, roles
from capwatch.config.rules import decided

ENGINES = frozenset({"vllm"})


def source(name: str, format_: str, pool: str | None = None, role: Role | None = None) -> Source:
    """A source of which only what matters for its role is told."""
    return Source(name, ("/log",), format_, pool=pool, role=role)


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ([source("g", "envoy")], {"g": "count"}),
        ([source("e", "vllm", "p")], {"e": "count"}),
        ([source("g", "envoy", "p"), source("e", "vllm", "p")], {"g": "count", "e": "times"}),
        ([source("e", "vllm", "p"), source("g", "envoy", "p")], {"g": "count", "e": "times"}),
        ([source("g", "envoy", "q"), source("e", "vllm", "p")], {"g": "count", "e": "count"}),
        ([source("g", "envoy"), source("e", "vllm", "p")], {"g": "count", "e": "times"}),
        ([source("g", "envoy", "p"), source("e", "vllm")], {"g": "count", "e": "times"}),
        ([source("g", "envoy", role="times"), source("e", "vllm", "p")], {"g": "times", "e": "count"}),
        ([source("g", "envoy"), source("e", "vllm", "p", "count")], {"g": "count", "e": "count"}),
        ([source("e", "vllm", "p", "count"), source("f", "vllm", "p")], {"e": "count", "f": "count"}),
        ([source("e", "vllm", "p", "times")], {"e": "times"}),
    ],
)
def test_roles(sources: list[Source], expected: dict[str, Role]) -> None:
    """An engine log only adds times where a counting gateway can feed its pool; what is given is given."""
    config = Config(sources=tuple(sources))
    assert roles(config, ENGINES) == expected
    assert {one.name: one.role for one in decided(config, ENGINES).sources} == expected


@pytest.mark.parametrize(
    ("match", "hits"),
    [
        (Match(), True),
        (Match(model=("chat-70b",)), True),
        (Match(model=("chat-*",)), True),
        (Match(model=("x", "chat-?0b")), True),
        (Match(model=("Chat-70b",)), False),
        (Match(model=("chat",)), False),
        (Match(model=("chat-*",), tenant=("acme",)), True),
        (Match(model=("chat-*",), tenant=("b",)), False),
        (Match(engine=("*",)), True),
        (Match(engine=("e",)), False),
        (Match(route=("/v1/*",)), True),
        (Match(route=("/v1/[!o]*",)), False),
    ],
)
def test_match(match: Match, hits: bool) -> None:
    """Every field that is given has to fit one of its patterns as a whole, in its case; an absent value is empty."""
    assert match.hits({"model": "chat-70b", "tenant": "acme", "route": "/v1/orders/new"}) == hits
