"""Texts fit for labels: clean, short, and without anybody's keys or addresses."""

from __future__ import annotations

import re
from hashlib import blake2s
from typing import Final

LONGEST: Final = 128
"""Characters of a label value (contract, section 5)."""
LOOKED_AT: Final = 2 * LONGEST
"""Characters searched for secrets: no part of one that begins within a label's length may come out."""

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SECRET: Final = re.compile(
    r"[^\s@]@(?:[^\s@]+\.[^\W\d_]{2}|localhost\b)"  # an e-mail address
    r"|://[^\s/?#@]*:[^\s/?#]*@"  # user and password in a URL
    r"|-----BEGIN "  # a key file
    r"|(?<![A-Za-z0-9])(?:[Bb]earer\s|[Ss][Kk]-|[SsPpRrAa][Kk]_|[pra]k-|hf_|gsk_|gh[opusr]_|github_pat_|glpat-|xox[abeprs]-"
    r"|AKIA|ASIA|AIza|eyJ|nvapi-|pplx-|r8_|SG\.|ya29\.|npm_|pypi-|whsec_|lsv2_|tskey-|do[opr]_v1_|sess-|AQ\.|xai-|tvly-)"
    r"(?:\S{16}|(?=\S*\d)\S{6})"
    r"|(?<![^\s/])(?=[^\s/]*[A-Z])(?=[^\s/]*[a-z])(?=(?:[^\s/]*\d){3})[A-Za-z0-9+_=]{32,}(?![^\s/])"  # a random word
)
_ESCAPE: Final = re.compile(r"%([2-7][0-9A-Fa-f])")
_SPELLINGS: Final = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212\uff0d", "-") | {"\uff20": "@"})
"""Signs that look like the ones keys and addresses are written with."""


def clean(text: str | None, secret: bytes = b"", *, hashed: bool = False) -> str:
    r"""A text fit for a label: no control characters, at most 128 characters, `unknown` if empty.

    A text in which something looks like a key or an e-mail address, and every text where ``hashed``, becomes a hash
    keyed by ``secret`` (its first 32 bytes): the same text the same hash, and no way back.

    >>> clean("a\nb"), clean(""), clean("x" * 200) == "x" * 128
    ('a�b', 'unknown', True)
    >>> clean("jane@example.org").startswith("hashed-"), clean("claude-3-5-sonnet@20240620")
    (True, 'claude-3-5-sonnet@20240620')
    """
    text = (text or "").strip()
    if not text:
        return "unknown"
    if hashed or _is_secret(text[:LOOKED_AT]):
        digest = blake2s(text.encode("utf-8", "replace"), key=secret[:32], digest_size=8)
        return f"hashed-{digest.hexdigest()}"
    return _CONTROL.sub("\ufffd", text[:LONGEST])


def _is_secret(text: str) -> bool:
    if not text.isascii():
        text = text.translate(_SPELLINGS)
    plain = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
    return bool(_SECRET.search(text) or _SECRET.search(plain))
