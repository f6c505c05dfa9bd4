"""From pages of metrics to what happened between two of them."""

from __future__ import annotations

import math

from capwatch.demo.readings import Reading, Stretch, read

BEGIN = 1_767_225_600.0
PAGE = """# HELP capwatch_class_requests_total Requests.
# TYPE capwatch_class_requests_total counter
capwatch_class_requests_total{pool="chat-70b",class="policy"} 70.0
capwatch_class_requests_total{pool="chat-70b",class="long"} 10.0
capwatch_class_cost_replica_seconds_total{pool="chat-70b",class="policy"} 60.0
capwatch_class_cost_replica_seconds_total{pool="chat-70b",class="long"} 40.0
capwatch_cost_replica_seconds_total{tenant="claims",route="/v1/summaries",pool="chat-70b",phase="prefill"} 45.0
capwatch_cost_replica_seconds_total{tenant="claims",route="/v1/summaries",pool="chat-70b",phase="decode"} 25.0
capwatch_cost_replica_seconds_total{tenant="acme",route="/v1/summaries",pool="chat-70b",phase="decode"} 30.0
capwatch_tokens_total{tenant="acme",route="/v1/summaries",model="chat-70b",kind="output"} 4000.0
capwatch_tokens_total{tenant="claims",route="/v1/summaries",model="chat-70b",kind="output"} 4000.0
capwatch_route_ttft_seconds_sum{route="/v1/chat/policy",pool="chat-70b"} 91.0
capwatch_route_ttft_seconds_count{route="/v1/chat/policy",pool="chat-70b"} 70.0
capwatch_route_ttft_seconds_sum{route="/v1/summaries",pool="chat-70b"} 1000.0
capwatch_route_ttft_seconds_count{route="/v1/summaries",pool="chat-70b"} 10.0
capwatch_inflight_littles_law{pool="chat-70b",phase="prefill"} 18.0
capwatch_inflight_littles_law{pool="chat-70b",phase="decode"} 14.0
capwatch_source_last_event_timestamp_seconds{source="gateway"} 1767225610.0
capwatch_source_last_event_timestamp_seconds{source="engine-logs"} 1767225607.0
"""


def test_a_page_is_read() -> None:
    """The gateway's newest event; sums over classes, phases and tenants; times of the first class alone."""
    reading = read(PAGE)
    sums = [reading.sums[name] for name in ("class_requests_total", "inflight_littles_law", "route_ttft_seconds_sum")]
    assert (reading.at, sums) == (BEGIN + 10, [80.0, 32.0, 91.0])
    assert (reading.requests["long"], reading.tokens["output"]) == (10.0, 8000.0)
    assert reading.costs == {
        ("class", "policy"): 60.0,
        ("class", "long"): 40.0,
        ("tenant", "claims"): 70.0,
        ("tenant", "acme"): 30.0,
        ("route", "/v1/summaries"): 100.0,
    }


def test_between_two_readings_are_differences() -> None:
    """80 requests in 10 s that cost 100 replica-seconds: rate, cost, utilisation, shares, tokens, time."""
    stretch = Stretch(Reading(at=BEGIN), read(PAGE))
    assert (stretch.rate, stretch.cost, stretch.utilisation) == (8.0, 1.25, 10 / 12)
    assert (stretch.share_of_requests("long"), stretch.share_of_cost(("tenant", "acme"))) == (0.125, 0.3)
    assert (stretch.tokens("output"), stretch.first_token) == (100.0, 1.3)


def test_nothing_told_is_no_time() -> None:
    """Without times to the first token their mean is unknown, not 0."""
    stretch = Stretch(Reading(at=BEGIN), read('capwatch_class_requests_total{pool="a",class="b"} 5.0'))
    assert math.isnan(stretch.first_token)
