"""What the replicas can bear: the knee, the chain of limits, the three promises, headroom."""

from dashboards.panels import AMBER, GREEN, GREY, RED, Board, Query, Row, bars, lines, number
from dashboards.promql import least, most, rate, ratio

COST = "capwatch_cost_replica_seconds_total"
COSTED = "capwatch_route_prompt_tokens_count"
ARRIVALS = "capwatch_arrivals_total"
REPLICAS = most("capwatch_replicas")
USED = most("capwatch_utilisation_ratio")
STAGES = least("capwatch_stage_capacity_rps", "pool, phase")


def wait(utilisation: str, legend: str) -> Query:
    """Mean wait at a utilisation: Sakasegawa (1977) for n replicas, stretched by (Ca² + Cs²)/2 as Allen and Cunneen do.

    Wq ≈ (Ca² + Cs²)/2 · c̄ · ρ^(√(2(n+1)) − 1) / (n(1 − ρ)), each replica one server. For a dozen replicas it is
    above the exact wait of Erlang C by under a tenth from 80 % on, by more below, where waits are short.
    """
    stretch = f"({most('capwatch_arrival_cv2')} + {most('capwatch_service_cv2')}) / 2"
    power = f"{utilisation} ^ (sqrt(2 * ({REPLICAS} + 1)) - 1)"
    return Query(f"{stretch} * ({ratio(COST, COSTED, 'pool')}) * {power} / ({REPLICAS} * (1 - {utilisation}))", legend)


knee = Row(
    "The knee",
    (
        bars(
            "Where on the knee are we?",
            "Mean wait that a utilisation gives at the variability measured now, replicas as servers of one queue"
            " (Sakasegawa's approximation), and the same at the utilisation there is: the live point. Where the next"
            " bar is"
            " twice as long, the knee begins. No bar for now: the load is more than the replicas can do.",
            *(wait(f"{percent / 100}", f"{{{{pool}}}} at {percent} %") for percent in (60, 70, 80, 85, 90, 95)),
            wait(f"({USED} < 1)", "{{pool}} now"),
            unit="s",
        ),
        lines(
            "How near is the rate to what is usable?",
            "The largest request rate that keeps the late share: with a queue for each replica, and with one for all."
            " The gap"
            " between both is what better routing gives for nothing.",
            Query(rate(ARRIVALS, "pool"), "{{pool}} now"),
            Query(most("capwatch_usable_rps", "pool, routing"), "{{pool}} {{routing}}"),
            unit="reqps",
            dashed=("isolated$", "pooled$"),
        ),
        lines(
            "How much of the replicas' time is used?",
            "Arrival rate times cost per request over replicas. It rises when requests get dearer, at a flat rate too.",
            Query(USED, "{{pool}}"),
            unit="percentunit",
            steps=((None, GREEN), (0.7, AMBER), (1, RED)),
        ),
        lines(
            "How long are requests expected to wait?",
            "By queue formula from measured rate and variability; too low for bursty arrivals.",
            Query(most("capwatch_expected_wait_seconds"), "{{pool}}"),
            unit="s",
        ),
        lines(
            "How many wait too long?",
            "Share that waits longer than the wait budget: as predicted, and as measured where logs tell the wait.",
            Query(most("capwatch_late_share_ratio", "pool, source"), "{{pool}} {{source}}"),
            unit="percentunit",
            dashed=("predicted$",),
        ),
        lines(
            "How bursty are arrivals and work?",
            "Squared coefficients of variation: 1 is Poisson or exponential. Waiting grows with their mean.",
            Query(most("capwatch_arrival_cv2"), "{{pool}} arrivals"),
            Query(most("capwatch_service_cv2"), "{{pool}} work per request"),
        ),
    ),
)

