"""Bounds: the real daemon under logs that would fill anything; memory, series and its own log stay small."""
