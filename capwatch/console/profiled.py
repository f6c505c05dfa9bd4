"""A workload profile from a file, as an option of a calculation."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from capwatch.config.units import found

MOST_BYTES: Final = 16 << 20
"""A profile is some pages; one with a thousand routes is below a megabyte."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What calculations take of a profile: requests/s, and share, computed prompt and output tokens of each class."""

    rate: float
    classes: Mapping[str, tuple[float, float, float]]


def profile(path: str) -> Profile:
    """Read a document of `capwatch profile`; raises ValueError, with the key at fault."""
    try:
        with open(path, "rb") as file:
            document = json.loads(file.read(MOST_BYTES))
    except OSError as error:
        raise ValueError(f"{found(path)} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise ValueError(f"{found(path)} is no JSON; give a document of `capwatch profile`") from None
    classes = _mapping(_mapping(document, path).get("classes"), "classes")
    lengths = ("share", "mean_computed_prompt_tokens", "mean_output_tokens")
    told = {}
    for name, one in classes.items():
        values = [_number(_mapping(one, f"classes.{name}").get(key), f"classes.{name}.{key}") for key in lengths]
        told[name] = (values[0], values[1], values[2])
    if not told:
        raise ValueError("classes: it has none, so there is no mix")
    return Profile(_number(_mapping(document.get("arrivals"), "arrivals").get("mean_rps"), "arrivals.mean_rps"), told)


def _mapping(value: object, key: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ValueError(f"{key}: is no mapping; give a document of `capwatch profile`")  # noqa: TRY004 - as options do
    return value


def _number(value: object, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(f"{key}: found {found(str(value))}; needed is a number from 0 on")
    return float(value)
