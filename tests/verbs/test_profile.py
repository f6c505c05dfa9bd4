"""`capwatch profile`: the document of a log whose traffic is known, and of logs that tell little or nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from capwatch.cli import main

START = 1_790_000_000.0 - 1_790_000_000.0 % 60
CONFIG = """
sources: [{name: gateway, path: x.jsonl, format: jsonl}]
pools: [{name: chat, match: {model: chat}, prefill_tokens_per_second: 4000, decode_tokens_per_second: 160}]
classes:
  - {name: long, match: {route: /long}}
  - {name: short, match: {}}
"""
Profile = Callable[..., dict[str, Any]]


def traffic(n: int = 4800) -> list[dict[str, Any]]:
    """Eight a second for ten minutes, a quarter of them long ones of one tenant; written in the order of their ends."""
    rows = []
    for number in range(n):
        long = number % 4 == 0
        at = START + number / 8
        rows.append(
            {
                "started_at": at, "finished_at": at + (9 if long else 2), "duration_s": 9.0 if long else 2.0,
                "tenant": "acme" if long else f"t{number % 3}", "route": "/long" if long else "/short", "model": "chat",
                "prompt_tokens": 4000 if long else 1000, "cached_tokens": 2000 if long else 0,
                "output_tokens": 320 if long else 80, "stream": not long, "status": 200,
            }
        )  # fmt: skip
    return sorted(rows, key=lambda row: float(row["finished_at"]))


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Profile:
    """A way to the document of a log."""
    monkeypatch.chdir(tmp_path)

    def call(rows: list[dict[str, Any]], *words: str) -> dict[str, Any]:
        Path("capwatch.yml").write_text(CONFIG)
        Path("x.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        assert main(["profile", "--config.file", "capwatch.yml", *words]) == 0
        shown = capsys.readouterr()
        assert shown.err == ""
        found: dict[str, Any] = json.loads(shown.out)
        return found

    return call


def test_a_known_traffic(profile: Profile) -> None:
    """Every figure as it follows from the rows."""
    found = profile(traffic())
    assert found["window"] == {
        "since": "2026-09-21T14:13:00Z", "until": "2026-09-21T14:23:00Z", "bucket_s": 1, "requests": 4800,
        "with_tokens_share": 1.0,
    }  # fmt: skip
    assert found["arrivals"]["mean_rps"] == 8.0
    assert found["arrivals"]["p99_5min_rps"] == 8.0
    assert found["classes"] == {
        "short": {"share": 0.75, "mean_cost": 0.75, "mean_computed_prompt_tokens": 1000.0, "mean_output_tokens": 80.0},
        "long": {"share": 0.25, "mean_cost": 2.5, "mean_computed_prompt_tokens": 2000.0, "mean_output_tokens": 320.0},
    }
    assert found["prompt_tokens"]["mean"] == 1750.0
    assert found["prefix_cache_hit_rate"] == pytest.approx(500 / 1750)
    assert found["streaming"] == 0.75
    assert found["tenants"]["count"] == 4
    assert found["tenants"]["top1_share_of_cost"] == pytest.approx(0.25 * 2.5 / 1.1875)
    assert found["cost"]["mean_replica_seconds"] == pytest.approx(1.1875)
    assert found["cost"]["calibration"] == "configured"


def test_a_window_by_arrivals(profile: Profile) -> None:
    """A request belongs to it when it came in it, whenever it ended."""
    found = profile(traffic(), "--since", "2026-09-21T14:14:00Z", "--until", str(START + 120))
    assert (found["window"]["requests"], found["arrivals"]["mean_rps"]) == (480, 8.0)
    assert found["window"]["since"] == "2026-09-21T14:14:00Z"


def test_a_calculation_begins_from_it(profile: Profile, capsys: pytest.CaptureFixture[str]) -> None:
    """`plan whatif --profile` has its mix, its lengths without the cached part, and its rate."""
    Path("p.json").write_text(json.dumps(profile(traffic())))
    words = "plan whatif --profile p.json --to 0.5,0.5 --prefill-tps 4000 --decode-tps 160 --replicas 12 --json"
    assert main(words.split()) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["cost_before"], found["cost_after"]) == (pytest.approx(1.1875), pytest.approx(1.625))
    assert found["utilisation_before"] == pytest.approx(8 * 1.1875 / 12)
    assert list(found["effects"]) == ["short", "long"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "--profile: 'p.json' is no JSON"),
        ("[]", "--profile: p.json: is no mapping"),
        ('{"classes": {}}', "--profile: classes: it has none"),
        ('{"classes": {"a": 1}}', "--profile: classes.a: is no"),
        ('{"classes": {"a": {"share": null}}}', "--profile: classes.a.share: found 'None'"),
        ('{"classes": {"a": {"share": NaN}}}', "--profile: classes.a.share: found 'nan'"),
    ],
)
def test_what_is_no_profile(content: str, said: str, profile: Profile, capsys: pytest.CaptureFixture[str]) -> None:
    """One line that names the key."""
    Path("p.json").write_text(content)
    words = "plan whatif --profile p.json --to 1 --prefill-tps 4000 --decode-tps 160 --replicas 12"
    assert main(words.split()) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert shown.err.startswith(said)


def test_the_mix_comes_from_one_place(profile: Profile, capsys: pytest.CaptureFixture[str]) -> None:
    """--mix beside --profile is refused, and neither of them as well."""
    Path("p.json").write_text(json.dumps(profile(traffic(40))))
    rest = "--to 1 --prefill-tps 4000 --decode-tps 160 --replicas 12"
    assert main(f"plan whatif --profile p.json --mix a=1:10/10 --rate 1 {rest}".split()) == 2
    assert capsys.readouterr().err == "--mix: given beside --profile; give one of the two\n"
    assert main(f"plan whatif --rate 1 {rest}".split()) == 2
    assert capsys.readouterr().err == "--mix: is missing; give --mix NAME=SHARE:PROMPT/OUTPUT, or --profile FILE\n"


@pytest.mark.parametrize("rows", [[], [{"finished_at": START}], [{"finished_at": START, "status": 429}] * 3])
def test_logs_that_tell_little(rows: list[dict[str, Any]], profile: Profile) -> None:
    """What is not known is null, with a reason."""
    found = profile(rows)
    assert found["prompt_tokens"] is None
    assert found["cost"] is None
    assert found["notes"]["prompt_tokens"] == "the log does not tell it"
    assert "window" in found["notes"] or rows


def test_a_request_with_a_wrong_clock(tmp_path: Path, profile: Profile, capsys: pytest.CaptureFixture[str]) -> None:
    """A window of years is refused, with the way out; inside --since and --until it does no harm."""
    rows = [{"finished_at": 1000.0, "duration_s": 1.0}, *traffic(80)]
    assert profile(rows, "--since", str(START))["window"]["requests"] == 80
    assert main(["profile", "--config.file", "capwatch.yml"]) == 2
    assert "give --since and --until" in capsys.readouterr().err


def test_arrivals_of_chance(profile: Profile) -> None:
    """Poisson arrivals have Ca² of 1 and are steady."""
    at = np.cumsum(np.random.default_rng(1).exponential(1 / 20, 12_000))
    found = profile([{"started_at": START + one, "finished_at": START + one + 0.5} for one in at.tolist()])
    assert found["arrivals"]["cv2"] == pytest.approx(1, abs=0.05)
    assert found["arrivals"]["pattern"] == "steady"
