"""`capwatch init`: finds dialects and wrappers, marks what is missing, and its configuration works."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from capwatch.config.load import parse
from capwatch.config.schema import Config, Match
from capwatch.demo.simulation import Simulation
from capwatch.demo.writers import Writers
from capwatch.init.look import Found, look
from capwatch.init.write import MARK, starter
from capwatch.sourcing import names
from tests.end_to_end.command import Page, capwatch, printed

FORMATS = Path(__file__).resolve().parents[1] / "formats"
BEGIN = 1_767_225_600.0
REQUEST = {
    "request_id": "a",
    "finished_at": BEGIN,
    "duration_s": 2.5,
    "tenant": "a name of theirs",
    "route": "/v1/chat/completions",
    "model": "chat-70b",
    "prompt_tokens": 1500,
    "cached_tokens": 0,
    "output_tokens": 90,
    "ttft_s": 0.4,
    "outcome": "ok",
}


def loaded(text: str) -> Config:
    """A configuration as the commands load it."""
    return parse(text, "capwatch.yml", {}, formats=names(), is_root=True)


def lines(path: Path, *rows: dict[str, object]) -> Path:
    """A log of JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gateway's log and those of twelve engines, five minutes of the demo's."""
    folder = tmp_path_factory.mktemp("logs")
    simulation = Simulation("quiet", 1, BEGIN, 300.0)
    writers = Writers(folder / "litellm" / "requests.jsonl", folder / "vllm", seed=1, max_bytes=1_000_000, kept=9)
    writers.begin(BEGIN)
    for at in range(10, 310, 10):
        writers.write(simulation.until(BEGIN + at), simulation.statistics(BEGIN + at), BEGIN + at)
    writers.close()
    return folder


def test_what_it_prints_works(logs: Path) -> None:
    """Printed for a gateway and its engines, the configuration passes check-config, and replay counts everything."""
    engines = sorted((logs / "vllm").iterdir())
    text = printed("init", logs / "litellm" / "requests.jsonl", *engines, cwd=logs)
    (logs / "capwatch.yml").write_text(text)
    checked = capwatch("check-config", "capwatch.yml", cwd=logs, env={"CAPWATCH__STATE_DIR": str(logs)})
    assert checked.returncode == 0, checked.stderr
    page = Page(printed("replay", "--config.file", "capwatch.yml", cwd=logs))
    written = sum(path.read_bytes().count(b"\n") for path in (logs / "litellm").iterdir())
    assert page.value("lines_counted_total", source="gateway") == written  # the rotated file as well
    assert page.value("requests_total", model="chat-70b") == written
    assert len(page.values("engine_kv_cache_capacity_tokens", "engine")) == 12
    assert page.value("lines_dropped_total") == 0.0


def test_a_gateway_and_its_engines(logs: Path) -> None:
    """Two sources are found with their dialects; engines serve the one model, and are counted; routes are classes."""
    config = loaded(starter(look([str(path) for path in sorted(logs.glob("*/*"))])))
    told = [(source.name, source.format, source.pool, source.start) for source in config.sources]
    assert told == [("gateway", "litellm", None, "end"), ("engine-logs", "vllm", "chat-70b", "end")]
    assert [(pool.name, pool.replicas, pool.assumed) for pool in config.pools] == [("chat-70b", "observed", True)]
    assert [one.name for one in config.classes] == ["chat_policy", "orders_lookup", "summaries", "rest"]


def test_two_gateways_may_tell_of_the_same_requests(tmp_path: Path) -> None:
    """All but the log that tells most say beside them how they do not count; which it is, is not guessed."""
    poor = {key: value for key, value in REQUEST.items() if "tokens" not in key}
    for name, row in (("front", poor), ("proxy", REQUEST)):
        (tmp_path / name).mkdir()
        lines(tmp_path / name / "a.jsonl", row)
    text = starter(look([str(tmp_path / name / "a.jsonl") for name in ("front", "proxy")]))
    front, proxy = text.split("  - name: gateway-2")
    assert ("# role: times" in front, "# role: times" in proxy) == (True, False)
    assert [source.role for source in loaded(text).sources] == [None, None]


def test_a_rotated_file_stands_for_the_live_one(tmp_path: Path) -> None:
    """Files by number, by date and compressed are found under the globs of the file that is still written."""
    body = json.dumps(REQUEST).encode() + b"\n"
    for name in ("a.log", "a.log.1", "a.log-20261130"):
        (tmp_path / name).write_bytes(body)
    (tmp_path / "a.log.2.gz").write_bytes(gzip.compress(body))
    (source,) = loaded(starter(look(sorted(map(str, tmp_path.iterdir()))))).sources
    assert source.path == (f"{tmp_path}/a.log", f"{tmp_path}/a.log-*", f"{tmp_path}/a.log.*")


def test_a_wrapper_is_found(tmp_path: Path) -> None:
    """Lines in a container runtime's wrapper are taken out of it."""
    stamp = "2026-11-30T08:00:00.000000000Z stdout F"
    (tmp_path / "pod.log").write_text(f"{stamp} {json.dumps(REQUEST)}\n" * 3)
    (source,) = loaded(starter(look([str(tmp_path / "pod.log")]))).sources
    assert (source.format, source.wrapper) == ("jsonl", "cri")


