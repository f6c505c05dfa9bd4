"""The profile of what a Prometheus scraped is that of the log behind it, as far as counters and gauges tell it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from capwatch.cli import main
from tests.observed.scraped import needs_prometheus, scraped

START = 1_790_000_400  # a whole five minutes
SECONDS = 7200
CONFIG = """
sources: [{name: gateway, path: x.jsonl, format: jsonl}]
pools:
  - {name: chat, match: {model: chat}, prefill_tokens_per_second: 4000, decode_tokens_per_second: 160}
  - {name: code, match: {model: code}, prefill_tokens_per_second: 8000, decode_tokens_per_second: 320}
classes:
  - {name: long, match: {route: /long}}
  - {name: short, match: {}}
"""


def rows() -> list[dict[str, Any]]:
    """One a second by chance for two hours, a fifth of them long ones of one tenant, a tenth of another pool."""
    rng, at, found = random.Random(7), float(START), []
    while (at := at + rng.expovariate(1.0)) < START + SECONDS:
        long, code = rng.random() < 0.2, rng.random() < 0.1
        prompt, output = int(rng.lognormvariate(7, 0.6)) * (3 if long else 1), max(2, int(rng.lognormvariate(4.5, 0.5)))
        found.append(
            {
                "started_at": at, "duration_s": 0.5, "finished_at": at + 0.5, "status": 200,
                "tenant": "acme" if long else f"t{rng.randrange(3)}", "route": "/long" if long else "/short",
                "model": "code" if code else "chat", "prompt_tokens": prompt, "cached_tokens": prompt // 4,
                "output_tokens": output,
            }
        )  # fmt: skip
    return found


@dataclass(frozen=True)
class Seen:
    """The address of a server that has seen them, and those that it can know of."""

    url: str
    rows: list[dict[str, Any]]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """What came before the first look of five minutes, nobody counted from."""
    told = rows()
    with scraped(tmp_path_factory.mktemp("scraped"), CONFIG, told, "60s") as url:
        yield Seen(url, [row for row in told if START + 300 < row["finished_at"] <= START + SECONDS])


def profile(capsys: pytest.CaptureFixture[str], seen: Seen, *words: str) -> dict[str, Any]:
    """The document."""
    window = ("--since", str(START), "--until", str(START + SECONDS))
    assert main(["profile", "--prometheus", seen.url, *window, *words]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    found: dict[str, Any] = json.loads(shown.out)
    return found


@needs_prometheus
def test_counts_and_sums_are_exact(seen: Seen, capsys: pytest.CaptureFixture[str]) -> None:
    """Requests, rates, means, shares and cost are those of the rows."""
    found = profile(capsys, seen)
    n = len(seen.rows)
    prompts, outputs = (np.array([row[f"{kind}_tokens"] for row in seen.rows]) for kind in ("prompt", "output"))
    assert found["window"]["since"] == "2026-09-21T14:25:00Z"
    assert (found["window"]["requests"], found["window"]["with_tokens_share"]) == (n, 1.0)
    assert found["arrivals"]["mean_rps"] == pytest.approx(n / (SECONDS - 300), rel=1e-9)
    assert found["prompt_tokens"]["mean"] == pytest.approx(prompts.mean(), rel=1e-9)
    assert found["output_tokens"]["mean"] == pytest.approx(outputs.mean(), rel=1e-9)
    long = [row for row in seen.rows if row["route"] == "/long"]
    assert found["classes"]["long"]["share"] == pytest.approx(len(long) / n, rel=1e-9)
    assert found["routes"]["/long"] == pytest.approx(len(long) / n, rel=1e-9)
    tokens = {name: sum(r["prompt_tokens"] + r["output_tokens"] for r in seen.rows if r["tenant"] == name) for name in
              {row["tenant"] for row in seen.rows}}  # fmt: skip
    assert found["tenants"]["count"] == 4
    assert found["tenants"]["top1_share_of_tokens"] == pytest.approx(
        max(tokens.values()) / sum(tokens.values()), rel=1e-9
    )
    cost = sum(
        (r["prompt_tokens"] - r["cached_tokens"]) / (8000 if r["model"] == "code" else 4000)
        + r["output_tokens"] / (320 if r["model"] == "code" else 160)
        for r in seen.rows
    )
    assert found["cost"]["mean_replica_seconds"] == pytest.approx(cost / n, rel=1e-6)
    assert found["models"]["code"] == pytest.approx(sum(r["model"] == "code" for r in seen.rows) / n, rel=1e-9)


@needs_prometheus
def test_one_pool(seen: Seen, capsys: pytest.CaptureFixture[str]) -> None:
    """Of one pool the gauges of single seconds are known, and the hit rate to the token; names of models are not."""
    found = profile(capsys, seen, "--pool", "chat")
    mine = [row for row in seen.rows if row["model"] == "chat"]
    assert found["window"]["requests"] == len(mine)
    cached, prompts = (sum(row[key] for row in mine) for key in ("cached_tokens", "prompt_tokens"))
    assert found["prefix_cache_hit_rate"] == pytest.approx(cached / prompts, rel=1e-6)
    assert found["arrivals"]["cv2"] == pytest.approx(1, abs=0.15)
    assert found["arrivals"]["pattern"] == "steady"
    counts = np.bincount([int(row["started_at"]) - START for row in rows() if row["model"] == "chat"])
    assert found["arrivals"]["max_ramp_rps"] == np.diff(counts).max()
    assert (found["models"], found["notes"]["models"]) == (None, "no metric tells models by pool")
    assert found["streaming"] is None
    assert found["classes"]["long"]["mean_computed_prompt_tokens"] is None


@needs_prometheus
@pytest.mark.parametrize(("share", "key"), [(0.5, "p50"), (0.95, "p95"), (0.99, "p99")])
def test_quantiles_within_a_bucket(share: float, key: str, seen: Seen, capsys: pytest.CaptureFixture[str]) -> None:
    """The buckets are 19 % wide, and the truth lies in the same one."""
    found = profile(capsys, seen)
    truth = float(np.quantile([row["prompt_tokens"] for row in seen.rows], share, method="inverted_cdf"))
    assert abs(np.log2(found["prompt_tokens"][key] / truth)) <= 0.25


@needs_prometheus
def test_several_pools_have_no_common_second(seen: Seen, capsys: pytest.CaptureFixture[str]) -> None:
    """Gauges of single seconds are of pools; it says to name one."""
    found = profile(capsys, seen)
    assert found["arrivals"]["longest_burst_s"] is None
    assert found["notes"]["arrivals.longest_burst_s"] == "several pools have one each; give --pool"


@needs_prometheus
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ["--pool", "cat"],
            1,
            "no pool 'cat' between 2026-09-21T14:20:00Z and 2026-09-21T16:20:00Z; there are chat, code",
        ),
        (["--until", "1000000000"], 1, "has no capwatch_arrivals_total between"),
        (["--format", "azure"], 2, "--format: a history has no single requests; give --config.file F LOG..."),
    ],
)
def test_refusals(words: list[str], code: int, said: str, seen: Seen, capsys: pytest.CaptureFixture[str]) -> None:
    """One line that says what there is."""
    since = [] if "--until" in words else ["--since", str(START), "--until", str(START + SECONDS)]
    assert main(["profile", "--prometheus", seen.url, *since, *words]) == code
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert said in shown.err
