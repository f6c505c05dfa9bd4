"""Tests of what a SOURCE tells."""