def test_missing_fields_are_marked(tmp_path: Path) -> None:
    """What no request tells is marked with what it costs, and the keys that are there are listed without values."""
    row = {key: value for key, value in REQUEST.items() if key not in ("ttft_s", "tenant")} | {"team": {"id": "secret"}}
    text = starter(look([str(lines(tmp_path / "a.jsonl", row, row))]))
    marked = [line.strip() for line in text.splitlines() if f"# {MARK}: " in line and "in any request: " in line]
    assert marked == [
        f"# {MARK}: tenant in any request: everything is tenant `unknown`",
        f"# {MARK}: ttft_s in any request: no goodput, and prefill is not told from decode",
    ]
    assert ("    #   team.id" in text.splitlines(), "secret" in text) == (True, False)
    assert loaded(text).sources[0].format == "jsonl"


def test_a_log_without_a_clock_is_marked() -> None:
    """llama.cpp prints the time since its start: there is no zone to choose, and it tells prefill from decode."""
    text = starter(look([str(FORMATS / "llamacpp" / "b11669.log")]))
    assert f"    # {MARK}: clock time: records get the time of reading" in text.splitlines()
    assert f"    # {MARK}: ttft_s in any request: no goodput" in text.splitlines()
    assert ("timezone" in text, "not told from decode" in text) == (False, False)


def test_a_wrapper_is_a_clock(tmp_path: Path) -> None:
    """In a container's log each line has the time at which it was written."""
    log = (FORMATS / "llamacpp" / "b11669.log").read_text().splitlines()
    (tmp_path / "pod.log").write_text("".join(f"2026-11-30T08:00:00.000000000Z stderr F {line}\n" for line in log))
    text = starter(look([str(tmp_path / "pod.log")]))
    assert ("clock time" in text, "timezone" in text) == (False, False)


def test_a_build_that_prints_the_time_has_a_clock() -> None:
    """llama.cpp up to b3600 prints seconds since the epoch."""
    text = starter(look([str(FORMATS / "llamacpp" / "b3600.log")]))
    assert ("clock time" in text, "timezone" in text) == (False, False)


def test_keys_that_may_tell_the_tenant_are_pointed_at(tmp_path: Path) -> None:
    """Only where the tenant is missing."""
    row = {key: value for key, value in REQUEST.items() if key != "tenant"} | {
        "meta": {"teamAlias": "x", "team_spend": 1}
    }
    text = starter(look([str(lines(tmp_path / "a.jsonl", row))]))
    assert [line for line in text.splitlines() if line.endswith("?")] == ["    #   meta.teamAlias   <- the tenant?"]
    row = {key: value for key, value in REQUEST.items() if key != "ttft_s"} | {"team": "x"}
    assert "<-" not in starter(look([str(lines(tmp_path / "b.jsonl", row))]))


