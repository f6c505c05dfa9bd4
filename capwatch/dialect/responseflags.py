"""Envoy's response flags: what became of a request, as Envoy and the gateways made of it (Higress, Istio) print it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from capwatch.dialect.settle import of_status
from capwatch.dialect.value import text

Json = Mapping[str, object]

FLAGS: Final = {
    "DC": "client_abort",
    **dict.fromkeys(("UT", "SI", "UMSDR", "DT"), "timeout"),
    **dict.fromkeys(("RL", "RLSE"), "rate_limited"),
    **dict.fromkeys(("UO", "UH", "OM"), "overload"),
    **dict.fromkeys(("UF", "UC", "UR", "LR", "UPE", "URX"), "upstream_error"),
    **dict.fromkeys(("NR", "NC", "DPE", "IH", "UAEX"), "gateway_error"),
}
"""What a response flag says of the outcome (Envoy access log documents)."""
PRECEDENCE: Final = (
    "client_abort",
    "timeout",
    "rate_limited",
    "client_error",
    "overload",
    "upstream_error",
    "gateway_error",
)


def outcome(row: Json, code: int | None) -> str | None:
    """What flags, details and status of a line say together; None where it has none of them.

    A 200 with a flag is a stream that broke. Of a 5xx the flags say who made it.

    >>> outcome({"response_flags": "DC"}, 200), outcome({"response_flags": "UF,URX"}, 503), outcome({}, None)
    ('client_abort', 'upstream_error', None)
    """
    flags = _flags(row)
    details = text(row.get("response_code_details")) or ""
    said = {FLAGS[flag] for flag in flags if flag in FLAGS}
    if details == "downstream_remote_disconnect":
        said.add("client_abort")
    by_status = None if code is None or (code == 0 and said) else of_status(code)
    if by_status == "upstream_error" and "gateway_error" in said:
        by_status = None
    elif by_status == "upstream_error" and not said and details and details != "via_upstream":
        by_status = "gateway_error"
    if by_status not in (None, "ok"):
        said.add(by_status)
    return next((word for word in PRECEDENCE if word in said), by_status)


def limiter(row: Json) -> str:
    """Envoy's own limiters set a flag; what came through them was limited upstream."""
    local = _flags(row) & {"RL", "RLSE"} or text(row.get("upstream_host")) is None
    return "gateway" if local else "upstream"


def _flags(row: Json) -> set[str]:
    return {flag.strip() for flag in (text(row.get("response_flags")) or "").split(",")}
