"""What stands on a log's lines beside plain requests: wrappers, other line ends, and garbage of a known fate."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Mapping

STAMP = b"2026-03-03T09:15:02.430000190Z"


def cri(text: bytes, sequence: int) -> bytes:
    """The line as a container runtime writes it: in one to four parts, each a line of its own."""
    return b"".join(
        b"%b stdout %b %b\n" % (STAMP, b"F" if last else b"P", part) for part, last in _parts(text, sequence)
    )


def cri_streams(text: bytes, sequence: int) -> bytes:
    """The same with parts of another stream between those of this one: noise on stderr that is no request."""
    noise = b"%b stderr P debug: \n%b stderr F nothing special\n" % (STAMP, STAMP)
    first, *rest = cri(text, sequence).splitlines(keepends=True)
    begin, end = noise.splitlines(keepends=True)
    return first + begin + b"".join(rest) + end


def noise_dropped(lines: int) -> dict[str, int]:
    """What becomes of that noise."""
    return {"malformed": lines}


def docker(text: bytes, sequence: int) -> bytes:
    """The line as Docker's json-file driver writes it: parts are known by their missing newline."""
    rows = [
        json.dumps({"log": part.decode() + "\n" * last, "stream": "stdout", "time": STAMP.decode()})
        for part, last in _parts(text, sequence)
    ]
    return "".join(f"{row}\n" for row in rows).encode()


def journald(text: bytes, sequence: int) -> bytes:
    """The line as `journalctl -o json` writes it; every seventh message as an array of bytes."""
    body = text.rstrip(b"\n")
    message = list(body) if sequence % 7 == 0 else body.decode()
    row = {"__REALTIME_TIMESTAMP": "1772529302430000", "_HOSTNAME": "gw-1", "PRIORITY": "6", "MESSAGE": message}
    return json.dumps(row).encode() + b"\n"


def _parts(text: bytes, sequence: int) -> list[tuple[bytes, bool]]:
    """One to four parts of a line without its newline, and whether each is the last."""
    body = text.rstrip(b"\n")
    size = -(-len(body) // (1 + sequence % 4))
    cuts = range(0, len(body), size)
    return [(body[begin : begin + size], begin + size >= len(body)) for begin in cuts]


def crlf(text: bytes, sequence: int) -> bytes:
    """A line that ends as on Windows."""
    return text[:-1] + b"\r\n"


def bom(text: bytes, sequence: int) -> bytes:
    """A byte order mark before the first line."""
    return b"\xef\xbb\xbf" + text if sequence == 0 else text


def long_lines(text: bytes, sequence: int) -> bytes:
    """Every thousandth line is 2 MiB long: a request with a field that nobody asks for."""
    if sequence % 1000 != 7:
        return text
    return text.replace(b'{"finished_at"', b'{"note": "%b", "finished_at"' % (b"n" * (2 << 20)))


LIGHT: Mapping[bytes, str] = {
    b'{"tenant": "\xff\xfe", "model": "chat"}': "bad_utf8",
    b'{"tenant": "caf\xe9", "model": "chat"}': "bad_utf8",
    b"Traceback (most recent call last):": "malformed",
    b"\0\0\0\0\0\0\0\0": "malformed",
}
"""What is found in real logs now and then, and why it is dropped."""
ALL: Mapping[bytes, str] = {
    **LIGHT,
    b'{"tenant": "\xe2\x82", "model": "chat"}': "bad_utf8",
    b"\0" * 4096: "malformed",
    b'{"tenant": "a\0b", "model": "chat"}': "malformed",
    b'{"finished_at": 1772529302.43, "tenant": "half", "mod': "malformed",
    b'"a text"': "malformed",
    b"17": "malformed",
    b"[1, 2, 3]": "malformed",
    b"null": "malformed",
    b'{"finished_at": "yesterday", "tenant": "x", "outcome": "ok"}': "bad_time",
    b'{"finished_at": NaN, "tenant": "x"}': "bad_time",
    b'{"tenant": "x", "outcome": "ok"}': "bad_time",
    b"\x0b\x0c": "skipped",
    b"": "skipped",
    b"   ": "skipped",
    b"{}}": "malformed",
    b"[" * 5000: "malformed",
    base64.b64encode(bytes(range(256))) * 20: "malformed",
}
"""Everything else that ever stood in a log."""
SELDOM, OFTEN = 250, 10
"""One line of garbage after so many good ones."""


def _mixed(
    kinds: Mapping[bytes, str], every: int
) -> tuple[Callable[[bytes, int], bytes], Callable[[int], dict[str, int]]]:
    texts = list(kinds)

    def wrap(text: bytes, sequence: int) -> bytes:
        if sequence % every:
            return text
        return text + texts[sequence // every % len(texts)] + b"\n"

    def dropped(lines: int) -> dict[str, int]:
        fates = Counter(kinds[texts[sequence // every % len(texts)]] for sequence in range(0, lines, every))
        del fates["skipped"]
        return dict(fates)

    return wrap, dropped


light_garbage, light_dropped = _mixed(LIGHT, SELDOM)
garbage, garbage_dropped = _mixed(ALL, OFTEN)
