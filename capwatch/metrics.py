"""What we SAY: the catalogue of every `capwatch_*` metric: name, kind, unit, help, labels.

Code speaks of a metric by its constant, whose name is the metric's without ``capwatch_`` and ``_total``:

>>> REQUESTS.name, REQUESTS.kind.value, REQUESTS.labels
('capwatch_requests_total', 'counter', ('tenant', 'route', 'model', 'outcome'))
>>> CATALOGUE["capwatch_requests_total"] is REQUESTS
True

Adding a metric is one entry here (and a meter that measures it). `process_*` comes from elsewhere and is not listed.
The file may exceed the usual length since it is a table, to be looked up and not read through.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from types import MappingProxyType
from typing import Final

from capwatch.record import OUTCOMES

PREFIX: Final = "capwatch_"
QUANTILES: Final = (0.5, 0.95, 0.99)  # of every summary (contract, section 4)

# What an enumerated label may say, here once for the meters that say it.
TOKEN_KINDS: Final = ("prompt_computed", "prompt_cached", "output")
PHASES: Final = ("gateway", "retrieval", "tool", "queue", "prefill", "decode", "other")
COST_PHASES: Final = ("prefill", "decode")
MISSED_REASONS: Final = ("ttft", "tpot", "both", "e2e", "error")
UNCLASSIFIED_REASONS: Final = ("no_timing", "no_tokens", "no_slo", "client", "cache_hit")
RANKS: Final = ("1", "2", "3", "4", "5")
VISITED_PHASES: Final = PHASES[:-1]  # nobody visits what is unexplained
MEASURED_PHASES: Final = ("queue", "running")
ENGINE_STATES: Final = ("busy", "idle", "unknown")
START_PHASES: Final = ("weights", "kv_cache", "ready", "first_request")
WINDOWS: Final = ("current", "reference")
STALE_REASONS: Final = ("engine", "profile")
DRIFT_DIRECTIONS: Final = ("up", "down")
EFFECTS: Final = ("mix", "prompt", "output", "cache")
DIMENSIONS: Final = ("tenant", "route", "class")
VERDICTS: Final = ("composition", "queueing", "both", "unknown")
WATCHES: Final = (  # one for each file of the shelf of watchers
    *("decode_step", "in_flight", "on_the_hour", "output_caps", "output_tail", "prefix_hits", "retries"),
)
PROMISES: Final = ("base", "burst", "zonal")
FAILURES: Final = ("none", "replica", "zone")
LATE_SOURCES: Final = ("predicted", "measured")
TOKEN_DIRECTIONS: Final = ("in", "out")
ROUTINGS: Final = ("isolated", "pooled")
THROTTLE_REASONS: Final = (  # NVML's clock event reasons that slow a card down; idling and set clocks are none
    "sw_power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
)
ECC_KINDS: Final = ("corrected", "uncorrected")
DROP_REASONS: Final = ("malformed", "too_long", "bad_utf8", "bad_time", "bad_number", "partial")
OVERFLOW_LABELS: Final = ("tenant", "route", "model", "tenant_route", "series")  # one for each of `limits`
RESET_REASONS: Final = ("corrupt", "requested")


class Kind(Enum):
    """How a metric behaves and is exposed."""

    COUNTER = "counter"
    GAUGE = "gauge"
    SUMMARY = "summary"
    HISTOGRAM = "histogram"
    NATIVE = "native histogram"  # exists in the protobuf exposition only


@dataclass(frozen=True, slots=True, eq=False)  # there is one of each: compared and hashed as itself, which is quick
class Metric:
    """What is said about one metric, the same in the exposition, the reference and `capwatch metrics`."""

    name: str
    """Full name: with the prefix and, for counters and only for them, with ``_total``."""
    kind: Kind
    unit: str
    """Plural, or "ratio"; "" for flags, scores and plain events. `family` ends in it, except where an entry sets it."""
    help: str
    """One line: what it counts, what it does not, and what it rests on. Needs no escaping in any format."""
    labels: tuple[str, ...]
    """Label names in the order of label values; ``quantile`` and ``le`` are the exposition's own and not listed."""
    values: Mapping[str, tuple[str, ...]]
    """All that an enumerated label may say, by label; a label not in here is open (a tenant, a source …)."""
    section: str
    """Heading in the reference."""

    @property
    def family(self) -> str:
        """The name of the metric family in OpenMetrics: `name` without ``_total``."""
        return self.name.removesuffix("_total")


# The units that a name can end in; the first that fits is taken, so a longer one stands before its own ending.
# fmt: off
_UNITS: Final = (
    "replica_seconds", "tokens_per_second", "tokens_per_minute", "seconds", "tokens", "requests", "replicas", "series",
    "rps", "ratio", "bytes", "joules", "watts", "celsius", "hertz",
)
# fmt: on

