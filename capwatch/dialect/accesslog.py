"""Access logs of web servers: their lines as text, the requests in them, and the methods that ask no model anything."""

from __future__ import annotations

import re
from typing import Final

READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that ask no model anything: lists of models, health checks."""
COMBINED: Final = re.compile(
    r'(?P<remote_addr>\S+) - (?P<remote_user>.*?) \[(?P<time_local>\d\d/[^\]]+)\] (?P<http_host>[^"\s]+ )?'
    r'"(?P<request>(?:[^"\\]|\\.)*)" (?P<status>\d{1,3}|-) (?P<body_bytes_sent>\d+|-)'
)
"""How a line in the common or combined format begins, after Apache; one more word, the host, is APISIX's."""
QUOTED: Final = r'"((?:[^"\\]|\\.)*)"'
"""A text between quotes; in it quotes are escaped."""

_REQUEST: Final = re.compile(r"([A-Z][A-Z-]*) (\S.*?)(?: HTTP/[\d.]+)?")
_WORD: Final = re.compile(rf"([A-Za-z_][\w.-]*)=(?:{QUOTED}|([^\s\"]*))(?=\s|$)|{QUOTED}|\S+")
_ERROR_LOG: Final = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[[a-z]+\] ")


def asked(line: str | None) -> tuple[str | None, str | None]:
    """Method and path of a request line; None for both where a client sent something that is none.

    >>> asked("POST /v1/chat/completions HTTP/1.1"), asked("<BADREQ>"), asked(None)
    (('POST', '/v1/chat/completions'), (None, None), (None, None))
    """
    found = _REQUEST.fullmatch(line or "")
    return (found[1], found[2]) if found else (None, None)


def pairs(text: str) -> dict[str, str]:
    """What a text says as `name=value` or `name="value"`; all else is passed over, what a client sent in quotes too.

    >>> pairs('"-" "curl tenant=other" rt=0.163 urt="0.081, 0.082" tenant=acme')
    {'rt': '0.163', 'urt': '0.081, 0.082', 'tenant': 'acme'}
    """
    words = (found for found in _WORD.finditer(text) if found[1])
    return {found[1]: found[2] if found[3] is None else found[3] for found in words}


def is_error_log(line: str) -> bool:
    """Whether a line is of the error log of nginx, which in containers stands between the access lines.

    >>> is_error_log("2026/03/03 09:15:02 [warn] 7#7: *3 upstream server temporarily disabled"), is_error_log("{}")
    (True, False)
    """
    return _ERROR_LOG.match(line) is not None
