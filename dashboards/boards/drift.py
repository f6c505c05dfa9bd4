"""What the drift detector sees: evidence, effects that add up, contributions, and the reference it compares with."""

from dashboards.panels import AMBER, GREEN, RED, Board, Query, Row, bars, lines, number, text
from dashboards.promql import least, most, quantile, rate, ratio

COST = "capwatch_cost_replica_seconds_total"
COSTED = "capwatch_route_prompt_tokens_count"
PREFILL = COST + '{phase="prefill"}'
CLASS = "capwatch_class_requests_total"
CONTRIBUTION = "capwatch_drift_contribution_replica_seconds"
READING = """
The cost of a request is computed prompt tokens / prefill rate + output tokens / decode rate, in replica-seconds. Its
mean changes for four reasons, which add up: **mix** (more requests of a dear class), **prompt** and **output** (they
are longer), **cache** (less of the prompt comes from it).

- *mix*, one tenant or route: talk to them, or give them a quota.
- *prompt* in one route: a template, or the retrieval depth. *prompt* everywhere: a system prompt.
- *cache*: a changed prefix, or replicas that no longer see the same tenants.
- *output*: caps, or a model that reasons longer.

A change that is to stay is accepted by `capwatch acknowledge --pool P`: it becomes the reference.
"""


def contributions(dimension: str) -> Query:
    """What the members of one dimension add, by effect; parts of one dimension add up, dimensions do not."""
    chosen = f'{CONTRIBUTION}{{dimension="{dimension}"}}'
    return Query(f"sort_desc({most(chosen, 'pool, value, effect')})", "{{value}}: {{effect}}")


state = Row(
    "State of the detector",
    (
        number(
            "Is a drift active, up or down?",
            "up: requests are dearer than the reference; down: cheaper, which frees replicas.",
            Query(most("capwatch_drift_active", "pool, direction"), "{{pool}} {{direction}}"),
            steps=((None, GREEN), (1, RED)),
            words={"0": "no", "1": "yes"},
            empty="no detector",
            width=6,
        ),
        number(
            "How near is the alarm?",
            "Evidence, where 1 raises the alarm. It gathers over time: a small change takes longer.",
            Query(most("capwatch_drift_score"), "{{pool}}"),
            steps=((None, GREEN), (0.7, AMBER), (1, RED)),
            empty="no detector",
            width=6,
        ),
        number(
            "Is it composition or queueing?",
            "composition: the requests changed. queueing: the same requests wait longer.",
            Query(f"{most('capwatch_drift_verdict', 'pool, verdict')} == 1", "{{verdict}}"),
            names=True,
            empty="no drift",
            width=6,
        ),
        number(
            "Is there enough history to judge?",
            "While it learns, only a wide fixed rule can alarm.",
            Query(most("capwatch_drift_learning"), "{{pool}}"),
            steps=((None, GREEN), (1, AMBER)),
            words={"0": "yes", "1": "still learning"},
            empty="no detector",
            width=6,
        ),
        lines(
            "How did the evidence gather?",
            "The score by time; 1 is the alarm level, set by false_alarms_per_month.",
            Query(most("capwatch_drift_score"), "{{pool}}"),
            steps=((None, GREEN), (1, RED)),
        ),
        lines(
            "Did work per request change, or the rate?",
            "Both against the reference: the first raises alarms, the second never does.",
            Query(most("capwatch_drift_cost_change_ratio"), "{{pool}} work per request"),
            Query(most("capwatch_drift_request_rate_change_ratio"), "{{pool}} request rate"),
            unit="percentunit",
            limits=(None, None),
            dashed=("request rate$",),
        ),
        lines(
            "How often were there alarms?",
            "Alarms raised in the last day. More than a few a month: acknowledge what is to stay, or raise"
            " minimum_effect.",
            Query(
                "sum by (pool, direction) (increase(capwatch_drift_alarms_total[1d]))",
                "{{pool}} {{direction}}",
            ),
        ),
    ),
)

