"""What a planted line leaves behind: nothing but names in their own fields, and of a secret not even that."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import pytest

from capwatch import wrappers
from capwatch.config.schema import Config, Privacy
from capwatch.dialect import Decoder, Options
from capwatch.dialect.decode import Decoded
from capwatch.explain import as_json, as_text, explain
from capwatch.exporters import protobuf, text
from capwatch.formats import shelf
from capwatch.keep.codec import pack, unpack
from capwatch.labels import clean
from capwatch.meters import latency
from capwatch.origin import Origin
from capwatch.pipeline import Pipeline
from capwatch.view import view
from tests.formats.compare import NEAR, options_of

from .planting import MARK, NAMES, PROMPT, SECRETS, forms, planted

CONTENT = re.compile(
    r".*(?:messages|content|choices|body|error|traceback|exception|email|api_key_hash|user_id|cookie|authori[sz]ation).*"
    r"|prompt|prompts|input|inputs|output|outputs|response|query|text|system_prompt|completion|arguments",
    re.IGNORECASE,
)
"""Keys under which logs keep what nobody else may see."""


def options(name: str) -> Options:
    """The fields that a format's golden logs need named."""
    said: dict[str, Any] = {}
    for case in forms()[name]:
        beside = case.log.with_name(f"{case.log.stem}.options.json")
        said |= json.loads(beside.read_text()) if beside.exists() else {}
    return options_of(said.get("fields"), said.get("timezone", "UTC"))


@cache
def lines(name: str, *canaries: str) -> list[bytes]:
    """A format's planted lines."""
    return list(planted(name, list(canaries)))


def decoded(name: str, *canaries: str) -> Decoded:
    """What they decode to."""
    return Decoder(shelf()[name], options(name)).decode(b"\n".join(lines(name, *canaries)), NEAR)


def everything(name: str, config: Config, *canaries: str) -> str:
    """All that a daemon would show or keep of the planted lines, as one text."""
    pipeline = Pipeline(config)
    totals = pipeline.totals()
    for counts in (True, False):
        pipeline.take(Origin(name, engine="vllm-0", counts=counts), decoded(name, *canaries), NEAR + 3600)
    delta = pipeline.freeze()
    kept = repr(unpack(pack([delta, pipeline.news(), pipeline.save()])))
    totals.apply(delta)
    shown = [*view(pipeline.meters, totals)]
    pages = [text.Writer(totals.names).page(shown, openmetrics=form, extra=b"").decode() for form in (False, True)]
    binary = protobuf.Writer(totals.names).page(shown, latency.natives(totals), b"").decode("latin-1")
    return "\n".join([kept, repr(unpack(pack(totals.save()))), *pages, binary]).lower()


def told(name: str, *canaries: str) -> str:
    """All that `explain` says of the planted lines."""
    judged = explain(lines(name, *canaries), shelf()[name], options(name), None, NEAR)
    return "\n".join(as_json(one) + as_text(one, options(name)) for one in judged).lower()


@pytest.mark.parametrize("name", shelf())
def test_the_lines_hold_what_is_looked_for(name: str) -> None:
    """Every kind of canary is in some line, and some of the lines are still understood."""
    found = b"\n".join(lines(name, *SECRETS.values())).decode()
    assert [kind for kind, canary in SECRETS.items() if json.dumps(canary)[1:-1] not in found] == []
    assert decoded(name, *SECRETS.values()).counted > 0


@pytest.mark.parametrize("name", shelf())
def test_no_secret_is_shown_or_kept(name: str) -> None:
    """Planted in every field, it is in no page, no label, no delta and no checkpoint, though tenants are plain."""
    assert MARK not in everything(name, Config(), *SECRETS.values())


def test_a_hashed_tenant_is_not_shown() -> None:
    """Where tenants are hashed, not even an honest name is; every other label stays."""
    page = everything("jsonl", Config(privacy=Privacy(tenant="hash")), PROMPT)
    assert ('tenant="acme"' in page, 'tenant="hashed-' in page, 'model="chat-70b"' in page) == (False, True, True)


@pytest.mark.parametrize("name", shelf())
def test_explain_repeats_no_secret(name: str) -> None:
    """Not even to the person who gave it the line: terminals are shared and kept."""
    assert MARK not in told(name, *SECRETS.values())


@pytest.mark.parametrize("name", shelf())
def test_a_prompt_is_a_name_only_where_a_name_is_read(name: str) -> None:
    """Whatever else of a line holds it is forgotten; where a tenant or a route is read, it is that label alone."""
    batch = decoded(name, PROMPT).batch
    told_by = {field: set(batch.labels[field].names) if field in batch.labels else set() for field in NAMES}
    labels = {clean(one).lower() for field in ("tenant", "route", "model") for one in told_by[field] if one}
    everywhere = everything(name, Config(), PROMPT)
    for label in sorted(labels, key=len, reverse=True):
        everywhere = everywhere.replace(repr(label)[1:-1], "").replace(label, "")
    assert MARK not in everywhere
    assert all(len(label) <= 128 for label in labels)


@pytest.mark.parametrize("name", shelf())
def test_content_is_read_into_nothing(name: str) -> None:
    """A prompt under the keys that hold prompts, errors, users and headers reaches no field of a record."""
    holding = [line for line in lines(name, PROMPT) if any(map(CONTENT.fullmatch, _keys_of(line)[-1:]))]
    batch = Decoder(shelf()[name], options(name)).decode(b"\n".join(holding), NEAR).batch
    texts = [*batch.request_id, *batch.attempt_group, *(one for own in batch.labels.values() for one in own.names)]
    assert [text for text in texts if text and MARK in text.lower()] == []


def _keys_of(line: bytes) -> list[str]:
    """The keys on the way to the canary in a line of JSON."""
    try:
        found = json.loads(line)
    except ValueError:
        return []
    return _way(found) or []


def _way(value: Any) -> list[str] | None:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in items:
        if isinstance(one, str) and PROMPT in one:
            return [str(key)]
        inner = _way(one)
        if inner is not None:
            return [str(key), *inner]
    return None


@pytest.mark.parametrize("wrapper", wrappers.shelf())
def test_wrappers_add_nothing(wrapper: str) -> None:
    """What a wrapper has around a line goes nowhere."""
    around = {
        "cri": "2026-03-03T09:15:02.4Z stdout F {}",
        "docker": '{{"log": {0}, "stream": "CANARY", "time": "2026-03-03T09:15:02Z", "attrs": {{"tag": "CANARY"}}}}',
        "journald": '{{"MESSAGE": {0}, "_CMDLINE": "CANARY", "_STREAM_ID": "CANARY"}}',
    }[wrapper]
    record = json.dumps({"finished_at": NEAR, "tenant": "acme"})
    line = around.format(record if wrapper == "cri" else json.dumps(record + "\n"))
    found = Decoder(shelf()["jsonl"], Options(), wrappers.shelf()[wrapper]()).decode(line.encode(), NEAR)
    assert (found.counted, MARK in repr(found.batch).lower()) == (1, False)
