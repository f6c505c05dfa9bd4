"""Five-minute rollups for the history: per tenant, route, model, pool and class, with mergeable sketches.

They show nothing on a page. A slot stays open for fifteen minutes after its end, for late records; then it is closed
and goes to the history (contract, sections 4 and 7).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from capwatch import metrics as m
from capwatch.config.schema import Config
from capwatch.ledger import CLASS, LASTING, MODEL, POOL, ROUTE, TENANT, Axis, Gathering, Names, Sketch, Table, Totals
from capwatch.ledger.series import Series
from capwatch.record import OUTCOMES, Ints, zeroed
from capwatch.seen import ROLLUP_S, ROLLUP_SLOTS, Groups, Seen
from capwatch.sketch import index, pack
from capwatch.slo import VERDICTS

COMBINATION: Final = Axis("combination", 24)
"""A tenant, route, model, pool and class together, named by their ids."""
PARTS: Final = (TENANT, ROUTE, MODEL, POOL, CLASS)
MEASURES: Final = ("prompt_tokens", "output_tokens", "ttft_s", "tpot_s", "duration_s", "queue_s")
MEASURE: Final = Axis("measure", 3, MEASURES)
OUTCOME_COLUMNS: Final = tuple(f"outcome_{name}" for name in OUTCOMES)
VERDICT_COLUMNS: Final = tuple(f"goodput_{name}" for name in VERDICTS)
SUM_COLUMNS: Final = (*m.TOKEN_KINDS, "cost_prefill", "cost_decode", "cost_saved", *m.PHASES[:-1])
COLUMNS: Final = (*OUTCOME_COLUMNS, *VERDICT_COLUMNS, *SUM_COLUMNS)

HISTORY_ONLY: Final = True

ROLLUPS = Table((COMBINATION,), "rollup", COLUMNS, slot_s=ROLLUP_S, slots=ROLLUP_SLOTS, closes=True)
SKETCHES = Sketch((COMBINATION, MEASURE), "rollup", lasting=False, recent=False, rolls_up="rollup")


class Rollup:
    """Contract, section 7: the five-minute cells of the history."""

    tables = (ROLLUPS,)
    sketches = (SKETCHES,)
    followers = ()

    def measure(self, seen: Seen, into: Gathering) -> None:
        """Add each request to its combination's cell of five minutes."""
        rows = np.flatnonzero(seen.rollup_slot > LASTING)
        if not len(rows):
            return
        batch, cost = seen.batch, seen.cost
        keys = _combinations(seen.groups, into)[seen.groups.of]
        slots = seen.rollup_slot
        outcome = np.equal.outer(np.arange(len(OUTCOMES)), batch.outcome)
        verdict = np.equal.outer(np.arange(len(VERDICTS)), seen.verdict)
        cached = zeroed(batch["cached_tokens"])
        sums = [batch["prompt_tokens"] - cached, cached, batch["output_tokens"], *cost]
        phases = [batch[f"{name}_s"] for name in m.PHASES[:-1]]
        columns = [*outcome, *verdict, *sums, *phases]
        into.add_slots(ROLLUPS, slots[rows], keys[rows], *(column[rows].astype(np.float64) for column in columns))
        for number, name in enumerate(MEASURES):
            values = batch.tpot_s if name == "tpot_s" else batch[name]
            told = rows[~np.isnan(values[rows])]
            series = keys[told] << MEASURE.bits | number
            into.observe(SKETCHES, pack(series, index(values[told])), slots[told])

    def show(self, totals: Totals) -> Iterable[Series]:  # noqa: ARG002 - it keeps, and shows nothing
        """Nothing."""
        return ()


def _combinations(groups: Groups, into: Gathering) -> Ints:
    """The id of each group's combination."""
    ids = zip(groups.tenant, groups.route, groups.model, groups.pool, groups.klass, strict=True)
    return np.array([into.names.id(COMBINATION.name, spell(one)) for one in ids], np.int64)


def spell(ids: Iterable[int]) -> str:
    """The name of a combination: its ids.

    >>> spell((3, 2, 2, 2, 5)), read("3/2/2/2/5")
    ('3/2/2/2/5', (3, 2, 2, 2, 5))
    """
    return "/".join(map(str, ids))


def read(name: str) -> tuple[int, ...]:
    """The ids behind a combination's name, in the order of `PARTS`."""
    return tuple(map(int, name.split("/")))


def retire(names: Names, pairs: Iterable[tuple[int, int]]) -> None:
    """Forget the combinations of retired tenant-route pairs."""
    gone = set(pairs)
    for number, name in list(names.texts(COMBINATION.name).items()):
        if "/" in name and read(name)[:2] in gone:
            names.forget(COMBINATION.name, number)


def METER(config: Config) -> Rollup:  # noqa: ARG001, N802 - the shelf's word
    """The meter for a configuration."""
    return Rollup()
