"""What holds for all tests: hypothesis without a wall clock, the same examples in every CI run, asserts that tell."""

import os

import pytest
from hypothesis import HealthCheck, settings

# Asserts in modules that tests share tell both sides, too; said here, before any room imports them.
for _name in ("scenario", "daemon", "scraping"):
    pytest.register_assert_rewrite(f"tests.end_to_end.faults.{_name}")

# A deadline per example measures the neighbours on the machine, not the code.
settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("here"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")
