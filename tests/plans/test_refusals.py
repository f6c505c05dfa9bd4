"""What cannot be is refused: exit code 2, exactly one line on stderr that names the option, nothing on stdout."""

from __future__ import annotations

import shlex

import pytest

from capwatch.console.options import Option
from tests.plans.calls import CALLS, EACH, changed, pairs, told, typed, without

Captured = pytest.CaptureFixture[str]

NEVER = [
    "nan",
    "inf",
    "-inf",
    "-1",
    "1e400",
    "-0.5",
    "",
    "x",
    "5 parsecs",
    "0x10",
    "1_000",
    "٣",
    "1;2",
    "1e-400x",
    "9" * 99,
]
"""What no number here may be."""


def refused(arguments: list[str], name: str, capsys: Captured) -> None:
    """The call is refused, and the line names what is wrong."""
    code, out, err = told(arguments, capsys)
    assert (code, out, err.count("\n"), name in err) == (2, "", 1, True), (code, out, err)


def forms(call: str, option: Option, bad: str) -> list[str]:
    """A bad number alone, and in the place of each number of what the example has."""
    good = next((value for name, value in pairs(call) if name == option.name), "1")
    found = [bad]
    for sign in "=:/@*,":
        head, cut, tail = good.partition(sign)
        if cut and sign == "=":
            found += [f"{head}={bad}", f"={tail}", head]
        elif cut:
            found += [f"{head}{sign}{bad}"] + ([] if "=" in head else [f"{bad}{sign}{tail}"])
    return found


@pytest.mark.parametrize(("call", "option"), EACH)
def test_a_number_that_cannot_be(call: str, option: Option, capsys: Captured) -> None:
    """For every option, and for each number inside its value."""
    for bad in NEVER:
        for text in forms(call, option, bad):
            refused(changed(call, option.name, text), option.name, capsys)


@pytest.mark.parametrize(("call", "option"), EACH)
def test_a_missing_option(call: str, option: Option, capsys: Captured) -> None:
    """What must be given is asked for by its name; what need not be is not."""
    if option.needed:
        refused(without(call, option.name), option.name, capsys)
    else:
        assert option.optional or option.default is not None


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("unknown", ["--nonsense", "--nonsense=1", "--versio", "--jso", "-z", "extra"])
def test_an_unknown_option(call: str, unknown: str, capsys: Captured) -> None:
    """Named before anything that is missing, without a usage block; no option may be cut short."""
    refused([*call.split(), unknown], unknown.partition("=")[0], capsys)
    refused([*typed(call, pairs(call)), unknown], unknown.partition("=")[0], capsys)


@pytest.mark.parametrize("call", CALLS)
def test_an_option_without_its_value(call: str, capsys: Captured) -> None:
    """The one at the end is named."""
    *rest, (last, _) = pairs(call)
    refused([*typed(call, rest), last], last, capsys)


@pytest.mark.parametrize(
    ("call", "option"),
    [
        ("plan size", "--demand-tps"), ("plan size", "--replica-tps"), ("plan size", "--zones"),
        ("plan size", "--target"),
        ("plan pooled", "--peak"), ("plan pooled", "--slots"), ("plan pooled", "--service"), ("plan pooled", "--late"),
        ("plan pooled", "--ramp"), ("plan kv", "--layers"), ("plan kv", "--gpus"), ("plan kv", "--weights"),
        ("plan kv", "--context"), ("plan kv", "--bandwidth"), ("plan spike", "--from"), ("plan spike", "--to"),
        ("plan spike", "--capacity"), ("plan spike", "--capacity-after"), ("plan regions", "--peak"),
        ("plan regions", "--replica-rps"), ("plan whatif", "--rate"), ("plan whatif", "--replicas"),
        ("plan whatif", "--prefill-tps"), ("plan whatif", "--decode-tps"), ("plan hpa", "--replicas"),
        ("plan hpa", "--target"), ("plan quota", "--rate"), ("plan budget", "--rate"), ("plan budget", "--burst"),
        ("plan crossover", "--tokens-per-second"), ("plan little", "--rate"), ("simulate", "--replicas"),
        ("simulate", "--open"), ("simulate", "--closed"), ("simulate", "--requests"),
    ],
)  # fmt: skip
def test_zero_where_nothing_can_be_divided_by_it(call: str, option: str, capsys: Captured) -> None:
    """Rates, replicas, slots, tokens per second."""
    unit = "s" if option == "--service" else ""
    refused(changed(call, option, "0" + unit), option, capsys)
    refused(changed(call, option, "1e-300" + unit), option, capsys)


