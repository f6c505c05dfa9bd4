"""Calibration files: what is read of them, and what is refused with its key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from capwatch.config.calibration import Calibration, read
from capwatch.errors import ConfigError

MADE: dict[str, Any] = {
    "capwatch_calibration": 1,
    "measured_at": "2026-11-30T09:41:00Z",
    "rates": {"prefill_tokens_per_second": {"value": 4000}, "decode_tokens_per_second": {"value": 816.3}},
}


def written(folder: Path, text: str) -> str:
    """A file with this text."""
    (folder / "x.yml").write_text(text)
    return str(folder / "x.yml")


def test_the_least_that_is_one(tmp_path: Path) -> None:
    """Version, time and rates; all else may be missing, and is None."""
    assert read(written(tmp_path, yaml.safe_dump(MADE))) == Calibration(1796031660.0, 4000.0, 816.3)


def test_a_time_may_be_written_as_yaml_has_it(tmp_path: Path) -> None:
    """Without quotes YAML makes it a time by itself."""
    text = yaml.safe_dump(MADE).replace("'2026-11-30T09:41:00Z'", "2026-11-30T09:41:00Z")
    assert read(written(tmp_path, text)).measured_at == 1796031660.0


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"capwatch_calibration": 2}, "is no calibration of version 1"),
        ({"measured_at": "yesterday"}, "measured_at: found 'yesterday'"),
        ({"measured_at": None}, "measured_at: found None"),
        ({"rates": None}, "rates.prefill_tokens_per_second.value: missing"),
        ({"rates": [4000]}, "rates.prefill_tokens_per_second.value: missing"),
        (
            {"rates": {**MADE["rates"], "decode_tokens_per_second": {"value": 0}}},
            "rates.decode_tokens_per_second.value: found 0",
        ),
        ({"rates": {**MADE["rates"], "decode_tokens_per_second": {"value": float("nan")}}}, "found nan"),
        ({"slots": {"value": "many"}}, "slots.value: found 'many'"),
        ({"slots": {"value": True}}, "slots.value: found True"),
        ({"kv": {"pool_tokens": -1}}, "kv.pool_tokens: found -1"),
    ],
)
def test_what_is_refused(changed: dict[str, Any], said: str, tmp_path: Path) -> None:
    """The key, what was found, and what is possible, with the file."""
    with pytest.raises(ConfigError) as error:
        read(written(tmp_path, yaml.safe_dump(MADE | changed)))
    assert said in str(error.value)
    assert str(tmp_path / "x.yml") in str(error.value)


@pytest.mark.parametrize("text", ["", "a", "[1]", "{", "a: *b", "measured_at: 2026-13-45\n", "[" * 5000])
def test_what_is_no_calibration(text: str, tmp_path: Path) -> None:
    """Whatever it is, it is one line."""
    with pytest.raises(ConfigError, match=r"is no (YAML|calibration)"):
        read(written(tmp_path, text))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """Is named."""
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read(str(tmp_path / "none.yml"))
