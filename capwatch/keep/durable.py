"""Small files that are there whole after a power cut, or not at all."""

from __future__ import annotations

import os


def write(path: str, data: bytes) -> None:
    """Put a file of mode 0600 in its place, durably, over what was there.

    Raises:
        OSError: it cannot be written; what was there is there still.
    """
    new = f"{path}.new"
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    os.replace(new, path)
    sync_folder(path)


def sync_folder(path: str) -> None:
    """Make durable that a path leads to the file that it leads to now."""
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