# What holds for every metric of a kind, and ends its help.
_ENDING: Final = {
    Kind.SUMMARY: ". Quantiles over the last 5 minutes of event time, error at most 0.55 %; sum and count for life.",
    Kind.HISTOGRAM: ". Buckets at 2^(k/4) over the useful range and at every SLO bound configured for it, all exact.",
    Kind.NATIVE: ". Native histogram of schema 3, error at most 9.1 % (coarser from 160 buckets on), by protobuf only.",
}


class _Section:
    """A heading, and how the entries below it are written."""

    def __init__(self, heading: str) -> None:
        self._heading = heading

    def __call__(
        self, kind: Kind, name: str, labels: str, text: str, /, unit: str | None = None, **values: tuple[str, ...]
    ) -> Metric:
        """One entry; `labels` parted by blanks, `unit` only where the name does not end in it."""
        family = name.removesuffix("_total")
        found = next((known for known in _UNITS if family.endswith("_" + known)), "")
        return Metric(
            name=name,
            kind=kind,
            unit=found if unit is None else unit,
            help=text + _ENDING.get(kind, "."),
            labels=tuple(labels.split()),
            values=MappingProxyType(values),
            section=self._heading,
        )


_COUNTER, _GAUGE, _SUMMARY, _HISTOGRAM, _NATIVE = Kind

# fmt: off
# The table, laid out by hand: an entry's name and labels on its first line, its help below. Help ends without a stop.

_requests = _Section("Requests")

_PROMPT = "Prompt tokens of a request, cached ones included"
_OUTPUT = "Output tokens of a request, reasoning included"
_TTFT = "Time from arrival to the first output token of a stream, only where the log measures it"
_TPOT = "Time per output token, (duration - TTFT) / (output tokens - 1), from 2 output tokens on"
_DURATION = "Time from arrival to the last byte"
_QUEUE = "Time that a request waited for an engine, where the log tells it"
_RETIRED = " of names retired after 7 days of silence, whose own series are gone; kept here so that no total falls"

REQUESTS = _requests(_COUNTER, "capwatch_requests_total", "tenant route model outcome",
    "Finished requests by outcome, duplicate log lines left out", outcome=OUTCOMES)
TOKENS = _requests(_COUNTER, "capwatch_tokens_total", "tenant route model kind",
    "Tokens of finished requests: prompt computed, prompt taken from the prefix cache, output; the three are disjoint",
    kind=TOKEN_KINDS)
USAGE_UNKNOWN = _requests(_COUNTER, "capwatch_usage_unknown_total", "source",
    "Requests that finished ok but whose log tells no token counts, so that tokens and cost lack them", unit="requests")
PROMPT_TOKENS = _requests(_SUMMARY, "capwatch_prompt_tokens", "tenant route", _PROMPT)
OUTPUT_TOKENS = _requests(_SUMMARY, "capwatch_output_tokens", "tenant route", _OUTPUT)
TTFT_SECONDS = _requests(_SUMMARY, "capwatch_ttft_seconds", "tenant route", _TTFT)
TPOT_SECONDS = _requests(_SUMMARY, "capwatch_tpot_seconds", "tenant route", _TPOT)
DURATION_SECONDS = _requests(_SUMMARY, "capwatch_duration_seconds", "tenant route", _DURATION)
ROUTE_PROMPT_TOKENS = _requests(_HISTOGRAM, "capwatch_route_prompt_tokens", "route pool", _PROMPT)
ROUTE_OUTPUT_TOKENS = _requests(_HISTOGRAM, "capwatch_route_output_tokens", "route pool", _OUTPUT)
ROUTE_TTFT_SECONDS = _requests(_HISTOGRAM, "capwatch_route_ttft_seconds", "route pool", _TTFT)
ROUTE_TPOT_SECONDS = _requests(_HISTOGRAM, "capwatch_route_tpot_seconds", "route pool", _TPOT)
ROUTE_DURATION_SECONDS = _requests(_HISTOGRAM, "capwatch_route_duration_seconds", "route pool", _DURATION)
TENANT_PROMPT_TOKENS = _requests(_NATIVE, "capwatch_tenant_prompt_tokens", "tenant route", _PROMPT)
TENANT_OUTPUT_TOKENS = _requests(_NATIVE, "capwatch_tenant_output_tokens", "tenant route", _OUTPUT)
TENANT_TTFT_SECONDS = _requests(_NATIVE, "capwatch_tenant_ttft_seconds", "tenant route", _TTFT)
TENANT_TPOT_SECONDS = _requests(_NATIVE, "capwatch_tenant_tpot_seconds", "tenant route", _TPOT)
TENANT_DURATION_SECONDS = _requests(_NATIVE, "capwatch_tenant_duration_seconds", "tenant route", _DURATION)
ROUTE_QUEUE_SECONDS = _requests(_HISTOGRAM, "capwatch_route_queue_seconds", "route pool", _QUEUE)
COST_REPLICA_SECONDS = _requests(_COUNTER, "capwatch_cost_replica_seconds_total", "tenant route pool phase",
    "Cost of finished requests: computed prompt tokens / prefill rate, output tokens / decode rate of the pool;"
    " reckoned from tokens, not measured busy time", phase=COST_PHASES)
