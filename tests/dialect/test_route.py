"""Routes are templates: few, short, and without anything that a client made up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.dialect.route import LONGEST, route


@pytest.mark.parametrize(
    ("path", "template"),
    [
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("/v1/chat/completions?key=sk-CANARY#x", "/v1/chat/completions"),
        ("https://host:8000/v1/embeddings", "/v1/embeddings"),
        ("/openai/deployments/chat-70b/chat/completions", "/openai/deployments/{deployment}/chat/completions"),
        ("/v1beta/models/gemini-pro:streamGenerateContent", "/v1beta/models/{model}:streamGenerateContent"),
        ("/model/anthropic.claude-v2/invoke", "/model/{model}/invoke"),
        ("/v1/responses/resp_68a1f0c2d4e5b6a7", "/v1/responses/{id}"),
        ("/v1/batches/42/cancel", "/v1/batches/{id}/cancel"),
        ("/x/7ead13c1-1662-4637-a591-1774e1bf0f6f", "/x/{id}"),
        ("/v1/models", "/v1/models"),
        ("/v1/models/", "/v1/models/"),
        ("/rag/answer", "/rag/answer"),
        ("acompletion", "acompletion"),
        ("", None),
        ("?a=1", None),
        (None, None),
    ],
)
def test_names_and_ids_become_placeholders(path: str | None, template: str | None) -> None:
    """Origin and query go; a path without names and ids stays as it is."""
    assert route(path) == template


@given(st.text(max_size=300))
def test_a_template_is_short_and_its_own_template(path: str) -> None:
    """Whatever a client asked for; a template that was cut may end anyhow."""
    once = route(path)
    assert once is None or (len(once) <= LONGEST and not {"?", "#"} & set(once))
    if once and len(once) < LONGEST:
        assert route(once) == once
