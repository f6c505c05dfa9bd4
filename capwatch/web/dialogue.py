"""Both sides of one connection as bytes: which requests lie in what was received, which bytes an answer is.

h11 reads and writes HTTP/1.1 here; this module knows no socket and no time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

import h11

from capwatch.web.answer import Answer
from capwatch.web.request import LONG_HEAD, LONG_LINE, MOST_HEAD, MOST_LINE, UNREADABLE, Asked, Refused, understand

RECEIVED: Final = 16_384
"""Bytes to hand over at once: a head that comes whole may be longer than `MOST_HEAD` by this much at most."""
SENT: Final = 65_536
"""Bytes to send at once."""


class Dialogue:
    r"""One connection, from its first byte to the answer that ends it.

    >>> talk = Dialogue()
    >>> talk.hear(b"GET / HTTP/1.1\r\nHost: h"), talk.asked()
    (None, None)
    >>> talk.hear(b"ere\r\n\r\n"), talk.asked().path, talk.goes_on
    (None, '/', True)
    """

    def __init__(self) -> None:
        self._http = h11.Connection(h11.SERVER, MOST_HEAD)
        self._begun = False
        self._head = False

    @property
    def begun(self) -> bool:
        """Whether a part of a request has come."""
        return self._begun

    @property
    def goes_on(self) -> bool:
        """Whether the client may ask again: it wants to, and has sent its request to the end."""
        return self._http.their_state is h11.DONE

    def hear(self, data: bytes) -> None:
        """Take what was received, at most `RECEIVED` bytes."""
        self._begun = True
        self._http.receive_data(data)

    def asked(self) -> Asked | Refused | None:
        """The next request; None means that more must come."""
        try:
            event = self._http.next_event()
            if not isinstance(event, h11.Request):
                return None
            self._head = event.method == b"HEAD"
            asked = understand(event)
            if isinstance(asked, Asked) and not asked.body:
                self._http.next_event()  # the end of a request without a body
        except h11.RemoteProtocolError as error:  # its text repeats what the client sent
            return self._too_long() if error.error_status_hint == LONG_HEAD.status else UNREADABLE
        return asked

    def _too_long(self) -> Refused:
        held, _ = self._http.trailing_data
        return LONG_HEAD if b"\n" in held[:MOST_LINE] else LONG_LINE

    def said(self, answer: Answer, *, keep: bool) -> Iterator[bytes]:
        """The bytes of an answer, piece by piece; ``keep`` says whether the connection stays open."""
        ending = ("Connection", "keep-alive" if keep else "close")
        head = h11.Response(status_code=answer.status, reason=answer.phrase, headers=[*answer.lines(), ending])
        pieces = self._out(head)
        whole = memoryview(b"" if self._head else answer.body)
        for begin in range(0, len(whole), SENT):
            pieces += self._out(h11.Data(data=cast("bytes", whole[begin : begin + SENT])))
            yield b"".join(pieces)
            pieces = []
        self._out(h11.EndOfMessage())
        if pieces:
            yield b"".join(pieces)
        if keep:
            self._http.start_next_cycle()
            self._head = False
            self._begun = bool(self._http.trailing_data[0])

    def _out(self, event: h11.Event) -> list[bytes]:
        return self._http.send_with_data_passthrough(event) or []
