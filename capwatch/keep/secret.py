"""The key of an installation's hashes and seals: made once, kept beside the state."""

from __future__ import annotations

import logging
import os
import secrets

from capwatch.keep import durable

_log = logging.getLogger(__name__)


def secret(folder: str) -> bytes:
    """The key of a state directory, made at the first start."""
    path = os.path.join(folder, "label.key")
    try:
        with open(path, "rb") as file:
            found = file.read()
        if len(found) == 32:
            return found
        _log.warning("%s: has %d bytes instead of 32 and is made anew; hashed names change", path, len(found))
    except FileNotFoundError:
        pass
    fresh = secrets.token_bytes(32)
    durable.write(path, fresh)  # or a power cut would rename every hashed tenant
    return fresh
