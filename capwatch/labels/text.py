"""Texts fit for labels: clean, short, and without anybody's keys or addresses."""

from __future__ import annotations

import re
from hashlib import blake2s
from typing import Final

from capwatch.redact import is_secret

LONGEST: Final = 128
"""Characters of a label value (contract, section 5)."""
LOOKED_AT: Final = 2 * LONGEST
"""Characters searched for secrets: no part of one that begins within a label's length may come out."""

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def clean(text: str | None, secret: bytes = b"", *, hashed: bool = False, random: bool = True) -> str:
    r"""A text fit for a label: no control characters, at most 128 characters, `unknown` if empty.

    A text in which something looks like a key or an e-mail address, and every text where ``hashed``, becomes a hash
    keyed by ``secret`` (its first 32 bytes): the same text the same hash, and no way back. Unless
    ``random`` a random word is no key, since that is what ids look like.

    >>> clean("a\nb"), clean(""), clean("x" * 200) == "x" * 128
    ('a�b', 'unknown', True)
    >>> clean("jane@example.org").startswith("hashed-"), clean("claude-3-5-sonnet@20240620")
    (True, 'claude-3-5-sonnet@20240620')
    """
    text = (text or "").strip()
    if not text:
        return "unknown"
    if hashed or is_secret(text[:LOOKED_AT], random=random):
        digest = blake2s(text.encode("utf-8", "replace"), key=secret[:32], digest_size=8)
        return f"hashed-{digest.hexdigest()}"
    return _CONTROL.sub("\ufffd", text[:LONGEST])
