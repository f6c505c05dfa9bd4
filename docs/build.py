"""Builds the reference pages of this folder from the code: `python docs/build.py` writes them, a test checks them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from capwatch import cli
from capwatch.config.jsonschema import json_schema
from capwatch.dialect import DROP_REASONS
from capwatch.formats import shelf
from capwatch.metrics import CATALOGUE, Kind

HERE = Path(__file__).resolve().parent
NOTE = "<!-- built by docs/build.py; edit the code instead -->\n\n"


def pages() -> dict[str, str]:
    """Every built page by its file name."""
    return {
        "metrics.md": NOTE + "".join(metrics()),
        "commands.md": NOTE + "".join(commands()),
        "configuration.md": NOTE + "".join(configuration()),
        "configuration.schema.json": json.dumps(json_schema(), indent=2) + "\n",
        "formats.md": NOTE + "".join(formats()),
    }


def metrics() -> Iterator[str]:
    """The catalogue, a table for each section."""
    yield "# Metrics\n\nEverything that capwatch exports. Ratios are 0..1, units are base units, an absent sample is "
    yield "unknown and never 0. `process_*` comes on top.\n"
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
        yield f"| `{metric.name}` | {kind} | {_cell(labels) or '–'} | {_cell(metric.help)} |\n"


def commands() -> Iterator[str]:
    """The help of every verb."""
    yield "# Commands\n\nResults go to stdout, everything else to stderr. Exit 0: fine; 1: findings, or a failure at "
    yield "run time; 2: a mistake in the call or the configuration, in one line that names the place and the fix.\n"
    for verb in cli.verbs():
        module = import_module(f"capwatch.verbs.{verb.replace('-', '_')}")
        parser = argparse.ArgumentParser(prog=f"capwatch {verb}", add_help=False)
        module.describe(parser)
        parser.formatter_class = lambda prog: argparse.HelpFormatter(prog, width=100)  # type: ignore[assignment]
        yield f"\n## {verb}\n\n{(module.__doc__ or '').strip()}\n\n```\n{parser.format_help().strip()}\n```\n\n"
        yield f"Example: `{module.EXAMPLE}`\n"


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
        yield f"| `{here}` | {_cell(_kind(value))} | {_cell(default)} | {_cell(str(value.get('description', '')))} |\n"
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
    """The shelf of dialects: what each reads, and how its log is switched on."""
    yield "# Log formats\n\nOne name per product; its shapes and versions are told apart line by line. A line is "
    reasons = ", ".join(f"`{one}`" for one in DROP_REASONS)
    yield f"counted (a record), skipped (understood, no record) or dropped as {reasons}.\n"
    for name, form in shelf().items():
        text = (import_module(f"capwatch.formats.{name}").__doc__ or "").strip()
        mapped = "Obeys `fields:`." if form.mappable else "Its keys are fixed; `fields:` is not needed."
        yield f"\n## {name}\n\n*{form.title}* ({form.kind}). {mapped}\n\n```\n{text}\n```\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    for file, content in pages().items():
        (HERE / file).write_text(content)
        print(HERE / file, file=sys.stderr)  # noqa: T201 - a script
