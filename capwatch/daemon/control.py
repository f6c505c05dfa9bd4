"""Local control: a Unix socket in the state directory that takes one JSON line and answers with one.

Only the owner of the state directory may write to it. A request is `{"do": "annotate", "text": …, "at": …, "pool": …}`;
the answer is `{"ok": true}` once it is durable, or `{"error": "one line"}`.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from capwatch.errors import CapwatchError, UsageError

NAME: Final = "capwatch.sock"
LONGEST: Final = 64 << 10
"""Bytes of a request: a note, not a document."""
PATIENCE_S: Final = 10.0
"""For a client to say what it wants, and for the daemon to make it durable."""

Answer = Callable[[Mapping[str, object]], None]
"""Does what a request says and returns when that is durable; raises `CapwatchError` where it cannot."""

_log = logging.getLogger(__name__)


class Control:
    """The daemon's side. One request at a time is enough for people and pipelines."""

    def __init__(self, folder: str, answer: Answer) -> None:
        """Take the socket; one that an earlier daemon left is replaced, for the lock says that it has gone.

        Raises:
            OSError: it cannot be made.
        """
        self._answer = answer
        self._path = path = os.path.join(folder, NAME)
        if os.path.exists(path):
            os.unlink(path)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            _named(self._listener.bind, path)
        finally:
            os.umask(before)
        self._listener.listen(8)
        self._thread = threading.Thread(target=self._run, name="control", daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """End, and take the socket away."""
        self._listener.close()
        with suppress(OSError):
            os.unlink(self._path)

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed
            with connection:
                try:
                    connection.settimeout(PATIENCE_S)
                    connection.sendall(json.dumps(self._reply(connection)).encode() + b"\n")
                except Exception as error:  # noqa: BLE001 - whatever was sent, the next one is answered
                    _log.warning("a control connection has failed: %s", type(error).__name__)

    def _reply(self, connection: socket.socket) -> dict[str, object]:
        try:
            request = json.loads(_line(connection))
        except (ValueError, RecursionError):
            return {"error": "not understood: one JSON object on one line is expected"}
        if not isinstance(request, dict):
            return {"error": "not understood: a JSON object is expected"}
        try:
            self._answer(request)
        except CapwatchError as error:
            return {"error": str(error)}
        return {"ok": True}


def ask(folder: str, request: Mapping[str, object]) -> None:
    """The client's side: send a request to the daemon on a state directory.

    Raises:
        UsageError: no daemon runs there, or it refuses.
    """
    path = os.path.join(folder, NAME)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(PATIENCE_S)
        try:
            _named(connection.connect, path)
            connection.sendall(json.dumps(dict(request)).encode() + b"\n")
            reply = json.loads(_line(connection))
        except (OSError, ValueError):
            raise UsageError(f"{path}: no daemon answers; start it, or name its directory with --state-dir") from None
    if "error" in reply:
        raise UsageError(str(reply["error"]))


def is_utf8(text: str) -> bool:
    """Whether a text can be written down; one from the command line need not be."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _named(act: Callable[[str], None], path: str) -> None:
    """Bind or connect by a name that is longer than the 107 bytes a socket's address holds, too."""
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        act(f"/proc/self/fd/{folder}/{os.path.basename(path)}")
    finally:
        os.close(folder)


def _line(connection: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"\n") and len(data) <= LONGEST:
        piece = connection.recv(4096)
        if not piece:
            break
        data += piece
    if len(data) > LONGEST:
        raise ValueError("too long")
    return data
