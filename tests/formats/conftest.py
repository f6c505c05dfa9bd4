"""The option that writes golden files anew."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option, where pytest was told about this folder before it parsed its command line."""
    parser.addoption("--update-golden", action="store_true", help="write what is understood today as what is expected")
