"""Builds the reference pages of this folder from the code: `python docs/build.py` writes them, a test checks them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import dialects

from capwatch import cli
from capwatch.config.jsonschema import json_schema
from capwatch.dialect import DROP_REASONS
from capwatch.formats import shelf
from capwatch.metrics import CATALOGUE, Kind
from capwatch.record import OUTCOMES, Request

HERE = Path(__file__).resolve().parent
NOTE = "<!-- built by docs/build.py; edit the code instead -->\n\n"
LATER = {"drift.tick"}
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
    "retrieval_visits": ("whole number", "how often it went to retrieval; once where only the time is told"),
    "tool_visits": ("whole number", "how often it went to tools; once where only the time is told"),
    "model_visits": ("whole number", "how often it went to an engine; once where only the time is told"),
    "cache_hit": ("true, false", "answered by the gateway's response cache: counted, costs nothing, outside goodput"),
    "uncapped": ("true, false", "the log tells output caps, and this request asked for none"),
    "dedupe_key": ("text", "what a duplicate row shares with this one, where that is not the id alone"),
    "part": ("true, false", "no request of its own: phases of one that other rows tell of"),
}
"""Type or unit, and rule, of every field of the record."""


def pages() -> dict[str, str]:
    """Every built page by its file name."""
    return {
        "metrics.md": NOTE + "".join(metrics()),
        "commands.md": NOTE + "".join(commands()),
        "configuration.md": NOTE + "".join(configuration()),
        "configuration.schema.json": json.dumps(json_schema(), indent=2) + "\n",
        "formats.md": NOTE + "".join(formats()),
        "record.md": NOTE + "".join(record()),
        **{f"formats/{name}.md": NOTE + "".join(dialects.page(name, form)) for name, form in shelf().items()},
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
        said = _cell(metric.help)
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


def record() -> Iterator[str]:
    """Every field of the record, with its unit and rule."""
    yield "# The record\n\nWhat a log tells about one finished request. Every format maps to it, `capwatch explain` "
    yield "shows it, and format `jsonl` reads lines whose keys are these names. What a log does not tell is absent, "
    yield "never 0. Times in `jsonl` may be RFC 3339 as well. No prompt, answer, key or e-mail address is in it.\n\n"
    yield "| field | type or unit | rule |\n|---|---|---|\n"
    for name in Request.__struct_fields__:
        if name not in dialects.OWN:
            unit, rule = RECORD[name]
            yield f"| `{name}` | {unit} | {rule} |\n"
    yield (
        "\nFilled in by formats alone: " + "; ".join(f"`{name}`, {RECORD[name][1]}" for name in dialects.OWN) + ".\n\n"
    )
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
