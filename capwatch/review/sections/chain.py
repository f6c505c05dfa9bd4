"""The chain of stages: which limit is next, and the two after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from capwatch.capacity import chain, work
from capwatch.review.facts import Facts
from capwatch.review.section import Missing, Section, Table
from capwatch.review.text import number, percent
from capwatch.review.week import Week

ORDER: Final = 160
NEXT: Final = 3


def SECTION(week: Week, facts: Mapping[str, Facts]) -> Section:
    """In the order in which stages become limits."""
    tables, text, missing, numbers = [], [], [], {}
    for name, one in facts.items():
        now = one.after
        if now is None:
            continue
        stages = {stage: told.capacity_rps for stage, told in one.pool.stages.items()}
        if not stages:
            missing.append(
                Missing(f"the chain of {name}", "only the model stage is known", "`pools[].stages` of the others")
            )
        if "model" not in stages and one.one.replicas is not None and now.cost:
            stages["model"] = work.capacity(one.one.replicas, now.cost) * one.pool.target_utilisation
        order = chain.order(stages)
        if not order:
            continue
        numbers[name] = {"chain": order}
        rate = now.rate
        rows = [[stage, f"{number(rps)}/s", percent(rate / rps)] for stage, rps in order]
        tables.append(Table(f"{name}: stages by what they let through", ["stage", "user requests/s", "used"], rows))
        limits = ", then ".join(f"{stage} at {number(rps)}/s" for stage, rps in order[:NEXT])
        text.append(f"{name}: at {number(rate)} requests/s the next limits are {limits}.")
    return Section("The chain of limits", text, tables, (), (), missing, numbers)
