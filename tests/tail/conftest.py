"""A reader on the test's own folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .reader import Reader


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Reader]]:
    """Starts a reader; all of them give their descriptors back."""
    readers: list[Reader] = []

    def start_reader(*globs: str, **options: Any) -> Reader:
        readers.append(Reader(tmp_path, globs, **options) if globs else Reader(tmp_path, **options))
        return readers[-1]

    yield start_reader
    for reader in readers:
        reader.follower.close()
