"""Which expressions find their series, and for those that do not, what is missing in the end and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from capwatch import metrics as m
from capwatch.dialect.vocabulary import spelled
from capwatch.doctor.finding import Finding
from capwatch.doctor.needs import HISTORY, QUIET, Need, known, need
from capwatch.doctor.renames import aliases, of_engine, renamed
from capwatch.doctor.seen import Seen
from capwatch.doctor.selectors import Selector, selectors
from capwatch.errors import CapwatchError
from capwatch.observed.prometheus import SilentError
from capwatch.shipped import Expression, plain

ANYTHING: Final = (("=~", ".+"), ("=~", ".*"), ("=", ".+"))
"""Operator and value of a matcher that stands for a variable of a board."""
UNLOADED: Final = Need("the recording rules are not loaded", "see above")
UNSCRAPED: Final = Need("capwatch is not scraped", "see above")


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of an expression.

    Attributes:
        expression: it.
        state: `data`, `empty` (also of a rule: nothing recorded) or `refused`.
        missing: its selectors without a live series, and behind recorded ones what those lack in the end.
        error: why the server refuses it.
    """

    expression: Expression
    state: str
    missing: Sequence[Selector] = ()
    error: str = ""


@dataclass
class Series:
    """The live series of a server, as far as expressions ask for them."""

    seen: Seen
    recorded: Mapping[str, str]
    """Expressions of the shipped recording rules by the name they record."""
    live: set[str] = field(default_factory=set)

    def judge(
        self, expressions: Sequence[Expression], progress: Callable[[int], None] = lambda _: None
    ) -> Iterator[Judged]:
        """What becomes of each; a panel's expression is asked for, a rule's is what it records."""
        read = {one.text: [_fixed(found) for found in selectors(plain(one.text))] for one in expressions}
        read |= {text: selectors(text) for text in self.recorded.values()}
        asked = {one.name for found in read.values() for one in found} - {""}
        self.live |= self.seen.live(asked | {one.where for one in expressions if one.kind == "record"})
        for done, one in enumerate(expressions):
            progress(done)
            missing = [selector for selector in read[one.text] if not self.has(selector)]
            yield self._panel(one, missing) if one.kind == "panel" else self._rule(one, missing)

    def has(self, selector: Selector) -> bool:
        """Whether a selector finds a series now."""
        if selector.name and (selector.name not in self.live or not selector.matchers):
            return selector.name in self.live
        return bool(self.seen.ask(f"count({selector})"))

    def roots(self, selector: Selector) -> list[Selector]:
        """What a missing selector lacks in the end: itself, or what a recorded series is made of."""
        made_of = self.recorded.get(selector.name)
        if made_of is None:
            return [selector]
        missing = [one for one in selectors(made_of) if not self.has(one)]
        return [root for one in missing for root in self.roots(one)] or [selector]

    def _panel(self, one: Expression, missing: Sequence[Selector]) -> Judged:
        try:
            return Judged(one, "data" if self.seen.ask(plain(one.text)) else "empty", missing)
        except SilentError:
            raise
        except CapwatchError as error:
            return Judged(one, "refused", missing, str(error))

    def _rule(self, one: Expression, missing: Sequence[Selector]) -> Judged:
        """A recorded name may be live by a rule of one's own; an alert is `data` if nothing is missing."""
        there = one.where in self.live if one.kind == "record" else not missing
        return Judged(one, "data" if there else "empty", missing)


def _fixed(selector: Selector) -> Selector:
    """A selector without the matchers that stand for variables."""
    matchers = tuple(one for one in selector.matchers if (one[1], one[2]) not in ANYTHING)
    return Selector(selector.name, matchers, selector.offset)


def findings(series: Series, judged: Iterable[Judged]) -> Iterator[Finding]:
    """Why expressions are empty: one finding for each cause."""
    scraped = m.BUILD_INFO.name in series.live or bool(series.seen.live([m.BUILD_INFO.name]))
    loaded = None if series.seen.rules is None else {rule.name for rule in series.seen.rules}
    causes: dict[Need, dict[str, set[str]]] = {}
    strange: dict[str, set[str]] = {}
    for one in judged:
        if one.state == "refused":
            yield Finding(
                "error", "refused", f"the server refuses the expression of {one.expression.where!r}", [one.error],
                "Its panel shows an error.", "use a server with all of PromQL, 2.42 or newer",
            )  # fmt: skip
        for selector in one.missing if one.state == "empty" else ():
            for root in series.roots(selector):
                if root.name in series.live and root.name in series.recorded:
                    continue  # one value of a recorded series, such as a pool's own threshold, is an option
                cause = _cause(root, series.recorded, loaded, scraped=scraped)
                if cause is None:
                    strange.setdefault(root.name or str(root), set()).add(one.expression.where)
                else:
                    causes.setdefault(cause, {}).setdefault(str(root), set()).add(one.expression.where)
    yield from _absent(causes)
    yield from _strange(series, strange)


def _cause(root: Selector, recorded: Mapping[str, str], loaded: set[str] | None, *, scraped: bool) -> Need | None:
    """Why a root has no series; None where it is nothing of capwatch's."""
    made_of = recorded.get(root.name)
    if made_of is not None:
        if loaded is not None and root.name not in loaded:
            return UNLOADED
        return HISTORY if any(one.offset for one in selectors(made_of)) else QUIET
    if known(root.name) is not None or root.name == "up" or root.name.startswith("process_"):
        return need(root.name) if scraped else UNSCRAPED
    return None


def _absent(causes: Mapping[Need, Mapping[str, set[str]]]) -> Iterator[Finding]:
    for cause, roots in causes.items():
        affects = sorted(set.union(*roots.values()))
        if cause not in (UNLOADED, UNSCRAPED):  # those are told by `loaded`, once
            names = sorted(roots)
            yield Finding(
                "note", "absent", f"{cause.what} (panels and rules: {len(affects)})",
                ["without series: " + ", ".join(names)],
                "What rests on it is empty, and is no zero.", cause.fix, affects,
            )  # fmt: skip


def _strange(series: Series, strange: Mapping[str, set[str]]) -> Iterator[Finding]:
    """Of others: renamed metrics of engines, and what nobody has."""
    candidates = {other for name in strange for other in aliases().get(spelled(name), ())}
    live = series.seen.live(candidates | {other.replace("_", ":", 1) for other in candidates})
    found = dict(renamed(strange, live))
    for name, places in sorted(strange.items()):
        if name in found:
            yield Finding(
                "warning", "renamed", f"{name} is now {found[name]}",
                [f"{name} has no series, {found[name]} has"],
                "Engines rename metrics; a panel or rule that asks for the old name is empty without a word.",
                f"ask for {found[name]}", sorted(places),
            )  # fmt: skip
        else:
            engine = of_engine(name)
            yield Finding(
                "warning", "unknown-series", f"nothing is called {name}", [f"{name} has no series at present"],
                "What asks for it is empty." + (" It is an engine's metric." if engine else ""),
                "scrape the engine's page" if engine else "look for its present name, or for the job that has gone",
                sorted(places),
            )  # fmt: skip