def test_no_secret_and_no_odd_sign_gets_into_a_configuration(tmp_path: Path) -> None:
    """Neither as a model or a route, nor as the name of a key."""
    key = "sk-0123456789abcdefghij"
    rows = [
        REQUEST | {"model": one, "route": one, key: 1} for one in (key, "jane@example.org", "\ud800", "a\0b", "good")
    ]
    text = starter(look([str(lines(tmp_path / "gateway.log", *rows))]))
    assert not any(one in text for one in (key, "jane", "ud800", "\\0b"))
    assert [one.name for one in loaded(text).pools] == ["good"]


def test_where_counting_begins_is_told(tmp_path: Path) -> None:
    """Before the first key."""
    text = starter(look([str(lines(tmp_path / "a.jsonl", REQUEST))]))
    assert "`start: end` counts only lines that are written from now on" in text[: text.index("listen:")]


def test_nothing_missing_nothing_marked(tmp_path: Path) -> None:
    """Where every field is there, the source has no mark, and no tenant's name is shown."""
    text = starter(look([str(lines(tmp_path / "a.jsonl", REQUEST))]))
    source = text[text.index("sources:") : text.index("# Metrics of the engines")]
    assert (MARK in source, "a name of theirs" in text) == (False, False)


def test_what_nobody_understands_is_marked(tmp_path: Path) -> None:
    """A file in no known format is named in a comment; if there is nothing else, the exit code is 1."""
    (tmp_path / "notes.txt").write_text("a\nb\n")
    lines(tmp_path / "a.jsonl", REQUEST)
    alone = capwatch("init", "notes.txt", cwd=tmp_path)
    both = capwatch("init", "notes.txt", "a.jsonl", cwd=tmp_path)
    assert (alone.returncode, both.returncode, alone.stderr, both.stderr) == (1, 0, b"", b"")
    assert (len(loaded(alone.stdout.decode()).sources), len(loaded(both.stdout.decode()).sources)) == (0, 1)
    assert f"# {MARK}: no format makes a record of the 2 lines looked at in" in both.stdout.decode()


def test_a_saved_page_is_told_apart(tmp_path: Path) -> None:
    """A page of an engine's metrics is no log: it is told where its address belongs."""
    page = '# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{model_name="m",engine="0"} 3.0\n'
    (tmp_path / "page.prom").write_text(page)
    text = starter(look([str(tmp_path / "page.prom")]))
    assert f'# "{tmp_path}/page.prom" is such a page; put the address it comes from here.' in text.splitlines()
    assert "no format makes" not in text


@pytest.mark.parametrize(("name", "why"), [("none.log", "No such file or directory"), (".", "is a directory")])
def test_what_cannot_be_read_is_one_line(tmp_path: Path, name: str, why: str) -> None:
    """A file that is not there, or is none, is one line with exit code 2, and nothing is printed."""
    result = capwatch("init", name, cwd=tmp_path)
    told = result.stderr.decode()
    assert (result.returncode, result.stdout, told.count("\n"), why in told) == (2, b"", 1, True)


@given(st.lists(st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), min_size=1), unique=True))
def test_any_name_is_only_itself(models: list[str]) -> None:
    """Whatever models and routes are called, the configuration loads, and a pattern fits its name."""
    found = Found("jsonl", "none", paths=["/log/[a]*.log"])
    found.models.update(models)
    found.routes.update(models)
    config = loaded(starter([found]))
    shown = {pool.name: pool.match for pool in config.pools} if models else {}
    assert all(match.hits({"model": name}) for name, match in shown.items())
    assert all(one.match == Match() or one.match.route for one in config.classes)
    assert yaml.safe_load(starter([found]))["sources"][0]["path"][0] == "/log/[[]a][*].log"
