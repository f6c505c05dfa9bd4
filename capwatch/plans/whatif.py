"""A change of the mix: what it does to the cost of a request, to utilisation and to the replicas needed, and why.

A class is its share and its mean prompt and output tokens, costs prompt/prefill-tps + output/decode-tps
replica-seconds, and the classes' effects add up to the change exactly (midpoint weights, no interaction term).
--blend goes only part of the way to the new shares. --profile takes the mix and the rate from a document of
`capwatch profile`, its classes in the order in which they stand there.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

import numpy as np

from capwatch.capacity import work
from capwatch.capacity.effects import Cells, Effects, effects
from capwatch.capacity.sizing import needed
from capwatch.console.answer import Answer, number
from capwatch.console.options import (
    COUNT,
    NUMBER_FROM_0,
    PART,
    POSITIVE,
    RATE_ABOVE_0,
    UTILISATION,
    Option,
    by_name,
    named,
    parts,
    whole_mix,
)
from capwatch.console.profiled import Profile, profile
from capwatch.errors import UsageError

EXAMPLE = (
    "capwatch plan whatif --mix policy=0.85:1300/80 --mix order=0.14:3200/150 --mix long=0.01:9000/400 "
    "--to 0.80,0.12,0.08 --prefill-tps 4000 --decode-tps 160 --rate 8 --replicas 12"
)
FORM = "NAME=SHARE:PROMPT/OUTPUT"


def _class(text: str) -> tuple[float, ...]:
    share, colon, lengths = text.partition(":")
    if not colon:
        raise ValueError("has no lengths")
    return PART(share), *parts(lengths, "/", NUMBER_FROM_0, NUMBER_FROM_0, form=FORM)


def _shares(text: str) -> tuple[float, ...]:
    return tuple(PART(one) for one in text.split(","))


OPTIONS = (
    Option(
        "--mix",
        named(_class, FORM),
        FORM,
        "a class: its share, mean prompt and output tokens",
        many=True,
        optional=True,
    ),
    Option("--profile", profile, "FILE", "instead of --mix: a document of `capwatch profile`", optional=True),
    Option("--to", _shares, "SHARE,…", "the new shares, in the order of --mix"),
    Option("--blend", PART, "SHARE", "how far to go: 1 is all the way", "1"),
    Option("--prefill-tps", POSITIVE, "N", "computed prompt tokens/s that a replica prefills alone"),
    Option("--decode-tps", POSITIVE, "N", "output tokens/s that a replica decodes in all"),
    Option("--rate", RATE_ABOVE_0, "RATE", "requests/s; those of --profile where that is given", optional=True),
    Option("--replicas", COUNT, "N", "that are there"),
    Option("--target", UTILISATION, "SHARE", "utilisation to plan for", "0.7"),
)


def plan(arguments: argparse.Namespace) -> Answer:
    """Before, after, and why."""
    mix, rate = _given(arguments)
    then, prompts, outputs = zip(*mix.values(), strict=True)
    whole_mix("--mix", then)
    if len(arguments.to) != len(mix):
        raise UsageError(
            f"--to: has {len(arguments.to)} shares for {len(mix)} classes ({', '.join(mix)}); give one for each"
        )
    whole_mix("--to", arguments.to)
    now = work.blend(then, arguments.to, arguments.blend)
    rates = (arguments.prefill_tps, arguments.decode_tps)
    costs = [work.cost(prompt, output, *rates) for prompt, output in zip(prompts, outputs, strict=True)]
    before, after = work.mean(then, costs), work.mean(now, costs)
    if not before:
        raise UsageError("--mix: its requests cost nothing; give them tokens")
    lengths = np.array(prompts, float), np.zeros(len(mix)), np.array(outputs, float)
    old, new = (Cells(np.array(shares), *lengths) for shares in (then, now))
    plain, centred = (effects(old, new, *rates, centred=how) for how in (False, True))
    used = [work.utilisation(rate, one, arguments.replicas) for one in (before, after)]
    result = {
        "cost_before": before,
        "cost_after": after,
        "change_ratio": after / before - 1,
        "utilisation_before": used[0],
        "utilisation_after": used[1],
        "effects": {
            name: {"mix": float(plain.mix[i]), "prompt": float(plain.prompt[i]), "output": float(plain.output[i])}
            for i, name in enumerate(mix)
        },
        "replicas_needed": needed(rate * after, 1, arguments.target),
    }
    wide = max(map(len, mix))
    steps = [
        f"{name:{wide}}  {number(prompt)}/{number(rates[0])} + {number(output)}/{number(rates[1])} = {number(cost)}"
        for name, prompt, output, cost in zip(mix, prompts, outputs, costs, strict=True)
    ]
    required = number(rate * after / arguments.target)
    steps += [
        f"mean cost: {number(before)} -> {number(after)} replica-seconds ({after / before - 1:+.1%}), by mix:",
        *_why(list(mix), plain, centred, after - before),
        f"utilisation = rate * cost/replicas: {used[0]:.1%} -> {used[1]:.1%}",
        f"replicas needed = ceil(rate * cost/target) = ceil({required}) = {result['replicas_needed']}",
    ]
    return Answer(result, steps)


def _given(arguments: argparse.Namespace) -> tuple[Mapping[str, tuple[float, ...]], float]:
    """The mix and the rate, of the options or of the profile."""
    told: Profile | None = arguments.profile
    if told is None:
        for option in OPTIONS:
            if option.name in ("--mix", "--rate") and not getattr(arguments, option.key):
                raise UsageError(f"{option.name}: is missing; give {option.name} {option.form}, or --profile FILE")
        return by_name("--mix", arguments.mix), arguments.rate
    if arguments.mix:
        raise UsageError("--mix: given beside --profile; give one of the two")
    rate = told.rate if arguments.rate is None else arguments.rate
    if not rate:
        raise UsageError("--profile: arrivals.mean_rps is 0; give --rate")
    return told.classes, rate


def _why(names: list[str], plain: Effects, centred: Effects, change: float) -> list[str]:
    """The effect of each class, and its part of the net change."""
    wide = max(map(len, names))
    return [
        f"{name:{wide}}  {plain.mix[i]:+.5f}"
        + (f" ({plain.mix[i] / change:.0%} of the net change)" if change else "")
        + f"; against the mean cost {centred.mix[i]:+.5f}"
        for i, name in enumerate(names)
    ]
