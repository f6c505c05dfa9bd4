"""Calibration: what a replica can do, measured from what it did."""
