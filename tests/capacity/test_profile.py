"""The workload profile: the truth of generated traffic comes out, and what is not known is null with a reason."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from capwatch.capacity import work
from capwatch.capacity.profile import Requests, profile
from capwatch.record import Texts

SINCE = 1_790_000_000.0 - 1_790_000_000.0 % 86_400
KEYS = [
    *("window", "arrivals", "prompt_tokens", "output_tokens", "classes", "streaming", "prefix_cache_hit_rate"),
    *("tenants", "models", "routes", "cost", "notes"),
]


def traffic(seconds: int = 7200, rate: float = 8.0, seed: int = 7, **changed: Any) -> Requests:
    """Text A's traffic: Poisson, lognormal lengths 1500/1100 and 100/70, hit rate 0.35, a tenant with 0.42."""
    generator = np.random.default_rng(seed)
    n = generator.poisson(rate * seconds)
    prompt = np.rint(1100 * np.exp(0.7876 * generator.standard_normal(n)))
    output = np.maximum(np.rint(70 * np.exp(0.8446 * generator.standard_normal(n))), 1)
    cached = prompt * 0.35
    tenant = np.where(generator.random(n) < 0.42, 0, generator.integers(1, 30, n))
    columns: dict[str, Any] = {
        "started": np.sort(SINCE + generator.random(n) * seconds),
        "prompt": prompt,
        "cached": cached,
        "output": output,
        "prefill": work.prefill(prompt, cached, 4000.0),
        "decode": work.decode(output, 160.0),
        "stream": np.where(generator.random(n) < 0.9, 1, 0),
        "labels": {
            "tenant": Texts(tenant, [f"t{i}" for i in range(30)]),
            "class": Texts(generator.choice(3, n, p=[0.85, 0.14, 0.01]), ["policy", "order", "long"]),
            "model": Texts(np.zeros(n, np.int64), ["chat-70b"]),
            "route": Texts(np.zeros(n, np.int64), [None]),
        },
    }
    return Requests(**{**columns, **changed})


def document(requests: Requests, seconds: int = 7200, calibration: str | None = "bench 2026-11") -> dict[str, Any]:
    """The profile, as JSON takes and gives it."""
    found: dict[str, Any] = json.loads(
        json.dumps(profile(requests, SINCE, SINCE + seconds, calibration), allow_nan=False)
    )
    return found


def test_the_truth_of_the_traffic_comes_out() -> None:
    """Every figure of the golden shape, within what 57,600 requests allow."""
    found = document(traffic())
    assert list(found) == KEYS
    assert found["arrivals"]["mean_rps"] == pytest.approx(8, rel=0.02)
    assert found["arrivals"]["cv2"] == pytest.approx(1, rel=0.03)
    assert found["arrivals"]["pattern"] == "steady"
    for name, mean, median, sigma in (("prompt", 1500, 1100, 0.788), ("output", 100, 70, 0.845)):
        lengths = found[f"{name}_tokens"]
        assert (lengths["mean"], lengths["p50"]) == (pytest.approx(mean, rel=0.02), pytest.approx(median, rel=0.02))
        assert lengths["lognormal_sigma"] == pytest.approx(sigma, rel=0.03)
        assert abs(lengths["fit_error"]) < 0.05
    assert found["prompt_tokens"]["p99"] == pytest.approx(6873, rel=0.04)
    assert {name: one["share"] for name, one in found["classes"].items()} == pytest.approx(
        {"policy": 0.85, "order": 0.14, "long": 0.01}, abs=0.005
    )
    assert found["prefix_cache_hit_rate"] == pytest.approx(0.35)
    assert found["streaming"] == pytest.approx(0.9, abs=0.01)
    assert found["tenants"]["count"] == 30
    assert found["tenants"]["top1_share_of_cost"] == pytest.approx(0.42, abs=0.01)
    assert found["tenants"]["concentration"] == pytest.approx(0.42**2 + 29 * (0.58 / 29) ** 2, abs=0.01)
    assert found["cost"]["mean_replica_seconds"] == pytest.approx(0.86875, rel=0.02)
    assert found["routes"] == {"unknown": 1.0}
    assert set(found["notes"]) == {"route"}