PREFILL_SAVED_REPLICA_SECONDS = _requests(_COUNTER, "capwatch_prefill_saved_replica_seconds_total", "tenant route pool",
    "Prefill cost that cached prompt tokens spared, at the pool's prefill rate; not part of the cost")
ABANDONED_REPLICA_SECONDS = _requests(_COUNTER, "capwatch_abandoned_replica_seconds_total", "pool",
    "The part of the cost that went into requests ended as client_abort or timeout, as far as their rows carry tokens")
RETIRED_REQUESTS = _requests(_COUNTER, "capwatch_retired_requests_total", "", "Requests" + _RETIRED)
RETIRED_TOKENS = _requests(_COUNTER, "capwatch_retired_tokens_total", "", "Tokens" + _RETIRED)
RETIRED_COST_REPLICA_SECONDS = _requests(_COUNTER, "capwatch_retired_cost_replica_seconds_total", "", "Cost" + _RETIRED)
UNCAPPED_REQUESTS = _requests(_COUNTER, "capwatch_uncapped_requests_total", "route",
    "Requests that asked for no cap on their output, where the log tells caps")
GOODPUT_REQUESTS = _requests(_COUNTER, "capwatch_goodput_requests_total", "tenant route",
    "Requests whose TTFT and TPOT (and duration, where the SLO bounds it) were within target, bounds included")
GOODPUT_MISSED = _requests(_COUNTER, "capwatch_goodput_missed_total", "tenant route reason",
    "Requests that missed a target of their SLO or that the service failed (error)", unit="requests",
    reason=MISSED_REASONS)
GOODPUT_UNCLASSIFIED = _requests(_COUNTER, "capwatch_goodput_unclassified_total", "tenant route reason",
    "Requests neither good nor missed: data or SLO lacking, ended by the client's doing, or answered from a cache",
    unit="requests", reason=UNCLASSIFIED_REASONS)
RETRIES = _requests(_COUNTER, "capwatch_retries_total", "route",
    "Attempts of a request beyond its first: told by its row, or rows of an attempt group that has just failed")
DUPLICATES = _requests(_COUNTER, "capwatch_duplicates_total", "route",
    "Repeated records of a request id within the dedupe window; they count nowhere else", unit="requests")
TENANT_SHARE_RATIO = _requests(_GAUGE, "capwatch_tenant_share_ratio", "pool rank",
    "Share of the pool's cost in the last hour that its dearest tenants took, rank 1 the dearest", rank=RANKS)

_inflight = _Section("In flight")

PHASE_SECONDS = _inflight(_COUNTER, "capwatch_phase_seconds_total", "pool phase",
    "Residence of finished requests by phase, other being what the log leaves unexplained;"
    " its rate is the number in flight by Little's law", phase=PHASES)
PHASE_VISITS = _inflight(_COUNTER, "capwatch_phase_visits_total", "pool phase",
    "Visits of finished requests to a phase, as far as logs tell them; its rate over that of capwatch_departures_total"
    " is the visits per request, v of L = λvW", unit="requests", phase=VISITED_PHASES)
INFLIGHT_LITTLES_LAW = _inflight(_GAUGE, "capwatch_inflight_littles_law", "pool phase",
    "Requests in flight by Little's law: arrival rate times mean residence over the last 5 minutes of event time;"
    " holds while capwatch_littles_law_valid is 1", unit="requests", phase=PHASES)
INFLIGHT_MEASURED = _inflight(_GAUGE, "capwatch_inflight_measured", "pool phase",
    "Requests in flight as the pool's engines tell them; what waits in front of an engine is not in it",
    unit="requests", phase=MEASURED_PHASES)
LITTLES_LAW_RESIDUAL_RATIO = _inflight(_GAUGE, "capwatch_littles_law_residual_ratio", "pool",
    "Measured in flight / in flight by Little's law - 1; above 0 for long means work that the log does not see")
LITTLES_LAW_VALID = _inflight(_GAUGE, "capwatch_littles_law_valid", "pool",
    "1 while Little's law can be trusted; 0 while arrivals and departures of the 5 minutes that end one p99 residence"
    " ago differ by more than 10 %, or requests are too few")
ARRIVALS = _inflight(_COUNTER, "capwatch_arrivals_total", "pool",
    "Requests that arrived, from admission lines where the log has them, otherwise counted when they finish",
    unit="requests")
DEPARTURES = _inflight(_COUNTER, "capwatch_departures_total", "pool",
    "Requests that finished, whatever their outcome", unit="requests")
QUEUE_SECONDS = _inflight(_SUMMARY, "capwatch_queue_seconds", "pool class", _QUEUE)
OLDEST_WAITING_SECONDS = _inflight(_GAUGE, "capwatch_oldest_waiting_seconds", "pool",
    "Age of the oldest request without a first token; only where a log tells of requests while they go on (Envoy's"
    " start and periodic rows), withdrawn 15 minutes after the last such row")

