"""What engines call their metrics: an engine's table turns a page into samples and totals, and two pages into rates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Final, Literal

import msgspec

from capwatch.dialect.exposition import Series
from capwatch.dialect.value import number
from capwatch.record import EngineSample

SHARES: Final = ("kv_utilisation", "prefix_hit_ratio")
"""Fields of a sample within 0..1, whatever the engine's name for them says of percent."""
MOST: Final = 1e12
"""No engine counts more requests or tokens at once; a larger gauge is an error of the page."""
MOST_REPLICAS: Final = 256
"""Replicas of one page: more than any deployment has behind one endpoint, few enough not to flood the series."""
PROCESS_START: Final = "process_start_time_seconds"
"""The name under which Prometheus clients tell when their process started, s since the epoch."""
SAME_START_S: Final = 1.0
"""Two tellings of one start differ by rounding only."""

_SELECTOR = re.compile(r'([\w:]+)(?:\{(\w+)="([^"]*)"\})?', re.ASCII)


@dataclass(frozen=True, slots=True)
class Term:
    """One metric, or the part of it where one label has one value (empty: label absent or empty).

    >>> Term.of('sglang:realtime_tokens_total{mode="decode"}')
    Term(name='sglang_realtime_tokens_total', label='mode', value='decode')
    """

    name: str
    label: str | None = None
    value: str = ""

    @classmethod
    def of(cls, selector: str) -> Term:
        """A term from its spelling `name` or `name{label="value"}`."""
        found = _SELECTOR.fullmatch(selector)
        if not found:
            raise ValueError(f"no selector: {selector}")
        return cls(spelled(found[1]), found[2], found[3] or "")

    def picks(self, one: Series) -> bool:
        """Whether a series belongs to the term."""
        return spelled(one.name) == self.name and (self.label is None or one.labels.get(self.label, "") == self.value)


@dataclass(frozen=True, slots=True)
class Way:
    """One way in which pages tell a quantity: terms, and how their series make one number."""

    terms: tuple[Term, ...]
    how: Literal["sum", "most", "product", "labels"] = "sum"
    labels: tuple[str, ...] = ()

    def read(self, page: Sequence[Series]) -> float | None:
        """The number on a page of one replica, None where it is not told."""
        found = [[one for one in page if term.picks(one)] for term in self.terms]
        if self.how == "labels":
            told = [number(one.labels.get(label)) for part in found for one in part[:1] for label in self.labels]
            return prod(one for one in told if one is not None) if told and None not in told else None
        sums = [sum(one.value for one in part) for part in found if part]
        if not sums or (self.how == "product" and len(sums) < len(self.terms)):
            return None
        if self.how == "most":
            return max(one.value for part in found for one in part)
        return prod(sums) if self.how == "product" else sum(sums)


def told(*selectors: str) -> Way:
    """The sum of all series of these terms; terms that are missing add nothing."""
    return Way(tuple(map(Term.of, selectors)))


def most(selector: str) -> Way:
    """The highest of a term's series: shares do not add up."""
    return Way((Term.of(selector),), "most")


def product(*selectors: str) -> Way:
    """The product of terms that are all there, such as blocks times tokens in a block."""
    return Way(tuple(map(Term.of, selectors)), "product")


def label_product(selector: str, *labels: str) -> Way:
    """The product of numbers that a series carries as labels."""
    return Way((Term.of(selector),), "labels", labels)


Ways = Mapping[str, tuple[Way, ...]]
Totals = dict[str, list[float | None]]
"""Counters of a replica by quantity: one number for each way to tell it, so that one way is compared with itself."""


