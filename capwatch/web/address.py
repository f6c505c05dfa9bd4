"""The address that a server listens on: taken, or refused in one clear line."""

from __future__ import annotations

import errno
import os
import socket
from typing import Final

from capwatch.errors import UsageError

BACKLOG: Final = 1024
"""Connections that the kernel keeps until they are accepted. One that finds no room comes again a second later."""
_NO_HOST: Final = "there is no such host; give an address, such as 127.0.0.1"


def listening(listen: str) -> socket.socket:
    """A listening socket on an address; no host means every address.

    Raises:
        UsageError: the address cannot be had; one line says which, and what to do.
    """
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    try:
        if not host and socket.has_dualstack_ipv6():
            return socket.create_server(("::", int(port)), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, int(port)), family=family, backlog=BACKLOG)
    except UnicodeError:
        raise UsageError(f"cannot listen on {listen}: {_NO_HOST}") from None
    except OSError as error:
        raise UsageError(f"cannot listen on {listen}: {_why(error)} (`listen`, --web.listen-address)") from None


def _why(error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return "another program listens there; stop it, or choose another port"
        case errno.EACCES:
            return "ports below 1024 need a privilege; choose a higher one"
        case errno.EADDRNOTAVAIL:
            return "this machine has no such address; choose one of its own, such as 127.0.0.1"
    if error.errno is None or error.errno < 0:  # not the kernel's: the name could not be resolved
        return _NO_HOST
    return f"{os.strerror(error.errno)}; choose another address"
