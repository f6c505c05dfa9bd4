"""Bounds: the real daemon under logs that would fill anything without them; memory, series and its own log stay small."""
