"""The door: the terms that are in force, looked at for every connection and request, since their files may change."""

from __future__ import annotations

import logging
import os
import socket
import ssl
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from capwatch.errors import ConfigError
from capwatch.web.answer import Answer, said
from capwatch.web.door.document import Document, load
from capwatch.web.door.passwords import BusyError, Passwords, credentials
from capwatch.web.door.tls import allowed, context
from capwatch.web.request import Asked

_UNKNOWN: Final = said(
    401, "user and password, please", ("WWW-Authenticate", 'Basic realm="capwatch", charset="UTF-8"')
)
_BUSY: Final = said(503, "too many passwords are being checked", ("Retry-After", "1"))

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Terms:
    """What a document comes to."""

    document: Document = field(default_factory=Document)
    tls: ssl.SSLContext | None = None
    refusal: str = ""
    """Why clients will refuse the certificate."""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def locks(self) -> frozenset[str]:
        """What keeps others out; a change on the fly may not take one away."""
        tls = self.document.tls_server_config
        found = {
            "TLS": tls is not None,
            "client certificates": tls is not None and tls.client_auth_type == "RequireAndVerifyClientCert",
            "client_allowed_sans": tls is not None and bool(tls.client_allowed_sans),
            "passwords": bool(self.document.basic_auth_users),
        }
        return frozenset(lock for lock, there in found.items() if there)


class Door:
    """Who may come in. Called from many threads at once."""

    def __init__(self, path: str | None = None) -> None:
        """Open to all where no web configuration file is given.

        Raises:
            ConfigError: it cannot be used.
        """
        self._path = path
        self._lock = Lock()
        self._passwords = Passwords()
        self._watched: dict[str, tuple[int, ...] | None] = {}
        self._terms = _Terms() if path is None else self._read(path)

    @property
    def asks(self) -> bool:
        """Whether nobody comes in without a password or a certificate."""
        return not self._terms.locks.isdisjoint({"passwords", "client certificates"})

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Headers of every answer."""
        return tuple(self._current().headers.items())

    def warnings(self) -> Iterator[str]:
        """What is allowed but probably not meant."""
        terms = self._terms
        if terms.document.basic_auth_users and terms.tls is None:
            yield "passwords are sent in the clear, for everybody on the way to read; give tls_server_config"
        if terms.refusal:
            yield f"clients will refuse the certificate in tls_server_config: {terms.refusal}"
        tls = terms.document.tls_server_config
        inside = terms.document.basic_auth_users or (tls is not None and tls.key is not None)
        for path in (self._path if inside else None, tls.key_file if tls is not None else None):
            if path is not None and os.path.exists(path) and os.stat(path).st_mode & stat.S_IROTH:
                yield f"{path} can be read by every user of this machine, and holds secrets; chmod o-r"

    def wrap(self, line: socket.socket) -> socket.socket:
        """The connection as it goes on; nothing is sent or received yet."""
        terms = self._current()
        if terms.tls is None:
            return line
        return terms.tls.wrap_socket(line, server_side=True, do_handshake_on_connect=False)

    def greet(self, line: socket.socket) -> bool:
        """Shake hands, for as long as the client takes; whether it may stay.

        Raises:
            OSError: it is gone, or has no certificate that can be verified.
        """
        if not isinstance(line, ssl.SSLSocket):
            return True
        line.settimeout(None)
        line.do_handshake()
        tls = self._current().document.tls_server_config
        return tls is None or allowed(line, tls.client_allowed_sans)

    def admit(self, asked: Asked) -> Answer | None:
        """What is said to a client that may not ask this; None where it may."""
        users = self._current().document.basic_auth_users
        if not users:
            return None
        found = credentials(asked.headers.get("authorization"))
        try:
            return None if found is not None and self._passwords.fit(users, *found) else _UNKNOWN
        except BusyError:
            return _BUSY

    def _current(self) -> _Terms:
        """The terms in force, after a look at the files; what cannot be used changes nothing."""
        if self._path is None:
            return self._terms
        with self._lock:
            if self._watched != {path: _stamp(path) for path in self._watched}:
                self._renew(self._path)
            return self._terms

    def _renew(self, path: str) -> None:
        old = self._terms
        try:
            new = self._read(path)
        except ConfigError as error:
            # Files of a set are replaced one by one, so that this may be over soon: each change is looked at again.
            _log.error("the web configuration was not loaded anew, the old one is in force: %s", error)
            return
        if missing := old.locks - new.locks:
            # A file that is just being written is empty, or ends early; nobody comes in by that.
            told = " and ".join(sorted(missing))
            _log.error("the web configuration was not loaded anew: to give up %s needs a restart", told)
            return
        self._terms = new
        _log.info("web configuration loaded anew")
        for warning in self.warnings():
            _log.warning("%s", warning)

    def _read(self, path: str) -> _Terms:
        self._watched = {path: _stamp(path)}  # before it is read: what changes meanwhile is read again
        document = load(path)
        self._watched |= {one: _stamp(one) for one in document.files}
        tls = document.tls_server_config
        made, refusal = context(tls, path) if tls is not None else (None, "")
        headers = {name: value for name, value in document.http_server_config.headers.items() if value}
        return _Terms(document, made, refusal, headers)


def _stamp(path: str) -> tuple[int, ...] | None:
    """Changes whenever a file does, or what its name stands for; None where there is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
