"""Each known mistake is found where it is and nowhere else, by its numbers, on a real Prometheus."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from capwatch import __version__
from tests.end_to_end.command import capwatch

from .world import own, world

pytestmark = pytest.mark.skipif(
    not (shutil.which("promtool") and shutil.which("prometheus")), reason="prometheus is not installed"
)

HEALTHY = """
up{job="capwatch",instance="a"} 1
capwatch_build_info{job="capwatch",instance="a",version="VERSION"} 1
capwatch_arrivals_total{pool="fine"} 30000 +28800
capwatch_departures_total{pool="fine"} 30000 +28800
capwatch_replicas{pool="fine"} 12
capwatch_utilisation_ratio{pool="fine"} 0.66
capwatch_replicas_needed{pool="fine",promise="base"} 12
capwatch_headroom_replicas{pool="fine",failure="none"} 0
capwatch_cost_per_request_replica_seconds{pool="fine",window="current"} 0.99
capwatch_usable_rps{pool="fine",routing="pooled"} 10
capwatch_retry_amplification_ratio{pool="fine"} 1.02
capwatch_calibration_age_seconds{pool="fine"} 864000
capwatch_calibration_error_ratio{pool="fine"} 0.05
capwatch_tenant_share_ratio{pool="fine",rank="1"} 0.3
capwatch_tenant_share_ratio{pool="fine",rank="2"} 0.2
capwatch_route_duration_seconds_count{pool="fine",route="/v1/chat"} 30000 +28800
capwatch_uncapped_requests_total{route="/v1/chat"} 100 +10
capwatch_cost_replica_seconds_total{pool="fine",route="/v1/chat",tenant="a",phase="decode"} 30000 +28000
capwatch_goodput_requests_total{tenant="a",route="/v1/chat"} 30000 +28000
capwatch_gpu_busy_ratio{gpu="0"} 0.97
kube_horizontalpodautoscaler_spec_target_metric{namespace="llm",horizontalpodautoscaler="good",metric_name="capwatch_inflight"} 3.5
"""  # noqa: E501 - a page
MISTAKES = {
    "scaling-on-gpu-busy": ["llm/bad", "fleet:gpu:avg", "DCGM_FI_DEV_GPU_UTIL", "80", "97 %", "66 %"],
    "alert-on-gpu-busy": ["GPUHot", "DCGM_FI_DEV_GPU_UTIL"],
    "average-of-percentiles": ["fleet:ttft:avg", 'quantile="0.95"'],
    "no-cap-on-output": ["/v1/draft", "30 %", "4,055 tokens"],
    "batch-beside-interactive": ["pool mixed", "25 %", "/v1/embed-all"],
    "headroom-negative": ["pool short", "12 there, 15 needed"],
    "target-without-headroom": ["pool tight", "at least 93 %", "1.08 times"],
    "retries-without-budget": ["pool again", "1.34 attempts"],
    "calibration-stale": ["pool old", "110 days", "31 %", "another engine"],
    "tenant-without-budget": ["pool one", "62 %"],
    "renamed": ["vllm:gpu_cache_usage_perc is now vllm:kv_cache_usage_perc", "CacheFull"],
    "versions": ["1 of version 0.0.9"],
    "target-down": ["capwatch at c"],
}
"""Words and numbers that each finding must have; what shows the mistake is below, each in a place of its own."""
SHOWN = """
kube_horizontalpodautoscaler_spec_target_metric{namespace="llm",horizontalpodautoscaler="bad",metric_name="fleet:gpu:avg"} 80
capwatch_uncapped_requests_total{route="/v1/draft"} 500 +300
capwatch_route_duration_seconds_count{pool="fine",route="/v1/draft"} 2000 +1000
capwatch_route_output_tokens_bucket{pool="fine",route="/v1/draft",le="4096"} 100 +100
capwatch_route_output_tokens_bucket{pool="fine",route="/v1/draft",le="+Inf"} 100 +100
capwatch_cost_replica_seconds_total{pool="mixed",route="/v1/chat",tenant="a",phase="decode"} 9000 +6000
capwatch_cost_replica_seconds_total{pool="mixed",route="/v1/embed-all",tenant="a",phase="decode"} 9000 +2000
capwatch_goodput_unclassified_total{tenant="a",route="/v1/embed-all",reason="no_slo"} 100 +90
capwatch_headroom_replicas{pool="short",failure="none"} -3
capwatch_replicas{pool="short"} 12
capwatch_replicas_needed{pool="short",promise="base"} 15
capwatch_replicas{pool="tight"} 20
capwatch_replicas_needed{pool="tight",promise="base"} 20
capwatch_utilisation_ratio{pool="tight"} 0.93
capwatch_retry_amplification_ratio{pool="again"} 1.34
capwatch_departures_total{pool="again"} 9000 +7200
capwatch_calibration_age_seconds{pool="old"} 9504000
capwatch_calibration_error_ratio{pool="old"} -0.31
capwatch_calibration_stale{pool="old",reason="engine"} 1
capwatch_tenant_share_ratio{pool="one",rank="1"} 0.62
capwatch_tenant_share_ratio{pool="one",rank="2"} 0.2
vllm:kv_cache_usage_perc{engine="0"} 0.5
capwatch_build_info{job="capwatch",instance="b",version="0.0.9"} 1
up{job="capwatch",instance="b"} 1
up{job="capwatch",instance="c"} 0
capwatch_build_info{job="capwatch",instance="c",version="VERSION"} 1
"""  # noqa: E501 - a page
RULES = """
groups:
  - name: theirs
    rules:
      - {record: "fleet:gpu:avg", expr: avg(DCGM_FI_DEV_GPU_UTIL)}
      - {alert: GPUHot, expr: 'avg(DCGM_FI_DEV_GPU_UTIL) > 90'}
      - {record: "fleet:ttft:avg", expr: 'avg(ttft_seconds{quantile="0.95"})'}
      - {alert: CacheFull, expr: 'vllm:gpu_cache_usage_perc > 0.95'}
