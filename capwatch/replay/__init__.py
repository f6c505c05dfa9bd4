"""Replay: the daemon's own road over finished files."""

from capwatch.replay.chosen import chosen
from capwatch.replay.road import Log, replay, told_until

__all__ = ["Log", "chosen", "replay", "told_until"]
