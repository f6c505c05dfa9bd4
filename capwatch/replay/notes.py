"""The deploy notes of a configuration, read at once: replays tell change points with them."""

from __future__ import annotations

import os

from capwatch.config.rules import all_sources
from capwatch.config.schema import Config
from capwatch.errors import UsageError
from capwatch.record import Note
from capwatch.replay.files import UNREADABLE, blocks, opened
from capwatch.sourcing import decoder_for

BLOCK = 1 << 20
"""Bytes decoded at once."""


def notes(config: Config) -> list[Note]:
    """All notes of the file that `deploys` names; none where there is no such file (yet). Bad lines are passed over.

    Raises:
        UsageError: it is there and cannot be read.
    """
    if config.deploys is None or not os.path.exists(config.deploys):
        return []
    decoder, longest = decoder_for(all_sources(config)[-1], config.limits.line_bytes), config.limits.line_bytes
    try:
        with opened(config.deploys) as stream:
            parts = [decoder.decode(lines, 0.0).notes for _, lines, _, _ in blocks(stream, BLOCK, longest)]
    except UNREADABLE as error:
        raise UsageError(f"{config.deploys}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return [note for part in parts for _, note in part]
