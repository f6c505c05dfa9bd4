"""Tests of the calibration, with an engine of its own whose rates are known."""
