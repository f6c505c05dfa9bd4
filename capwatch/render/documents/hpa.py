"""A HorizontalPodAutoscaler (autoscaling/v2) on an external metric: the work that arrives, or requests in flight.

With prometheus-adapter's rule for the metric as a comment. Target, bounds and windows are those of the pool's promise
and settings.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from capwatch.render import scaling, sourced
from capwatch.render.observed import Observed
from capwatch.render.page import number, text

EXAMPLE = "capwatch render hpa --config.file capwatch.yml access.jsonl"
METRICS = {"work": "capwatch_pool_work", "inflight": "capwatch_pool_inflight"}


def describe(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    sourced.describe(parser)
    scaling.describe(parser)


def render(arguments: argparse.Namespace, now: float) -> str:
    """The manifest."""
    seen = sourced.sourced(arguments, now)
    return "\n".join(_lines(seen, arguments, scaling.scaling(seen, arguments)))


def _lines(seen: Observed, arguments: argparse.Namespace, found: scaling.Scaling) -> Iterator[str]:
    metric = METRICS[arguments.signal]
    yield from scaling.head(seen, "HorizontalPodAutoscaler")
    yield "apiVersion: autoscaling/v2"
    yield "kind: HorizontalPodAutoscaler"
    yield from scaling.workload(seen, arguments)
    yield from scaling.replicas(found, "minReplicas", "maxReplicas")
    yield "  metrics:"
    yield "    - type: External"
    yield "      external:"
    yield "        metric:"
    yield f"          name: {metric}"
    yield f"          selector: {{matchLabels: {{pool: {text(seen.pool)}}}}}"
    yield "        target:"
    yield "          type: AverageValue"
    yield number("averageValue", f"{round(found.target * 1000)}m", found.target_why, 10)
    yield from scaling.behaviour(seen, 2)
    yield "# The metric comes from prometheus-adapter; among the values of its chart:"
    yield "#   rules:"
    yield "#     external:"
    series = scaling.SERIES[arguments.signal]
    asked = f"{series}{{<<.LabelMatchers>>}}"
    asked = asked if arguments.signal == "work" else f"max by (phase) ({asked})"
    yield f"#       - seriesQuery: '{series}'"
    yield "#         resources: {namespaced: false}"
    yield f"#         name: {{as: {metric}}}"
    yield f"#         metricsQuery: 'sum({asked})'"
