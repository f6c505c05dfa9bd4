"""Totals of a made-up log, by way of the pipeline."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

from capwatch.config import parse
from capwatch.ledger import Totals
from capwatch.ledger.series import Series
from capwatch.replay import Log, replay
from capwatch.view import view

NOW = 1_764_500_000.0
CONFIG = """
sources: [{name: log, path: log.jsonl, format: jsonl}]
slo: [{match: {}, ttft: 1.5s, tpot: 60ms}]
"""

Row = dict[str, object]


def rows(count: int, seed: int = 1) -> list[Row]:
    """Requests of three tenants on two routes, some without times, some failed, some with empty answers."""
    draw = random.Random(seed)
    found: list[Row] = []
    for number in range(count):
        output = draw.choice((0, 1, draw.randint(2, 900)))
        ttft = draw.lognormvariate(-1.5, 0.8)
        row: Row = {
            "request_id": f"{seed}-{number}",
            "finished_at": NOW - draw.random() * 200,
            "tenant": draw.choice(("acme", "größe", 'quo"te')),
            "route": draw.choice(("/v1/chat", "/v1/summaries")),
            "model": "chat",
            "prompt_tokens": int(draw.lognormvariate(6.5, 1.0)),
            "output_tokens": output,
            "outcome": draw.choice(("ok", "ok", "ok", "timeout")),
        }
        if draw.random() < 0.8:
            row |= {"duration_s": ttft + output * 0.02, "ttft_s": ttft}
        found.append(row)
    return found


def totals(folder: Path, log: Sequence[Row]) -> tuple[Totals, list[Series]]:
    """The totals over a log, and what the text page shows of them."""
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in log))
    config = parse(CONFIG, "capwatch.yml", {}, formats=frozenset({"jsonl"}), is_root=True)
    *_, (pipeline, found, _) = replay(config, [Log(str(path), config.sources[0], counts=True)], NOW, kept=True)
    return found, view(pipeline.meters, found)