_engines = _Section("Engines")

_TOLD = ", as the engine last told in its log or on its endpoint; withdrawn when older than the source's patience"

ENGINE_RUNNING_REQUESTS = _engines(_GAUGE, "capwatch_engine_running_requests", "pool engine",
    "Requests being worked on" + _TOLD)
ENGINE_WAITING_REQUESTS = _engines(_GAUGE, "capwatch_engine_waiting_requests", "pool engine",
    "Requests waiting inside the engine" + _TOLD)
ENGINE_KV_CACHE_UTILISATION_RATIO = _engines(_GAUGE, "capwatch_engine_kv_cache_utilisation_ratio", "pool engine",
    "Share of the KV cache in use" + _TOLD)
ENGINE_KV_CACHE_CAPACITY_TOKENS = _engines(_GAUGE, "capwatch_engine_kv_cache_capacity_tokens", "pool engine",
    "Tokens that the KV cache can hold" + _TOLD)
ENGINE_PREFIX_HIT_RATIO = _engines(_GAUGE, "capwatch_engine_prefix_hit_ratio", "pool engine",
    "Cached share of prompt tokens" + _TOLD)
ENGINE_PROMPT_TOKENS_PER_SECOND = _engines(_GAUGE, "capwatch_engine_prompt_tokens_per_second", "pool engine",
    "Prompt tokens a second" + _TOLD)
ENGINE_OUTPUT_TOKENS_PER_SECOND = _engines(_GAUGE, "capwatch_engine_output_tokens_per_second", "pool engine",
    "Output tokens a second" + _TOLD)
ENGINE_PREEMPTIONS = _engines(_COUNTER, "capwatch_engine_preemptions_total", "pool engine",
    "Running sequences that the engine pushed out for want of KV memory")
ENGINE_RESTARTS = _engines(_COUNTER, "capwatch_engine_restarts_total", "pool engine",
    "Restarts of the engine that its log or its own counters showed")
ENGINE_STATE = _engines(_GAUGE, "capwatch_engine_state", "pool engine state",
    "1 on the state that the engine is in, 0 on the others; unknown is an engine not heard of within its patience",
    state=ENGINE_STATES)
COVERAGE_RATIO = _engines(_GAUGE, "capwatch_coverage_ratio", "pool",
    "Requests seen in logs / requests counted by the engines, last hour; below 1 some work is in no log")
JOIN_RATIO = _engines(_GAUGE, "capwatch_join_ratio", "pool",
    "Share of counted requests that were joined with their line in an engine's log, which adds phase times")
RECOMPUTED_TOKENS = _engines(_COUNTER, "capwatch_recomputed_tokens_total", "pool",
    "Tokens computed once more after a preemption, where an engine tells it; not part of the cost")

COLD_START_SECONDS = _engines(_GAUGE, "capwatch_cold_start_seconds", "pool phase",
    "Time from the newest start of an engine of the pool until its weights were loaded, its KV cache allocated, it was "
    "ready, its first good request was done; absent while it has not come so far, or its log does not tell",
    phase=START_PHASES)

_drift = _Section("Drift")

COST_PER_REQUEST_REPLICA_SECONDS = _drift(_GAUGE, "capwatch_cost_per_request_replica_seconds", "pool window",
    "Mean cost of a request, now and in the reference learnt from the same hours of history", window=WINDOWS)
DRIFT_ACTIVE = _drift(_GAUGE, "capwatch_drift_active", "pool direction",
    "1 while a drift of the cost per request is active, up being dearer; request rate alone never raises it",
    direction=DRIFT_DIRECTIONS)
DRIFT_SCORE = _drift(_GAUGE, "capwatch_drift_score", "pool",
    "Evidence for a drift on a scale where 1 is the alarm level set by false_alarms_per_month")
DRIFT_COST_CHANGE_RATIO = _drift(_GAUGE, "capwatch_drift_cost_change_ratio", "pool",
    "Change of the cost per request against the reference: 0.26 is 26 % more")
DRIFT_REQUEST_RATE_CHANGE_RATIO = _drift(_GAUGE, "capwatch_drift_request_rate_change_ratio", "pool",
    "Change of the request rate against the reference: 0.26 is 26 % more; for comparison, it takes no part in alarms")
DRIFT_EFFECT_REPLICA_SECONDS = _drift(_GAUGE, "capwatch_drift_effect_replica_seconds", "pool effect",
    "What each cause adds to the cost per request; they add up to its change, mix being over classes and centred on"
    " the reference mean", effect=EFFECTS)
DRIFT_CONTRIBUTION_REPLICA_SECONDS = _drift(_GAUGE, "capwatch_drift_contribution_replica_seconds",
    "pool dimension value effect",
    "What one tenant, route or class adds to the cost per request: the 10 largest, only while a drift is active;"
    " dimensions overlap, never add across them", dimension=DIMENSIONS, effect=EFFECTS)
