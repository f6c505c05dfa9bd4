"""For the person who was paged: what changed, who did it, whether it is composition or queueing, what to do first."""

from dashboards.panels import AMBER, GREEN, GREY, RED, Board, Query, Row, bars, lines, number, text
from dashboards.promql import goodput, least, most, quantile, rate, ratio

REMEDIES = """
1. **Cut the work** (minutes, free, can be undone): prompt size, retrieval depth, caps on output, cache.
2. **Admission** (seconds): refuse by expected wait, fewer sequences at once, lowest priority first.
3. **Overflow or a degraded mode** (seconds), if it is prepared.
4. **Replicas** (minutes, money): when they are ready the backlog is still to be worked off.
5. **Shape of a replica**, parallelism, disaggregation (days).

Rate flat and decode speed unchanged: it is no output story, look at the **prompt lengths** first.
"""
COST = "capwatch_cost_replica_seconds_total"
COSTED = "capwatch_route_prompt_tokens_count"

changed = Row(
    "What changed",
    (
        number(
            "Is a drift active?",
            "Whether the work of a request left its reference. The request rate alone never raises it.",
            Query(most("capwatch_drift_active"), "{{pool}}"),
            steps=((None, GREEN), (1, RED)),
            words={"0": "no", "1": "yes"},
            empty="no detector",
            width=8,
        ),
        number(
            "How much dearer is a request?",
            "Against the reference of the same hours. A rise here at a flat rate is the case that rates do not show.",
            Query(most("capwatch_drift_cost_change_ratio"), "{{pool}}"),
            unit="percentunit",
            steps=((None, GREEN), (0.04, AMBER), (0.15, RED)),
            empty="no reference",
            width=8,
        ),
        number(
            "And how much did the request rate change?",
            "Beside the change of cost: near 0 % here and much there means that the mix changed, not the demand.",
            Query(most("capwatch_drift_request_rate_change_ratio"), "{{pool}}"),
            unit="percentunit",
            empty="no reference",
            width=8,
        ),
        number(
            "Composition or queueing?",
            "composition: requests are dearer. queueing: they wait longer for the same work. both: dearer, and so they"
            " wait.",
            Query(f"{most('capwatch_drift_verdict', 'pool, verdict')} == 1", "{{verdict}}"),
            names=True,
            empty="no drift",
            width=8,
        ),
        number(
            "Since when?",
            "Estimated change point of the active drift; look for a deploy or a new tenant at this time.",
            Query(f"{least('capwatch_drift_started_timestamp_seconds')} * 1000", "{{pool}}"),
            unit="dateTimeAsIso",
            empty="no drift",
            width=8,
        ),
        number(
            "How many replicas are to spare?",
            "Beyond what the present load needs at the target utilisation. Below 0 the target does not hold.",
            Query(least('capwatch_headroom_replicas{failure="none"}'), "{{pool}}"),
            steps=((None, RED), (0, AMBER), (1, GREEN)),
            width=8,
        ),
        bars(
            "Who made requests dearer, and how?",
            "The largest contributions to the change of cost per request, replica-seconds. mix: more of it; prompt,"
            " output,"
            " cache: each of it is dearer. Dimensions overlap: read tenants, routes and classes side by side.",
            Query(
                f"topk(8, {most('capwatch_drift_contribution_replica_seconds', 'pool, dimension, value, effect')})",
                "{{dimension}} {{value}}: {{effect}}",
            ),
            empty="no drift",
        ),
        lines(
            "Is work per request above its reference?",
            "Replica-seconds a request: what the detector sees now and its reference, and the quotient of the counters,"
            " which needs no detector.",
            Query(most("capwatch_cost_per_request_replica_seconds", "pool, window"), "{{pool}} {{window}}"),
            Query(ratio(COST, COSTED, "pool"), "{{pool}} from counters"),
            axis="replica-seconds",
            dashed=("reference$",),
        ),
        text("What to do first?", "Remedies, ordered by how fast they act and how easily they are undone.", REMEDIES),
    ),
)

