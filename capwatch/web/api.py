"""The JSON documents of `/api/v1/`: what `capwatch.web.status` says, with its names as keys.

`/api/v1/status` is one object:

- ``version``, ``at`` (when this was said), ``started_at``, ``ready``, ``clock`` (newest event time);
- ``commit``: ``timestamp``, ``duration_s``, ``errors``;
- ``sources``: a list of ``name``, ``format``, ``role`` (`count` or `times`), ``up``, ``files``, ``lag_bytes``,
  ``lines`` (``read``, ``counted``, ``skipped``, ``dropped`` by reason), ``bytes`` (``read``, ``skipped``, ``lost`` by
  reason), ``last_event``, ``rotations``, ``truncations``, ``problems`` (sentences);
- ``pools``: a list of ``name``, ``assumed``, ``prefill_tokens_per_second``, ``decode_tokens_per_second``, ``replicas``.

`/api/v1/drift` is one object: ``active``, a list of the drifts that are active, and ``events``, the last fifty that
were raised or have gone, oldest first. Each has the keys of an event line of `capwatch backtest` and its ``sentence``;
``deploy`` is the note that it began after. ``watches`` is what the watchers find: ``pool``, ``watch`` (as the label of
`capwatch_watch_active`), ``since``, ``raised_at``, ``until`` (null while it holds), ``before``, ``after``, ``now``,
``tenants`` (``tenant`` and its ``part`` of the change), ``sentence``; what holds first, then the last fifty.

What the page shows beside these (`capwatch.web.now` says what each key means):

- `/api/v1/now`: ``clock``; ``findings``, worst first, with ``kind``, ``severity`` (`bad`, `warn`, `note`, `good`),
  ``text``, ``why``, ``pool``, ``todo``; ``pools`` over the last five minutes;
- `/api/v1/recent`: ``since``, ``until``, ``columns``, ``rows`` (pool, tenant, route, then figures), ``more``;
- `/api/v1/history`: the last 24 hours: ``minutes``, ``slots`` (when the lists begin), ``minute_s``, ``slot_s``,
  ``pools`` by name, ``findings`` that only these tell, ``notes``, ``problem``.

Each is made for everybody at most once in a second, in five, in fifteen.

Times are seconds since the epoch; what is not known is null. Keys are added, never renamed.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from capwatch.web.answer import Answer
from capwatch.web.status import SourceStatus, Status

JSON: Final = "application/json"


def status(now: Status) -> Answer:
    """The answer of `/api/v1/status`."""
    return document(replace(now, sources=[*map(_spelt, now.sources)]))


def document(told: msgspec.Struct) -> Answer:
    """One object as JSON, what is no number as null."""
    return Answer(200, msgspec.json.encode(told) + b"\n", JSON)


def _spelt(source: SourceStatus) -> SourceStatus:
    """A source whose problems are Unicode: they quote the names of files, which may be any bytes."""
    return replace(source, problems=[problem.encode(errors="replace").decode() for problem in source.problems])