promises = Row(
    "Promises and headroom",
    (
        bars(
            "How many replicas does each promise need?",
            "base: today's load at the target utilisation. burst: a burst on top. zonal: a burst after losing a zone."
            " Longer"
            " than the last bar, which is what there is, is a promise not kept.",
            Query(most("capwatch_replicas_needed", "pool, promise"), "{{pool}} {{promise}}"),
            Query(REPLICAS, "{{pool}} there are"),
            limits=(0, None),
        ),
        number(
            "How many replicas are left after a failure?",
            "Beyond what the present load needs at the target utilisation, if nothing, a replica or the largest zone"
            " fails.",
            Query(least("capwatch_headroom_replicas", "pool, failure"), "{{pool}} {{failure}} fails"),
            steps=((None, RED), (0, AMBER), (1, GREEN)),
            width=8,
            height=8,
        ),
        lines(
            "How did headroom change?",
            "Where a line crosses 0 that failure is no longer survived at the target utilisation.",
            Query(least("capwatch_headroom_replicas", "pool, failure"), "{{pool}} {{failure}} fails"),
            limits=(None, None),
            steps=((None, RED), (0, GREEN)),
        ),
        lines(
            "What would an autoscaler ask for?",
            "The HPA formula from requests in flight, beside what there is and what is needed. Nothing is scaled by"
            " it.",
            Query(most("capwatch_hpa_desired_replicas"), "{{pool}} HPA"),
            Query(REPLICAS, "{{pool}} there are"),
            Query(most('capwatch_replicas_needed{promise="base"}'), "{{pool}} needed"),
            dashed=("there are$",),
        ),
        lines(
            "How much of the time was there too much?",
            "Share of seconds in which more work arrived than the replicas can do in a second.",
            Query(rate("capwatch_overload_seconds_total", "pool"), "{{pool}}"),
            unit="percentunit",
        ),
        lines(
            "How much waits now?",
            "Tokens of the requests that wait for an engine.",
            Query(most("capwatch_backlog_tokens"), "{{pool}}"),
            axis="tokens",
        ),
    ),
)

limits = Row(
    "Chain of limits",
    (
        bars(
            "Which stage is the next limit?",
            "User requests a second that each stage sustains, lowest first, and the present rate. Replicas help only"
            " until"
            " the next stage is reached.",
            Query(f"sort({STAGES})", "{{pool}} {{phase}}"),
            Query(rate(ARRIVALS, "pool"), "{{pool}} now"),
            unit="reqps",
            limits=(0, None),
        ),
        lines(
            "How much of each stage is used?",
            "The present rate over what the stage sustains.",
            Query(
                f"{rate(ARRIVALS, 'pool')} / on (pool) group_right () ({STAGES} > 0)",
                "{{pool}} {{phase}}",
            ),
            unit="percentunit",
            steps=((None, GREEN), (0.7, AMBER), (1, RED)),
        ),
        lines(
            "Does the KV cache hold what runs?",
            "Tokens that running requests need over what the pool holds: a limit of its own, beside compute.",
            Query(most("capwatch_kv_demand_ratio"), "{{pool}}"),
            unit="percentunit",
            steps=((None, GREEN), (0.9, AMBER), (1, RED)),
        ),
        lines(
            "How many tokens must the KV cache hold?",
            "What running requests need, and what the engines tell that they can hold.",
            Query(most("capwatch_kv_demand_tokens"), "{{pool}} needed"),
            Query(
                f"sum by (pool) ({most('capwatch_engine_kv_cache_capacity_tokens', 'pool, engine')})",
                "{{pool}} there is",
            ),
            axis="tokens",
            dashed=("there is$",),
        ),
        lines(
            "How often does a request visit each stage?",
            "Visits over requests that finished, v of L = λvW: a tool that is called twice as often needs twice the"
            " room.",
            Query(
                f"{rate('capwatch_phase_visits_total', 'pool, phase')}"
                f" / on (pool) group_left () ({rate('capwatch_departures_total', 'pool')} > 0)",
                "{{pool}} {{phase}}",
            ),
        ),
        lines(
            "Does as much leave as arrives?",
            "While arrivals are more, requests pile up, whatever the gauges say.",
            Query(rate(ARRIVALS, "pool"), "{{pool}} arrive"),
            Query(rate("capwatch_departures_total", "pool"), "{{pool}} leave"),
            unit="reqps",
        ),
        lines(
            "How many tokens a minute, as quotas count?",
            "Prompt tokens in, cached ones included, and output tokens out.",
            Query(most("capwatch_tokens_per_minute", "pool, direction"), "{{pool}} {{direction}}"),
            stacked=True,
            axis="tokens a minute",
        ),
        number(
            "How much of the quota is left?",
            "Share of the configured tokens per minute; below 0 it is exceeded.",
            Query(least("capwatch_quota_headroom_ratio"), "{{pool}}"),
            unit="percentunit",
            steps=((None, RED), (0, AMBER), (0.2, GREEN)),
            empty="no quota",
            width=5,
            height=8,
        ),
        number(
            "When is the quota used up?",
            "If the growth of the last hour goes on.",
            Query(least("capwatch_quota_exhaustion_seconds"), "{{pool}}"),
            unit="s",
            steps=((None, RED), (3600, AMBER), (86400, GREEN)),
            empty="no quota",
            width=5,
            height=8,
        ),
        number(
            "Are budgets promised twice?",
            "Sum of the tenants' budgets over replicas; above 1 is a choice, not a fault.",
            Query(most("capwatch_budget_oversubscription_ratio"), "{{pool}}"),
            unit="percentunit",
            steps=((None, GREEN), (1, AMBER)),
            empty="no budgets",
            width=6,
            height=8,
        ),
    ),
)