OTHERS = {
    "plan size --target 1.2": "--target",
    "plan size --target 101%": "--target",
    "plan size --zones 2.5": "--zones",
    "plan size --burst 0.9": "--burst",
    "plan pooled --slots 31.5": "--slots",
    "plan pooled --late 1": "--late",
    "plan pooled --late 100%": "--late",
    "plan pooled --late 0": "--late",
    "plan pooled --wait 5": "--wait",
    "plan pooled --service 12.25m3": "--service",
    "plan pooled --ramp 0.5/fortnight": "--ramp",
    "plan pooled --peak 1e12": "--peak",
    "plan kv --weights 140GX": "--weights",
    "plan kv --weights 1TB": "--weights",
    "plan kv --bandwidth 3.35TB/min": "--bandwidth",
    "plan kv --kv-per-token 1MiB": "--kv-per-token",
    "plan spike --ready 170": "--ready",
    "plan regions --region us=0.1": "'us' is given twice",
    "plan little --phase model=1s": "'model' is given twice",
    "plan little --phase x=1s@0": "--phase",
    "plan chain --stage tool=3": "'tool' is given twice",
    "plan chain --stage x=3@0": "--stage",
    "plan whatif --to 0.80,0.12,0.07": "--to",
    "plan whatif --to 0.8,0.2": "--to",
    "plan whatif --to 1": "--to",
    "plan whatif --mix policy=0.84:1300/80": "--mix",
    "plan whatif --mix policy=0.85:1300": "--mix",
    "plan whatif --mix order=0.85:1300/80": "'order' is given twice",
    "plan whatif --blend 1.5": "--blend",
    "plan budget --take 3:1": "--take",
    "plan budget --take 0:1:1": "--take",
    "simulate --mix policy=0.84:0.825": "--mix",
    "simulate --mix long=0.85:0.825": "'long' is given twice",
    "simulate --closed 1.5": "--closed",
    "simulate --requests 1e9": "--requests",
    "simulate --seed -7": "--seed",
}


@pytest.mark.parametrize("line", OTHERS)
def test_what_a_number_alone_does_not_show(line: str, capsys: Captured) -> None:
    """Bounds, units, sums, repeated names, order of time."""
    *call, option, value = line.split(" ")
    refused(changed(" ".join(call), option, value), OTHERS[line], capsys)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("plan kv", "--kv-per-token"),
        ("plan kv --layers 80 --kv-heads 8 --head-dim 128", "--element-bytes"),
        ("plan kv --kv-per-token 1MiB --gpus 2 --gpu-memory 80GB", "--weights"),
        ("plan kv --kv-per-token 1MiB --bandwidth 3TB/s", "--weights"),
        ("plan kv --kv-per-token 1MiB --reserve 6GB", "--gpu-memory"),
        ("plan pooled --peak 40 --slots 32 --service 12s --wait 1s --late 1% --lag 8min", "--ramp"),
        ("plan pooled --peak 40 --slots 32 --service 12s --wait 1s --late 1% --ramp 1/min", "--lag"),
        ("plan whatif --mix a=1:0/0 --to 1 --prefill-tps 1 --decode-tps 1 --rate 1 --replicas 1", "--mix"),
        ("simulate --mix a=1:1 --replicas 2", "--open"),
        ("plan nonsense", "'nonsense'"),
        ("plan", "CALCULATION"),
    ],
)
def test_options_that_need_each_other(line: str, name: str, capsys: Captured) -> None:
    """The one that is missing is named."""
    refused(shlex.split(line), name, capsys)
