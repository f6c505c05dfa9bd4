"""What one is told: from pages of metrics to lines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from capwatch.demo.narrator import Narrator
from capwatch.demo.workload import DECODE_RATE, KINDS, PREFILL_RATE, RATE, Workload, after, before

CHANGE_AT = 1_767_225_600.0
LIVED = 4e6
"""Requests in the two weeks before."""
SERIES = 'capwatch_{}{{{}pool="chat-70b"}} {}'

Part = tuple[Workload, float]
"""So many requests of a workload."""


def page(at: float, *parts: Part) -> str:
    """The daemon's page after these requests, each exactly as the means of its workload say."""
    lines = [
        f'capwatch_source_last_event_timestamp_seconds{{source="gateway"}} {at}',
        SERIES.format("inflight_littles_law", 'phase="decode",', 32.0),
    ]
    for work, n in parts:
        for k, kind in enumerate(KINDS):
            theirs, prompt = n * work.mix[k], work.prompts * kind.prompt
            cost = prompt / PREFILL_RATE + kind.output / DECODE_RATE
            lines += [
                SERIES.format("class_requests_total", f'class="{kind.name}",', theirs),
                SERIES.format("class_cost_replica_seconds_total", f'class="{kind.name}",', theirs * cost),
                SERIES.format("tokens_total", 'kind="prompt_computed",', theirs * prompt),
                SERIES.format("tokens_total", 'kind="output",', theirs * kind.output),
                SERIES.format("route_ttft_seconds_sum", f'route="{kind.route}",', theirs * (k + 1.3)),
                SERIES.format("route_ttft_seconds_count", f'route="{kind.route}",', theirs),
                *(
                    SERIES.format(
                        "cost_replica_seconds_total",
                        f'tenant="{tenant.name}",route="{kind.route}",',
                        n * tenant.share * tenant.mix[k] * cost,
                    )
                    for tenant in work.tenants
                ),
            ]
    return "\n".join(lines)


def pages(scenario: str, *, begin: int, end: int, step: int = 10) -> Iterator[str]:
    """Pages so many seconds from the change, of 8 requests/s."""
    for second in range(begin, end, step):
        usual = LIVED + RATE * min(second, 0)
        yield page(CHANGE_AT + second, (before(scenario), usual), (after(scenario), RATE * max(second, 0)))


def told(scenario: str, begin: int = -120, end: int = 300, step: int = 10) -> list[str]:
    """What is told without the lines of every moment, and without the times."""
    narrator = Narrator(scenario, CHANGE_AT)
    lines = [line for one in pages(scenario, begin=begin, end=end, step=step) for line in narrator.hear(one)]
    return [line[10:] for line in lines if "requests/s " not in line]


def compared(scenario: str, begin: int = -120) -> str:
    """The first comparison, without its times."""
    _, comparison, *_ = told(scenario, begin)
    return comparison.partition(": ")[2]


def test_one_page_is_no_present() -> None:
    """A first page says nothing of how fast anything happens."""
    (only,) = pages("quiet", begin=-100, end=-99)
    assert list(Narrator("quiet", CHANGE_AT).hear(only)) == []


def test_a_present_is_a_line_with_units() -> None:
    """Two pages a minute apart: rate, work, utilisation, what is in flight, the mean time to a first token."""
    narrator = Narrator("quiet", CHANGE_AT)
    _, (line,) = (list(narrator.hear(one)) for one in pages("quiet", begin=-100, end=-39, step=60))
    assert line[10:] == (
        " 8.0 requests/s   0.99 replica-seconds per request   utilisation 66 %   32 in flight (48 slots)   "
        "first token of policy 1.30 s"
    )


def test_lines_on_how_things_are_keep_their_distance() -> None:
    """However often the page is looked at."""
    narrator = Narrator("quiet", CHANGE_AT, every=60.0)
    lines = [line for one in pages("quiet", begin=-300, end=-50) for line in narrator.hear(one)]
    assert len(lines) == 4


def test_the_change_is_told_when_it_comes() -> None:
    """In the scenario's words, once."""
    lines = told("retrieval-depth")
    assert lines[0] == "JUST NOW: retrieval fetches more passages: prompts 1,500 -> 2,700 tokens"
    assert [line.split()[0] for line in lines] == ["JUST", "SINCE", "SINCE"]


def test_a_new_tenant_is_named_with_its_route_and_class() -> None:
    """What an on-call person reads: what stayed, what grew and by how much, who brought it, and what it takes."""
    assert compared("new-tenant") == (
        "same rate 8.0/s, work per request 0.99 -> 1.25 replica-seconds (+26 %): "
        "tenant acme, route /v1/summaries, class long 1 % -> 8 % of requests. "
        "Utilisation 66 % -> 83 %; 15 replicas needed at 70 %, 12 there."
    )


def test_where_all_grew_alike_the_tokens_are_told() -> None:
    """Longer prompts of everybody are nobody's."""
    assert compared("retrieval-depth") == (
        "same rate 8.0/s, work per request 0.96 -> 1.26 replica-seconds (+31 %): no tenant, route or class stands out; "
        "per request computed prompt tokens 1,500 -> 2,700, output tokens 93 -> 93. "
        "Utilisation 64 % -> 84 %; 15 replicas needed at 70 %, 12 there."
    )


def test_what_may_be_chance_is_called_so() -> None:
    """Nothing is blamed where the difference is less than chance makes."""
    assert compared("quiet") == (
        "same rate 8.0/s, work per request 0.99 -> 0.99 replica-seconds (+0 %): within chance, ±12 %. "
        "Utilisation 66 % -> 66 %; 12 replicas needed at 70 %, 12 there."
    )


def test_comparisons_come_at_doubling_times() -> None:
    """First 110 s after the change, then ever more seldom."""
    narrator = Narrator("new-tenant", CHANGE_AT)
    heard = (
        (second, narrator.hear(one))
        for second, one in zip(range(-120, 1000, 10), pages("new-tenant", begin=-120, end=1000), strict=True)
    )
    assert [second for second, lines in heard if any("SINCE" in line for line in lines)] == [110, 220, 440, 880]


@pytest.mark.parametrize("begin", [-120, -10])
def test_the_comparison_needs_no_present_before_the_change(begin: int) -> None:
    """Where the change comes so soon that there was only one page before, the two weeks are what was before."""
    assert compared("new-tenant", begin).startswith("same rate 8.0/s, work per request 0.99 -> 1.25 replica-seconds")


def test_every_alarm_is_told_once() -> None:
    """What the daemon tells of drifts is a line each, with its own sentence, however often it is asked."""
    narrator = Narrator("new-tenant", 0.0)
    raised = {"event": "raised", "at": 100.0, "sentence": "Cost per request +26 %."}
    cleared = {"event": "cleared", "at": 200.0, "sentence": "Over."}
    assert [line.partition("  ")[2] for line in narrator.warn([raised])] == ["ALARM: Cost per request +26 %."]
    assert [line.partition("  ")[2] for line in narrator.warn([raised, cleared])] == ["NOTE: Over."]