@dataclass(frozen=True, slots=True)
class Replica:
    """What one page tells of one engine replica; ``sample.engine`` is its index on the page, None where it has none."""

    sample: EngineSample
    totals: Totals


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """One engine's names: an entry on the shelf of engines. The first way that a page knows is taken."""

    name: str
    gauges: Ways
    """By field of the engine sample."""
    counters: Ways
    """By quantity: preemptions, requests, prompt_tokens (computed, where that is told), output_tokens,
    prefix_queries, prefix_hits (tokens or blocks, both alike), recomputed_tokens, steps (any sign of work)."""
    replica: str = ""
    """The label that tells data-parallel replicas of one page apart."""
    ranks: tuple[str, ...] = ()
    """Labels of ranks that repeat one replica (tensor and pipeline parallel): its lowest rank alone is taken, which is
    not 0 where ranks are numbered over all replicas."""
    names: frozenset[str] = field(init=False)
    """Every metric that the tables ask for, as `spelled`."""

    def __post_init__(self) -> None:
        ways = [way for table in (self.gauges, self.counters) for each in table.values() for way in each]
        names = {term.name for way in ways for term in way.terms}
        object.__setattr__(self, "names", frozenset(names | {PROCESS_START}))

    def read(self, page: Sequence[Series]) -> list[Replica]:
        """One entry per replica; none where the page is of another engine."""
        mine = [one for one in page if spelled(one.name) in self.names]
        started = Way((Term(PROCESS_START),), "most").read(mine)
        return [
            Replica(sample, self._totals(part, started))
            for index, part in self._parts(mine)
            if (sample := self._sample(index, part)) is not None
        ]

    def _parts(self, page: Sequence[Series]) -> Iterator[tuple[str | None, list[Series]]]:
        """Series by replica. Those without an index belong to the only replica; beside several they are nobody's."""
        parts: dict[str, list[Series]] = {}
        for one in page:
            index = one.labels.get(self.replica, "")
            if index in parts or len(parts) <= MOST_REPLICAS:
                parts.setdefault(index, []).append(one)
        parts = {index: self._first_rank(part) for index, part in parts.items()}
        shared = parts.pop("", [])
        if not parts:
            yield None, shared
        for index, part in parts.items():
            yield index, part + shared if len(parts) == 1 else part

    def _first_rank(self, part: list[Series]) -> list[Series]:
        for rank in self.ranks:
            numbers = {number for one in part if (number := one.labels.get(rank, ""))}
            first = min(numbers, key=lambda number: (len(number), number), default="")
            part = [one for one in part if one.labels.get(rank, "") in ("", first)]
        return part

    def _sample(self, index: str | None, part: Sequence[Series]) -> EngineSample | None:
        found: dict[str, float] = {}
        for name, ways in self.gauges.items():
            value = next((value for way in ways if (value := way.read(part)) is not None), None)
            if value is not None and 0 <= value <= (1 if name in SHARES else MOST):
                found[name] = value
        return EngineSample(engine=index, **found) if found else None

    def _totals(self, part: Sequence[Series], started: float | None) -> Totals:
        totals: Totals = {name: [way.read(part) for way in ways] for name, ways in self.counters.items()}
        return totals | {PROCESS_START: [started]}


@dataclass(frozen=True, slots=True)
class Change:
    """What happened between two pages of one replica."""

    grown: Mapping[str, float]
    """How much each counter grew, never negative; since the start of the new process after a restart."""
    restarted: bool

    def complete(self, sample: EngineSample, seconds: float) -> EngineSample:
        """``sample`` with rates over the ``seconds`` between the pages, and counts since the first of them.

        What the page itself tells stays. After a restart there are no rates: the interval is not all the new process's.
        """
        done = msgspec.structs.replace(sample, preemptions=self.grown.get("preemptions"))
        if self.restarted:
            done.starts = 1.0
        elif seconds > 0:
            for rate, quantity in (("prompt_tokens_per_s", "prompt_tokens"), ("output_tokens_per_s", "output_tokens")):
                if getattr(done, rate) is None and quantity in self.grown:
                    setattr(done, rate, self.grown[quantity] / seconds)
        queries, hits = self.grown.get("prefix_queries"), self.grown.get("prefix_hits")
        if done.prefix_hit_ratio is None and queries and hits is not None:
            done.prefix_hit_ratio = min(hits / queries, 1.0)
        return done


def difference(before: Totals, after: Totals) -> Change:
    """What happened between the totals of two pages. A counter that fell tells of a restart, as does another start.

    >>> difference({"requests": [5.0]}, {"requests": [7.0]}), difference({"requests": [5.0]}, {"requests": [2.0]})
    (Change(grown={'requests': 2.0}, restarted=False), Change(grown={'requests': 2.0}, restarted=True))
    """
    pairs = {name: pair for name, ways in after.items() if (pair := _pair(before.get(name, []), ways))}
    start = pairs.pop(PROCESS_START, None)
    restarted = start is not None and abs(start[1] - start[0]) > SAME_START_S
    restarted |= any(new < old for old, new in pairs.values())
    grown = {name: new if restarted else new - old for name, (old, new) in pairs.items()}
    return Change(grown, restarted)


def _pair(before: Sequence[float | None], after: Sequence[float | None]) -> tuple[float, float] | None:
    """A quantity on both pages, told in the same way on both."""
    both = zip(before, after, strict=False)
    return next(((old, new) for old, new in both if old is not None and new is not None), None)


def spelled(name: str) -> str:
    """A metric's name with the engine's colon as an underscore, as some gateways and collectors rewrite it.

    >>> spelled("vllm:num_requests_running")
    'vllm_num_requests_running'
    """
    return name.replace(":", "_", 1)


def replica_name(engine: str, index: str | None) -> str:
    """The label of a replica, from a page or a log: the configured name for the only or first one, else name/index.

    >>> replica_name("vllm-0", None), replica_name("vllm-0", "0"), replica_name("vllm-0", "1")
    ('vllm-0', 'vllm-0', 'vllm-0/1')
    """
    return engine if index in (None, "0") else f"{engine}/{index}"
