"""What the calculations answer: the agreed calls to ten digits, the same for people, and the edges."""

from __future__ import annotations

import json
import math
import shlex
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.cli import main
from capwatch.console.answer import number
from capwatch.plans import shelf
from tests.capacity.premises import erlang_c
from tests.plans.calls import CALLS, changed, pairs, told, typed

Captured = pytest.CaptureFixture[str]
AGREED: list[dict[str, Any]] = json.loads(
    (Path(__file__).resolve().parents[1] / "capacity" / "commands.json").read_text()
)
FLEET = "plan pooled --peak 40 --slots 32 --service 12.25s --wait 0.5s --late 1%"


def answer(line: str, capsys: Captured, warned: str = "") -> dict[str, Any]:
    """The JSON of a call, which has nothing to say on stderr but a warning."""
    code, out, err = told([*shlex.split(line), "--json"], capsys)
    assert (code, bool(err), warned in err) == (0, bool(warned), True)
    found: dict[str, Any] = json.loads(out, parse_constant=pytest.fail)
    return found


def same(found: object, expected: object) -> bool:
    """Equal to ten digits, the same keys in it at every depth, the same words."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and list(found) == list(expected) and same(
            list(found.values()), list(expected.values())
        )  # fmt: skip
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, bool | str):
        return found is expected or found == expected
    assert isinstance(expected, int | float)
    assert isinstance(found, int | float)
    return math.isclose(found, expected, rel_tol=5e-10, abs_tol=5e-10)


def test_every_calculation_has_an_agreed_call() -> None:
    """And none has no file."""
    assert {one["command"].split()[2] for one in AGREED} == set(shelf())


@pytest.mark.parametrize("one", AGREED, ids=lambda one: one["command"])
def test_an_agreed_call_is_answered_to_ten_digits(one: dict[str, Any], capsys: Captured) -> None:
    """With exactly the agreed keys, in their order."""
    _, line = one["command"].split(" ", 1)
    found = answer(line, capsys, "1.03" if " regions " in line else "")
    assert same(found, one["expect"]), found


@pytest.mark.parametrize("call", [call for call in CALLS if call != "simulate"])
def test_people_see_inputs_steps_and_the_same_result(call: str, capsys: Captured) -> None:
    """The example of the help: each option as it was typed, the steps, and each number of the JSON to six digits."""
    _, text, _ = told(typed(call, pairs(call)), capsys)
    _, found, _ = told([*typed(call, pairs(call)), "--json"], capsys)
    given_, _, rest = text.partition("\nsteps\n")
    steps, _, result = rest.partition("\nresult\n")
    assert all(f"  {option} " in given_ and value in given_ for option, value in pairs(call))
    assert steps.strip()
    assert all(shown in result for shown in numbers(json.loads(found)))


def numbers(value: object) -> list[str]:
    """Every number in a result, as people see it."""
    if isinstance(value, dict | list):
        return [one for part in (value.values() if isinstance(value, dict) else value) for one in numbers(part)]
    return [number(value)] if isinstance(value, int | float) and not isinstance(value, bool) else []


@pytest.mark.parametrize("call", CALLS)
def test_help_ends_in_an_example_and_tells_its_version(call: str, capsys: Captured) -> None:
    """Of every calculation; the options are all in it."""
    with pytest.raises(SystemExit) as end:
        main([*call.split(), "--help"])
    shown = capsys.readouterr().out
    example = shown.rpartition("example:\n")[2].strip()
    assert (end.value.code, example.replace("60000", "200")) == (0, CALLS[call][0])
    assert all(option.name in shown for option in CALLS[call][1])
    with pytest.raises(SystemExit):
        main([*call.split(), "--version"])
    assert capsys.readouterr().out.strip()[0].isdigit()


@pytest.mark.parametrize(
    "spelling", ["--late 0.01", "--late 1%", "--peak 40/s", "--peak 2400/min", "--service 12250ms"]
)
def test_units_are_a_way_to_write(spelling: str, capsys: Captured) -> None:
    """The same number in another unit is the same answer."""
    option, value = spelling.split()
    assert told([*changed("plan pooled", option, value), "--json"], capsys)[1] == told(
        [*typed("plan pooled", pairs("plan pooled")), "--json"], capsys
    )[1]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "key", "expected"),
    [
        ("plan size --demand-tps 1400 --replica-tps 100 --target 0.7 --burst 1.5 --zones 3", "zonal", 45),
        ("plan size --demand-tps 14 --replica-tps 1 --target 0.7 --burst 1 --zones 1", "base", 20),
        ("plan size --demand-tps 800 --replica-tps 100 --target 70% --burst 1.5 --zones 1", "zonal", 18),
        ("plan hpa --replicas 10 --current 3.85 --target 3.5", "desired", 10),
        ("plan hpa --replicas 10 --current 3.86 --target 3.5", "desired", 12),
        ("plan hpa --replicas 10 --current 3.86 --target 3.5 --tolerance 0.2", "desired", 10),
        ("plan spike --from 8 --to 20 --capacity 12 --ready 170s --capacity-after 20", "drain_s", None),
        ("plan spike --from 8 --to 20 --capacity 12 --ready 170s --capacity-after 15", "clear_at_s", None),
        ("plan spike --from 8 --to 20 --capacity 25 --ready 170s --capacity-after 30", "backlog", 0),
        ("plan kv --kv-per-token 320KiB --weights 140GB --gpus 2 --gpu-memory 80GB --context 4000", "sequences", 15),
        ("plan kv --kv-per-token 1MB --weights 70GB --gpus 1 --gpu-memory 80GB --context 1000", "sequences", 10),
        ("plan budget --rate 0.1 --burst 0.3 --take 0:0.1 --take 0:0.1 --take 0:0.1", "decisions", [True] * 3),
        ("plan chain --stage a=2 --stage b=1 --stage c=1", "bottleneck", "b"),
        ("plan pooled --peak 40 --slots 32 --service 12.25s --wait 0.5s --late 1%", "total", 17),
    ],
)
def test_at_the_edges(line: str, key: str, expected: object, capsys: Captured) -> None:
    """Whole quotients stay whole, tolerances include their edge, and what never ends is null."""
    assert answer(line, capsys)[key] == expected


def test_half_of_the_way_to_a_mix_is_half_of_its_cost(capsys: Captured) -> None:
    """--blend is a straight line."""
    _, out, _ = told([*changed("plan whatif", "--blend", "0.5"), "--json"], capsys)
    assert json.loads(out)["cost_after"] == pytest.approx(1.12025)


@pytest.mark.parametrize(("ca2", "late", "enough"), [(2, 0.007, 17), (4, 0.035, 18), (7, None, 19)])
def test_bursty_arrivals_are_sized_by_hayward_too(
    ca2: float, late: float | None, enough: int, capsys: Captured
) -> None:
    """Peakedness 1.5, 2.5 and 4: an extra key, and a warning exactly where the pooled size misses the target by it."""
    found = answer(f"{FLEET} --ca2 {ca2}", capsys, f"{enough} replicas keep it" if enough > 17 else "")
    assert (found["pooled"], found["hayward_pooled"]) == (17, enough)
    assert late is None or found["hayward_late_share"] == pytest.approx(late, abs=6e-4)


def test_without_bursty_arrivals_hayward_is_not_told(capsys: Captured) -> None:
    """Up to Ca² 1.5 the stretched tail will do."""
    assert "hayward_late_share" not in answer(f"{FLEET} --ca2 1.5", capsys)


@given(st.floats(0.5, 200), st.integers(1, 64), st.floats(0.5, 30), st.floats(0, 5), st.floats(0.001, 0.5))
def test_a_pooled_fleet_is_the_smallest_that_does(
    peak: float, slots: int, service: float, wait: float, late: float
) -> None:
    """By the sum in logarithms: late enough with one replica less, early enough as it is."""
    calculation = shelf()["pooled"]
    given_ = pooled_options(peak=peak, slots=slots, service=service, wait=wait, late=late)
    found = calculation.plan(given_).result["pooled"]
    assert isinstance(found, int)

    def share(replicas: int) -> float:
        servers, load = replicas * slots, peak * service
        if load >= servers:
            return 1.0
        return erlang_c(servers, load) * math.exp(-(servers / service - peak) * wait)

    assert share(found) < late * (1 + 1e-6)
    assert found == 1 or share(found - 1) >= late * (1 - 1e-6)


def pooled_options(**values: float) -> Namespace:
    """Options of a pooled fleet as they are read."""
    return Namespace(ca2=1.0, cs2=1.0, ramp=None, lag=None, spare=0, **values)
