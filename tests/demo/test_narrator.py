"""What one is told: from pages of metrics to lines."""

from __future__ import annotations

import pytest

from capwatch.demo.narrator import Narrator
from capwatch.demo.workload import KINDS, NEWCOMER, Workload, after, before

CHANGE_AT = 1_767_225_600.0
LIVED = 4e6
"""Requests in the two weeks before."""


def page(at: float, *parts: tuple[Workload, float]) -> str:
    """A page of the daemon after so many requests of each workload, exactly as its means say."""
    requests = [sum(work.mix[k] * n for work, n in parts) for k in range(len(KINDS))]
    prompts = [sum(work.mix[k] * n * work.prompts * kind.prompt for work, n in parts) for k, kind in enumerate(KINDS)]
    outputs = [n * kind.output for n, kind in zip(requests, KINDS, strict=True)]
    costs = [prompt / 4000 + output / 160 for prompt, output in zip(prompts, outputs, strict=True)]
    lines = [
        f'capwatch_source_last_event_timestamp_seconds{{source="gateway"}} {at}',
        f'capwatch_inflight_littles_law{{pool="chat-70b",phase="decode"}} 32.0',
        f'capwatch_route_ttft_seconds_sum{{route="{KINDS[0].route}",pool="chat-70b"}} {1.3 * requests[0]}',
        f'capwatch_route_ttft_seconds_count{{route="{KINDS[0].route}",pool="chat-70b"}} {requests[0]}',
        f'capwatch_tokens_total{{tenant="a",route="b",model="c",kind="prompt_computed"}} {sum(prompts)}',
        f'capwatch_tokens_total{{tenant="a",route="b",model="c",kind="output"}} {sum(outputs)}',
    ]
    for kind, n, cost in zip(KINDS, requests, costs, strict=True):
        lines += [
            f'capwatch_class_requests_total{{pool="chat-70b",class="{kind.name}"}} {n}',
            f'capwatch_class_cost_replica_seconds_total{{pool="chat-70b",class="{kind.name}"}} {cost}',
        ]
        theirs = sum(n * share(work) * work.mix[KINDS.index(kind)] for work, n in parts) * 0
        lines += []
        del theirs
    return "\n".join(lines)
