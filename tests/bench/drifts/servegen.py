"""Two real weeks of a model service by client (ServeGen m-large): rates of 10 minutes, lengths of 6 hours.

The source gives marginals: prompts and answers of a client are drawn independently. Clusters stand for its measured
variation of gaps. Truth is the expected cost of a request in each 10 minutes.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import tarfile
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from capwatch.drift.rows import Rows

from .traffic import DECODE, EPOCH, PREFILL, TRACES, Floats

CLIENTS = 60
NAMED = 11
"""Clients that are tenants of their own; the others are one."""
WINDOW = 600
TOTAL_RATE = 8.0


@dataclass(frozen=True)
class Client:
    """One caller: float64[2016] by window, and lengths by six hours."""

    rate: Floats
    """Requests/s, in the source's unit."""
    cluster: Floats
    """Mean size of its clusters: squared coefficient of variation of the gaps, 1 to 20."""
    prompts: list[tuple[Floats, Floats]]
    """(tokens, cumulated chance)."""
    outputs: list[tuple[Floats, Floats]]


@cache
def clients() -> tuple[Client, ...]:
    """The largest clients that have lengths, the largest first."""
    with tarfile.open(TRACES / "servegen" / "m-large.tar.gz") as archive:
        files = {one.name.rpartition("/")[2]: one for one in archive.getmembers() if one.isfile()}
        found = []
        for name, member in files.items():
            lengths = files.get(name.replace("-trace.csv", "-dataset.json"))
            if not name.endswith("-trace.csv") or lengths is None:
                continue
            rows = list(csv.reader(io.StringIO(_text(archive, member))))
            rate = np.array([float(row[1]) for row in rows])
            cluster = np.clip(np.array([float(row[2] or 1) ** 2 for row in rows]), 1, 20)
            found.append((rate.sum(), name, rate, cluster, lengths))
        found.sort(key=lambda one: (-one[0], one[1]))
        kept = []
        for _, _, rate, cluster, lengths in found[:CLIENTS]:
            maps = json.loads(_text(archive, lengths))
            times = sorted(maps, key=float)
            kept.append(
                Client(
                    rate, cluster, *([_curve(maps[t][key]) for t in times] for key in ("input_tokens", "output_tokens"))
                )
            )
    return tuple(kept)


def _text(archive: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    file = archive.extractfile(member)
    assert file is not None
    return file.read().decode()


def _curve(text: str) -> tuple[Floats, Floats]:
    chances: dict[int, float] = ast.literal_eval(text)
    tokens = np.array(sorted(chances), np.float64)
    weights = np.array([chances[int(one)] for one in tokens])
    if not weights.sum():
        return np.ones(1), np.ones(1)
    return tokens, np.cumsum(weights) / weights.sum()


def scale() -> float:
    """What brings the source's rates to the total of the bench."""
    return float(TOTAL_RATE / sum(client.rate.mean() for client in clients()))


def truth() -> Floats:
    """Expected replica-seconds of a request in each window: float64[2016]."""
    spent, requests = np.zeros(2016), np.zeros(2016)
    for client in clients():
        n = len(client.rate)
        means = [
            np.array([float(tokens @ np.diff(curve, prepend=0.0)) for tokens, curve in kind])
            for kind in (client.prompts, client.outputs)
        ]
        cost = means[0] / PREFILL + means[1] / DECODE
        spent[:n] += client.rate * cost[_part(np.arange(n), len(cost))]
        requests[:n] += client.rate
    return np.asarray(spent / np.maximum(requests, 1e-12))


def _part(window: NDArray[np.int64], parts: int) -> NDArray[np.int64]:
    """Which six hours a window of ten minutes belongs to."""
    return np.minimum(window // 36, parts - 1)


def draw(
    first: int,
    last: int,
    seed: list[int],
    *,
    onset: float = np.inf,
    prompt: float = 1.0,
    output: float = 1.0,
    only: int = -1,
) -> Rows:
    """Requests of windows first ≤ w < last; from an onset (s since the epoch) on with longer prompts or answers.

    ``only``: of that client, −1 of all.
    """
    rng, factor = np.random.default_rng(seed), scale()
    parts: list[tuple[Floats, ...]] = []
    for number, client in enumerate(clients()):
        for window in range(first, min(last, len(client.rate))):
            expected = client.rate[window] * factor * WINDOW
            if not expected:
                continue
            size = client.cluster[window]
            members = 1 + rng.poisson(size - 1, rng.poisson(expected / size))
            n = int(members.sum())
            at = EPOCH + (window + np.repeat(rng.random(len(members)), members)) * WINDOW
            at += rng.exponential(1.0, n) * (size > 1)
            lengths = []
            for kind in (client.prompts, client.outputs):
                tokens, curve = kind[int(_part(np.array([window]), len(kind))[0])]
                lengths.append(tokens[np.searchsorted(curve, rng.random(n)).clip(max=len(tokens) - 1)])
            changed = (at >= onset) & (only in (-1, number))
            parts.append(
                (
                    at,
                    np.full(n, min(number, NAMED)),
                    np.maximum(1, np.round(lengths[0] * np.where(changed, prompt, 1.0))),
                    np.maximum(1, np.round(lengths[1] * np.where(changed, output, 1.0))),
                )
            )
    at, tenant, prompts, outputs = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(at, kind="stable")
    none, no = np.full(len(at), -1), np.zeros(len(at), np.bool_)
    nan = np.full(len(at), np.nan)
    tenant = tenant.astype(np.int64)
    return Rows(at, tenant, none, none, none, none, prompts, nan, outputs, no, nan).take(order)