def test_shares_add_up() -> None:
    """Of classes, models and routes; the parts of the cost; the classes' costs, weighted, are the mean."""
    found = document(traffic())
    classes = found["classes"].values()
    assert sum(one["share"] for one in classes) == pytest.approx(1)
    cost = found["cost"]
    assert cost["prefill_replica_seconds"] + cost["decode_replica_seconds"] == pytest.approx(
        cost["mean_replica_seconds"]
    )
    assert sum(one["share"] * one["mean_cost"] for one in classes) == pytest.approx(cost["mean_replica_seconds"])


@pytest.mark.parametrize(
    ("columns", "key", "note"),
    [
        (("prompt", "cached"), "prompt_tokens", "prompt_tokens"),
        (("output",), "output_tokens", "output_tokens"),
        (("cached",), "prefix_cache_hit_rate", "prefix_cache_hit_rate"),
        (("prefill", "decode"), "cost", "cost"),
    ],
)
def test_what_is_not_told_is_null_with_a_reason(columns: tuple[str, ...], key: str, note: str) -> None:
    """Never 0."""
    n = len(traffic().started)
    absent: dict[str, Any] = {name: np.full(n, np.nan) for name in columns}
    found = document(traffic(**absent))
    assert found[key] is None
    assert found["notes"][note]


def test_a_window_without_requests_has_reasons() -> None:
    """No figure is made up, and the document is JSON."""
    found = document(traffic(rate=0.0))
    assert (found["window"]["requests"], found["arrivals"]["mean_rps"], found["classes"]) == (0, 0, {})
    absent = ("prompt_tokens", "output_tokens", "streaming", "prefix_cache_hit_rate", "cost")
    assert all(found[key] is None and found["notes"][key] for key in absent)
    assert found["notes"]["arrivals.cv2"]


def test_whole_seconds_are_judged_by_counts() -> None:
    """Poisson arrivals in whole seconds still have Ca² 1, and the document says where that comes from."""
    requests = traffic()
    found = document(traffic(started=np.floor(requests.started)))
    assert found["arrivals"]["cv2"] == pytest.approx(1, rel=0.06)
    assert "whole seconds" in found["notes"]["arrivals.cv2"]


def test_bursts_and_days_are_told_apart() -> None:
    """Ten times the rate for 20 s of every 5 minutes is bursty; a smooth day with 3 to 1 is diurnal."""
    generator = np.random.default_rng(7)
    second = np.arange(86_400)
    smooth = 4 * (1 + 0.5 * np.sin(second / 86_400 * 2 * np.pi))
    bursts = np.where(second[:7200] % 300 < 20, 40.0, 4.0)
    for rate, expected in ((smooth, "diurnal"), (bursts, "bursty"), (np.full(86_400, 4.0), "steady")):
        counts = generator.poisson(rate)
        started = SINCE + np.repeat(np.arange(len(rate)), counts) + generator.random(counts.sum())
        n = len(started)
        columns = {name: np.ones(n) for name in ("prompt", "cached", "output", "prefill", "decode")}
        label = Texts(np.zeros(n, np.int64), ["one"])
        requests = Requests(
            started, stream=np.ones(n, np.int64), labels=dict.fromkeys(("tenant", "class", "model", "route"), label),
            **columns,
        )  # fmt: skip
        assert document(requests, len(rate))["arrivals"]["pattern"] == expected


def test_lengths_that_are_not_lognormal_are_said_to_be_none() -> None:
    """Two sorts of prompts, short and very long: the fit is off by more than a fifth, and says so."""
    n = len(traffic().started)
    prompt = np.where(np.arange(n) % 10 == 0, 20_000.0, 100.0)
    found = document(traffic(prompt=prompt))
    assert abs(found["prompt_tokens"]["fit_error"]) > 0.2
    assert "use the quantiles" in found["notes"]["prompt_tokens.fit_error"]


def test_regions_only_where_they_are_known() -> None:
    """The key is there with the label, and not without it."""
    requests = traffic()
    region = Texts(np.arange(len(requests.started)) % 2, ["eu", "us"])
    found = document(traffic(labels={**requests.labels, "region": region}))
    assert found["regions"] == pytest.approx({"eu": 0.5, "us": 0.5}, abs=0.001)
    assert "regions" not in document(requests)


def test_assumed_rates_are_said_to_be_assumed() -> None:
    """Cost without a calibration compares only within itself."""
    assert "assumed" in document(traffic(), calibration=None)["notes"]["cost.calibration"]
