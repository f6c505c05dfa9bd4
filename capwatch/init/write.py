"""The starter configuration: what was found is filled in, what was not is marked, and nothing is guessed."""

from __future__ import annotations

import glob
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import yaml

from capwatch.init.look import MOST_NAMES, Found

MARK: Final = "NOT FOUND"
"""Marks what the reader has to fill in."""
MEANING: Final = {
    "tenant": "everything is tenant `unknown`",
    "route": "everything is route `unknown`",
    "model": "everything is model `unknown`",
    "prompt_tokens": "no cost",
    "cached_tokens": "no prefix cache seen, so every prompt token is charged",
    "output_tokens": "no cost of decoding",
    "duration_s": "no requests in flight by Little's law",
    "ttft_s": "no goodput, and prefill is not told from decode",
}
"""What is not shown without a field."""
WITH_PHASES: Final = MEANING | {"ttft_s": "no goodput"}
"""The same where the log times prefill and decode itself."""
TENANTS: Final = ("tenant", "team", "org", "user", "consumer", "customer")
"""Beginnings of words in the names of keys that may tell the tenant."""
IDENTITIES: Final = ("id", "uuid", "alias", "name")
"""Of the last word of such a name, where it is none of these: a tenant's budget or route is no tenant."""


def starter(findings: Sequence[Found]) -> str:
    """A configuration in YAML, with comments, from what was found."""
    models = _most(sum((one.models for one in findings), Counter()))
    return "\n".join(
        [
            "# A starter configuration, written by `capwatch init`. What could not be found is marked " + MARK + ".",
            "# Then: capwatch check-config capwatch.yml && capwatch run --config.file capwatch.yml",
            "# `start: end` counts only lines that are written from now on; with `start: beginning` the daemon counts",
            "# what is in the files already as well, once.",
            "",
            "listen: 127.0.0.1:10077            # the page and /metrics; others reach it only if you change this",
            "# state_dir: /var/lib/capwatch     # for other users than root: $XDG_STATE_HOME/capwatch",
            "",
            *_sources(findings, models),
            "",
            *_engines(findings),
            "",
            *_pools(findings, models),
            "",
            *_classes(_most(sum((one.routes for one in findings), Counter()))),
            "",
            "# Goodput counts requests that meet all of their targets. " + MARK + ": yours; these are examples.",
            "# slo:",
            "#   - {ttft: 1.5s, tpot: 60ms}",
            "",
        ]
    )


def _most(names: Counter[str]) -> list[str]:
    """The most frequent names, in a stable order."""
    return [name for name, _ in sorted(names.items(), key=lambda item: (-item[1], item[0]))[:MOST_NAMES]]


def _sources(findings: Sequence[Found], models: Sequence[str]) -> Iterator[str]:
    good = [one for one in findings if one.format]
    counts = min((one for one in good if not one.engine), key=lambda one: len(one.missing), default=None)
    yield "sources:" if good else f"sources: []  # {MARK}: a log that any format understands"
    names: Counter[str] = Counter()
    for one in good:
        name = "engine-logs" if one.engine else "gateway"
        names[name] += 1
        yield from _source(one, f"{name}-{names[name]}" if names[name] > 1 else name, models)
        if not one.engine and one is not counts:
            yield "    # role: times                  # where another source has its requests: else each counts twice"
    for one in findings:
        if not one.format and not one.page:
            path = json.dumps(one.paths[0])
            yield f"  # {MARK}: no format makes a record of the {one.lines} lines looked at in"
            yield f"  #   {path}"
            yield "  #   `capwatch formats` lists what there is, `capwatch explain --format NAME FILE` says why not."


def _source(one: Found, name: str, models: Sequence[str]) -> Iterator[str]:
    kind = "statistics or requests" if one.engine else "requests"
    yield f"  - name: {name}"
    yield "    path:                          # globs; rotated files on purpose, so that nothing is lost in between"
    for path in one.paths:
        for between in ("", *sorted({"."} | one.rotated)):
            yield f"      - {_text(glob.escape(path) + (between and f'{between}*'))}"
    yield (
        f"    format: {one.format}".ljust(34)
        + f" # {one.understood} of {one.lines} lines understood, {one.records} {kind}"
    )
    if one.wrapper != "none":
        yield f"    wrapper: {one.wrapper}"
    yield "    start: end                     # beginning: count what is in the files already, too"
    if not one.clock:
        yield f"    # {MARK}: clock time: records get the time of reading"
    if one.engine:
        if not one.zoned:
            yield "    timezone: UTC                  # of times that this log prints without a zone: check it"
        if len(models) == 1:
            yield f"    pool: {_text(models[0])}".ljust(34) + " # the pool that these engines serve"
        else:
            yield f"    # pool:                        # {MARK}: which pool these engines serve"
    yield from _missing(one)


