"""Seeded logs as files, each with the configuration under which capwatch must report their truth."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from tests.truth.options import Options, Pool, Slo
from tests.truth.traffic import Traffic, configuration, traffic

from .command import Page, printed

PAIR = ("tenant", "route")
MEASURES = ("prompt_tokens", "output_tokens", "ttft_seconds", "tpot_seconds", "duration_seconds")
EXACT = 1e-9  # relative: the same sum in another order

DAY = 86400.0
# Records of the future are those ahead of the wall clock, so a log that has some must end near it. The seed alone
# decides everything else, since the start is always a midnight.
YESTERDAY = DAY * (time.time() // DAY - 1)


@dataclass(frozen=True)
class Setup:
    """Traffic, and the limits under which it is counted."""

    options: Options
    limits: Mapping[str, int] = field(default_factory=dict)
    capped: frozenset[str] = frozenset()
    """Labels of which there are more names than the limits grant."""

    def write(self, folder: Path) -> Traffic:
        """Write `access.jsonl` and `capwatch.yml`."""
        drawn = traffic(replace(self.options, start=YESTERDAY))
        drawn.write(folder / "access.jsonl")
        document = yaml.safe_load(configuration(self.options, folder / "access.jsonl", folder / "state"))
        document["limits"] |= self.limits
        (folder / "capwatch.yml").write_text(yaml.safe_dump(document, sort_keys=False))
        return drawn


@dataclass(frozen=True)
class Replayed:
    """What a log really tells, and what capwatch says of it."""

    setup: Setup
    truth: Traffic
    page: Page


def replayed(setup: Setup, folder: Path) -> Replayed:
    """Write the log, replay it, read the page."""
    truth = setup.write(folder)
    return Replayed(setup, truth, Page(printed("replay", "--config.file", "capwatch.yml", "access.jsonl", cwd=folder)))


BURSTY = Options(
    seed=20261,
    rate=14,
    duration_s=780,
    clustered=True,
    tenants=40,
    tenant_exponent=0.7,
    pools=(
        Pool("large", ("chat-70b",), 3000, 120, 12),
        Pool("embedding", ("embed-1",), 50_000, 10, 1),
        Pool("small", ("chat-8b",), 16_000, 900, 3),
    ),
    slos=(  # the other routes have none
        Slo(1.0, 0.03, 4.0, "/v1/messages"),
        Slo(2.5, 0.05, 30.0, "/v1/summaries"),
        Slo(0.3, 0.025, 6.0, "/v1/orders/status"),
        Slo(0.5, 0.035, None, "/rag/answer"),
    ),
)
SETUPS = {
    "roomy": Setup(Options(seed=7, tenants=60)),
    "bursty": Setup(BURSTY),
    "crowded": Setup(Options(seed=424242, tenants=300, tenant_exponent=0.9), {"tenants": 24}, frozenset({"tenant"})),
    "cramped": Setup(
        Options(seed=99, duration_s=420, rate=12, tenants=80),
        {"tenants": 20, "routes": 4, "models": 2, "tenant_routes": 30},
        frozenset({"tenant", "route", "model"}),
    ),
}
