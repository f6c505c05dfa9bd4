"""llama.cpp's server log: one record per finished task, from its timing block.

Program: `llama-server` of llama.cpp, builds b3600 (2024-08) to b11669 (2026-11). In router mode each line begins with
the `[port]` of its child.
Switched on: by default, to stderr; JSON lines with `--log-jsonl` or the older `--log-format json`.
Example: 0.21.963.002 I slot print_timing: id  0 | task 0 |        eval time =       3.68 ms /     7 tokens
Units: milliseconds; times count from the start of the process, only builds up to b3600 print a clock time.
The uptime is the time since a start: KV cache, model loaded, listening, the first task.

A task tells of itself on several lines. `prompt eval time` counts evaluated tokens, without those from the cache; the
release line has n = prompt + output - 1, which gives the prompt. The release comes before the timings in builds of
2025 and after them in others: the record stands on the later of the two.

Missing: who asked, and ids that another log knows, so no gateway's request is completed by it.
"""

from __future__ import annotations

import json
import re
from typing import cast

from capwatch.dialect import Drop, Format, Options, Skip, Verdict
from capwatch.dialect.colour import plain
from capwatch.dialect.slots import Slots
from capwatch.dialect.value import REFUSED, number

_HEAD = re.compile(r"(?:\[(\d{1,5})\] )?(?:(\d{1,7})\.(\d\d)\.(\d{3})\.(\d{3}) [IWED] )?(.*)", re.ASCII | re.DOTALL)
_OLD = re.compile(r" *(?:INFO|WARN|ERR|VERB) +\[ *\w+\] (.*?) \| tid=(.*)", re.ASCII)
_KEY = re.compile(r"\b(\w+)=([^ ]*)", re.ASCII)
_JSON_LOG = re.compile(r'\{\s*"(?:type|tid|timestamp|time|level)"')


class Lines:
    """Reads one line at a time; `Slots` remembers the open task of each slot."""

    def __init__(self, options: Options) -> None:  # noqa: ARG002 - the log has nothing that depends on options
        self._slots = Slots()

    def read(self, line: str, near: float) -> Verdict:  # noqa: ARG002 - the pipeline gives records without a clock their time
        """A record stands on the last line of its task."""
        line = plain(line)
        if line.startswith("{"):
            return self._json(line)
        if old := _OLD.fullmatch(line):
            return self._slots.old(old[1], dict(_KEY.findall(old[2])))
        head = cast("re.Match[str]", _HEAD.fullmatch(line))
        uptime = None
        if head[2]:
            uptime = int(head[2]) * 60 + int(head[3]) + int(head[4]) * 1e-3 + int(head[5]) * 1e-6
        return self._slots.message(head[6], head[1] or "", uptime)

    def _json(self, line: str) -> Verdict:
        try:
            found = cast("object", json.loads(line))
        except ValueError:
            return Drop("malformed", "broken JSON") if _JSON_LOG.match(line) else Skip("other output")
        message = found.get("msg") if isinstance(found, dict) else None
        if not isinstance(found, dict) or not isinstance(message, str):
            return Skip("other output")
        if "timestamp" in found:
            return self._slots.old(message, {key: str(value) for key, value in found.items()})
        uptime = number(found.get("time"), 1e-6)
        return self._slots.message(message.rstrip("\n"), "", None if uptime == REFUSED else uptime)

    def save(self) -> object:
        """See `Slots.save`."""
        return self._slots.save()

    def load(self, saved: object) -> None:
        """Remember again what `save` gave."""
        self._slots.load(saved)


FORMAT = Format(
    name="llamacpp",
    kind="engine",
    title="llama.cpp llama-server log (b3600 to b11669)",
    reader=Lines,
    clock=False,
    mappable=False,
)
