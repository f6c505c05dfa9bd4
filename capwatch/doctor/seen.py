"""What a server has at one moment: series, rules, targets; each question is asked once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from capwatch.errors import CapwatchError
from capwatch.observed.columns import any_of
from capwatch.observed.prometheus import Server, SilentError

CHUNK: Final = 50
"""Names asked for at once: a query of some kilobytes."""
Sample = tuple[Mapping[str, str], float]


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
            found |= {labels["__name__"] for labels, _ in self.ask(query)}
        return found

    @cached_property
    def version(self) -> str:
        """What the server calls itself; empty where it does not tell."""
        return str((self._told("status/buildinfo") or {}).get("version", ""))

    @cached_property
    def rules(self) -> list[Rule] | None:
        """Every rule; None where the server does not tell, as a mere store."""
        told = self._told("rules")
        return None if told is None else list(_rules(told))

    @cached_property
    def targets(self) -> list[Mapping[str, Any]]:
        """Every target that is scraped; none where the server does not tell."""
        found: list[Mapping[str, Any]] = (self._told("targets") or {}).get("activeTargets", [])
        return found

    def _told(self, path: str) -> Any:
        """What the server says there; None where it knows no such place."""
        try:
            return self._server.told(path)
        except SilentError:
            raise
        except CapwatchError:
            return None


def _rules(told: Mapping[str, Any]) -> Iterator[Rule]:
    for group in told.get("groups", []):
        for rule in group.get("rules", []):
            firing = [one.get("labels", {}) for one in rule.get("alerts", []) if one.get("state") == "firing"]
            error = rule.get("lastError", "") if rule.get("health") == "err" else ""
            yield Rule(rule["name"], rule["type"], rule["query"], error, float(group.get("interval", 0)), firing)
