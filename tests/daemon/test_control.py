"""The control socket answers the next one, whatever the last one sent."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from capwatch.daemon.control import NAME, Control, ask
from capwatch.errors import UsageError


def answer(request: Mapping[str, object]) -> None:
    """Refuse what is bad, and fail over what is worse."""
    if request.get("do") == "refuse":
        raise UsageError("do: no")
    if request.get("do") == "fail":
        raise OverflowError


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A state directory whose daemon answers."""
    control = Control(str(tmp_path), answer)
    control.start()
    yield tmp_path
    control.stop()
    assert not (tmp_path / NAME).exists()


def send(folder: Path, data: bytes) -> bytes:
    """What comes back for these bytes."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(str(folder / NAME))
        connection.sendall(data)
        return connection.recv(4096)


@pytest.mark.parametrize("data", [b"\n", b"[]\n", b"{\n", b"[" * 60_000 + b"\n", b"\xff\n", b'{"do":"fail"}\n'])
def test_nothing_that_is_sent_ends_it(folder: Path, data: bytes) -> None:
    """Neither what is no request, nor one over which the daemon stumbles."""
    reply = send(folder, data)
    assert not reply or "error" in json.loads(reply)
    ask(str(folder), {"do": "anything"})
    with pytest.raises(UsageError, match="do: no"):
        ask(str(folder), {"do": "refuse"})
