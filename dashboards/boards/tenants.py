"""Who asks for what, what it costs, and what they get: by tenant and route."""

from dashboards.panels import AMBER, GREEN, RED, Board, Query, Row, bars, lines, table
from dashboards.promql import goodput, least, most, quantile, rate, ratio

COST = "capwatch_cost_replica_seconds_total"
REQUESTS = "capwatch_requests_total"
MISSED = "capwatch_goodput_missed_total"
CACHED, PROMPT = (f'capwatch_tokens_total{{kind=~"{kind}"}}' for kind in ("prompt_cached", "prompt_.*"))
PAIR = ("pool", "model")


def beside(by: str) -> tuple[Query, ...]:
    """The columns that tenants and routes share."""
    return (
        Query(rate(REQUESTS, by), column="requests", unit="reqps"),
        Query(f"{rate(COST, by)} / on () group_left () ({rate(COST)} > 0)", column="share of cost", unit="percentunit"),
        Query(
            f"{rate(COST, by)} / ({rate('capwatch_prompt_tokens_count', by)} > 0)", column="replica-seconds a request"
        ),
        Query(ratio("capwatch_prompt_tokens_sum", "capwatch_prompt_tokens_count", by), column="prompt tokens"),
        Query(ratio("capwatch_output_tokens_sum", "capwatch_output_tokens_count", by), column="output tokens"),
        Query(goodput(by), column="good", unit="percentunit"),
    )


def hottest(metric: str, title: str, says: str, unit: str) -> tuple[str, str, Query, str]:
    """The pairs of tenant and route with the largest 95th percentile."""
    expression = f'topk(10, max by (tenant, route) ({metric}{{quantile="0.95"}}))'
    return title, says, Query(expression, "{{tenant}} {{route}}"), unit


def percentiles(metric: str) -> tuple[Query, ...]:
    """50th and 95th percentile of each route, from summed buckets."""
    return tuple(Query(quantile(share, metric, "route"), f"{{{{route}}}} p{share * 100:.0f}") for share in (0.5, 0.95))


who = Row(
    "Who, and at what cost",
    (
        table(
            "Which tenant takes how much, and what does it get?",
            "Means of the last interval, dearest first. A tenant whose share of cost is far above its share of requests"
            " sends dear ones. Good is among judged requests: without an SLO only failures are judged, so it reads 0"
            " %.",
            *beside("tenant"),
            sort="share of cost",
            ignores=PAIR,
        ),
        table(
            "Which route takes how much, and what does it give?",
            "Means of the last interval, dearest first.",
            *beside("route"),
            sort="share of cost",
            ignores=PAIR,
        ),
        lines(
            "Who sends the requests?",
            "The ten tenants with the most requests.",
            Query(f"topk(10, {rate(REQUESTS, 'tenant')})", "{{tenant}}"),
            unit="reqps",
            stacked=True,
        ),
        lines(
            "Whose work fills the replicas?",
            "The ten dearest tenants, in replicas kept busy. Compare with the requests beside it.",
            Query(f"topk(10, {rate(COST, 'tenant')})", "{{tenant}}"),
            stacked=True,
            axis="replicas busy",
        ),
        lines(
            "Is one tenant crowding out the others?",
            "Shares of cost of the dearest five in the last hour, and Jain's index: 1 is even, 1/n is one of n alone.",
            Query(most("capwatch_tenant_share_ratio", "pool, rank"), "{{pool}} rank {{rank}}"),
            Query(least("capwatch_tenant_fairness_ratio"), "{{pool}} fairness"),
            unit="percentunit",
            dashed=("fairness$",),
        ),
    ),
)

tokens = Row(
    "Tokens",
    (
        lines(
            "Which tokens are computed?",
            "Prompt computed and output are work; prompt cached is not.",
            Query(rate("capwatch_tokens_total", "kind"), "{{kind}}"),
            stacked=True,
            axis="tokens a second",
        ),
        lines(
            "How much of the prompts comes from the cache?",
            "Cached share of prompt tokens by route. A cliff here is a changed system prompt or a lost cache.",
            Query(
                f"{rate(CACHED, 'route')} / ({rate(PROMPT, 'route')} > 0)",
                "{{route}}",
            ),
            unit="percentunit",
            limits=(0, 1),
        ),
        lines(
            "What does the cache spare?",
            "Replicas that would be busy with prompts that were cached.",
            Query(rate("capwatch_prefill_saved_replica_seconds_total", "route"), "{{route}}"),
            stacked=True,
            axis="replicas spared",
        ),
        lines(
            "How long are the prompts?",
            "A shift of the p95 with a flat p50 is a new kind of request, a shift of both a changed template.",
            *percentiles("capwatch_route_prompt_tokens"),
        ),
        lines(
            "How long are the answers?",
            "Growth of the p95 alone: somebody asks without a cap.",
            *percentiles("capwatch_route_output_tokens"),
        ),
        lines(
            "Which requests ask for no cap on their output?",
            "One of them can hold a slot and its KV memory for minutes.",
            Query(rate("capwatch_uncapped_requests_total", "route"), "{{route}}"),
            unit="reqps",
        ),
    ),
)