"""
"""The recorded metric that an autoscaler follows is not by its name what it is."""


def examined(url: str) -> dict[str, Any]:
    """What the doctor says for machines."""
    result = capwatch("doctor", "--prometheus", url, "--json", cwd=Path("/"))
    assert result.stderr == b""
    found: dict[str, Any] = json.loads(result.stdout)
    severe = any(one["severity"] != "note" for one in found["findings"])
    assert result.returncode == int(severe)
    return found


def versioned(text: str) -> str:
    """With the version of this program."""
    return text.replace("VERSION", __version__)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict[str, Any]]]:
    """The findings without a mistake, but for the rules, which are not loaded here."""
    with world(tmp_path_factory.mktemp("healthy"), own(versioned(HEALTHY))) as server:
        yield examined(server.url)["findings"]


@pytest.fixture(scope="module")
def mistaken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict[str, Any]]]:
    """The findings with all mistakes at once, each in a place of its own."""
    with world(tmp_path_factory.mktemp("mistaken"), own(versioned(HEALTHY + SHOWN)), RULES) as server:
        yield examined(server.url)["findings"]


def test_a_healthy_fleet_shows_none(healthy: list[dict[str, Any]]) -> None:
    """Neither a warning nor an error but that the rules are not there."""
    assert [one["check"] for one in healthy if one["severity"] != "note"] == ["rules-missing"]


@pytest.mark.parametrize("check", MISTAKES)
def test_a_mistake_is_found_once_with_its_numbers(check: str, mistaken: list[dict[str, Any]]) -> None:
    """Where it is, what is seen, why it matters and what to do."""
    (found,) = [one for one in mistaken if one["check"] == check]
    told = json.dumps(found, ensure_ascii=False).replace('\\"', '"')
    assert [word for word in MISTAKES[check] if word not in told] == []
    assert all((found["why"], found["fix"], found["seen"]))


def test_nothing_else_is_found(mistaken: list[dict[str, Any]]) -> None:
    """No mistake is seen again under another name; that the rules are not there is true as well."""
    assert {one["check"] for one in mistaken} - {"absent", "rules-missing"} == set(MISTAKES)
