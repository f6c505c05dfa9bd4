"""What holds for all tests: hypothesis without a wall clock, and the same examples in every CI run."""

import os

from hypothesis import HealthCheck, settings

# A deadline per example measures the neighbours on the machine, not the code.
settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("here"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")
