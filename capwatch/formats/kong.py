"""Kong Gateway with ai-proxy or ai-proxy-advanced: one JSON line for each request, of a log plugin.

Program: Kong 3.6 to 3.13, open source and Enterprise.
Switched on: twice. `config.logging.log_statistics: true` in the AI plugin (off by default; without it there is no `ai`
object, so no tokens and no cost), and a log plugin that writes lines: `file-log` with
`config.path: /var/log/kong/capwatch.jsonl`, or `http-log` into a file. Leave `log_payloads` off.
Example: {"started_at":1772529300900,"latencies":{"kong":6,"proxy":412,"request":7940},"request":{"id":"f4046a08…",
"uri":"/v1/chat/completions","method":"POST"},"response":{"status":200},"upstream_status":"200","tries":[{…}],
"consumer":{"username":"acme"},"ai":{"proxy":{"meta":{"response_model":"llama-3.1-70b","request_mode":"stream"},
"usage":{"prompt_tokens":1530,"completion_tokens":342,"time_to_first_token":412}}}}
Units: milliseconds; `started_at` is the arrival.

The statistics lie under `ai.ai-proxy` or `ai.ai-proxy-advanced` up to 3.8 and under `ai.proxy` from 3.9 on; up to 3.7
their names are in the singular (`prompt_token`). What transformer plugins used beside them is no part of the request.
The tenant is `consumer.username`, else `consumer.custom_id`, else the id of the credential. What `rag-inject` took is
`retrieval_s`. Answers of the semantic cache are told apart.
Missing: the time to the first token before 3.12 and in the open source edition (the time of the headers,
`latencies.proxy`, is none); cached tokens before 3.11. A stream without usage has no prompt count and an output that
Kong estimates from characters: `usage` is `estimated`. `total_tokens` and `time_per_token` are not used: the one is a
sum, the other has the wait for the first token in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from capwatch.dialect import Drop, Format, Options, Skip, Stateless, Verdict
from capwatch.dialect.accesslog import COMBINED, READING, is_error_log
from capwatch.dialect.path import first, object_of, walk
from capwatch.dialect.table import Paths, Table, first_told
from capwatch.dialect.upstream import judge
from capwatch.dialect.value import REFUSED, number, text, time
from capwatch.record import Request

Json = Mapping[str, object]

CHOSEN: Final = "statistics"
"""Where the table finds the object of `ai` that tells of the request itself."""
PATHS: Final[Paths] = {
    "request_id": ("request.id",),
    "duration_s": ("latencies.request",),
    "gateway_s": ("latencies.kong",),
    "tenant": ("consumer.username", "consumer.custom_id", "authenticated_entity.id"),
    "route": ("request.uri", "route.name"),
    "model": (f"{CHOSEN}.meta.response_model", f"{CHOSEN}.meta.request_model"),
    "prompt_tokens": tuple(f"{CHOSEN}.usage.{name}" for name in ("prompt_tokens", "prompt_token", "input_tokens")),
    "cached_tokens": (f"{CHOSEN}.usage.prompt_tokens_details.cached_tokens",),
    "output_tokens": tuple(
        f"{CHOSEN}.usage.{name}" for name in ("completion_tokens", "completion_token", "output_tokens")
    ),
    "ttft_s": (f"{CHOSEN}.usage.time_to_first_token",),
    "status": ("response.status",),
}
PLUGINS: Final = ("proxy", "ai-proxy-advanced", "ai-proxy")
"""Children of `ai` that tell of the request itself: the name since 3.9, and the plugins' own before."""
HELPERS: Final = ("transformer", "sanitizer", "rag", "guard", "cache")
"""Words in the names of children that tell of calls around the request."""
MODES: Final = {"stream": True, "oneshot": False}
TYPES: Final = {"text/event-stream": True, "application/json": False}
"""What the type of a good answer says of streams; errors are JSON whatever was asked for."""
RETRIEVAL: Final = ("fetch_latency", "embeddings_latency")


