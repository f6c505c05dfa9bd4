"""The callback shipped for the LiteLLM proxy: it writes what capwatch reads, and nothing that a client wrote."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from capwatch.dialect import Field, Options
from capwatch.explain import as_json, explain
from capwatch.formats import shelf

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT.parent / "shared" / "samples"
CANARIES = (
    "SYNTHETIC-PROMPT-CANARY-7f3a",
    "SYNTHETIC-ANSWER-CANARY-91bc",
    "sk-CANARY-not-a-real-key",
    "@example.invalid",
)
Load = Callable[..., ModuleType]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Load:
    """Loads the callback as the proxy does, with a stand-in for LiteLLM's base class."""

    def loaded(**environment: str) -> ModuleType:
        stand_in = ModuleType("litellm.integrations.custom_logger")
        stand_in.CustomLogger = type("CustomLogger", (), {})  # type: ignore[attr-defined]
        for name in ("litellm", "litellm.integrations"):
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
        monkeypatch.setitem(sys.modules, "litellm.integrations.custom_logger", stand_in)
        for name, value in {"CAPWATCH_LITELLM_LOG": str(tmp_path / "requests.jsonl"), **environment}.items():
            monkeypatch.setenv(name, value)
        spec = spec_from_file_location("capwatch_callback", ROOT / "deploy" / "litellm" / "capwatch_callback.py")
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return loaded


def payloads(name: str) -> list[dict[str, Any]]:
    """The payloads of a shared sample, if it is there."""
    path = SAMPLES / name
    if not path.exists():
        pytest.skip(f"the shared sample {name} is not beside this checkout")
    return [json.loads(line) for line in path.read_text().splitlines()]


def records(lines: list[str], fields: dict[str, str]) -> list[dict[str, Any]]:
    """What the reader of capwatch understands."""
    options = Options({name: Field(path) for name, path in fields.items()})
    encoded = [line.encode() for line in lines]
    return [json.loads(as_json(one)) for one in explain(encoded, shelf()["litellm"], options)]


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("captured/litellm_standard_logging_payload.jsonl", {"tenant": "end_user", "model": "model_group"}),
        ("gateways/litellm_slp.jsonl", {"tenant": "metadata.user_api_key_team_alias", "model": "model_group"}),
        ("gateways/litellm_slp.jsonl", {}),
    ],
)
def test_its_lines_tell_the_same_as_whole_payloads(
    name: str, fields: dict[str, str], load: Load, tmp_path: Path
) -> None:
    """The kept keys are all that the reader needs, and none of the canaries is among them."""
    writer = load(CAPWATCH_LITELLM_KEEP="end_user").writer
    found = payloads(name)
    for payload in found:
        hook = writer.async_log_success_event if payload["status"] == "success" else writer.async_log_failure_event
        asyncio.run(hook({"standard_logging_object": payload, "messages": "text"}, None, None, None))
    text = (tmp_path / "requests.jsonl").read_text()
    assert records(text.splitlines(), fields) == records([json.dumps(payload) for payload in found], fields)
    assert [canary for canary in CANARIES if canary in text] == []


def test_only_plain_values_are_kept(load: Load, tmp_path: Path) -> None:
    """A kept key that holds something else in another version keeps nothing of it."""
    load().writer.write({"model": {"messages": ["text"]}, "metadata": ["text"], "trace_id": "t", "hidden_params": None})
    assert json.loads((tmp_path / "requests.jsonl").read_text()) == {
        "model": None,
        "metadata": [None],
        "trace_id": "t",
        "hidden_params": None,
        "request_tags": [],
    }


def test_of_the_tags_only_copied_headers_are_kept(load: Load, tmp_path: Path) -> None:
    """Tags are free text of callers, except the headers that the operator asked for."""
    load().writer.write({"request_tags": ["User-Agent: curl", "x-tenant-id: acme", 5]})
    assert json.loads((tmp_path / "requests.jsonl").read_text())["request_tags"] == ["x-tenant-id: acme"]


def test_the_operator_may_keep_one_more_key(load: Load, tmp_path: Path) -> None:
    """Without being asked, users stay out."""
    load().writer.write({"end_user": "acme"})
    load(CAPWATCH_LITELLM_KEEP="end_user").writer.write({"end_user": "acme"})
    lines = (tmp_path / "requests.jsonl").read_text().splitlines()
    assert ["end_user" in json.loads(line) for line in lines] == [False, True]


def test_lines_of_many_writers_stay_whole(load: Load, tmp_path: Path) -> None:
    """Threads and workers append whole lines to one file."""
    writers = [load().writer for _ in range(3)]
    rows = [{"trace_id": f"{i}", "model": "m" * 500} for i in range(300)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda pair: writers[pair[0] % 3].write(pair[1]), enumerate(rows)))
    lines = (tmp_path / "requests.jsonl").read_text().splitlines()
    assert sorted(int(json.loads(line)["trace_id"]) for line in lines) == list(range(300))


def test_a_file_moved_away_is_opened_anew(load: Load, tmp_path: Path) -> None:
    """Rotation by renaming, and by a file put in its place: no line goes astray."""
    writer, log = load().writer, tmp_path / "requests.jsonl"
    writer.write({"trace_id": "1"})
    log.rename(tmp_path / "requests.jsonl.2")
    writer.write({"trace_id": "2"})
    log.rename(tmp_path / "requests.jsonl.1")
    log.touch()
    writer.write({"trace_id": "3"})
    found = [json.loads((tmp_path / f"requests.jsonl{end}").read_text())["trace_id"] for end in (".2", ".1", "")]
    assert found == ["1", "2", "3"]


def test_the_file_is_not_for_everybody(load: Load, tmp_path: Path) -> None:
    """Owner and group."""
    load().writer.write({"trace_id": "1"})
    assert (tmp_path / "requests.jsonl").stat().st_mode & 0o007 == 0


def test_a_file_that_cannot_be_written_costs_no_request(
    load: Load, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once per line, without the line."""
    load(CAPWATCH_LITELLM_LOG=str(tmp_path / "missing" / "file")).writer.write({"trace_id": "secret"})
    assert [record.getMessage() for record in caplog.records] == [
        f"cannot write {tmp_path / 'missing' / 'file'}: No such file or directory"
    ]


def test_the_proxy_may_name_its_arguments(load: Load, tmp_path: Path) -> None:
    """LiteLLM 1.108 calls the hooks with keywords, earlier ones by position."""
    writer = load().writer
    for hook in (writer.async_log_success_event, writer.async_log_failure_event):
        payload = {"standard_logging_object": {"trace_id": "1"}}
        asyncio.run(hook(kwargs=payload, response_obj=None, start_time=None, end_time=None))
    assert len((tmp_path / "requests.jsonl").read_text().splitlines()) == 2


def test_an_event_without_a_payload_writes_nothing(load: Load, tmp_path: Path) -> None:
    """Some events carry none."""
    asyncio.run(load().writer.async_log_success_event({}, None, None, None))
    assert not (tmp_path / "requests.jsonl").exists()
