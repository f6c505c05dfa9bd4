"""A step in the rate against the time until new replicas are ready: backlog, last wait, drain, and what to shed.

backlog = (to − capacity) × ready; the last in it waits backlog/capacity; it drains at capacity-after − to. With
--max-wait only capacity × max-wait may queue and the rest is shed; the other figures stay those of the queue without
that bound. A fluid queue: nobody gives up.
"""

from __future__ import annotations

import argparse

from capwatch.capacity.spike import spike
from capwatch.console.answer import Answer, number
from capwatch.console.options import DURATION_FROM_0, RATE_ABOVE_0, Option

EXAMPLE = "capwatch plan spike --from 8 --to 20 --capacity 12 --ready 170s --capacity-after 29 --max-wait 10s"
OPTIONS = (
    Option("--from", RATE_ABOVE_0, "RATE", "requests/s before the step"),
    Option("--to", RATE_ABOVE_0, "RATE", "requests/s after it"),
    Option("--capacity", RATE_ABOVE_0, "RATE", "requests/s that the replicas take until new ones are ready"),
    Option("--ready", DURATION_FROM_0, "TIME", "from the step until then: signal, node, image, weights, warm-up; s"),
    Option("--capacity-after", RATE_ABOVE_0, "RATE", "requests/s from then on"),
    Option("--max-wait", DURATION_FROM_0, "TIME", "longest wait to allow; the rest is shed; s", optional=True),
)


def plan(arguments: argparse.Namespace) -> Answer:
    """Backlog, wait, drain, shed."""
    to, capacity, ready, after = arguments.to, arguments.capacity, arguments.ready, arguments.capacity_after
    found = spike(to, capacity, ready, after, arguments.max_wait)
    result = {
        "backlog": found.backlog,
        "last_wait_s": found.last_wait,
        "drain_s": found.drain,
        "clear_at_s": found.clear_at,
    }
    before = "" if getattr(arguments, "from") <= capacity else ", which was too little even before"
    steps = [
        f"deficit = to - capacity = {number(found.deficit)}/s{before}",
        f"backlog = deficit * ready = {number(found.backlog)} requests",
        f"the last of them waits backlog/capacity = {number(found.last_wait)} s",
        f"it drains in backlog/(capacity-after - to) = {number(found.drain)} s, and is gone {number(found.clear_at)} s "
        "after the step"
        if found.drain is not None
        else "it never drains: capacity-after is not above to",
    ]
    if found.shed is not None:
        result["shed"] = found.shed
        steps.append(
            f"shed = backlog - capacity * max-wait = {number(found.backlog)} - "
            f"{number(capacity * arguments.max_wait)} = {number(found.shed)} requests"
        )
    return Answer(result, steps)
