"""A calibration file: what a replica was measured to do, and how pools of the configuration take it over.

`capwatch calibrate` writes it and `pools[].calibration` names it; keys of the pool that are given there win.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, cast

import yaml

from capwatch.errors import ConfigError

VERSION: Final = 1
"""Of the layout of the file. A change of it needs a reader for every older one."""
MOST_BYTES: Final = 1 << 20
"""A calibration is a page of text."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What of the file is used; None is not told.

    Attributes:
        measured_at: s, epoch, the newest request behind it.
        prefill: computed prompt tokens/s that a replica prefills alone.
        decode: output tokens/s that a full replica decodes in all.
        step: seconds of a decode step beside its sequences.
        sequence: seconds that each running sequence adds to it.
        slots: sequences at once.
        kv_pool_tokens: tokens in the KV cache of a replica.
        prompt, output: mean tokens of a request.
    """

    measured_at: float
    prefill: float
    decode: float
    step: float | None = None
    sequence: float | None = None
    slots: int | None = None
    kv_pool_tokens: int | None = None
    prompt: float | None = None
    output: float | None = None


def read(path: str) -> Calibration:
    """Read a calibration file.

    Raises:
        ConfigError: it cannot be read, or is none; the text names the key.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
        document = yaml.safe_load(content) if len(content) <= MOST_BYTES else None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", path) from None
    except (yaml.YAMLError, ValueError, RecursionError):  # such as a date that is none
        raise ConfigError("is no YAML; have it written by `capwatch calibrate`", path) from None
    if not isinstance(document, dict) or document.get("capwatch_calibration") != VERSION:
        raise ConfigError(f"is no calibration of version {VERSION}; have it written by `capwatch calibrate`", path)
    found = _Document(document, path)
    return Calibration(
        measured_at=found.time("measured_at"),
        prefill=found.needed("rates.prefill_tokens_per_second.value"),
        decode=found.needed("rates.decode_tokens_per_second.value"),
        step=found.number("step_seconds.base", least=0),
        sequence=found.number("step_seconds.per_sequence", least=0),
        slots=found.count("slots.value"),
        kv_pool_tokens=found.count("kv.pool_tokens"),
        prompt=found.number("profile.prompt_tokens", least=0),
        output=found.number("profile.output_tokens", least=0),
    )


class _Document:
    """The values of a mapping by dotted path."""

    def __init__(self, document: Mapping[str, object], path: str) -> None:
        self._document = document
        self._path = path

    def _get(self, key: str) -> object:
        value: object = self._document
        for part in key.split("."):
            value = cast("Mapping[str, object]", value).get(part) if isinstance(value, Mapping) else None
        return value

    def number(self, key: str, least: float) -> float | None:
        value = self._get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < math.inf:
            raise ConfigError(f"{key}: found {value!r}; possible is a number of at least {least:g}", self._path)
        return float(value)

    def needed(self, key: str) -> float:
        value = self.number(key, least=0.001)  # what is divided by it stays finite
        if value is None:
            raise ConfigError(f"{key}: missing; have the file written by `capwatch calibrate`", self._path)
        return value

    def count(self, key: str) -> int | None:
        value = self.number(key, least=1)
        return None if value is None else int(value)

    def time(self, key: str) -> float:
        value = self._get(key)
        try:
            at = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        except ValueError:
            raise ConfigError(
                f"{key}: found {value!r}; possible is a time such as 2026-11-30T09:41:00Z", self._path
            ) from None
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def told(found: Calibration) -> dict[str, float | int]:
    """What the file tells, by key of a pool."""
    values = {
        "prefill_tokens_per_second": found.prefill,
        "decode_tokens_per_second": found.decode,
        "slots": found.slots,
        "kv_pool_tokens": found.kv_pool_tokens,
    }
    return {name: value for name, value in values.items() if value is not None}