ground = Row(
    "What these figures rest on",
    (
        number(
            "How high do bursts go?",
            "99th percentile over median of requests in a second, last week; what one sees at scrape intervals is"
            " smoother.",
            Query(most("capwatch_burst_p99_to_median_ratio"), "{{pool}} requests"),
            Query(most("capwatch_cost_burst_p99_to_median_ratio"), "{{pool}} work"),
            width=6,
        ),
        number(
            "How long do bursts last?",
            "Longest run of seconds over twice the median, last week. Shorter than the cold start: no autoscaler"
            " helps.",
            Query(most("capwatch_burst_longest_seconds"), "{{pool}} requests"),
            Query(most("capwatch_cost_burst_longest_seconds"), "{{pool}} work"),
            unit="s",
            width=6,
        ),
        number(
            "How steep do bursts rise?",
            "Largest rise from one second to the next, last week.",
            Query(most("capwatch_burst_max_ramp_rps"), "{{pool}} requests"),
            Query(most("capwatch_cost_burst_max_ramp_replica_seconds"), "{{pool}} work"),
            width=6,
        ),
        number(
            "How old is the calibration?",
            "Time since the token rates were measured; nothing while they are only assumed.",
            Query(most("capwatch_calibration_age_seconds"), "{{pool}}"),
            unit="s",
            steps=((None, GREEN), (2592000, AMBER)),
            empty="rates assumed",
            width=6,
        ),
        lines(
            "How far off are the token rates?",
            "Error of the busy time that they predict; all that is reckoned from cost is off by as much.",
            Query(most("capwatch_calibration_error_ratio"), "{{pool}}"),
            unit="percentunit",
            limits=(None, None),
            width=12,
        ),
        number(
            "Can Little's law be trusted now?",
            "It cannot while more arrives than leaves; figures of requests in flight are then too low.",
            Query(least("capwatch_littles_law_valid"), "{{pool}}"),
            steps=((None, AMBER), (1, GREY)),
            words={"0": "no", "1": "yes"},
            width=12,
            height=8,
        ),
    ),
)

BOARD = Board(
    "capacity",
    "Capacity",
    "What the replicas can bear: the knee with the live point, promises and headroom, the chain of limits.",
    ("pool",),
    (knee, promises, limits, ground),
)
