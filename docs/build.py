"""Builds the reference pages of this folder from the code: `python docs/build.py` writes them, a test checks them."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from textwrap import dedent

from capwatch import cli
from capwatch.config.jsonschema import json_schema
from capwatch.dialect import DROP_REASONS, Format
from capwatch.formats import shelf
from capwatch.metrics import CATALOGUE, NOT_YET, Kind
from capwatch.record import OUTCOMES, EngineSample, Request

HERE = Path(__file__).resolve().parent
GOLDENS = HERE.parent / "tests" / "formats"
NOTE = "<!-- built by docs/build.py; edit the code instead -->\n\n"
LATER = {
    *("drift", "budgets", "quotas", "gpu", "deploys"),
    *(f"pools[].{name}" for name in ("cold_start", "scale_down_window", "gpus", "price")),
}
"""Keys of the configuration, each with all that is below it, that nothing uses yet."""
RECORD = {
    "request_id": ("text", "the gateway's id; rows with the same one are one request"),
    "attempt_group": (
        "text",
        "what joins the attempts of one request: a row soon after a failure of its group is a retry",
    ),
    "started_at": ("s since the epoch, UTC", "arrival; from `finished_at` and `duration_s` where it is not told"),
    "finished_at": ("s since the epoch, UTC", "last byte; from `started_at` and `duration_s` where it is not told"),
    "tenant": ("text", "who asks; bounded and cleaned before it becomes a label"),
    "route": ("text", "what is asked: a template, never a path with ids"),
    "model": ("text", "the model that served, else the one asked for"),
    "stream": ("true, false", "whether the answer was streamed"),
    "engine": ("text", "who served it"),
    "priority": ("text", "traffic class of the gateway"),
    "max_output_tokens": ("tokens", "the cap that was asked for"),
    "prompt_tokens": ("tokens", "inclusive of cached ones"),
    "cached_tokens": ("tokens", "the part of `prompt_tokens` that came from the prefix cache"),
    "output_tokens": ("tokens", "inclusive of reasoning"),
    "usage": ("`provider` `estimated` `missing`", "where the token counts come from"),
    "duration_s": ("s, at least 0", "arrival to last byte"),
    "ttft_s": ("s", "arrival to the first chunk of a stream's body, where that is measured; headers are none"),
    "gateway_s": ("s", "spent in the gateway itself"),
    "retrieval_s": ("s", "spent on retrieval"),
    "tool_s": ("s", "spent on tools"),
    "queue_s": ("s", "waited for an engine"),
    "prefill_s": ("s", "from TTFT where it is not told: TTFT less what came before, waiting included"),
    "decode_s": ("s", "from TTFT where it is not told: duration less TTFT"),
    "outcome": (" ".join(f"`{one}`" for one in OUTCOMES), "from `status` where it is not told"),
    "status": ("whole number", "HTTP status that the client got; 0 where it got none"),
    "rate_limited_by": ("`gateway` `upstream`", "only with outcome `rate_limited`"),
    "retries": ("whole number", "attempts less one"),
    "cache_hit": ("true, false", "answered by the gateway's response cache: counted, costs nothing, outside goodput"),
    "uncapped": ("true, false", "the log tells output caps, and this request asked for none"),
    "dedupe_key": ("text", "what a duplicate row shares with this one, where that is not the id alone"),
}
"""Type or unit, and rule, of every field of the record."""
OWN = ("uncapped", "dedupe_key")
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


def pages() -> dict[str, str]:
    """Every built page by its file name."""
    return {
        "metrics.md": NOTE + "".join(metrics()),
        "commands.md": NOTE + "".join(commands()),
        "configuration.md": NOTE + "".join(configuration()),
        "configuration.schema.json": json.dumps(json_schema(), indent=2) + "\n",
        "formats.md": NOTE + "".join(formats()),
        "record.md": NOTE + "".join(record()),
        **{f"formats/{name}.md": NOTE + "".join(dialect(name, form)) for name, form in shelf().items()},
    }


def metrics() -> Iterator[str]:
    """The catalogue, a table for each section."""
    yield "# Metrics\n\nEverything that capwatch exports, and the names kept for what it does not export yet. Ratios "
    yield "are 0..1, units are base units, an absent sample is unknown and never 0. `process_*` comes on top.\n"
    section = ""
    for metric in CATALOGUE.values():
        if metric.section != section:
            section = metric.section
            yield f"\n## {section}\n\n| metric | kind | labels | meaning |\n|---|---|---|---|\n"
        labels = ", ".join(
            f"{name} = {' '.join(f'`{value}`' for value in metric.values[name])}" if name in metric.values else name
            for name in metric.labels
        )
        kind = "native histogram" if metric.kind is Kind.NATIVE else metric.kind.value
        said = "*Not exported yet.* " * (metric in NOT_YET) + _cell(metric.help)
        yield f"| `{metric.name}` | {kind} | {_cell(labels) or '–'} | {said} |\n"


def commands() -> Iterator[str]:
    """The help of every verb."""
    yield "# Commands\n\nResults go to stdout, everything else to stderr. Exit 0: fine; 1: findings, or a failure at "
    yield "run time; 2: a mistake in the call or the configuration, in one line that names the place and the fix.\n"
    for verb in cli.verbs():
        module = import_module(f"capwatch.verbs.{verb.replace('-', '_')}")
        parser = argparse.ArgumentParser(prog=f"capwatch {verb}", add_help=False)
        module.describe(parser)
        yield _command(f"## {verb}", module.__doc__, parser, module.EXAMPLE)
        for name, part in module.parts() if hasattr(module, "parts") else ():
            parser = argparse.ArgumentParser(prog=f"capwatch {verb} {name}", add_help=False)
            module.describe_part(parser, part)
            yield _command(f"### {verb} {name}", part.__doc__, parser, part.EXAMPLE)


def _command(title: str, text: str | None, parser: argparse.ArgumentParser, example: str) -> str:
    parser.formatter_class = lambda prog: argparse.HelpFormatter(prog, width=100)  # type: ignore[assignment]
    shown = parser.format_help().strip()
    return f"\n{title}\n\n{(text or '').strip()}\n\n```\n{shown}\n```\n\nExample: `{example}`\n"


def configuration() -> Iterator[str]:
    """Every key of the configuration with its type, default and meaning, from the schema."""
    yield "# Configuration\n\nOne YAML file. Unknown and duplicate keys are errors. `CAPWATCH__A__B` in the "
    yield "environment overrides the key `a.b`. Editors can check it with `configuration.schema.json`.\n\n"
    yield "| key | type | default | meaning |\n|---|---|---|---|\n"
    yield from _keys(json_schema(), "")


def _keys(schema: dict[str, object], path: str) -> Iterator[str]:
    properties = schema.get("properties", {})
    assert isinstance(properties, dict)  # noqa: S101 - a schema's properties are a mapping
    for name, value in properties.items():
        here = f"{path}.{name}" if path else name
        default = json.dumps(value["default"]) if "default" in value else "–"
        said = _cell(str(value.get("description", "")))
        if any(here == key or here.startswith(f"{key}.") for key in LATER):
            said += " (read and checked; used by later features)"
        yield f"| `{here}` | {_cell(_kind(value))} | {_cell(default)} | {said} |\n"
        yield from _below(value, here)


def _below(value: dict[str, object], here: str) -> Iterator[str]:
    if "properties" in value:
        yield from _keys(value, here)
    items, more = value.get("items"), value.get("additionalProperties")
    if isinstance(items, dict):
        yield from _below(items, f"{here}[]")
    if isinstance(more, dict):
        yield from _below(more, f"{here}.*")
    for one in (*_list(value.get("anyOf")), *_list(value.get("oneOf"))):
        yield from _below(one, here)


def _list(value: object) -> list[dict[str, object]]:
    return value if isinstance(value, list) else []


def _kind(value: dict[str, object]) -> str:
    if "enum" in value:
        return " ".join(f"`{one}`" for one in _list(value["enum"]))
    if "const" in value:
        return f"`{value['const']}`"
    ways = (*_list(value.get("anyOf")), *_list(value.get("oneOf")))
    if ways:
        return " or ".join(dict.fromkeys(_kind(one) for one in ways))
    kind = value.get("type", "")
    return " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)


def formats() -> Iterator[str]:
    """The shelf of dialects, a page for each."""
    yield "# Log formats\n\nOne name per product; its shapes and versions are told apart line by line. A line is "
    reasons = ", ".join(f"`{one}`" for one in DROP_REASONS)
    yield f"counted (a record), skipped (understood, no record) or dropped as {reasons}. The page of a format says "
    yield "how its log is switched on, what is found in it, and what it costs that the rest is missing.\n\n"
    yield "| format | kind | reads |\n|---|---|---|\n"
    for name, form in shelf().items():
        yield f"| [{name}](formats/{name}.md) | {form.kind} | {_cell(form.title)} |\n"


def dialect(name: str, form: Format) -> Iterator[str]:
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
    if "request_id" in requests or "request_id" in mapped:
        yield f"Rows with {form.duplicates} within `dedupe.window` are one request: the first counts, the others are "
        yield "skipped lines and `capwatch_duplicates_total`. Rows without an id are never merged.\n"
    else:
        yield "Its requests have no id, so that none is taken for a duplicate.\n"
    if "retries" in requests or "retries" in mapped:
        yield "\nRetries are told by a number on the row.\n"
    if "attempt_group" in requests or "attempt_group" in mapped:
        yield "\nAttempts with one `attempt_group` are rows of their own: each one that follows a failure within five "
        yield "minutes is a retry, and adds to `capwatch_retries_total` once, however the log tells of it.\n"


def record() -> Iterator[str]:
    """Every field of the record, with its unit and rule."""
    yield "# The record\n\nWhat a log tells about one finished request. Every format maps to it, `capwatch explain` "
    yield "shows it, and format `jsonl` reads lines whose keys are these names. What a log does not tell is absent, "
    yield "never 0. Times in `jsonl` may be RFC 3339 as well. No prompt, answer, key or e-mail address is in it.\n\n"
    yield "| field | type or unit | rule |\n|---|---|---|\n"
    for name in Request.__struct_fields__:
        if name not in OWN:
            unit, rule = RECORD[name]
            yield f"| `{name}` | {unit} | {rule} |\n"
    yield "\nFilled in by formats alone: " + "; ".join(f"`{name}`, {RECORD[name][1]}" for name in OWN) + ".\n\n"
    yield "From these follow the time per output token, `(duration_s - ttft_s) / (output_tokens - 1)`, from 2 output "
    yield "tokens on; and the cost in replica-seconds, `(prompt_tokens - cached_tokens) / prefill_tokens_per_second + "
    yield "output_tokens / decode_tokens_per_second` with the rates of the pool.\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    (HERE / "formats").mkdir(exist_ok=True)
    for file, content in pages().items():
        (HERE / file).write_text(content)
        print(HERE / file, file=sys.stderr)  # noqa: T201 - a script
