"""A real LiteLLM proxy with the shipped callback, and what capwatch reads of the lines that it writes.

    python -m tests.end_to_end.programs.real_litellm ENVIRONMENT OUT

ENVIRONMENT is a folder for LiteLLM's own virtual environment (760 MB, made if it is not there), OUT takes the lines,
the proxy's output and `litellm.md`. Exit 1 where a request is missing, or told otherwise than its client saw it.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import yaml

from capwatch.dialect import Options
from capwatch.explain import as_json, explain
from capwatch.formats import shelf

from .client import Saw, ask, leave
from .process import free_port, program, until
from .upstream import CHUNKS, PROMPT_TOKENS, THINKS_S, upstream

VERSION = "1.108.7"
ROOT = Path(__file__).resolve().parents[3]
CALLBACK = ROOT / "deploy" / "litellm" / "capwatch_callback.py"
TIMES = 5
"""How often each play is given."""


@dataclass(frozen=True)
class Play:
    """One kind of request: what is asked for, and how capwatch must tell it."""

    name: str
    model: str
    stream: bool
    outcome: str
    status: int | None
    """What the log tells; None where LiteLLM logs none."""
    tokens: tuple[int, int] | None
    """Prompt and output; None where nothing may be told, or nothing is sure."""
    timed: bool = True
    """Whether its times are compared with the client's."""


PLAYS = (
    Play("first answers", "warm", False, "ok", None, (PROMPT_TOKENS, CHUNKS), timed=False),
    Play("answer", "answer", False, "ok", None, (PROMPT_TOKENS, CHUNKS)),
    Play("stream", "streamed", True, "ok", None, (PROMPT_TOKENS, CHUNKS)),
    Play("upstream 503", "fail", False, "upstream_error", 503, None),
    Play("upstream 429", "limit", False, "rate_limited", 429, None),
    Play("unknown model", "nobody", False, "client_error", 400, None),
    Play("client gone", "left", True, "client_abort", 499, None),
)


def prepare(environment: Path) -> Path:
    """Fill the virtual environment, unless it is there; its `litellm`."""
    if not (environment / "bin" / "litellm").exists():
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        pip: list[str | Path] = [environment / "bin" / "python", "-m", "pip", "install", "-qq"]
        subprocess.run([*pip, f"litellm[proxy]=={VERSION}"], check=True)
    return environment / "bin" / "litellm"


def configure(out: Path, upstream_port: int) -> Path:
    """The proxy's configuration, with the callback beside it."""
    shutil.copy(CALLBACK, out / CALLBACK.name)
    parameters = {"api_base": f"http://127.0.0.1:{upstream_port}/v1", "api_key": "none"}
    models = [play.model for play in PLAYS if play.model != "nobody"]
    config = {
        "model_list": [
            {"model_name": one, "litellm_params": {"model": f"openai/{one}", **parameters}} for one in models
        ],
        "litellm_settings": {"callbacks": ["capwatch_callback.writer"], "num_retries": 0, "telemetry": False},
        "router_settings": {"num_retries": 0, "disable_cooldowns": True},
    }
    path = out / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


def drive(port: int, key: str) -> dict[str, list[Saw]]:
    """Play everything; what the client saw, by play."""
    headers = {"Authorization": f"Bearer {key}"}
    seen: dict[str, list[Saw]] = {}
    for play in PLAYS:
        for _ in range(TIMES):
            if play.name == "client gone":
                leave(port, play.model, headers=headers)
            else:
                seen.setdefault(play.name, []).append(ask(port, play.model, stream=play.stream, headers=headers))
    return seen


def main(environment: Path, out: Path) -> int:
    """Run, compare, write the table."""
    out.mkdir(parents=True, exist_ok=True)
    litellm, port, key = prepare(environment), free_port(), f"sk-{secrets.token_hex(16)}"
    log = out / "requests.jsonl"
    log.unlink(missing_ok=True)
    env = os.environ | {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_MASTER_KEY": key,
        "CAPWATCH_LITELLM_LOG": str(log),
        "PYTHONPATH": str(out),
    }
    with upstream() as server:
        command: list[str | Path] = [
            litellm,
            "--config",
            configure(out, server.port),
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
        ]
        with program([*command, "--telemetry", "False"], port, out / "litellm.out", env=env):
            seen = drive(port, key)
            until(
                lambda: len(log.read_bytes().splitlines()) >= len(PLAYS) * TIMES, "the proxy has not written all lines"
            )
            time.sleep(2)  # a line too many would come now
    rows = compare(log.read_bytes().splitlines(), seen)
    table = markdown(rows)
    (out / "litellm.md").write_text(table)
    sys.stdout.write(table)
    return 0 if all(one == other for _, one, other in rows) else 1


Row = tuple[str, object, object]
"""What, as it must be, as capwatch tells it."""


def compare(lines: list[bytes], seen: dict[str, list[Saw]]) -> list[Row]:
    """Every comparison, play by play."""
    told = [json.loads(as_json(one)) for one in explain(lines, shelf()["litellm"], Options())]
    records = [one["record"] for one in told if one["outcome"] == "record"]
    rows: list[Row] = [
        ("lines", len(PLAYS) * TIMES, len(lines)),
        ("records", len(PLAYS) * TIMES, len(records)),
        ("lines with text of prompts or answers", 0, sum(b"word" in line for line in lines)),
        ("different ids", len(PLAYS) * TIMES, len({one.get("request_id") for one in records})),
    ]
    for play in PLAYS:
        mine = [one for one in records if one.get("model") == play.model]
        rows.append((f"{play.name}: outcomes", {play.outcome: TIMES}, dict(Counter(one["outcome"] for one in mine))))
        rows.append((f"{play.name}: status", {play.status}, {one.get("status") for one in mine}))
        if play.tokens:
            rows.append((f"{play.name}: prompt tokens", play.tokens[0] * TIMES, total(mine, "prompt_tokens")))
            rows.append((f"{play.name}: output tokens", play.tokens[1] * TIMES, total(mine, "output_tokens")))
        saw = seen.get(play.name, [])
        if saw and saw[0].status == 200 and play.timed:
            rows.append(
                (
                    f"{play.name}: durations near the client's",
                    TIMES,
                    near(mine, "duration_s", [s.duration_s for s in saw]),
                )
            )
        if play.stream and play.outcome == "ok":
            rows.append(
                (f"{play.name}: TTFT near the client's", TIMES, near(mine, "ttft_s", [s.ttft_s or 0 for s in saw]))
            )
            rows.append(
                (f"{play.name}: TTFT after the model thought", TIMES, sum(one["ttft_s"] >= THINKS_S for one in mine))
            )
    return rows


def total(records: list[dict[str, float]], name: str) -> float:
    """The sum of a number over records."""
    return sum(one.get(name, 0) for one in records)


def near(records: list[dict[str, float]], name: str, saw: list[float], within: float = 0.1) -> int:
    """How many records, in order, tell a time as the client saw it: the proxy's own work lies between the two."""
    told = [one.get(name, float("inf")) for one in records]
    return sum(-0.005 <= client - log <= within for client, log in zip(saw, told, strict=False))


def markdown(rows: list[Row]) -> str:
    """The comparisons as a table."""
    head = "| what | must be | is | |\n|---|---|---|---|\n"
    return head + "".join(
        f"| {what} | {one} | {other} | {'ok' if one == other else '**differs**'} |\n" for what, one, other in rows
    )


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()))