demand = Row(
    "Demand, and where it is",
    (
        lines(
            "Is the request rate outside what is usual?",
            "The band is the least and the most of the last day in steps of ten minutes. Inside it with everything else"
            " rising: the work of a request changed.",
            Query(rate("capwatch_arrivals_total"), "now"),
            Query(f"min_over_time(({rate('capwatch_arrivals_total')})[1d:10m])", "least of a day"),
            Query(f"max_over_time(({rate('capwatch_arrivals_total')})[1d:10m])", "most of a day"),
            unit="reqps",
            band=("least of a day", "most of a day"),
        ),
        lines(
            "In which phase are the requests?",
            "Requests in flight by Little's law: seconds of residence that end in each second. Growth in queue or"
            " prefill"
            " is waiting; growth in decode is longer answers or slower steps.",
            Query(rate("capwatch_phase_seconds_total", "phase"), "{{phase}}"),
            stacked=True,
            axis="requests in flight",
        ),
        lines(
            "How much of the replicas' time does the work take?",
            "Utilisation reckoned from tokens and the pool's token rates, not from a GPU reading.",
            Query(most("capwatch_utilisation_ratio"), "{{pool}}"),
            unit="percentunit",
            steps=((None, GREEN), (0.7, AMBER), (1, RED)),
        ),
        lines(
            "Does the first token come in time?",
            "TTFT over all routes chosen; the p95 of a class of few requests hides in here, see tenants and routes.",
            Query(quantile(0.5, "capwatch_route_ttft_seconds"), "p50"),
            Query(quantile(0.95, "capwatch_route_ttft_seconds"), "p95"),
            Query(quantile(0.99, "capwatch_route_ttft_seconds"), "p99"),
            unit="s",
        ),
        lines(
            "How long does the oldest request wait?",
            "Where no log shows arrivals before first tokens, only the wait that the queue formula expects is drawn.",
            Query(most("capwatch_oldest_waiting_seconds"), "{{pool}} oldest"),
            Query(most("capwatch_expected_wait_seconds"), "{{pool}} expected"),
            unit="s",
            dashed=("expected$",),
        ),
        lines(
            "How large a share of requests is good?",
            "Good requests among those that can be judged: all targets of their SLO held.",
            Query(goodput(), "good"),
            unit="percentunit",
            limits=(0, 1),
        ),
        lines(
            "Why do requests miss their targets?",
            "ttft alone: they wait or have longer prompts. tpot: decode steps are slower. error: they failed.",
            Query(rate("capwatch_goodput_missed_total", "reason"), "{{reason}}"),
            unit="reqps",
            stacked=True,
        ),
        lines(
            "What do clients get instead of an answer?",
            "Every outcome but ok. A rise of client_abort after a rise of TTFT is clients who no longer wait.",
            Query(rate('capwatch_requests_total{outcome!="ok"}', "outcome"), "{{outcome}}"),
            unit="reqps",
            stacked=True,
        ),
        lines(
            "How often are requests tried again?",
            "Attempts over unique requests. Above 1.1 the clients' retries are part of the overload.",
            Query(most("capwatch_retry_amplification_ratio"), "{{pool}}"),
            limits=(1, None),
            steps=((None, GREEN), (1.1, AMBER)),
        ),
    ),
)

memory = Row(
    "KV cache",
    (
        number(
            "When is the KV cache full?",
            "If the growth of the last quarter of an hour goes on. Then engines push sequences out, or let others"
            " wait.",
            Query(
                "min by (pool) ((1 - capwatch_kv_demand_ratio) / (deriv(capwatch_kv_demand_ratio[15m]) > 0))",
                "{{pool}}",
            ),
            unit="s",
            steps=((None, RED), (600, AMBER), (3600, GREY)),
            empty="not growing",
            width=6,
            height=8,
        ),
        lines(
            "How full is the KV cache?",
            "The fullest engine of a pool, and what the running requests need of all there is. High is by design; at"
            " 100 %"
            " the next sequence waits or pushes one out.",
            Query(most("capwatch_engine_kv_cache_utilisation_ratio"), "{{pool}} fullest engine"),
            Query(most("capwatch_kv_demand_ratio"), "{{pool}} needed"),
            unit="percentunit",
            width=9,
        ),
        lines(
            "Do engines push sequences out?",
            "Each preempted sequence is computed once more: work that no client asked for.",
            Query(rate("capwatch_engine_preemptions_total", "pool"), "{{pool}}"),
            unit="ops",
            width=9,
        ),
    ),
)

BOARD = Board(
    "on-call",
    "On call",
    "What changed, who did it, is it composition or queueing, how long until memory is full, and what to do first.",
    ("pool",),
    (changed, demand, memory),
)
