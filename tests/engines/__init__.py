"""Engines' /metrics pages."""
