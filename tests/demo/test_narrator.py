"""What one is told: from pages of metrics to lines."""

from __future__ import annotations

from capwatch.demo.narrator import Narrator, read

CHANGE_AT = 1_767_225_600.0


def page(at: float, requests: float, cost: float, newcomer: float = 0.0) -> str:
    """A page of the daemon, in which everything that is not told on is left out but one series."""
    return f"""# HELP capwatch_class_requests_total Requests.
# TYPE capwatch_class_requests_total counter
capwatch_class_requests_total{{pool="chat-70b",class="policy"}} {requests - 10}
capwatch_class_requests_total{{pool="chat-70b",class="long"}} 10.0
capwatch_class_cost_replica_seconds_total{{pool="chat-70b",class="policy"}} {cost}
capwatch_cost_replica_seconds_total{{tenant="claims",route="/v1/summaries",pool="chat-70b",phase="prefill"}} 5.0
capwatch_cost_replica_seconds_total{{tenant="acme",route="/v1/summaries",pool="chat-70b",phase="decode"}} {newcomer}
capwatch_class_duration_seconds{{pool="chat-70b",class="policy",quantile="0.5"}} 3.0
capwatch_class_duration_seconds{{pool="chat-70b",class="policy",quantile="0.95"}} 6.5
capwatch_inflight_littles_law{{pool="chat-70b",phase="prefill"}} 18.0
capwatch_inflight_littles_law{{pool="chat-70b",phase="decode"}} 14.0
capwatch_source_last_event_timestamp_seconds{{source="gateway"}} {at}
capwatch_source_last_event_timestamp_seconds{{source="engine-logs"}} {at - 3}
"""


def test_a_page_is_read() -> None:
    """Sums over classes and phases, the gateway's newest event, the newcomer's cost."""
    reading = read(page(CHANGE_AT, 1000, 900, 30))
    told = (reading.at, reading.requests, reading.cost, reading.newcomer, reading.in_flight, reading.duration)
    assert told == (CHANGE_AT, 1000.0, 900.0, 30.0, 32.0, 6.5)


def test_one_page_is_no_present() -> None:
    """A first page says nothing of how fast anything happens."""
    assert list(Narrator("quiet", CHANGE_AT).hear(page(CHANGE_AT - 100, 1000, 992))) == []


def test_a_present_is_a_line() -> None:
    """Two pages a minute apart: rate, cost, utilisation, what is in flight, the 95th percentile of the policies."""
    narrator = Narrator("quiet", CHANGE_AT)
    list(narrator.hear(page(CHANGE_AT - 100, 1000, 992)))
    (line,) = narrator.hear(page(CHANGE_AT - 40, 1480, 992 + 480 * 0.9))
    assert line[8:] == "   8.0 requests/s  cost/request 0.90  utilisation 60%  in flight 32  p95 of policy 6.5 s"


def told(scenario: str, newcomer: float) -> list[str]:
    """What is told without the lines of every moment, of 8 requests/s whose cost goes from 0.992 to 1.2485."""
    narrator = Narrator(scenario, CHANGE_AT)
    lines: list[str] = []
    requests, cost = 4e6, 4e6 * 0.992
    for second in range(-120, 300, 10):
        new = second >= 0
        requests += 80
        cost += 80 * (1.2485 if new else 0.992)
        news = page(CHANGE_AT + second, requests, cost, newcomer * max(second, 0))
        lines += [line[10:] for line in narrator.hear(news)]
    return [line for line in lines if "cost/request" not in line]


def test_the_change_and_its_effect_are_told_once() -> None:
    """When the change comes it is said what changes, and later what came of it, against the history."""
    change, effect = told("retrieval-depth", 0.0)
    assert change == "JUST NOW: retrieval fetches more passages: prompts 1,500 -> 2,700 tokens"
    assert effect == (
        "SEEN: cost per request 0.99 -> 1.25 replica-seconds (+26%) at 8.0 -> 8.0 requests/s; utilisation 66% -> 83%"
    )


def test_the_effect_needs_no_present_before_the_change() -> None:
    """Where the change comes so soon that there was only one page before, its effect is told against that history."""
    narrator = Narrator("quiet", CHANGE_AT)
    list(narrator.hear(page(CHANGE_AT - 5, 4e6, 4e6 * 0.992)))
    list(narrator.hear(page(CHANGE_AT + 40, 4e6 + 360, 4e6 * 0.992 + 450)))
    *_, effect = narrator.hear(page(CHANGE_AT + 200, 4e6 + 1640, 4e6 * 0.992 + 450 + 1280 * 1.2485))
    assert effect[10:].startswith("SEEN: cost per request 0.99 -> 1.25 replica-seconds (+26%) at 8.0 -> 8.0")


def test_the_newcomer_is_named() -> None:
    """The new tenant's part of the cost is told with the effect."""
    _, effect = told("new-tenant", 4.0)
    assert effect.endswith("; acme makes 40% of the cost")