class Lines(Stateless):
    """Reads one line at a time."""

    def __init__(self, options: Options) -> None:
        self._table = Table(PATHS, options, "ms")
        self._zone = options.zone

    def read(self, line: str, near: float) -> Verdict:  # noqa: ARG002 - lines carry their time
        """One line of a log plugin; what Kong's nginx writes beside it tells of the same requests, or of none."""
        if not line.lstrip().startswith("{"):
            if COMBINED.match(line) or is_error_log(line):
                return Skip("line of Kong's own access or error log")
            return Drop("malformed", "no line of a log plugin")
        row = object_of(line)
        if row is None:
            return Drop("malformed", "broken JSON")
        if not isinstance(row.get("latencies"), dict) or not isinstance(row.get("request"), dict):
            return Drop("malformed", "no line of a log plugin")
        if text(walk(row, "request.method")) in READING:
            return Skip("no request to a model")
        return self._request(row)

    def _request(self, row: Json) -> Request:
        ai = _statistics(row)
        request = self._table.read({**row, CHOSEN: ai})
        self._table.derive(
            request,
            started_at=time(row.get("started_at"), self._zone, 1e-3),
            retrieval_s=_retrieval(row, ai),
            retries=_retries(row),
            cache_hit=_is_hit(row, ai),
            stream=_stream(row, ai, request.status),
        )
        if not request.prompt_tokens and request.output_tokens:
            self._table.derive(request, usage="estimated")  # from characters: the provider sent no usage
        judge(self._table, request, reached=_reached(row))
        return request


def _statistics(row: Json) -> Json:
    """The object that tells of the request itself among those of all AI plugins; empty where there is none."""
    ai = row.get("ai")
    children = {
        name: one
        for name, one in (ai.items() if isinstance(ai, dict) else ())
        if isinstance(one, dict) and ("usage" in one or "meta" in one)
    }
    others = (name for name in children if not any(word in name for word in HELPERS))
    name = next((name for name in (*PLUGINS, *others) if name in children), None)
    return children[name] if name else {}


def _retrieval(row: Json, ai: Json) -> float | None:
    """Seconds of `ai-rag-injector`: the embedding of the question and the search."""
    stage = first({"here": ai, "there": row.get("ai")}, "here.rag-inject", "there.rag-inject", "there.ai-rag-injector")
    took = [number(walk(stage, name), 1e-3) for name in RETRIEVAL]
    known = [one for one in took if one is not None and one != REFUSED]
    return sum(known) if known else None


def _retries(row: Json) -> int | None:
    tries = row.get("tries")
    return len(tries) - 1 if isinstance(tries, list) and tries else None


def _is_hit(row: Json, ai: Json) -> bool:
    """Whether the semantic cache answered; up to 3.8 it tells so under the name of its own plugin."""
    ways = ("here.cache.cache_status", "there.ai-semantic-cache.cache_status", "there.cache.cache_status")
    return text(first_told({"here": ai, "there": row.get("ai")}, *ways)) == "Hit"


def _stream(row: Json, ai: Json, code: int | None) -> bool | None:
    """By the mode since 3.12, before by the type of an answer that is no error."""
    mode = text(walk(ai, "meta.request_mode"))
    if mode is not None:
        return MODES.get(mode)
    kind = text(walk(row, "response.headers.content-type")) or ""
    return TYPES.get(kind.partition(";")[0].strip().lower()) if code and code < 400 else None


def _reached(row: Json) -> bool | None:
    """Whether an upstream answered, by its status, else by who is said to have made the answer."""
    if "upstream_status" in row:
        return first_told(row, "upstream_status") is not None
    return {"upstream": True, "kong": False}.get(text(row.get("source")) or "")


FORMAT = Format(
    name="kong",
    kind="gateway",
    title="Kong 3.6 to 3.13 with ai-proxy: lines of its log plugins (file-log, http-log)",
    reader=Lines,
)
