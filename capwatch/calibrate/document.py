"""The calibration file: what was measured, how well, over which range, and of what (`capwatch.config.calibration`)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import numpy as np
import yaml

from capwatch.calibrate.fit import Estimate, Fit, busy_error
from capwatch.calibrate.memory import Memory
from capwatch.calibrate.slots import Slots, slots
from capwatch.calibrate.windows import Observed
from capwatch.config.calibration import VERSION
from capwatch.errors import CapwatchError
from capwatch.record import Floats

ENDS: Final = (0.05, 0.95)
"""Quantiles between which a calibration is valid: beyond them there was too little to see."""
DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class About:
    """What a calibration is of; None is not told."""

    pool: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    model: str | None = None
    flags: str | None = None
    source: str = "requests"
    """Where the numbers are from: `requests` of a log, or a load generator."""


@dataclass(slots=True)
class Measured:
    """All that is known when the file is written."""

    about: About
    found: Fit
    measured_at: float
    """s, epoch, of the newest request."""
    tpot: tuple[float, float] | None
    """The target that slots have to keep, s, and the share of requests that has to keep it."""
    prompt: Floats
    output: Floats
    """float64[n], tokens."""
    hit_rate: float | None = None
    observed: Observed | None = None
    memory: Memory | None = None
    notes: list[str] = field(default_factory=list)


def document(told: Measured) -> dict[str, object]:
    """The file as a mapping, in the order in which it is read.

    Raises:
        CapwatchError: a rate could not be told.
    """
    running = told.found.rows.occupancy
    running = running[~np.isnan(running) & (told.found.rows.before == 0)]
    limit = _slots(told)
    at = float(limit.value) if limit and limit.value else float(np.quantile(running, ENDS[1]))
    prefill, decode = told.found.prefill(), told.found.decode(at)
    for name, rate in (("prefill", prefill), ("decode", decode)):
        if rate is None:
            raise CapwatchError(
                f"the {name} rate could not be told from noise: more requests, or more varied ones, are needed"
            )
    assert prefill is not None and decode is not None  # noqa: PT018, S101 - just refused
    model, about = told.found.model, told.about
    memory = told.memory
    error = busy_error(told.observed) if told.observed is not None else None
    return {
        "capwatch_calibration": VERSION,
        "measured_at": f"{datetime.fromtimestamp(told.measured_at, UTC):%Y-%m-%dT%H:%M:%SZ}",
        **{name: getattr(about, name) for name in ("source", "pool", "engine", "engine_version", "model", "flags")},
        "rates": {
            "prefill_tokens_per_second": _estimate(prefill),
            "decode_tokens_per_second": {**_estimate(decode), "at_occupancy": _short(at)},
        },
        "step_seconds": {"base": _short(model.step), "per_sequence": _short(model.sequence)},
        "first_token_overhead_seconds": _short(float(told.found.coefficients[3])),
        "slots": _told_slots(limit, told.tpot),
        "kv": {
            "pool_tokens": memory.tokens if memory else None,
            "bytes_per_token": _short(memory.bytes_per_token) if memory and memory.bytes_per_token else None,
        },
        "range": {
            "occupancy": _ends(running),
            "prompt_tokens": _ends(told.prompt),
            "output_tokens": _ends(told.output),
        },
        "profile": {
            "requests": len(told.prompt),
            "prompt_tokens": _short(float(told.prompt.mean())),
            "output_tokens": _short(float(told.output.mean())),
            "prefix_cache_hit_rate": None if told.hit_rate is None else _short(told.hit_rate),
        },
        "busy_time_error_ratio": None if error is None else _short(error),
        "notes": told.notes,
    }  # fmt: skip


def as_yaml(made: Mapping[str, object]) -> str:
    """The file's text."""
    return yaml.safe_dump(dict(made), sort_keys=False, allow_unicode=True, width=120)


def _slots(told: Measured) -> Slots | None:
    if told.tpot is None:
        told.notes.append("slots: no target of the time per output token was given (--tpot, or slo)")
        return None
    found = slots(told.found.rows, *told.tpot)
    if found.why:
        told.notes.append(f"slots: {found.why}")
    return found


def _told_slots(found: Slots | None, tpot: tuple[float, float] | None) -> dict[str, object] | None:
    if found is None or tpot is None:
        return None
    return {"value": found.value, "at_least": found.at_least, "tpot_seconds": tpot[0], "share": tpot[1]}


def _estimate(one: Estimate) -> dict[str, object]:
    return {"value": _short(one.value), "low": _short(one.low), "high": _short(one.high)}


def _ends(values: Floats) -> list[float] | None:
    return [_short(float(end)) for end in np.quantile(values, ENDS)] if len(values) else None


def _short(value: float) -> float:
    """To six digits: no calibration knows more."""
    if not value or not math.isfinite(value):
        return 0.0
    return round(value, DIGITS - 1 - math.floor(math.log10(abs(value))))