DRIFT_ALARMS = _drift(_COUNTER, "capwatch_drift_alarms_total", "pool direction",
    "Drift alarms raised", direction=DRIFT_DIRECTIONS)
DRIFT_STARTED_TIMESTAMP_SECONDS = _drift(_GAUGE, "capwatch_drift_started_timestamp_seconds", "pool",
    "Estimated change point of the active drift, seconds since the epoch")
DRIFT_VERDICT = _drift(_GAUGE, "capwatch_drift_verdict", "pool verdict",
    "1 on the verdict that holds for the active drift, 0 on the others: dearer requests, longer queues, or both",
    verdict=VERDICTS)
DRIFT_LEARNING = _drift(_GAUGE, "capwatch_drift_learning", "pool",
    "1 while history is too short for the detector and only a wide fixed rule can alarm, 0 after")
WATCH_ACTIVE = _drift(_GAUGE, "capwatch_watch_active", "pool watch",
    "1 while the last minutes differ from the hour before: retries sent, prefix hits lost, output tail grown, outputs"
    " without a cap, in flight risen at a flat rate, decode step slowed at unchanged load; or bursts on the hour",
    watch=WATCHES)
WATCH_CHANGE_RATIO = _drift(_GAUGE, "capwatch_watch_change_ratio", "pool watch",
    "Change of what is watched against the hour before: 0.26 is 26 % more; of bursts on the hour against the minutes"
    " before", watch=WATCHES)

_capacity = _Section("Capacity")

UTILISATION_RATIO = _capacity(_GAUGE, "capwatch_utilisation_ratio", "pool",
    "Arrival rate times cost per request / replicas; rests on the pool's token rates, not on a GPU reading")
REPLICAS = _capacity(_GAUGE, "capwatch_replicas", "pool",
    "Replicas of the pool, configured or observed as live engines")
REPLICAS_NEEDED = _capacity(_GAUGE, "capwatch_replicas_needed", "pool promise",
    "Replicas that keep a promise at the target utilisation: today's load, a burst, a burst after losing a zone",
    unit="replicas", promise=PROMISES)
HEADROOM_REPLICAS = _capacity(_GAUGE, "capwatch_headroom_replicas", "pool failure",
    "Replicas beyond what the present load needs at the target utilisation, after that failure; below 0 it does not"
    " hold", failure=FAILURES)
HPA_DESIRED_REPLICAS = _capacity(_GAUGE, "capwatch_hpa_desired_replicas", "pool",
    "Replicas that the HPA formula asks for, from requests in flight and inflight_target; nothing is scaled by it")
KV_DEMAND_TOKENS = _capacity(_GAUGE, "capwatch_kv_demand_tokens", "pool",
    "KV cache that running requests need at most: their number times mean prompt and output of one that runs, by"
    " residence; what waits holds none. Running as engines tell it, else residence in prefill and decode, else all in"
    " flight, which is more")
KV_DEMAND_RATIO = _capacity(_GAUGE, "capwatch_kv_demand_ratio", "pool",
    "KV cache that running requests need / what the pool's replicas hold")
ARRIVAL_CV2 = _capacity(_GAUGE, "capwatch_arrival_cv2", "pool",
    "Squared coefficient of variation of the times between arrivals, measured; 1 is Poisson, more is bursty")
SERVICE_CV2 = _capacity(_GAUGE, "capwatch_service_cv2", "pool",
    "Squared coefficient of variation of the cost per request, measured; 1 is exponential")
EXPECTED_WAIT_SECONDS = _capacity(_GAUGE, "capwatch_expected_wait_seconds", "pool",
    "Mean wait that the Allen-Cunneen formula expects from measured rate and variability (1 where they cannot be"
    " measured); too low for bursty arrivals, infinite where the load is more than the replicas can do")
EXPECTED_WAIT_PEAKED_SECONDS = _capacity(_GAUGE, "capwatch_expected_wait_peaked_seconds", "pool",
    "Mean wait that Hayward's approximation expects where arrivals come in bursts: the queue of c/z servers and load"
    " a/z, z = (Ca² + 1)/2; near the truth where the Allen-Cunneen mean is half of it, and that of M/M/c at Ca² 1")
LATE_SHARE_RATIO = _capacity(_GAUGE, "capwatch_late_share_ratio", "pool source",
    "Share of requests that wait longer than the wait budget: predicted by queue formula, or measured where logs tell"
    " the wait", source=LATE_SOURCES)
TOKENS_PER_MINUTE = _capacity(_GAUGE, "capwatch_tokens_per_minute", "pool direction",
    "Prompt tokens (in, cached ones included) and output tokens (out) a minute, as quotas count them",
    direction=TOKEN_DIRECTIONS)
BURST_P99_TO_MEDIAN_RATIO = _capacity(_GAUGE, "capwatch_burst_p99_to_median_ratio", "pool",
    "99th percentile / median of the requests in each second of the last week")
