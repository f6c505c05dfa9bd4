"""One browser for all tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .browser import Page, chromium


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """With an empty profile."""
    with chromium(tmp_path_factory.mktemp("browser")) as found:
        yield found
