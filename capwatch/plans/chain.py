"""The chain of stages: which one limits the requests that users get through, and which come next.

A stage is the rate it sustains (`60`), with a factor on it (`12*0.7`: twelve replicas at 70 %) and the visits of one
user request (`10@0.15`: one request in 6.7 comes by). Its capacity in user requests is rate × factor/visits.
"""

from __future__ import annotations

import argparse

from capwatch.capacity.chain import order
from capwatch.console.answer import Answer, number
from capwatch.console.options import Option, by_name, named, stage

EXAMPLE = "capwatch plan chain --stage gateway=60 --stage retrieval=45 --stage tool=10@0.15 --stage model=12*0.7"
FORM = "NAME=RATE[*FACTOR][@VISITS]"
OPTIONS = (Option("--stage", named(stage, FORM), FORM, "a stage and what it sustains, requests/s", many=True),)


def plan(arguments: argparse.Namespace) -> Answer:
    """The stages in the order in which they limit."""
    stages = by_name("--stage", arguments.stage)
    found = order({name: one.capacity_rps for name, one in stages.items()})
    (tightest, least), most = found[0], max(len(name) for name in stages)
    steps = [
        f"{name:{most}}  {number(stages[name].rate)} * {number(stages[name].factor)}/{number(stages[name].visits)} = "
        f"{number(rps)} user requests/s" + (f", {rps / least:.3g} times the limit" if rps > least else ": the limit")
        for name, rps in found
    ]
    return Answer({"bottleneck": tightest, "capacity_rps": least, "order": [[name, rps] for name, rps in found]}, steps)
