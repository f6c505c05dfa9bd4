"""The page of a log format: what its docstring says, what its golden logs show, and what the rest costs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from textwrap import dedent

from capwatch.dialect import Format
from capwatch.formats import shelf
from capwatch.record import EngineSample, Request

GOLDENS = Path(__file__).resolve().parents[1] / "tests" / "formats"
OWN = ("uncapped", "dedupe_key", "part")
"""Fields that formats fill by themselves, and `fields:` cannot name."""
SAID = ("Program", "Switched on", "Example", "Units", "Missing")
"""What the docstring of every format says, each at the beginning of a line, in this order, with a colon. Several of one
name carry a word in brackets, `Example (text): …`; further paragraphs belong to the one before."""
COSTS = {
    "request_id": "repeated rows count again, and no other log (`role: times`) can complete a request",
    "tenant": "every request is of tenant `unknown`: no shares, no budgets, and a drift has no tenant to blame",
    "route": "every request is of route `unknown`, and classes cannot go by it",
    "model": "requests go to the pool that the source names, or to one that matches every model",
    "duration_s": "no residence times, so nothing in flight by Little's law; no objective on the whole duration",
    "ttft_s": "no time to the first token and none per output token, so no goodput by them (unclassified as "
    "`no_timing`); prefill and decode are not told apart from `other`",
    "prompt_tokens": "no prefill cost: utilisation, capacity and drift do not see this work",
    "cached_tokens": "the whole prompt is charged as computed, so prefill cost is an upper bound",
    "output_tokens": "no decode cost, and no time per output token",
    "queue_s": "the wait for an engine is inside prefill, or in `other` without a first token, unless an engine's log "
    "completes it",
    "gateway_s": "the gateway's own time is inside prefill, or in `other` without a first token",
    "retrieval_s": "retrieval is in `other`, unless a log of the orchestrator (`role: times`) completes it",
    "tool_s": "tools are in `other`, unless a log of the orchestrator (`role: times`) completes it",
    "status": "failures are known only as far as the log has other words for them",
    "retries": "no retry amplification",
}
"""What it costs that a gateway's log does not tell a field of a request."""
SAMPLE_COSTS = {
    "running": "no measured requests in flight to hold against Little's law",
    "waiting": "no measured queue",
    "kv_utilisation": "no KV cache utilisation",
    "kv_capacity_tokens": "no KV cache size, so KV demand is in tokens only",
    "preemptions": "no preemptions",
    "prompt_tokens_per_s": "no prompt throughput of the engine",
    "output_tokens_per_s": "no output throughput of the engine",
    "prefix_hit_ratio": "no prefix hit ratio of the engine; that of the requests comes from their cached tokens",
}
"""What it costs that an engine's log does not tell a field of its statistics; its `/metrics` page may."""


def page(name: str, form: Format) -> Iterator[str]:
    """One format: what its docstring says, what its golden logs show to be found, and what the rest costs."""
    mapped = "Obeys `fields:`." if form.mappable else "Its keys are fixed; `fields:` is not needed."
    head, parts = said(import_module(f"capwatch.formats.{name}").__doc__ or "")
    yield f"# {name}\n\n*{form.title}* ({form.kind}). {mapped}\n\n{head}\n"
    for label, text in parts:
        if label.startswith("Missing"):
            yield from _found(name)
        shown = f"```\n{text}\n```" if label.startswith("Example") else text[:1].upper() + text[1:]
        yield f"\n## {label}\n\n{text if label == 'Program' else shown}\n"
    yield from _costs(name, form)
    yield from _repeats(name, form)


def said(doc: str) -> tuple[str, list[tuple[str, str]]]:
    """The head of a format's docstring, and what stands under each of its labels (see `SAID`)."""
    head, *rest = re.split(rf"^({'|'.join(SAID)})( \([^)]*\))?: ", dedent(doc).strip(), flags=re.MULTILINE)
    return head.strip(), [
        (label + (which or ""), text.strip())
        for label, which, text in zip(*(rest[i::3] for i in range(3)), strict=True)
    ]


def told(name: str) -> tuple[dict[str, None], dict[str, None], dict[str, None]]:
    """Fields that the golden logs of a format show: of requests, of engine samples, and only by `fields:`."""
    requests: dict[str, None] = {}
    samples: dict[str, None] = {}
    mapped: dict[str, None] = {}
    for path in sorted((GOLDENS / name).glob("*.expected.jsonl")):
        options = path.with_name(path.name.replace(".expected.jsonl", ".options.json"))
        named = json.loads(options.read_text()).get("fields", {}) if options.exists() else {}
        for line in map(json.loads, path.read_text().splitlines()):
            for one in line.get("records", [line["record"]] if "record" in line else []):
                has = {key for key, value in one.items() if value not in (None, False) or key == "stream"}
                mapped |= dict.fromkeys(has & set(named))
                (samples if "at" in one else requests).update(dict.fromkeys(has - set(named)))
    return (
        _ordered(Request, requests),
        _ordered(EngineSample, samples),
        _ordered(Request, mapped.keys() - requests.keys()),
    )


def _ordered(of: type[Request] | type[EngineSample], names: Iterable[str]) -> dict[str, None]:
    return {name: None for name in of.__struct_fields__ if name in names and name not in (*OWN, "at")}


def _found(name: str) -> Iterator[str]:
    requests, samples, mapped = (", ".join(f"`{one}`" for one in fields) for fields in told(name))
    yield "\n## Found\n\n"
    yield f"Of a request: {requests}.\n" if requests else "No records of single requests.\n"
    yield f"\nWhere `fields:` says which key: {mapped}.\n" if mapped else ""
    yield f"\nOf an engine replica: {samples}.\n" if samples else ""


def _costs(name: str, form: Format) -> Iterator[str]:
    requests, samples, mapped = told(name)
    missing = {one: text for one, text in COSTS.items() if one not in requests} if form.kind == "gateway" else {}
    if "attempt_group" in requests:
        missing.pop("retries", None)  # attempts that share a group are counted as retries
    missing |= {one: text for one, text in SAMPLE_COSTS.items() if one not in samples} if samples else {}
    if missing:
        yield "\n| not told | what that costs |\n|---|---|\n"
    for one, text in missing.items():
        yield f"| `{one}`{' (unless named)' * (one in mapped)} | {text} |\n"


def _repeats(name: str, form: Format) -> Iterator[str]:
    """What becomes of rows that tell of one request again."""
    requests, _, mapped = told(name)
    if not requests:
        return
    yield "\n## Duplicates and retries\n\n"
    if form.duplicates != shelf()["jsonl"].duplicates or "request_id" in requests or "request_id" in mapped:
        yield f"Rows with {form.duplicates} within `dedupe.window` are one request: the first counts, the others are "
        yield "skipped lines and `capwatch_duplicates_total`. Rows that have none of it are never merged.\n"
    else:
        yield "Its requests have no id, so that none is taken for a duplicate.\n"
    if "retries" in requests or "retries" in mapped:
        yield "\nRetries are told by a number on the row.\n"
    if "attempt_group" in requests or "attempt_group" in mapped:
        yield "\nAttempts with one `attempt_group` are rows of their own: each one that follows a failure within five "
        yield "minutes is a retry, and adds to `capwatch_retries_total` once, however the log tells of it.\n"