BURST_LONGEST_SECONDS = _capacity(_GAUGE, "capwatch_burst_longest_seconds", "pool",
    "Longest run of seconds with more than twice the median of requests, last week")
BURST_MAX_RAMP_RPS = _capacity(_GAUGE, "capwatch_burst_max_ramp_rps", "pool",
    "Largest rise of the request rate from one second to the next, last week")
COST_BURST_P99_TO_MEDIAN_RATIO = _capacity(_GAUGE, "capwatch_cost_burst_p99_to_median_ratio", "pool",
    "99th percentile / median of the cost that arrives in each second of the last week")
COST_BURST_LONGEST_SECONDS = _capacity(_GAUGE, "capwatch_cost_burst_longest_seconds", "pool",
    "Longest run of seconds with more than twice the median of cost, last week")
COST_BURST_MAX_RAMP_REPLICA_SECONDS = _capacity(_GAUGE, "capwatch_cost_burst_max_ramp_replica_seconds", "pool",
    "Largest rise of the cost that arrives from one second to the next, last week")
OVERLOAD_SECONDS = _capacity(_COUNTER, "capwatch_overload_seconds_total", "pool",
    "Seconds in which more cost arrived than the replicas can work off in a second")
RETRY_AMPLIFICATION_RATIO = _capacity(_GAUGE, "capwatch_retry_amplification_ratio", "pool",
    "Attempts / unique requests; 1 without retries")
BUDGET_WOULD_REJECT = _capacity(_COUNTER, "capwatch_budget_would_reject_total", "tenant",
    "Requests that the tenant's budget in replica-seconds would have refused; a shadow, nothing is refused, and "
    "late requests are not judged",
    unit="requests")
BUDGET_OVERSUBSCRIPTION_RATIO = _capacity(_GAUGE, "capwatch_budget_oversubscription_ratio", "pool",
    "Sum of the tenants' budgets / replicas; above 1 is a choice, not a fault")
QUOTA_HEADROOM_RATIO = _capacity(_GAUGE, "capwatch_quota_headroom_ratio", "pool",
    "Share of the configured tokens per minute that is left; below 0 the quota is exceeded")
QUOTA_EXHAUSTION_SECONDS = _capacity(_GAUGE, "capwatch_quota_exhaustion_seconds", "pool",
    "Time until the configured tokens per minute are used up if the last hour's growth goes on; infinite without any")
TENANT_FAIRNESS_RATIO = _capacity(_GAUGE, "capwatch_tenant_fairness_ratio", "pool",
    "Jain's index of the tenants' shares of cost, last hour: 1 where all have the same, 1/n where one of n has all")
USABLE_RPS = _capacity(_GAUGE, "capwatch_usable_rps", "pool routing",
    "Largest request rate that keeps the late share, with a queue for each replica (isolated) or one for all (pooled)",
    routing=ROUTINGS)
ALLOWED_UTILISATION_RATIO = _capacity(_GAUGE, "capwatch_allowed_utilisation_ratio", "pool routing",
    "Utilisation at which the late share is just kept, with a queue for each replica (isolated) or one for all"
    " (pooled); a target_utilisation above it breaks the wait budget", routing=ROUTINGS)
STAGE_CAPACITY_RPS = _capacity(_GAUGE, "capwatch_stage_capacity_rps", "pool phase",
    "User requests a second that a stage sustains, as configured; the lowest is the next limit")
LOAD_IMBALANCE_RATIO = _capacity(_GAUGE, "capwatch_load_imbalance_ratio", "pool",
    "Coefficient of variation of running requests over the pool's engines; 0 is even")
BACKLOG_TOKENS = _capacity(_GAUGE, "capwatch_backlog_tokens", "pool",
    "Estimated tokens of the requests that wait for an engine, prompt and output")
CLASS_REQUESTS = _capacity(_COUNTER, "capwatch_class_requests_total", "pool class",
    "Finished requests by configured class")
CLASS_COST_REPLICA_SECONDS = _capacity(_COUNTER, "capwatch_class_cost_replica_seconds_total", "pool class",
    "Cost of finished requests by configured class, reckoned from tokens")
CLASS_DURATION_SECONDS = _capacity(_SUMMARY, "capwatch_class_duration_seconds", "pool class", _DURATION)
CALIBRATION_AGE_SECONDS = _capacity(_GAUGE, "capwatch_calibration_age_seconds", "pool",
    "Time since the pool's token rates were measured, by the clock of events; absent while they are only assumed")
CALIBRATION_ERROR_RATIO = _capacity(_GAUGE, "capwatch_calibration_error_ratio", "pool",
    "Error of the busy time that the calibration predicts for the requests of the last 5 minutes, with as many at once "
    "as there were, against the prefill and decode times they told; of decode alone where the log tells no waiting")
