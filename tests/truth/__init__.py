"""Seeded traffic with its own truth: what the product must report, computed without any of the product's code."""
