"""Tests of the long form are there in the long form only."""

import pytest

from . import LONG


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take out tests that only `make faults` runs; they are not skipped, since nothing is missing for them."""
    gone = [item for item in items if item.get_closest_marker("long") and not LONG]
    if gone:
        config.hook.pytest_deselected(items=gone)
        items[:] = [item for item in items if item not in gone]