CALIBRATION_STALE = _capacity(_GAUGE, "capwatch_calibration_stale", "pool reason",
    "1 while the calibration should be done again: engine, the KV cache has another size than then; profile, mean "
    "prompt or output tokens are over 1.5 times those of then, or under 2/3; absent where that is not known",
    reason=STALE_REASONS)

_gpu = _Section("GPU")

_NVML = "; read from NVML every 5 s and not by the scrape, withdrawn when older than 30 s; absent where not supported"
_DRIVER_COUNTS = "; counted by the driver, also while capwatch was not running"

GPU_INFO = _gpu(_GAUGE, "capwatch_gpu_info", "gpu uuid name driver",
    "1, with the card's name and driver version as labels" + _NVML)
GPU_POOL_INFO = _gpu(_GAUGE, "capwatch_gpu_pool_info", "gpu uuid pool",
    "1 for each pool whose configuration names the card")
GPU_BUSY_RATIO = _gpu(_GAUGE, "capwatch_gpu_busy_ratio", "gpu uuid",
    "Share of time some kernel was resident, not capacity: it can read 1 on a card with room to spare" + _NVML)
GPU_MEMORY_BUSY_RATIO = _gpu(_GAUGE, "capwatch_gpu_memory_busy_ratio", "gpu uuid",
    "Share of time some memory was being read or written, not bandwidth" + _NVML)
GPU_MEMORY_USED_BYTES = _gpu(_GAUGE, "capwatch_gpu_memory_used_bytes", "gpu uuid",
    "Memory allocated; engines reserve theirs at start, so it does not tell the KV cache in use" + _NVML)
GPU_MEMORY_TOTAL_BYTES = _gpu(_GAUGE, "capwatch_gpu_memory_total_bytes", "gpu uuid",
    "Memory of the card" + _NVML)
GPU_POWER_WATTS = _gpu(_GAUGE, "capwatch_gpu_power_watts", "gpu uuid",
    "Power drawn" + _NVML)
GPU_ENERGY_JOULES = _gpu(_COUNTER, "capwatch_gpu_energy_joules_total", "gpu uuid",
    "Energy drawn" + _DRIVER_COUNTS + _NVML)
GPU_TEMPERATURE_CELSIUS = _gpu(_GAUGE, "capwatch_gpu_temperature_celsius", "gpu uuid",
    "Temperature of the chip" + _NVML)
GPU_SM_CLOCK_HERTZ = _gpu(_GAUGE, "capwatch_gpu_sm_clock_hertz", "gpu uuid",
    "Clock of the streaming multiprocessors" + _NVML)
GPU_THROTTLED = _gpu(_GAUGE, "capwatch_gpu_throttled", "gpu uuid reason",
    "1 while the card is slowed down for this reason, else 0" + _NVML, reason=THROTTLE_REASONS)
GPU_ECC_ERRORS = _gpu(_COUNTER, "capwatch_gpu_ecc_errors_total", "gpu uuid kind",
    "Memory errors found by ECC" + _DRIVER_COUNTS + _NVML, kind=ECC_KINDS)
GPU_XID_ERRORS = _gpu(_COUNTER, "capwatch_gpu_xid_errors_total", "gpu uuid xid",
    "XID events of the driver while capwatch listened; events, so nothing sticks after a recovery")
GPU_UP = _gpu(_GAUGE, "capwatch_gpu_up", "gpu uuid",
    "1 while the last reading of the card succeeded, else 0")
NVML_UP = _gpu(_GAUGE, "capwatch_nvml_up", "",
    "1 while the NVML library answers, else 0")

_own = _Section("capwatch itself")

LINES_READ = _own(_COUNTER, "capwatch_lines_read_total", "source",
    "Lines read; always the sum of lines counted, skipped and dropped", unit="lines")
LINES_COUNTED = _own(_COUNTER, "capwatch_lines_counted_total", "source",
    "Lines that gave a record", unit="lines")
LINES_SKIPPED = _own(_COUNTER, "capwatch_lines_skipped_total", "source",
    "Lines understood but no record of their own: blank, other events, parts of a longer record, duplicates",
    unit="lines")
LINES_DROPPED = _own(_COUNTER, "capwatch_lines_dropped_total", "source reason",
    "Lines that could not be understood and count nowhere else", unit="lines", reason=DROP_REASONS)
SOURCE_BYTES_READ = _own(_COUNTER, "capwatch_source_bytes_read_total", "source",
    "Bytes of whole lines read; copies of content read before count once", unit="bytes")
SOURCE_LAG_BYTES = _own(_GAUGE, "capwatch_source_lag_bytes", "source",
    "Bytes written to the source's files but not yet read, an unfinished last line included")
SOURCE_LAST_EVENT_TIMESTAMP_SECONDS = _own(_GAUGE, "capwatch_source_last_event_timestamp_seconds", "source",
    "Newest event time in the source, seconds since the epoch by the log's own clock")
