"""Requests by outcome, and the tokens they moved."""

from __future__ import annotations

from collections.abc import Iterable

from capwatch import metrics as m
from capwatch.config.schema import Config
from capwatch.ledger import MODEL, RETIRED, ROUTE, TENANT, Axis, Gathering, Table, Totals
from capwatch.ledger.series import Series, alone, plain, seldom, spread
from capwatch.record import OUTCOMES, zeroed
from capwatch.seen import Seen

OUTCOME = Axis("outcome", 4, OUTCOMES)
REQUESTS = Table((TENANT, ROUTE, MODEL, OUTCOME), "requests", ("count",), retires={"requests": ("count",)})
TOKENS = Table((TENANT, ROUTE, MODEL), "tokens", m.TOKEN_KINDS, retires={"tokens": m.TOKEN_KINDS})


class Requests:
    """Contract 4.1: `requests_total`, `tokens_total` and the totals of retired names."""

    tables = (REQUESTS, TOKENS)
    sketches = ()
    followers = ()

    def measure(self, seen: Seen, into: Gathering) -> None:
        """Count every request; add up the tokens of those that tell them."""
        batch, groups = seen.batch, seen.groups
        triples = TOKENS.pack(groups.tenant, groups.route, groups.model)
        group, outcome, count = groups.split(batch.outcome, len(OUTCOMES))
        into.add(REQUESTS, triples[group] << OUTCOME.bits | outcome, count)
        cached = zeroed(batch["cached_tokens"])
        sums = map(groups.sums, (batch["prompt_tokens"] - cached, cached, batch["output_tokens"]))
        into.add(TOKENS, triples, *sums)

    def show(self, totals: Totals) -> Iterable[Series]:
        """See `capwatch.seen.Meter`."""
        keys, values = totals.rows(REQUESTS)
        yield plain(m.REQUESTS, REQUESTS, keys, values)
        keys, values = totals.rows(TOKENS)
        yield spread(m.TOKENS, TOKENS, keys, seldom(values), m.TOKEN_KINDS)
        requests, tokens, cost = totals.row(RETIRED).tolist()
        yield alone(m.RETIRED_REQUESTS, requests)
        yield alone(m.RETIRED_TOKENS, tokens)
        yield alone(m.RETIRED_COST_REPLICA_SECONDS, cost)


def METER(config: Config) -> Requests:  # noqa: ARG001, N802 - the shelf's word
    """The meter for a configuration."""
    return Requests()