times = Row(
    "Times",
    (
        lines(
            "How fast does each route answer its first token?",
            "TTFT from arrival, waiting included.",
            *percentiles("capwatch_route_ttft_seconds"),
            unit="s",
        ),
        lines(
            "How fast do answers flow?",
            "Time per output token. It grows with sequences at once and with preemptions.",
            *percentiles("capwatch_route_tpot_seconds"),
            unit="s",
        ),
        lines(
            "How long do requests take?",
            "Arrival to last byte.",
            *percentiles("capwatch_route_duration_seconds"),
            unit="s",
        ),
        lines(
            "Does the pooled percentile hide a class?",
            "p95 of each class beside the pooled one: a rare class can be late every time without moving the pooled"
            " p95.",
            Query(most('capwatch_class_duration_seconds{quantile="0.95"}', "pool, class"), "{{pool}} {{class}}"),
            Query(quantile(0.95, "capwatch_route_duration_seconds", "pool"), "{{pool}} pooled"),
            unit="s",
            dashed=("pooled$",),
            ignores=("route",),
        ),
        *(
            lines(title, says, query, unit=unit)
            for title, says, query, unit in (
                hottest(
                    "capwatch_ttft_seconds",
                    "Who waits longest for the first token?",
                    "Ten pairs of tenant and route by p95 of the last five minutes.",
                    "s",
                ),
                hottest(
                    "capwatch_duration_seconds",
                    "Whose requests take longest?",
                    "Ten pairs of tenant and route by p95 of the last five minutes.",
                    "s",
                ),
                hottest(
                    "capwatch_tpot_seconds",
                    "Whose answers flow slowest?",
                    "Ten pairs of tenant and route by p95 of the last five minutes.",
                    "s",
                ),
            )
        ),
        lines(
            "How long do requests wait for an engine?",
            "p50 and p95 by route, where a log tells the wait; otherwise it is part of TTFT.",
            *percentiles("capwatch_route_queue_seconds"),
            unit="s",
        ),
        lines(
            "Which class waits?",
            "p95 of each class, where a log tells the wait: long prompts before short ones show here.",
            Query(most('capwatch_queue_seconds{quantile="0.95"}', "pool, class"), "{{pool}} {{class}}"),
            unit="s",
        ),
    ),
)

lost = Row(
    "Good, refused, lost",
    (
        lines(
            "Which tenants get good answers?",
            "Good among judged requests.",
            Query(goodput("tenant"), "{{tenant}}"),
            unit="percentunit",
            limits=(0, 1),
        ),
        bars(
            "Which targets are missed, and where?",
            "Requests a second that miss, the ten largest.",
            Query(f"topk(10, {rate(MISSED, 'tenant, route, reason')})", "{{tenant}} {{route}}: {{reason}}"),
            unit="reqps",
            steps=((None, AMBER),),
        ),
        lines(
            "Who is turned away?",
            "Requests that a limit refused, by tenant.",
            Query(rate('capwatch_requests_total{outcome="rate_limited"}', "tenant"), "{{tenant}}"),
            unit="reqps",
            stacked=True,
        ),
        lines(
            "Whom would a budget turn away?",
            "A shadow: what a budget in replica-seconds would refuse, so that it can be tried before it bites.",
            Query(rate("capwatch_budget_would_reject_total", "tenant"), "{{tenant}}"),
            unit="reqps",
            stacked=True,
        ),
        lines(
            "Where do clients try again?",
            "Attempts beyond the first, by route.",
            Query(rate("capwatch_retries_total", "route"), "{{route}}"),
            unit="reqps",
            stacked=True,
        ),
        lines(
            "How much work is for clients who have left?",
            "Share of the cost that went into requests that were given up or ran out of time.",
            Query(ratio("capwatch_abandoned_replica_seconds_total", COST, "pool"), "{{pool}}"),
            unit="percentunit",
            steps=((None, GREEN), (0.05, AMBER), (0.2, RED)),
            ignores=("tenant", "route"),
        ),
    ),
)

BOARD = Board(
    "tenants-and-routes",
    "Tenants and routes",
    "Who asks for what, what it costs in replicas, how fast they are answered, and who is refused.",
    ("pool", "tenant", "route", "model"),
    (who, tokens, times, lost),
)