causes = Row(
    "Causes",
    (
        bars(
            "Which causes add up to the change?",
            "Replica-seconds that each cause adds to the mean cost of a request; below 0 it made requests cheaper.",
            Query(most("capwatch_drift_effect_replica_seconds", "pool, effect"), "{{pool}} {{effect}}"),
            empty="no reference",
            width=8,
        ),
        lines(
            "How did the causes grow?",
            "The same effects over time. Steps are deploys and new tenants, slopes are growth.",
            Query(most("capwatch_drift_effect_replica_seconds", "pool, effect"), "{{pool}} {{effect}}"),
            stacked=True,
            limits=(None, None),
            axis="replica-seconds a request",
        ),
        number(
            "When did it begin?",
            "Estimated change point of the active drift.",
            Query(f"{least('capwatch_drift_started_timestamp_seconds')} * 1000", "{{pool}}"),
            unit="dateTimeAsIso",
            empty="no drift",
            width=8,
            height=8,
        ),
        bars(
            "Which tenants did it?",
            "Contributions of tenants. They overlap with those of routes and classes: never add across.",
            contributions("tenant"),
            empty="no drift",
        ),
        bars(
            "On which routes?",
            "Contributions of routes.",
            contributions("route"),
            empty="no drift",
        ),
        bars(
            "In which classes?",
            "Contributions of the configured classes.",
            contributions("class"),
            empty="no drift",
        ),
    ),
)

compared = Row(
    "Reference against current",
    (
        lines(
            "What did a request cost, and what does it now?",
            "The detector's windows, and the counters now and a day ago, which need no detector.",
            Query(most("capwatch_cost_per_request_replica_seconds", "pool, window"), "{{pool}} {{window}}"),
            Query(ratio(COST, COSTED, "pool"), "{{pool}} from counters"),
            Query(
                f"sum by (pool) (rate({COST}[$__rate_interval] offset 1d))"
                f" / (sum by (pool) (rate({COSTED}[$__rate_interval] offset 1d)) > 0)",
                "{{pool}} a day ago",
            ),
            axis="replica-seconds a request",
            dashed=("reference$", "a day ago$"),
        ),
        lines(
            "Did the mix of classes change?",
            "Share of each class in the requests of its pool.",
            Query(
                f"{rate(CLASS, 'pool, class')} / on (pool) group_left () ({rate(CLASS, 'pool')} > 0)",
                "{{pool}} {{class}}",
            ),
            unit="percentunit",
            stacked=True,
            limits=(0, 1),
        ),
        lines(
            "Which class takes the work?",
            "Replicas kept busy by each class: a class of few requests can be most of the work.",
            Query(rate("capwatch_class_cost_replica_seconds_total", "pool, class"), "{{pool}} {{class}}"),
            stacked=True,
            axis="replicas busy",
        ),
        lines(
            "Did prompts get longer?",
            "Mean and p95 of prompt tokens over all routes of a pool, cached ones included.",
            Query(ratio("capwatch_route_prompt_tokens_sum", COSTED, "pool"), "{{pool}} mean"),
            Query(quantile(0.95, "capwatch_route_prompt_tokens", "pool"), "{{pool}} p95"),
            axis="tokens",
        ),
        lines(
            "Did answers get longer?",
            "Mean and p95 of output tokens over all routes of a pool.",
            Query(
                ratio("capwatch_route_output_tokens_sum", "capwatch_route_output_tokens_count", "pool"), "{{pool}} mean"
            ),
            Query(quantile(0.95, "capwatch_route_output_tokens", "pool"), "{{pool}} p95"),
            axis="tokens",
        ),
        lines(
            "Did the cache stop hitting?",
            "Cached share of prompt tokens: saved and spent prefill are at the same rate.",
            Query(
                f"{rate('capwatch_prefill_saved_replica_seconds_total', 'pool')}"
                f" / ({rate('capwatch_prefill_saved_replica_seconds_total', 'pool')}"
                f" + {rate(PREFILL, 'pool')} > 0)",
                "{{pool}}",
            ),
            unit="percentunit",
            limits=(0, 1),
        ),
        text("How is this read?", "What the effects mean, and what each calls for.", READING, width=24, height=8),
    ),
)

BOARD = Board(
    "drift",
    "Drift explorer",
    "What the detector sees: evidence, causes that add up, who contributes, and the reference beside the present.",
    ("pool",),
    (state, causes, compared),
)
