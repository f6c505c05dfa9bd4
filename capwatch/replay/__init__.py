"""Replay: the daemon's own road over finished files."""

from capwatch.replay.road import Log, replay

__all__ = ["Log", "replay"]
