"""Three stories of a Wednesday, seeded, with the truth in plain arithmetic; knows nothing of the product.

`depth`: retrieval brings more chunks, so prompts grow. `cliff`: a deploy moves something that varies to the front of
the prompt, so the prefix cache hits less. `tenant`: a new tenant comes, with long requests, on top of the others.
All numbers are drawn within a fifth of those of the texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
KINDS = ("depth", "cliff", "tenant")
SPARSE = 0.1
"""Part of the traffic that is there where little is asked for."""
PEAK_H = 15
"""Hour of the day with most traffic."""
REPLICAS = 12
DAY = 86_400
LINE = (
    '{"request_id":"r-%d","started_at":%.3f,"finished_at":%.3f,"duration_s":%.3f,"ttft_s":%.3f,"stream":true,'
    '"tenant":"%s","route":"%s","model":"%s","prompt_tokens":%d,"cached_tokens":%d,"output_tokens":%d,'
    '"outcome":"ok","status":200}\n'
)
NOTES = {"depth": "retrieval depth 4 to 8", "cliff": "request id moved to the front of the prompt", "tenant": ""}


@dataclass(frozen=True)
class Mix:
    """What one request asks for, on average: tokens, and the share of prompt tokens that the cache has."""

    prompt: float
    hits: float
    output: float

    def cost(self, prefill: float, decode: float) -> float:
        """Replica-seconds."""
        return self.prompt * (1 - self.hits) / prefill + self.output / decode


@dataclass(frozen=True)
class Story:
    """One story.

    `rate` is that of the old tenants; `extra` of the new one. Rates of a replica are such that the pool is two thirds
    busy before the change, whatever the rate. `swing` is how far the rate goes up and down over a day, as a share of
    it; before `full` (s, epoch) there is a tenth of it.
    """

    kind: str
    seed: int
    rate: float
    extra: float
    before: Mix
    after: Mix
    newcomer: Mix
    prefill: float
    decode: float
    change: float
    tenants: int = 4
    routes: int = 1
    swing: float = 0.0
    full: float = -np.inf

    def share(self, at: Floats) -> Floats:
        """Part of the rate that there is at some times."""
        wave = 1 + self.swing * np.cos(2 * np.pi * (at / DAY - PEAK_H / 24))
        return np.where(at < self.full, SPARSE * wave, wave)

    @property
    def truth(self) -> dict[str, Any]:
        """Costs, utilisation and effects, by the formulas of the texts written out."""
        cost = self.before.cost(self.prefill, self.decode)
        if self.kind == "tenant":
            share = self.extra / (self.rate + self.extra)
            new = self.newcomer.cost(self.prefill, self.decode)
            now, rate = (1 - share) * cost + share * new, self.rate + self.extra
            effects = {"mix": now - cost, "prompt": 0.0, "output": 0.0, "cache": 0.0}
        else:
            now, rate = self.after.cost(self.prefill, self.decode), self.rate
            hits = (self.before.hits + self.after.hits) / 2
            prompt = (self.before.prompt + self.after.prompt) / 2
            effects = {
                "mix": 0.0,
                "prompt": (1 - hits) * (self.after.prompt - self.before.prompt) / self.prefill,
                "output": (self.after.output - self.before.output) / self.decode,
                "cache": -prompt * (self.after.hits - self.before.hits) / self.prefill,
            }
        return {
            "cost_before": cost,
            "cost_after": now,
            "utilisation_before": self.rate * cost / REPLICAS,
            "utilisation_after": rate * now / REPLICAS,
            "replicas": rate * now / 0.7,
            "effects": effects,
        }


def story(kind: str, seed: int, rate: float, change: float) -> Story:
    """A story whose numbers are drawn; `rate` requests/s of the old tenants, the change at a time (s, epoch)."""
    draw = np.random.default_rng((seed, KINDS.index(kind)))

    def around(value: float) -> float:
        return float(value * draw.uniform(0.8, 1.2))

    prompt, output, hits = around(1500), around(100), 0.0
    grown, fallen = around(2700), 0.0
    if kind == "cliff":
        prompt, hits, fallen = around(3000), around(0.6), around(0.1)
        grown = prompt
    before, after = Mix(prompt, hits, output), Mix(grown, fallen, output)
    newcomer = Mix(around(9000), 0.0, around(400))
    # a replica that is two thirds busy with a twelfth of the rate, prompts and answers in the proportion of the texts
    scale = (before.prompt * (1 - hits) / 4000 + output / 160) * rate / REPLICAS / (2 / 3)
    return Story(
        kind, seed, rate, around(0.06) * rate, before, after, newcomer, 4000 * scale, 160 * scale, change
    )  # fmt: skip


def write(path: Path, stories: list[Story], begin: float, end: float) -> int:
    """The log of several pools in the order of the requests' ends, day by day; how many lines it has."""
    draws = [np.random.default_rng((one.seed, 17)) for one in stories]
    number, waiting = 0, np.empty((8, 0))
    with path.open("w", encoding="ascii") as file:
        for since in np.arange(begin, end, DAY).tolist():
            until = min(since + DAY, end)
            days = [
                _day(one, draw, place, since, until)
                for place, (one, draw) in enumerate(zip(stories, draws, strict=True))
            ]
            whole = np.concatenate([waiting, *days], axis=1)
            whole = whole[:, np.argsort(whole[1], kind="stable")]
            over = len(whole[1]) if until == end else int(np.searchsorted(whole[1], until))
            waiting, done = whole[:, over:], whole[:, :over]
            file.write("".join(map(LINE.__mod__, _texts(stories, done, number))))
            number += over
    return number


