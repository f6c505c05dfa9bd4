"""The daemon's own log: logfmt or JSON on stderr, each kind of message rate-limited, no content of lines, no keys."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Final

from capwatch.redact import redacted

LEVELS: Final = ("debug", "info", "warning", "error")
BURST: Final = 10
"""Messages of one kind that pass in each interval; what is over is counted and told with the next that passes."""
INTERVAL_S: Final = 60.0


def begin(level: str, form: str) -> None:
    """Send the log of all of capwatch to stderr.

    Args:
        level: one of `LEVELS`.
        form: `logfmt` or `json`.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Logfmt())
    handler.addFilter(_Limit())
    root = logging.getLogger("capwatch")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False


class _Limit(logging.Filter):
    """Lets a burst of each kind of message pass in an interval; a kind is its text before the values go in."""

    def __init__(self) -> None:
        super().__init__()
        self._kinds: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record may pass; it then carries how many before it did not."""
        kind = str(record.msg)
        since, count = self._kinds.get(kind, (record.created, 0))
        if record.created - since >= INTERVAL_S:
            since, count, over = record.created, 0, max(0, count - BURST)
        else:
            over = 0
        self._kinds[kind] = since, count + 1
        record.suppressed = over
        return count < BURST


def _fields(record: logging.LogRecord) -> dict[str, object]:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{record.msecs:03.0f}Z"
    fields: dict[str, object] = {"ts": stamp, "level": record.levelname.lower(), "msg": redacted(record.getMessage())}
    if getattr(record, "suppressed", 0):
        fields["suppressed"] = getattr(record, "suppressed", 0)
    if record.exc_info and record.exc_info[1] is not None:
        place = record.exc_info[1].__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        # The text of an error may quote data; its kind and place do not.
        fields["error"] = type(record.exc_info[1]).__name__
        if place is not None:
            fields["at"] = f"{place.tb_frame.f_code.co_filename.rpartition('/')[2]}:{place.tb_lineno}"
    return fields


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(_fields(record))


class _Logfmt(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return " ".join(f"{key}={_value(value)}" for key, value in _fields(record).items())


def _value(value: object) -> str:
    text = str(value)
    return text if text and text.isprintable() and not set(text) & set(' "=') else _quoted(text)


def _quoted(text: str) -> str:
    """In quotes; what cannot be printed is escaped, and then all that is no ASCII."""
    return json.dumps(text, ensure_ascii=not text.isprintable())
