"""What a metric of the catalogue rests on beyond a scraped capwatch: why it may be absent, and how it comes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from capwatch import metrics as m
from capwatch.metrics import CATALOGUE, Kind, Metric


@dataclass(frozen=True, slots=True)
class Need:
    """A source or a setting that is optional.

    Attributes:
        what: what is not there.
        fix: how it comes.
    """

    what: str
    fix: str


GPU: Final = Need(
    "no GPU is read", "on a host with cards: pip install 'capwatch[gpu]' and `gpu: {nvml: on}`; elsewhere nothing"
)
ENGINES: Final = Need("no engine is heard", "name the engines' pages in `engines:` or their logs in `sources:`")
COUNTING: Final = Need(
    "no engine counts its requests, or none could be joined",
    "scrape the engines' pages: `engines:` in the configuration",
)
REPLICAS: Final = Need("a pool has no replicas", "set `pools[].replicas`, to a number or to `observed`")
KV: Final = Need(
    "the size of the KV cache is not known", "set `pools[].kv_pool_tokens`, or scrape engines that tell it"
)
TARGET: Final = Need("no target of requests in flight", "set `pools[].inflight_target` to use the HPA formula")
STAGES: Final = Need("no stage has a capacity", "set `pools[].stages` for the chain of limits")
QUOTAS: Final = Need("no quota is configured", "set `quotas:` where a provider or gateway limits tokens per minute")
BUDGETS: Final = Need("no tenant has a budget", "set `budgets:` to see what a token bucket would refuse")
CALIBRATION: Final = Need(
    "no pool has a calibration", "measure the rates: `capwatch calibrate`, and name its file in `pools[].calibration`"
)
SLO: Final = Need("no request could be judged", "set `slo:` with targets for TTFT and TPOT")
TIMES: Final = Need("no log tells the time to first token", "use a log that does; docs/howto.md says which")
WAIT: Final = Need("no log tells the wait apart from prefill", "use an engine's log that tells it, with `role: times`")
VARIABILITY: Final = Need("too few requests in the last minutes", "nothing: it comes with traffic")
PROTOBUF: Final = Need(
    "native histograms are not scraped", "Prometheus: --enable-feature=native-histograms, or scrape_native_histograms"
)
ACTIVE: Final = Need("no drift is active", "nothing: it is there while a drift is")
EVENT: Final = Need("it has not happened yet, or no log tells it", "nothing: the series comes with the first event")
HISTORY: Final = Need("there is no history of a day", "nothing: keep at least 8 days, and wait for the first")
PROCESS: Final = Need("the process does not tell about itself", "nothing on systems without /proc")
QUIET: Final = Need(
    "recorded rules give nothing yet", "nothing: they need some minutes of history, or wait for their condition"
)

_NEEDS: Final[Mapping[Need, tuple[Metric, ...]]] = {
    COUNTING: (m.COVERAGE_RATIO, m.JOIN_RATIO, m.RECOMPUTED_TOKENS, m.COLD_START_SECONDS),
    ENGINES: (m.INFLIGHT_MEASURED, m.LITTLES_LAW_RESIDUAL_RATIO, m.LOAD_IMBALANCE_RATIO, m.BACKLOG_TOKENS),
    REPLICAS: (
        m.REPLICAS, m.UTILISATION_RATIO, m.HEADROOM_REPLICAS, m.EXPECTED_WAIT_SECONDS, m.USABLE_RPS,
        m.OVERLOAD_SECONDS, m.LATE_SHARE_RATIO, m.REPLICAS_NEEDED,
    ),
    KV: (m.KV_DEMAND_TOKENS, m.KV_DEMAND_RATIO),
    TARGET: (m.HPA_DESIRED_REPLICAS,),
    STAGES: (m.STAGE_CAPACITY_RPS,),
    QUOTAS: (m.QUOTA_HEADROOM_RATIO, m.QUOTA_EXHAUSTION_SECONDS),
    BUDGETS: (m.BUDGET_WOULD_REJECT, m.BUDGET_OVERSUBSCRIPTION_RATIO),
    CALIBRATION: (m.CALIBRATION_AGE_SECONDS, m.CALIBRATION_ERROR_RATIO, m.CALIBRATION_STALE),
    SLO: (m.GOODPUT_REQUESTS, m.GOODPUT_MISSED),
    TIMES: (m.TTFT_SECONDS, m.TPOT_SECONDS, m.ROUTE_TTFT_SECONDS, m.ROUTE_TPOT_SECONDS),
    WAIT: (m.QUEUE_SECONDS, m.ROUTE_QUEUE_SECONDS),
    VARIABILITY: (m.ARRIVAL_CV2, m.SERVICE_CV2),
    ACTIVE: (
        m.DRIFT_CONTRIBUTION_REPLICA_SECONDS, m.DRIFT_STARTED_TIMESTAMP_SECONDS, m.DRIFT_VERDICT,
        m.DRIFT_EFFECT_REPLICA_SECONDS, m.DRIFT_COST_CHANGE_RATIO, m.DRIFT_REQUEST_RATE_CHANGE_RATIO,
    ),
}  # fmt: skip
_BY_METRIC: Final = {metric: need for need, metrics in _NEEDS.items() for metric in metrics}
_SUFFIXES: Final = ("_bucket", "_sum", "_count")


def known(series: str) -> Metric | None:
    """The metric of the catalogue that a series belongs to."""
    base = next((series.removesuffix(one) for one in _SUFFIXES if series.endswith(one)), series)
    return CATALOGUE.get(series) or CATALOGUE.get(base)


def need(series: str) -> Need:
    """Why a series of a scraped capwatch is absent.

    >>> need("capwatch_gpu_busy_ratio").what, need("capwatch_route_ttft_seconds_bucket").what
    ('no GPU is read', 'no log tells the time to first token')
    """
    metric = known(series)
    if metric is None:
        return PROCESS if series.startswith("process_") else EVENT
    if metric.kind is Kind.NATIVE:
        return PROTOBUF
    if metric.section == "GPU":
        return GPU
    return _BY_METRIC.get(metric) or (ENGINES if metric.section == "Engines" else EVENT)
