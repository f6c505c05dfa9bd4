"""What seeded traffic consists of: its classes, pools, service levels, outcomes and faults, with their shares."""

from __future__ import annotations

from dataclasses import dataclass

PHASES = ("gateway", "retrieval", "tool", "queue", "prefill", "decode")  # the order in which a request lives them

# outcome → (HTTP status, share of the requests)
OUTCOMES = {
    "ok": (200, 0.90),
    "client_abort": (499, 0.03),
    "rate_limited": (429, 0.02),
    "overload": (503, 0.005),
    "timeout": (504, 0.015),
    "client_error": (400, 0.01),
    "content_filter": (400, 0.005),
    "upstream_error": (502, 0.01),
    "gateway_error": (500, 0.005),
}

# names that try the escaping of labels; control characters are left out, their replacement is not laid down
AWKWARD_TENANTS = ('acme "quoted"', "back\\slash", "zürich-ünïcode")

# how a broken field is written; the record then lacks the field (and what makes no sense without it)
DAMAGES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("prompt_tokens", '"12"', ("cached_tokens",)),
    ("output_tokens", "true", ()),
    ("output_tokens", "2000000000", ()),  # beyond the range of 1e9
    ("cached_tokens", "-5", ()),
    ("duration_s", "-1.5", ("ttft_s", *(f"{phase}_s" for phase in PHASES))),
    ("ttft_s", "NaN", ()),
    ("ttft_s", "1e400", ()),
    ("retrieval_s", '"0.1"', ()),
    ("retries", '"1"', ()),
)


@dataclass(frozen=True)
class TrafficClass:
    """One kind of question: its share of the traffic, its routes, and (median, log-sd) of its lengths in tokens."""

    name: str
    share: float
    routes: tuple[str, ...]
    prompt: tuple[float, float]
    output: tuple[float, float]


@dataclass(frozen=True)
class Pool:
    """Replicas that serve `models` (empty: whatever no pool before it serves) at the given tokens per second."""

    name: str
    models: tuple[str, ...]
    prefill_rate: float
    decode_rate: float
    replicas: int = 4


@dataclass(frozen=True)
class Slo:
    """A service level in seconds for one route (None: any route); the first that matches holds."""

    ttft_s: float
    tpot_s: float
    e2e_s: float | None = None
    route: str | None = None


@dataclass(frozen=True)
class Options:
    """What to draw; times in seconds, shares 0..1, rate in requests per second."""

    seed: int = 7
    start: float = 1_767_225_600.0  # 2026-01-01 00:00 UTC
    duration_s: float = 900.0
    rate: float = 10.0
    clustered: bool = False  # False: Poisson; True: clusters of 5 requests on average, within about a second
    tenants: int = 300  # more than the 200 names the product grants by default
    tenant_exponent: float = 1.1  # Zipf: the k-th tenant has weight k^-exponent
    classes: tuple[TrafficClass, ...] = (
        TrafficClass("policy", 0.80, ("/v1/chat/completions", "/v1/messages", "/rag/answer"), (1300, 0.9), (80, 0.8)),
        TrafficClass("order_lookup", 0.13, ("/v1/orders/status", "/v1/orders/refund"), (3200, 0.5), (150, 0.6)),
        TrafficClass("long_summary", 0.02, ("/v1/summaries",), (9000, 0.4), (400, 0.5)),
        TrafficClass("embedding", 0.05, ("/v1/embeddings",), (350, 0.7), (0.8, 0.5)),  # outputs of 0, 1, 2 tokens
    )
    models: tuple[str, ...] = ("chat-70b", "chat-8b", "embed-1")
    pools: tuple[Pool, ...] = (Pool("large", ("chat-70b",), 4000, 160, 12), Pool("small", (), 16000, 900))
    slos: tuple[Slo, ...] = (Slo(2.5, 0.05, 30.0, "/v1/summaries"), Slo(0.5, 0.035))
    late_share: float = 0.005  # rows written ten minutes after their neighbours
    ancient_rows: int = 5  # rows 25 h old
    future_rows: int = 1  # rows a year ahead
    duplicate_share: float = 0.01
    damage_share: float = 0.02
    garbage_share: float = 0.01
    line_bytes: int = 65_536  # the source's limit: one line longer than it is written
