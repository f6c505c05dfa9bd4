"""What a server has at one moment: series, rules, targets; each question is asked once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeVar

import msgspec

from capwatch.errors import CapwatchError
from capwatch.observed.columns import any_of
from capwatch.observed.prometheus import Server, SilentError

CHUNK: Final = 50
"""Names asked for at once: a query of some kilobytes."""
Sample = tuple[Mapping[str, str], float]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as the server has it.

    Attributes:
        name: of the alert or of the recorded series.
        kind: `alerting` or `recording`.
        query: its expression, as the server writes it.
        error: why its last evaluation failed; empty where it did not.
        interval: s between evaluations.
        firing: labels of what fires now.
    """

    name: str
    kind: str
    query: str
    error: str
    interval: float
    firing: Sequence[Mapping[str, str]]


class Target(msgspec.Struct):
    """A target that is scraped, as `/api/v1/targets` has it; null is what a server written in Go says for nothing."""

    labels: dict[str, str] | None = None
    url: str = msgspec.field(default="", name="scrapeUrl")
    interval: str = msgspec.field(default="", name="scrapeInterval")
    health: str = ""
    error: str = msgspec.field(default="", name="lastError")


class _Targets(msgspec.Struct):
    active: list[Target] | None = msgspec.field(default=None, name="activeTargets")


class _Alert(msgspec.Struct):
    state: str = ""
    labels: dict[str, str] | None = None


class _Rule(msgspec.Struct):
    name: str
    query: str
    type: str
    health: str = ""
    error: str = msgspec.field(default="", name="lastError")
    alerts: list[_Alert] | None = None


class _Group(msgspec.Struct):
    interval: float = 0.0
    rules: list[_Rule] | None = None


class _Groups(msgspec.Struct):
    groups: list[_Group] | None = None


class _Build(msgspec.Struct):
    version: str = ""


class Seen:
    """A server as it is at a moment.

    Attributes:
        now: the moment, s since the epoch.
        url: the server's address.
    """

    def __init__(self, server: Server, now: float) -> None:
        self.now = now
        self.url = server.url
        self._server = server
        self._asked: dict[str, list[Sample]] = {}

    def ask(self, query: str) -> list[Sample]:
        """Labels and value of each series of an instant query; NaN is none.

        Raises:
            SilentError: the server does not answer.
            CapwatchError: it refuses the query.
        """
        if query not in self._asked:
            found = self._server.at(query, self.now)
            told = zip(found.labels, found.values[:, 0].tolist(), strict=True)
            self._asked[query] = [(labels, value) for labels, value in told if not math.isnan(value)]
        return self._asked[query]

    def by(self, label: str, query: str) -> dict[str, float]:
        """The values of a query by one label."""
        return {labels.get(label, ""): value for labels, value in self.ask(query)}

    def live(self, names: Iterable[str]) -> set[str]:
        """Which of these metrics have a series now."""
        wanted, found = sorted(set(names)), set[str]()
        for first in range(0, len(wanted), CHUNK):
            query = f"count by (__name__) ({any_of(wanted[first : first + CHUNK])})"
            found |= {labels.get("__name__", "") for labels, _ in self.ask(query)}
        return found

    @cached_property
    def version(self) -> str:
        """What the server calls itself; empty where it does not tell."""
        told = self._told("status/buildinfo", _Build)
        return "" if told is None else told.version

    @cached_property
    def rules(self) -> list[Rule] | None:
        """Every rule; None where the server does not tell, as a mere store."""
        told = self._told("rules", _Groups)
        return None if told is None else list(_rules(told))

    @cached_property
    def targets(self) -> list[Target]:
        """Every target that is scraped; none where the server does not tell."""
        told = self._told("targets", _Targets)
        return [] if told is None else told.active or []

    def _told(self, path: str, kind: type[T]) -> T | None:
        """What the server says there; None where it knows no such place, or says something else."""
        try:
            return self._server.told(path, kind)
        except SilentError:
            raise
        except CapwatchError:
            return None


def _rules(told: _Groups) -> Iterator[Rule]:
    for group in told.groups or ():
        for rule in group.rules or ():
            firing = [one.labels or {} for one in rule.alerts or () if one.state == "firing"]
            error = rule.error if rule.health == "err" else ""
            yield Rule(rule.name, rule.type, rule.query, error, group.interval, firing)
