"""capwatch's own dialect: JSON lines whose keys are the record's field names (docs/record.md).

Program: anything that can write a line per finished request.
Switched on: by writing it.
Example: {"finished_at": 1772529302.43, "duration_s": 2.31, "tenant": "acme", "route": "/v1/chat/completions",
"model": "chat-70b", "prompt_tokens": 1530, "output_tokens": 342, "ttft_s": 0.412, "outcome": "ok", "status": 200}
Units: times are epoch seconds or RFC 3339, durations seconds, tokens are tokens; `fields:` renames and rescales.
Numbers must be numbers: a quoted "12" is refused; only a status may be a text. Other keys are ignored.
Missing: nothing but what the writer leaves out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from capwatch.dialect import Drop, Field, Format, Options, Stateless, Verdict
from capwatch.dialect.fields import KINDS, status
from capwatch.dialect.path import walk
from capwatch.dialect.scan import JsonScanner, Leaf
from capwatch.dialect.value import UNITS, flag, number, text, time
from capwatch.record import Request


def leaves(fields: Mapping[str, Field]) -> dict[str, Leaf]:
    """Where each record field is: under its own name unless the operator says otherwise."""
    own = {name: Leaf(name, kind) for name, kind in KINDS.items()}
    mapped = {
        name: Leaf(field.path, KINDS[name], UNITS[field.unit or "s"]) for name, field in fields.items() if name in KINDS
    }
    return own | mapped


class Lines(Stateless):
    """Reads one line at a time: what the fast tier leaves."""

    def __init__(self, options: Options) -> None:
        self._zone = options.zone
        self._leaves = leaves(options.fields)

    def read(self, line: str, near: float) -> Verdict:  # noqa: ARG002 - lines carry their time
        """One JSON object is one record."""
        try:
            found = json.loads(line)
        except RecursionError:
            return Drop("malformed", "nested too deeply")
        if not isinstance(found, dict):
            return Drop("malformed", "no JSON object")
        told = {name: self._value(found, name, leaf) for name, leaf in self._leaves.items()}
        request = Request(**told)  # type: ignore[arg-type]
        request.cache_hit = bool(request.cache_hit)
        return request

    def _value(self, found: object, name: str, leaf: Leaf) -> object:
        value = walk(found, leaf.path)
        if name == "status":
            return status(value)
        if leaf.kind == "number":
            return number(value, leaf.factor, texts=False)
        if leaf.kind == "time":
            return time(value, self._zone, leaf.factor)
        return flag(value) if leaf.kind == "flag" else text(value)


FORMAT = Format(
    name="jsonl",
    kind="gateway",
    title="JSON lines with the record's own field names",
    reader=Lines,
    scanner=lambda options: JsonScanner(leaves(options.fields), options.zone),
)