SOURCE_UP = _own(_GAUGE, "capwatch_source_up", "source",
    "1 while the source can be read, else 0; a source without news is up")
SOURCE_ROTATIONS = _own(_COUNTER, "capwatch_source_rotations_total", "source",
    "Log rotations noticed")
SOURCE_TRUNCATIONS = _own(_COUNTER, "capwatch_source_truncations_total", "source",
    "Files found cut or rewritten in place")
SOURCE_BYTES_LOST = _own(_COUNTER, "capwatch_source_bytes_lost_total", "source reason",
    "Bytes known to have been written but gone before they were read", unit="bytes")
SOURCE_BYTES_SKIPPED = _own(_COUNTER, "capwatch_source_bytes_skipped_total", "source",
    "Bytes passed over on purpose, since the source starts at its end", unit="bytes")
LABEL_OVERFLOW = _own(_COUNTER, "capwatch_label_overflow_total", "label",
    "Requests counted as other because this limit was reached", unit="requests", label=OVERFLOW_LABELS)
SERIES = _own(_GAUGE, "capwatch_series", "",
    "Series exposed at present, bounded by limits.series")
LATE_RECORDS = _own(_COUNTER, "capwatch_late_records_total", "source",
    "Requests whose event time was older than the 5-minute window; in totals and histograms, not in quantiles",
    unit="requests")
COMMIT_TIMESTAMP_SECONDS = _own(_GAUGE, "capwatch_commit_timestamp_seconds", "",
    "Time of the last commit, seconds since the epoch; all that is shown is as old as that")
COMMIT_DURATION_SECONDS = _own(_GAUGE, "capwatch_commit_duration_seconds", "",
    "Time that the last commit took; live, so not itself part of what is committed")
COMMIT_ERRORS = _own(_COUNTER, "capwatch_commit_errors_total", "",
    "Commits that failed since the start of the process and are tried again; live, so not itself committed")
STATE_RESETS = _own(_COUNTER, "capwatch_state_resets_total", "reason",
    "Times that the state was moved aside and counting began anew", reason=RESET_REASONS)
CONFIG_LAST_RELOAD_SUCCESSFUL = _own(_GAUGE, "capwatch_config_last_reload_successful", "",
    "1 while the configuration in force is the one last asked for, 0 after a reload that failed")
CONFIG_LAST_RELOAD_SUCCESS_TIMESTAMP_SECONDS = _own(_GAUGE, "capwatch_config_last_reload_success_timestamp_seconds", "",
    "Time when the configuration in force was loaded, seconds since the epoch")
BUILD_INFO = _own(_GAUGE, "capwatch_build_info", "version revision python",
    "1, with the version of capwatch, its revision and the version of Python as labels")

# fmt: on

CATALOGUE: Final[Mapping[str, Metric]] = MappingProxyType(
    {entry.name: entry for entry in tuple(globals().values()) if isinstance(entry, Metric)}
)
"""Every metric by its full name, in the order of the contract."""


def as_json(metrics: Iterable[Metric]) -> str:
    """The metrics for machines: a JSON list of objects, in the given order.

    >>> print(as_json([NVML_UP]))
    [
      {
        "name": "capwatch_nvml_up",
        "kind": "gauge",
        "unit": "",
        "labels": [],
        "help": "1 while the NVML library answers, else 0.",
        "values": {},
        "section": "GPU"
      }
    ]
    """
    rows = [
        {
            "name": metric.name,
            "kind": metric.kind.value,
            "unit": metric.unit,
            "labels": metric.labels,
            "help": metric.help,
            "values": dict(metric.values),
            "section": metric.section,
        }
        for metric in metrics
    ]
    return json.dumps(rows, indent=2)


def as_text(metrics: Iterable[Metric], width: int = 100) -> str:
    """The metrics for a person: under each section's heading, name, kind and labels aligned, the help below.

    `width` is the columns that help is wrapped to; a long name or list of labels may stick out.

    >>> print(as_text([REPLICAS, NVML_UP]))
    Capacity
      capwatch_replicas  gauge  pool
          Replicas of the pool, configured or observed as live engines.
    GPU
      capwatch_nvml_up   gauge
          1 while the NVML library answers, else 0.
    """
    rows = tuple(metrics)
    name_width = max((len(metric.name) for metric in rows), default=0)
    kind_width = max((len(metric.kind.value) for metric in rows), default=0)
    lines: list[str] = []
    for section, entries in groupby(rows, key=lambda metric: metric.section):
        lines.append(section)
        for metric in entries:
            head = f"  {metric.name:{name_width}}  {metric.kind.value:{kind_width}}  {', '.join(metric.labels)}"
            enumerated = (f"{label} = {' | '.join(values)}" for label, values in metric.values.items())
            lines.append(head.rstrip())
            lines += (
                wrapped
                for text in (metric.help, *enumerated)
                for wrapped in textwrap.wrap(text, width, initial_indent=" " * 6, subsequent_indent=" " * 6)
            )
    return "\n".join(lines)
