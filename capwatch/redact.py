"""What looks like somebody's key or address, wherever a text is about to be shown.

It is told by its look alone, so a password without any shape is not found, and a name that looks like a key is.
"""

from __future__ import annotations

import re
from typing import Final

_SECRET: Final = re.compile(
    r"[^\s@]@(?:[^\s@]+\.[^\W\d_]{2}|localhost\b)"  # an e-mail address
    r"|://[^\s/?#@]*:[^\s/?#]*@"  # user and password in a URL
    r"|-----BEGIN "  # a key file
    r"|(?<![A-Za-z0-9])(?:[Bb]earer\s|[Ss][Kk]-|[SsPpRrAa][Kk]_|[pra]k-|hf_|gsk_|gh[opusr]_|github_pat_|glpat-|xox[abeprs]-"
    r"|AKIA|ASIA|AIza|eyJ|nvapi-|pplx-|r8_|SG\.|ya29\.|npm_|pypi-|whsec_|lsv2_|tskey-|do[opr]_v1_|sess-|AQ\.|xai-|tvly-)"
    r"(?:\S{16}|(?=\S*\d)\S{6})"
    # an AWS secret key, where it has a sign that no id has
    r"|(?<![\w+/])(?=\w*[/+])(?=[\w+/]*[A-Z])(?=[\w+/]*[a-z])(?=(?:[\w+/]*\d){2})[A-Za-z0-9+][A-Za-z0-9+/]{39}(?![\w+/])"
)
_RANDOM: Final = re.compile(
    r"(?<![^\s/])(?=[^\s/]*[A-Z])(?=[^\s/]*[a-z])(?=(?:[^\s/]*\d){3})[A-Za-z0-9+_=]{32,}(?![^\s/])"  # a random word
)
_ESCAPE: Final = re.compile(r"%([2-7][0-9A-Fa-f])")
_SPELLINGS: Final = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212\uff0d", "-") | {"\uff20": "@"})
"""Signs that look like the ones keys and addresses are written with."""
_BEARER: Final = re.compile(r"\bbearer\s+[^\s'\"`]+", re.IGNORECASE)
_WORD: Final = re.compile(r"[^\s'\"`<>(){},;]+")
_LOOKED_AT: Final = 4096
"""Characters of a word that are searched; what is longer goes as a whole, for it is no word of ours."""


def is_secret(text: str, *, random: bool = True) -> bool:
    """Whether something in a text looks like a key or an e-mail address; ``random``: or is a long random word.

    >>> is_secret("sk-proj-0123456789abcdef"), is_secret("jane@example.org"), is_secret("meta-llama/Llama-3.1-70B")
    (True, True, False)
    """
    if not text.isascii():
        text = text.translate(_SPELLINGS)
    plain = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
    shapes = (_SECRET, _RANDOM) if random else (_SECRET,)
    return any(shape.search(text) or shape.search(plain) for shape in shapes)


def redacted(text: str) -> str:
    """A text of ours with every word that looks like a secret replaced by stars.

    >>> redacted("capwatch.yml:3: sk-proj-0123456789abcdef: unknown key; did you mean 'pools'?")
    "capwatch.yml:3: ***: unknown key; did you mean 'pools'?"
    """
    return _WORD.sub(_starred, _BEARER.sub("***", text))


def _starred(word: re.Match[str]) -> str:
    if len(word[0]) <= _LOOKED_AT and not is_secret(word[0]):
        return word[0]
    return "***" + ":" * word[0].endswith(":")
