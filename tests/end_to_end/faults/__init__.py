"""Faults: the real daemon under rotations, kills and refusals, judged from outside by a writer that knows the truth."""

import os

LONG = bool(os.environ.get("CAPWATCH_FAULTS"))
"""Whether the long form runs (`make faults`): more kills, and bounds on time that a shared machine may not keep."""
