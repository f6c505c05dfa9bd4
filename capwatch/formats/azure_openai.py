"""Azure OpenAI: the diagnostic log `RequestResponse` of an account, one JSON object for each call.

Program: Azure OpenAI (Cognitive Services account), diagnostic category `RequestResponse`.
Switched on: by a diagnostic setting of the account with that category, to a storage account or an event hub (whose
messages hold several rows under `records`; a line may be such a message).
Example: {"category": "RequestResponse", "correlationId": "f4046a08-…", "time": "2026-03-03T09:15:00.9000000Z",
"durationMs": 7940, "operationName": "ChatCompletions_Create", "resultSignature": "200", "properties":
{"requestTime": 639081261009000064, "responseTime": 639081261088400000, "streamType": "Streaming",
"modelDeploymentName": "acme-gpt-4o", "modelName": "gpt-4o", "objectId": ""}}
Units: milliseconds; `requestTime` and `responseTime` are .NET ticks (100 ns since the year 1); `properties` may be a
text that holds JSON. The tenant is `properties.objectId`, the caller's id in Entra, where it is told: the row's
`Tenant` is a region.
Missing: all tokens, and so cost, drift and every share of work; time to the first token; retries. Put capwatch on a
gateway in front of the account, or take `azure_apim`. A negative duration is taken as unknown.
"""

from __future__ import annotations

from datetime import tzinfo
from typing import Final

import msgspec

from capwatch.dialect import Drop, Format, Options, Skip, Stateless, Verdict
from capwatch.dialect.table import Paths, Table, first_told
from capwatch.dialect.value import REFUSED, number, text, time
from capwatch.record import EngineSample, Request

PATHS: Final[Paths] = {
    "request_id": ("correlationId",),
    "duration_s": ("durationMs",),
    "tenant": ("properties.objectId",),
    "model": ("properties.modelName", "properties.modelDeploymentName"),
    "status": ("resultSignature", "properties.resultSignature"),
}
STARTS: Final = ("properties.requestTime", "time")
ENDS: Final = ("properties.responseTime",)
ROUTES: Final = {
    "ChatCompletions_Create": "/v1/chat/completions",
    "Completions_Create": "/v1/completions",
    "Embeddings_Create": "/v1/embeddings",
    "Responses_Create": "/v1/responses",
}
"""The path of an operation, as other gateways log it."""
TICKS_FROM: Final = 1e16
"""Numbers of ticks of our time are 6 · 10^17; epoch times in any unit but ns are far below."""
YEAR_1_S: Final = 62135596800
"""From the year 1, where ticks begin, to 1970."""


class Lines(Stateless):
    """Reads one line at a time."""

    def __init__(self, options: Options) -> None:
        self._table = Table(PATHS, options, "ms")
        self._zone = options.zone

    def read(self, line: str, near: float) -> Verdict:  # noqa: ARG002 - lines carry their time
        """One row, or a message with several."""
        found = msgspec.json.decode(line)
        rows = found.get("records", [found]) if isinstance(found, dict) else []
        verdicts = [self._row(row) for row in rows] if isinstance(rows, list) else []
        records: list[Request | EngineSample] = [one for one in verdicts if isinstance(one, Request)]
        others = [one for one in verdicts if not isinstance(one, Request)]
        if records:
            return records[0] if len(records) == 1 else records
        return others[0] if others else Drop("malformed", "no row of a diagnostic log")

    def _row(self, row: object) -> Request | Skip | Drop:
        if not isinstance(row, dict) or "category" not in row:
            return Drop("malformed", "no row of a diagnostic log")
        if row["category"] != "RequestResponse":
            return Skip("another category")
        request = self._table.read(row)
        operation = text(row.get("operationName")) or ""
        if request.model is None and operation not in ROUTES:
            return Skip("no request to a model")
        stream = text(first_told(row, "properties.streamType"))
        self._table.derive(
            request,
            started_at=ticks(first_told(row, *STARTS), self._zone),
            finished_at=ticks(first_told(row, *ENDS), self._zone),
            route=ROUTES.get(operation, operation or None),
            stream=None if stream is None else stream == "Streaming",
        )
        if request.duration_s is not None and request.duration_s < 0:
            request.duration_s = None
        return request


def ticks(value: object, zone: tzinfo) -> float | None:
    """A point in time (s, epoch) from .NET ticks, to the 13 µs that such floats can tell, or as others tell it.

    >>> from datetime import UTC
    >>> [round(ticks(told, UTC) or 0, 4) for told in (639081261001200000, "2026-03-03T09:15:00.1200000Z")]
    [1772529300.12, 1772529300.12]
    """
    told = number(value)
    if told is None or told == REFUSED or told < TICKS_FROM:
        return time(value, zone)
    # Beyond 2^53: as a float the ticks would be 13 µs off.
    exact = int(value) if isinstance(value, int | str) and str(value).strip().isdecimal() else int(told)
    return (exact - YEAR_1_S * 10_000_000) / 1e7


FORMAT = Format(
    name="azure_openai",
    kind="gateway",
    title="Azure OpenAI diagnostic log `RequestResponse`",
    reader=Lines,
)
