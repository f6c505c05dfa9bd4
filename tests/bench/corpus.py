"""The corpus for speed: any number of gateway lines with their exact truth, in capwatch's layout and in the peers'.

Both layouts tell of the same draws: `capwatch.jsonl` with the record's own names and seconds, `peer.jsonl` as a gateway
writes it, nested and in milliseconds. `truth.npz` holds the values themselves, times in whole microseconds.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

SEED = 7
CHUNK = 50_000  # lines drawn at once; part of the corpus's definition, since it orders the draws
START = np.datetime64("2026-01-01T00:00:00.000000", "us")
RATE = 165.0  # requests per second
PHASES = ("gateway", "retrieval", "tool", "queue", "prefill", "decode")

TENANTS = tuple(f"team-{k:05d}" for k in range(200))
# route, median prompt tokens, median output tokens; the k-th has weight 1/k
ROUTES = (
    ("/v1/chat/completions", 900, 220),
    ("/v1/completions", 350, 120),
    ("/v1/embeddings", 420, 1),
    ("/v1/responses", 1100, 260),
    ("/v1/messages", 1500, 320),
    ("/rag/answer", 3800, 340),
    ("/rag/search", 600, 90),
    ("/agent/run", 5200, 640),
    ("/agent/step", 2400, 150),
    ("/batch/classify", 300, 12),
    ("/batch/summarise", 6000, 450),
    ("/v1/rerank", 800, 1),
)
MODELS = ("llama-3.3-70b-instruct", "qwen3-32b", "mistral-small-24b", "gpt-oss-120b", "deepseek-v3.2")
# status, share, outcome, finish reason
STATUSES = (
    (200, 0.968, "ok", "stop"),
    (400, 0.006, "client_error", "error"),
    (429, 0.014, "rate_limited", "error"),
    (499, 0.006, "client_abort", "error"),
    (500, 0.004, "upstream_error", "error"),
    (503, 0.002, "overload", "error"),
)
AGENTS = (  # from terse to a browser's, as gateways see them
    "Go-http-client/2.0 (linux)",
    "python-httpx/0.28.1 linux/x86_64",
    "OpenAI/Python 1.99.9 CPython/3.11.7 linux",
    "OpenAI/JS 5.12.2 Node/22.11.0 linux x64",
    "langchain-openai/0.3.27 CPython/3.12.4 linux",
    "litellm/1.75.5 aiohttp/3.12.15 CPython/3.11.7",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0",
)

# one line each; a value more or less here changes the bytes of a line, which stay within 5 % of each other
PEER = (
    '{"time":"%sZ","level":"info","msg":"request completed","request_id":"req_%s","trace_id":"%s","tenant":"%s",'
    '"route":"%s","method":"POST","model":"%s","stream":true,"status":%d,"client":{"ip":"%s","user_agent":"%s"},'
    '"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}},'
    '"ttft_ms":%.3f,"latency_ms":%.3f,"stages":{"gateway":%.3f,"retrieval":%.3f,"tool":%.3f,"queue":%.3f,'
    '"prefill":%.3f,"decode":%.3f},"upstream":{"host":"%s","attempts":1},"finish_reason":"%s","bytes_out":%d}\n'
)
CAPWATCH = (
    '{"finished_at":"%sZ","level":"info","msg":"request completed","request_id":"req_%s","trace_id":"%s","tenant":"%s",'
    '"route":"%s","method":"POST","model":"%s","stream":true,"status":%d,"outcome":"%s",'
    '"client":{"ip":"%s","user_agent":"%s"},"prompt_tokens":%d,"output_tokens":%d,"cached_tokens":%d,'
    '"usage":"provider","ttft_s":%.6f,"duration_s":%.6f,"gateway_s":%.6f,"retrieval_s":%.6f,"tool_s":%.6f,'
    '"queue_s":%.6f,"prefill_s":%.6f,"decode_s":%.6f,"upstream":{"host":"%s","attempts":1},"finish_reason":"%s",'
    '"bytes_out":%d}\n'
)


@dataclass(frozen=True)
class Draws:
    """The exact values of some lines, one array entry a line; codes index TENANTS, ROUTES, STATUSES; times in µs."""

    at: Ints  # since START
    tenant: Ints
    route: Ints
    status: Ints
    prompt: Ints
    cached: Ints
    output: Ints
    gateway: Ints
    retrieval: Ints
    tool: Ints
    queue: Ints
    prefill: Ints
    decode: Ints

    def __len__(self) -> int:
        return len(self.at)

    @property
    def model(self) -> Ints:
        """Index into MODELS."""
        return (self.tenant + self.route) % len(MODELS)

    @property
    def ttft(self) -> Ints:
        """Time to first token in µs; the tools of an agent run beside the answer, so they are not in it."""
        return self.gateway + self.retrieval + self.queue + self.prefill

    @property
    def latency(self) -> Ints:
        """Residence in µs: all phases."""
        return self.ttft + self.tool + self.decode


@dataclass(frozen=True)
class Corpus:
    """The three files of a corpus."""

    capwatch: Path
    peer: Path
    truth: Path


def corpus(folder: Path, lines: int, seed: int = SEED) -> Corpus:
    """The corpus of `lines` lines in `folder`, written there unless it is there already."""
    names = Corpus(*(folder / f"corpus-{seed}-{lines}.{name}" for name in ("capwatch.jsonl", "peer.jsonl", "npz")))
    if names.truth.exists():  # written last, so the others are whole
        return names
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    with ExitStack() as stack:
        files = [stack.enter_context(path.open("w", encoding="ascii")) for path in (names.capwatch, names.peer)]
        rng = np.random.default_rng(seed)
        for draws in draw(lines, rng):
            parts.append(draws)
            for file, text in zip(files, written(draws, np.random.default_rng((seed, len(parts)))), strict=True):
                file.write(text)
    whole: dict[str, Any] = {f.name: np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(Draws)}
    np.savez(names.truth, **whole)
    return names


def truth(path: Path) -> Draws:
    """The values of a corpus, read back from its truth file."""
    with np.load(path) as stored:
        return Draws(**{name: stored[name] for name in stored.files})


def draw(lines: int, rng: np.random.Generator) -> Iterator[Draws]:
    """The values of `lines` lines, CHUNK at a time."""
    now = 0.0
    for first in range(0, lines, CHUNK):
        n = min(CHUNK, lines - first)
        at = now + np.cumsum(rng.exponential(1 / RATE, n))
        now = float(at[-1])
        yield _draw_chunk(at, rng)


def _draw_chunk(at: npt.NDArray[np.float64], rng: np.random.Generator) -> Draws:
    n = len(at)
    tenant = _weighted(rng, np.arange(1.0, len(TENANTS) + 1) ** -1.1, n)
    route = _weighted(rng, np.arange(1.0, len(ROUTES) + 1) ** -1, n)
    status = _weighted(rng, np.array([share for _, share, _, _ in STATUSES]), n)
    medians = np.array([lengths for _, *lengths in ROUTES], dtype=float)
    prompt = np.maximum(np.rint(medians[route, 0] * rng.lognormal(0, 0.9, n)), 1)
    output = np.maximum(np.rint(medians[route, 1] * rng.lognormal(0, 0.8, n)), 1) * (status == 0)
    share = np.where(rng.random(n) < 0.35, rng.uniform(0, 0.9, n), 0) * (status == 0)
    cached = np.floor(prompt * share / 16) * 16  # engines cache whole blocks of 16 tokens
    retrieves = (route >= 5) & (route <= 8)  # routes 6 to 9, counted from 1
    calls_tools = (route >= 7) & (route <= 8)
    return Draws(
        at=_micro(at),
        tenant=tenant,
        route=route,
        status=status,
        prompt=prompt.astype(np.int64),
        cached=cached.astype(np.int64),
        output=output.astype(np.int64),
        gateway=_micro(rng.exponential(0.004, n)),
        retrieval=_micro(retrieves * rng.lognormal(np.log(0.09), 0.6, n)),
        tool=_micro(calls_tools * rng.lognormal(np.log(0.7), 0.9, n)),
        queue=_micro(rng.exponential(0.05, n)),
        prefill=_micro((prompt - cached) / 9000 + 0.012),
        decode=_micro(output * np.maximum(rng.normal(0.022, 0.003, n), 0.01)),
    )


def _weighted(rng: np.random.Generator, weights: npt.NDArray[np.float64], n: int) -> Ints:
    return np.searchsorted(np.cumsum(weights / weights.sum())[:-1], rng.random(n), side="right").astype(np.int64)


def _micro(seconds: npt.NDArray[np.float64]) -> Ints:
    return np.rint(seconds * 1e6).astype(np.int64)


def written(draws: Draws, rng: np.random.Generator) -> tuple[str, str]:
    """The lines of `draws` in capwatch's layout and in the peers'; `rng` draws the ballast that nobody measures."""
    n = len(draws)
    ids = rng.bytes(8 * n).hex()
    traces = rng.bytes(16 * n).hex()
    codes = draws.status.tolist()
    head = [
        np.datetime_as_string(START + draws.at.astype("timedelta64[us]")).tolist(),
        [ids[i : i + 16] for i in range(0, 16 * n, 16)],
        [traces[i : i + 32] for i in range(0, 32 * n, 32)],
        [TENANTS[k] for k in draws.tenant.tolist()],
        [ROUTES[k][0] for k in draws.route.tolist()],
        [MODELS[k] for k in draws.model.tolist()],
        [STATUSES[k][0] for k in codes],
    ]
    client = [
        [f"10.{a}.{b}.{c}" for a, b, c in rng.integers(1, 255, (n, 3)).tolist()],
        [AGENTS[k] for k in rng.integers(0, len(AGENTS), n).tolist()],
    ]
    tail = [
        [f"10.0.7.{k}:8000" for k in rng.integers(10, 34, n).tolist()],
        [STATUSES[k][3] for k in codes],
        (draws.output * 5 + 300).tolist(),  # about five bytes a token
    ]
    prompt, output, cached = (column.tolist() for column in (draws.prompt, draws.output, draws.cached))
    total = (draws.prompt + draws.output).tolist()
    times = [draws.ttft, draws.latency, *(getattr(draws, phase) for phase in PHASES)]
    seconds, millis = ([(column / unit).tolist() for column in times] for unit in (1e6, 1e3))
    outcomes = [STATUSES[k][2] for k in codes]
    ours = zip(*head, outcomes, *client, prompt, output, cached, *seconds, *tail, strict=True)
    theirs = zip(*head, *client, prompt, output, total, cached, *millis, *tail, strict=True)
    return "".join(map(CAPWATCH.__mod__, ours)), "".join(map(PEER.__mod__, theirs))


def main() -> None:
    """Writes a corpus: `python -m tests.bench.corpus FOLDER --lines 1000000`."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.corpus", description="Write a corpus and its truth.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=SEED)
    arguments = parser.parse_args()
    for path in vars(corpus(arguments.folder, arguments.lines, arguments.seed)).values():
        print(path)


if __name__ == "__main__":
    main()
