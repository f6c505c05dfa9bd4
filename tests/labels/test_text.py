"""Label texts come out clean, short and without secrets, whatever a client wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.labels import clean

ANY_TEXT = st.text(st.characters(codec=None), max_size=300)  # lone surrogates among it


@given(ANY_TEXT)
def test_a_label_is_short_valid_and_free_of_controls(text: str) -> None:
    """At most 128 characters, valid UTF-8, no control character or line separator, never empty."""
    label = clean(text)
    assert 0 < len(label) <= 128
    assert label.encode().decode() == label
    assert [sign for sign in label if ord(sign) < 32 or 127 <= ord(sign) < 160 or sign in "\u2028\u2029"] == []


@given(ANY_TEXT)
def test_cleaning_twice_changes_nothing(text: str) -> None:
    """What is clean stays as it is."""
    once = clean(text)
    assert clean(once) == once.strip()


@pytest.mark.parametrize("text", [None, "", "  ", "\t\n", "\x1f"])
def test_nothing_is_unknown(text: str | None) -> None:
    """Empty is `unknown`."""
    assert clean(text) == "unknown"


@pytest.mark.parametrize(
    "text",
    [
        "jane@example.org",
        "Jane Doe <jane.doe+x@mail.example.org>",
        "/users/jane@example.org/chat",
        "x" * 100 + " jane@example.org",
        "x" * 119 + ":sk-" + "abcdef0123456789" * 4,
        "sk-CANARY-not-a-real-key",
        "Bearer abcdefgh12345678",
        "key: sk-proj-0123456789abcdef",
        "hf_abcdefghijklmnopqrst",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.e30.abc",
        "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6",
        "bearer abcdefgh12345678",
        "SK-PROJ-0123456789abcdef",
        "sk\u2010proj\u20100123456789abcdef",
        "nvapi-0123456789abcdefXYZ",
        "pplx-0123456789abcdef0123",
        "r8_0123456789abcdef0123",
        "npm_0123456789abcdef0123",
        "https://user:pass@host/v1",
        "postgres://u:pw@db/x",
        "/users/jane%40example.org/chat",
        "jane@localhost",
        "-----BEGIN PRIVATE KEY-----",
    ],
)
def test_what_looks_like_a_secret_is_hashed(text: str) -> None:
    """Keys and e-mail addresses never come out, not even a part of one."""
    assert clean(text)[:7] == "hashed-"


@pytest.mark.parametrize(
    "text",
    [
        "acme",
        "team-risk-management",
        "sk-telecom",
        "task-0123456789abcdef",
        "https://host:8000/v1/chat",
        "https://example.org/a@b",
        "100% rag",
        "meta-llama/Llama-3.1-70B-Instruct:free",
        "hf-internal-testing/tiny-random-gpt2",
        "claude-3-5-sonnet@20240620",
        "/openai/deployments/Gpt4oMini2024/chat/completions",
        "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.meta.llama3-1-70b-instruct-v1:0",
        "0123456789abcdef0123456789abcdef",
        "7b9f3c1e-1111-4222-8333-444455556666",
    ],
)
def test_names_of_teams_models_and_routes_stay(text: str) -> None:
    """What only resembles a secret is a name."""
    assert clean(text) == text


def test_a_hash_depends_on_the_text_and_the_key() -> None:
    """The same text under the same key is the same label; long texts differ beyond what is shown."""
    a, b = "x" * 500 + "a", "x" * 500 + "b"
    hashes = [clean(text, key, hashed=True) for text in (a, b) for key in (b"1", b"2")]
    assert len(set(hashes)) == 4
    assert clean(a, b"1", hashed=True) == hashes[0]


def test_a_huge_text_costs_little() -> None:
    """Only its beginning is searched: a pattern that goes over all of 10 MB again and again would never end."""
    assert clean("a@" * 5_000_000) == ("a@" * 64)
