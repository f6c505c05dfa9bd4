"""A KEDA ScaledObject with a prometheus trigger on the shipped recording rules.

Target, bounds and windows are those of the pool's promise and settings; while the server is silent the replicas that
are there stay.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from capwatch.render import scaling, sourced
from capwatch.render.observed import Observed
from capwatch.render.page import MARK, number, quoted, short, text, unknown

EXAMPLE = "capwatch render keda --config.file capwatch.yml access.jsonl"


def describe(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    sourced.describe(parser)
    scaling.describe(parser)
    parser.add_argument("--server", metavar="URL", help="the server that KEDA asks (that of --prometheus)")


def render(arguments: argparse.Namespace, now: float) -> str:
    """The manifest."""
    seen = sourced.sourced(arguments, now)
    return "\n".join(_lines(seen, arguments, scaling.scaling(seen, arguments)))


def _lines(seen: Observed, arguments: argparse.Namespace, found: scaling.Scaling) -> Iterator[str]:
    yield from scaling.head(seen, "ScaledObject")
    yield "apiVersion: keda.sh/v1alpha1"
    yield "kind: ScaledObject"
    yield from scaling.workload(seen, arguments)
    yield from scaling.replicas(found, "minReplicaCount", "maxReplicaCount")
    yield number("pollingInterval", 15, "as often as rules are evaluated", 2)
    there = scaling.whole_replicas(seen)
    if there is None:
        yield unknown("fallback", "replicas are not told; without it a silent server leaves them as they are", 2)
    else:
        yield "  fallback:"
        yield number("failureThreshold", 4, "a minute without an answer", 4)
        yield number(
            "replicas", there, f"as many as there were ({seen.origin('replicas') if seen.settings else seen.source})", 4
        )
    yield "  advanced:"
    yield "    horizontalPodAutoscalerConfig:"
    yield from scaling.behaviour(seen, 6)
    yield "  triggers:"
    yield "    - type: prometheus"
    yield "      metricType: AverageValue"
    yield "      metadata:"
    server = arguments.server or arguments.prometheus
    address = f"        serverAddress: {text(server or 'http://prometheus:9090')}"
    yield address if server else address.ljust(43) + f" # {MARK}: give --server"
    yield f"        query: {quoted(found.query)}"
    yield number("threshold", quoted(short(found.target)), found.target_why, 8)
    yield number("ignoreNullValues", quoted("false"), "no series is a failure, not no work", 8)
