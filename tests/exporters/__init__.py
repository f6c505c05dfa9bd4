"""Exposition formats, over the same totals."""