def _missing(one: Found) -> Iterator[str]:
    for name in one.missing:
        yield f"    # {MARK}: {name} in any request: {(WITH_PHASES if one.phases else MEANING)[name]}"
    if one.missing and one.mappable:
        yield "    # fields:                      # where this log has them; dots lead into objects"
        yield from (f"    #   {name}: {'{path: …, unit: ms}' if name.endswith('_s') else '…'}" for name in one.missing)
    if one.keys:
        yield "    # Keys in its lines:"
        yield from (
            f"    #   {key}" + ("   <- the tenant?" if "tenant" in one.missing and _of_tenant(key) else "")
            for key in one.keys
        )


def _of_tenant(key: str) -> bool:
    """Whether the name of a key looks as if it told who asks.

    >>> [_of_tenant(key) for key in ("metadata.teamAlias", "x-org-id", "consumer", "user_agent", "team_spend", "model")]
    [True, True, True, False, False, False]
    """
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", key.rpartition(".")[2])]
    return any(word.startswith(TENANTS) for word in words) and words[-1].startswith((*TENANTS, *IDENTITIES))


def _engines(findings: Sequence[Found]) -> Iterator[str]:
    yield "# Metrics of the engines, fetched beside the logs: queues and KV cache of every replica."
    for one in findings:
        if one.page:
            yield f"# {json.dumps(one.paths[0])} is such a page; put the address it comes from here."
    yield f"# engines:                         # {MARK}: their addresses"
    yield '#   - {url: "http://10.0.0.7:8000/metrics", pool: ' + "…" + "}"


def _pools(findings: Sequence[Found], models: Sequence[str]) -> Iterator[str]:
    yield "# A pool is a set of equal replicas that serve one model in one place. Cost is in replica-seconds:"
    yield "# computed prompt tokens / prefill rate + output tokens / decode rate."
    if not models:
        yield f"# {MARK}: a model in any request, so there is one pool `default` with assumed rates."
        yield "# pools:"
        yield "#   - name: chat"
        yield from (f"# {line}" for line in _rates(observed=False))
        return
    yield "pools:"
    observed = any(one.engine for one in findings)
    for number, model in enumerate(models):
        yield f"  - name: {_text(model)}"
        yield f"    match: {{model: [{_text(glob.escape(model))}]}}"
        if not number:
            yield from _rates(observed=observed and len(models) == 1)
        elif number == 1:
            yield f"    # {MARK}: the same three of each pool"


def _rates(*, observed: bool) -> Iterator[str]:
    if observed:
        yield "    replicas: observed             # counts the engines whose logs are read; or a number"
    else:
        yield f"    # replicas: 12                 # {MARK}: without it no utilisation"
    yield f"    # prefill_tokens_per_second: 4000   # {MARK}: of one replica; until then 4000 is assumed"
    yield f"    # decode_tokens_per_second: 160     # {MARK}: of one replica in all; until then 160 is assumed"


def _classes(routes: Sequence[str]) -> Iterator[str]:
    yield "# Classes of requests, shown in cost and latency; the first that fits wins."
    if not routes:
        yield f"# classes:                         # {MARK}: a route in any request"
        yield "#   - {name: chat, match: {route: /v1/chat/completions}}"
        return
    yield "classes:"
    names: Counter[str] = Counter({"rest": 1})
    for route in routes:
        name = re.sub(r"[^a-z0-9]+", "_", re.sub(r"^/v\d+/", "", route.lower())).strip("_") or "root"
        names[name] += 1
        unique = f"{name}_{names[name]}" if names[name] > 1 else name
        yield f"  - {{name: {_text(unique)}, match: {{route: {_text(glob.escape(route))}}}}}"
    yield "  - {name: rest, match: {}}"


def _text(text: str) -> str:
    """A text as a YAML scalar on one line: plain where that is safe, else in double quotes, all ASCII."""
    plain = re.fullmatch(r"[A-Za-z/][\w/.-]*", text, re.ASCII) and not re.fullmatch(
        r"(?i)y|n|yes|no|on|off|true|false|null", text
    )
    return text if plain else yaml.safe_dump(text, default_style='"', width=sys.maxsize).rstrip("\n")