def _texts(stories: list[Story], done: Floats, first: int) -> Iterator[tuple[Any, ...]]:
    """What goes into each line."""
    at, ended = done[:2]
    times = (at, ended, ended - at, 0.2 * (ended - at))
    *tokens, tenant, route, story = (column.astype(int).tolist() for column in done[2:])
    tenants = [*(f"team-{number}" for number in range(max(one.tenants for one in stories))), "newcomer"]
    routes = ["/v1/chat", *(f"/v1/chat/{number}" for number in range(1, max(one.routes for one in stories)))]
    models = [one.kind for one in stories]
    texts = (map(names.__getitem__, of) for names, of in ((tenants, tenant), (routes, route), (models, story)))
    numbers = range(first, first + len(at))
    return zip(numbers, *(column.tolist() for column in times), *texts, *tokens, strict=True)


def _day(one: Story, draw: np.random.Generator, place: int, begin: float, end: float) -> Floats:
    """float64[8, n]: begin, end, tokens of prompt, cache and answer, tenant, route and place of the story."""
    parts = [_columns(one, draw, one.rate, begin, end, new=False)]
    if one.kind == "tenant":
        parts.append(_columns(one, draw, one.extra, max(begin, one.change), end, new=True))
    columns = np.concatenate(parts, axis=1)
    return np.concatenate([columns, np.full((1, columns.shape[1]), float(place))])


def _columns(one: Story, draw: np.random.Generator, rate: float, begin: float, end: float, *, new: bool) -> Floats:
    top = 1 + one.swing
    n = int(draw.poisson(rate * top * max(0.0, end - begin)))
    at = draw.uniform(min(begin, end), end, n)
    if one.swing or begin < one.full:
        at = at[draw.uniform(0, top, n) < one.share(at)]
        n = len(at)
    late = at >= one.change
    mixes = (one.newcomer, one.newcomer) if new else (one.before, one.before if one.kind == "tenant" else one.after)
    prompt, hits, output = (
        np.where(late, getattr(mixes[1], name), getattr(mixes[0], name)) for name in ("prompt", "hits", "output")
    )
    spread = draw.uniform(0.8, 1.2, (2, n))
    prompt, output = np.rint(prompt * spread[0]), np.maximum(2.0, np.rint(output * spread[1]))
    tenant = np.full(n, -1.0) if new else draw.integers(0, one.tenants, n).astype(np.float64)
    route = draw.integers(0, one.routes, n).astype(np.float64) if one.routes > 1 else np.zeros(n)
    return np.stack([at, at + 0.5 + output * 0.03, prompt, np.rint(prompt * hits), output, tenant, route])


def config(path: Path, log: Path, stories: list[Story]) -> None:
    """A configuration with a pool for each story, which is the model's name."""
    pools = "".join(
        f"  - {{name: {one.kind}, match: {{model: {one.kind}}}, replicas: {REPLICAS},"
        f" prefill_tokens_per_second: {one.prefill!r}, decode_tokens_per_second: {one.decode!r}}}\n"
        for one in stories
    )
    notes = path.with_name("deploys.jsonl")
    told = [{"at": one.change - 120, "text": NOTES[one.kind], "pool": one.kind} for one in stories if NOTES[one.kind]]
    notes.write_text("".join(f"{json.dumps(one)}\n" for one in told))
    path.write_text(
        f"sources: [{{name: gateway, path: {log}, format: jsonl}}]\npools:\n{pools}"
        f"slo: [{{match: {{}}, ttft: 10s}}]\ndeploys: {notes}\n"
    )
