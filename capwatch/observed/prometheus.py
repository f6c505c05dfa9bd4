"""A server with the Prometheus query API (Prometheus, Thanos, Mimir, VictoriaMetrics), asked for columns of numbers.

Ranges are asked for in pieces, so that no limit on points, samples or time of one query bites. What a server holds
against its own answer (a store that did not answer, samples that are missing) is kept in `Server.warnings`.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from ssl import SSLCertVerificationError, SSLContext, SSLError
from threading import Event, Timer
from typing import Any, Final, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec
import numpy as np

from capwatch.errors import CapwatchError
from capwatch.observed.access import Access
from capwatch.observed.columns import Columns

PATIENCE_S: Final = 60.0
"""Time that one answer may take; servers give up after two minutes, people before."""
POINTS: Final = 10_000
"""Moments of one query at most; Prometheus refuses more than 11,000."""
MOST_BYTES: Final = 256 << 20
"""Of one answer; more is asked for in halves."""
HEAVY: Final = frozenset({413, 422, 500, 502, 503, 504})
"""Answers that a query of half the time may not get: too many samples, took too long, a proxy lost patience."""
READ_BYTES: Final = 1 << 20


T = TypeVar("T")


class _Series(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]] = []
    value: tuple[float, str] | None = None


class _Found(msgspec.Struct):
    result: list[_Series] = []


class _Answer(msgspec.Struct):
    """What every answer of the API is."""

    status: str
    data: msgspec.Raw = msgspec.Raw(b"null")
    error: str = ""
    warnings: list[str] = []


class SilentError(CapwatchError):
    """There was no answer, or not a whole one: whatever is asked next will fare no better."""


class TooHeavyError(CapwatchError):
    """An answer was more than the server, or the reader, could manage; half of it may not be."""


class Server:
    """A server at an address, such as `http://127.0.0.1:9090` or `https://mimir/prometheus`.

    Every method raises CapwatchError, one line, where the server cannot be reached, refuses, or is none; the
    constructor raises ConfigError where a file of its TLS cannot be used.

    Attributes:
        url: its address, without a slash at the end.
        warnings: what it held against its answers, each once.
    """

    def __init__(self, url: str, access: Access = Access(), patience: float = PATIENCE_S) -> None:  # noqa: B008 - frozen
        self.url = url.rstrip("/")
        self.warnings: list[str] = []
        self._access = access
        self._patience = patience
        self._form = True
        self._context = access.context() if self.url.startswith("https:") else None

    def range(self, expr: str, since: float, until: float, step: float) -> Columns:
        """An expression at the multiples of ``step`` in since ≤ t ≤ until (s, epoch): all servers align alike there.

        Returns:
            Columns whose moments are the same whatever was found; an expression that finds nothing has no series.
        """
        first, last = int(np.ceil(since / step - 1e-9)), int(np.floor(until / step + 1e-9))
        parts = [self._piece(expr, one, min(one + POINTS, last + 1), step) for one in range(first, last + 1, POINTS)]
        return Columns.joined(parts) if parts else Columns(np.empty(0), (), np.empty((0, 0)))

    def at(self, expr: str, moment: float) -> Columns:
        """An expression at one moment (s, epoch)."""
        found = self._asked("query", {"query": expr, "time": f"{moment:.3f}"})
        series = [one for one in _vector(found, expr, self.url) if one.value is not None]
        values = np.array([[float(one.value[1])] for one in series if one.value is not None])
        return Columns(np.array([moment]), [one.metric for one in series], values.reshape(len(series), 1))

    def values(self, label: str, since: float, until: float, match: str | None = None) -> list[str]:
        """The values that a label has, of series that match a selector where one is given; ascending."""
        words = {"start": f"{since:.3f}", "end": f"{until:.3f}"} | ({} if match is None else {"match[]": match})
        found = self._asked(f"label/{label}/values", words, form=False)
        return sorted(_decoded(found, list[str], self.url))

    def told(self, path: str, kind: type[T]) -> T:
        """What the API tells that is no series, by its place (`rules`, `targets`, `status/buildinfo`), as a type."""
        found: T = _decoded(self._asked(path, {}, form=False), kind, self.url)
        return found

    def _piece(self, expr: str, first: int, end: int, step: float) -> Columns:
        """Moments first ≤ k < end, of k steps each; in halves where they are too much for one answer."""
        words = {"query": expr, "start": f"{first * step:.3f}", "end": f"{(end - 1) * step:.3f}", "step": f"{step:.3f}"}
        try:
            found = self._asked("query_range", words)
        except TooHeavyError:
            if end - first < 2:
                raise
            middle = (first + end) // 2
            return Columns.joined([self._piece(expr, first, middle, step), self._piece(expr, middle, end, step)])
        series = _vector(found, expr, self.url)
        values = np.full((len(series), end - first), np.nan)
        for row, one in zip(values, series, strict=True):
            told = np.array([float(value) for _, value in one.values])
            row[np.rint([at / step for at, _ in one.values]).astype(np.int64) - first] = told
        return Columns(np.arange(first, end, dtype=np.float64) * step, [one.metric for one in series], values)

    def _asked(self, path: str, words: Mapping[str, str], *, form: bool = True) -> msgspec.Raw:
        """What the API says, by POST since queries may be long, by GET where that is not allowed."""
        place = f"/api/v1/{path}"
        status, kind, text = self._sent(place, urlencode(words), form=form and self._form)
        if form and self._form and status in (405, 501):
            self._form = False
            status, kind, text = self._sent(place, urlencode(words), form=False)
        try:
            answer = msgspec.json.decode(text, type=_Answer)
        except msgspec.DecodeError:
            raise _strange(self.url, status, kind) from None
        if answer.status != "success":
            why = f"{self.url}: refuses {words.get('query', path)}: {answer.error or f'status {status}'}"
            raise (TooHeavyError if status in HEAVY else CapwatchError)(why)
        self.warnings += [one for one in dict.fromkeys(answer.warnings) if one not in self.warnings]
        return answer.data

    def _sent(self, path: str, words: str, *, form: bool) -> tuple[int, str, bytes]:
        """Status, content type and content of an answer."""
        place = urlsplit(self.url)
        host, port = place.hostname or "", place.port
        headers = self._access.headers()
        connection = (
            HTTPConnection(host, port, timeout=self._patience)
            if self._context is None
            else _Secured(host, port, self._patience, self._context, self._access.tls_config.server_name)
        )
        over = Event()
        late = Timer(self._patience, _cut, (connection, over))  # so that no dripping answer holds the caller
        late.daemon = True
        late.start()
        try:
            found = _spoken(connection, place.path + path, words, headers, form=form)
            if over.is_set():
                raise TimeoutError
        except (OSError, HTTPException) as error:
            why = _why(TimeoutError() if over.is_set() else error, self._patience)
            raise SilentError(f"{self.url}: {why}") from None
        finally:
            late.cancel()
            connection.close()
        return found


class _Secured(HTTPSConnection):
    """A connection whose other side may have to show a certificate of another name than the address has."""

    def __init__(self, host: str, port: int | None, patience: float, context: SSLContext, name: str | None) -> None:
        super().__init__(host, port, timeout=patience, context=context)
        self._secure, self._name = context, name or host

    def connect(self) -> None:
        """Connect, and verify."""
        HTTPConnection.connect(self)
        self.sock = self._secure.wrap_socket(self.sock, server_hostname=self._name)


def _cut(connection: HTTPConnection, over: Event) -> None:
    over.set()  # first, so that whoever sees the end knows why
    with suppress(OSError, AttributeError):  # it may have no socket yet, or none any more
        connection.sock.shutdown(socket.SHUT_RDWR)


def _spoken(
    connection: HTTPConnection, path: str, words: str, headers: list[tuple[str, str]], *, form: bool
) -> tuple[int, str, bytes]:
    body = words.encode() if form else b""
    connection.putrequest("POST" if form else "GET", path if form else f"{path}?{words}", skip_accept_encoding=True)
    for name, value in (*headers, ("Accept", "application/json")):
        connection.putheader(name, value)
    if form:
        connection.putheader("Content-Type", "application/x-www-form-urlencoded")
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body or None)
    answer = connection.getresponse()
    return answer.status, answer.headers.get_content_type(), b"".join(_read(answer))


def _read(answer: HTTPResponse) -> Iterator[bytes]:
    size = 0
    while piece := answer.read1(READ_BYTES):
        size += len(piece)
        if size > MOST_BYTES:
            raise TooHeavyError(f"an answer has more than {MOST_BYTES >> 20} MiB; ask for less at a time")
        yield piece
    if answer.length:
        raise IncompleteRead(b"", answer.length)


def _vector(found: msgspec.Raw, expr: str, url: str) -> list[_Series]:
    try:
        return msgspec.json.decode(found, type=_Found).result
    except msgspec.DecodeError:
        raise CapwatchError(f"{url}: {expr} gives no series, but a single value") from None


def _decoded(found: msgspec.Raw, kind: Any, url: str) -> Any:
    try:
        return msgspec.json.decode(found, type=kind)
    except msgspec.DecodeError:
        raise _strange(url, 200, "application/json") from None


def _strange(url: str, status: int, kind: str) -> CapwatchError:
    """What speaks there is not the API."""
    if status in (401, 403):
        return CapwatchError(f"{url}: wants to know who asks (status {status}); give --http.config.file")
    if status in HEAVY:
        return TooHeavyError(f"{url}: status {status}")
    return CapwatchError(
        f"{url}: is no Prometheus query API (status {status}, {kind}); give the address before /api/v1"
    )


def _why(error: OSError | HTTPException, patience: float) -> str:
    match error:
        case TimeoutError():
            return f"no whole answer within {patience:g} s"
        case ConnectionRefusedError():
            return "connection refused; does the server run?"
        case socket.gaierror():
            return "there is no such host"
        case SSLCertVerificationError():
            return f"its certificate is not trusted ({error.verify_message}); give tls_config in --http.config.file"
        case SSLError():
            return f"TLS failed ({error.reason})"
        case OSError():
            return f"connection failed ({error.strerror or type(error).__name__})"
        case IncompleteRead():
            return "its answer was cut short"
    return f"speaks no HTTP ({type(error).__name__})"
