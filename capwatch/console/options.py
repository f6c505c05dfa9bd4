"""Numbers as options of a command: each read with its unit, held to its bounds, and refused in words."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Final, TypeVar

from capwatch.capacity.little import Visit
from capwatch.config import units
from capwatch.config.kinds import DURATION, NUMBER, RATE, SHARE, SIZE, STAGE, WHOLE, Kind, Range
from capwatch.config.units import Stage
from capwatch.errors import UsageError

Value = TypeVar("Value")
Reader = Callable[[str], Value]

MOST: Final = 1e15
"""Above any number that means something here; the product of a handful of them is still a finite float."""
LEAST: Final = 1e-12
"""Below any number that means something where 0 is refused."""
MIX_TOLERANCE: Final = 1e-6
"""By how much the shares of a mix may miss 1: they are typed with few digits."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a calculation.

    Attributes:
        name: as it is typed.
        read: its reader, one of those below.
        form: what stands for the value in the help.
        help: what it means, with its unit.
        default: what stands for it where it is left out, as it would be typed; None where it must be given.
        optional: whether it may be left out.
        many: whether it may be given several times; its value is a list then.
    """

    name: str
    read: Callable[[str], object]
    form: str
    help: str
    default: str | None = None
    optional: bool = False
    many: bool = False

    @property
    def key(self) -> str:
        """Its attribute in what was parsed."""
        return key(self.name)

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Declare it."""
        told = self.help if self.default is None else f"{self.help} ({self.default})"
        parser.add_argument(
            self.name,
            dest=self.key,
            metavar=self.form,
            default=self.default,
            action="append" if self.many else "store",
            help=told.replace("%", "%%"),
        )

    @property
    def needed(self) -> bool:
        """Whether it must be given."""
        return not self.optional and self.default is None

    @property
    def usage(self) -> str:
        """Itself in a usage line."""
        told = f"{self.name} {self.form}" + (" ..." if self.many else "")
        return told if self.needed else f"[{told}]"

    def texts(self, typed: argparse.Namespace) -> list[str]:
        """What was typed for it, or its default."""
        found: str | list[str] | None = getattr(typed, self.key)
        return [] if found is None else [found] if isinstance(found, str) else found

    def value(self, typed: argparse.Namespace) -> object:
        """What that means; None where there is nothing. Raises UsageError that names the option."""
        try:
            values = [self.read(text) for text in self.texts(typed)]
        except ValueError as error:
            raise UsageError(f"{self.name}: {error}") from None
        if self.many:
            return values
        return values[0] if values else None


def key(option: str) -> str:
    """The attribute that an option has in what was parsed.

    >>> key("--kv-per-token")
    'kv_per_token'
    """
    return option.removeprefix("--").replace("-", "_")


def declare(parser: argparse.ArgumentParser, options: Sequence[Option]) -> None:
    """Give a command its options and --json.

    The parser takes all of them for optional and `asked` finds what is missing, so that an unknown option is named
    before a missing one.
    """
    for option in options:
        option.add_to(parser)
    parser.add_argument("--json", action="store_true", help="the result alone, for machines")
    words = [parser.prog, *(option.usage for option in options), "[--json]"]
    joined = " ".join(word.replace(" ", "\0") for word in words)  # an option is not parted from its value
    parser.usage = "\n".join(wrap(joined, 100, subsequent_indent=" " * 7, break_on_hyphens=False)).replace("\0", " ")


def asked(options: Iterable[Option], typed: argparse.Namespace) -> argparse.Namespace:
    """The values of all options, in place of what was typed.

    Raises:
        UsageError: one of them cannot be, or is missing; the text names it.
    """
    found = {option: option.value(typed) for option in options}
    for option in found:
        if option.needed and not option.texts(typed):
            raise UsageError(f"{option.name}: is missing; give {option.usage}: {option.help}")
    return argparse.Namespace(**{option.key: value for option, value in found.items()})


def one_value(option: str, read: Reader[Value], text: str) -> Value:
    """The value of an option that stands alone; raises UsageError that names it."""
    try:
        return read(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None


def bounded(kind: Kind, **bounds: float) -> Reader[float]:
    """A reader of a kind of number between bounds, which `Range` names.

    >>> bounded(SHARE, above=0, at_most=1)("70%")
    0.7
    """
    limits = Range(**{"at_most": MOST, **bounds})
    possible = f"{kind.noun} ({limits.told(_shown)})"

    def read(text: str) -> float:
        value = kind.read(text)
        assert isinstance(value, int | float)  # noqa: S101 - kinds of numbers
        if not limits.holds(value) or 0 < value < LEAST:
            raise ValueError(f"found {units.found(text)}; possible is {possible}")
        return value

    return read


def _shown(bound: float) -> str:
    return f"{bound:g}"


def _positive(kind: Kind) -> Reader[float]:
    return bounded(kind, above=0)


NUMBER_FROM_0: Final = bounded(NUMBER, at_least=0)
POSITIVE: Final = _positive(NUMBER)
FACTOR: Final = bounded(NUMBER, at_least=1)
CV2: Final = bounded(NUMBER, at_least=0, at_most=1e6)
RATE_ABOVE_0: Final = _positive(RATE)
DURATION_FROM_0: Final = bounded(DURATION, at_least=0)
DURATION_ABOVE_0: Final = _positive(DURATION)
SIZE_FROM_0: Final = bounded(SIZE, at_least=0)
SIZE_ABOVE_0: Final = _positive(SIZE)
UTILISATION: Final = bounded(SHARE, above=0, at_most=1)
PART: Final = bounded(SHARE, at_least=0, at_most=1)
SHARE_BETWEEN: Final = bounded(SHARE, above=0, below=1)
COUNT: Final = bounded(WHOLE, at_least=1, at_most=1e9)
COUNT_FROM_0: Final = bounded(WHOLE, at_least=0, at_most=1e9)
SEED: Final = bounded(WHOLE, at_least=0)


def bandwidth(text: str) -> float:
    """Read bytes per second.

    >>> bandwidth("3.35TB/s")
    3350000000000
    """
    return SIZE_ABOVE_0(text.strip().removesuffix("/s"))


def capped(most: float) -> Reader[float]:
    """A reader of whole numbers from 1 to a most, where more would take too long or too much memory."""
    return bounded(WHOLE, at_least=1, at_most=most)


def named(read: Reader[Value], form: str) -> Reader[tuple[str, Value]]:
    """A reader of ``NAME=`` and a value in a form that the refusal shows.

    >>> named(PART, "NAME=SHARE")("eu=30%")
    ('eu', 0.3)
    """

    def pair(text: str) -> tuple[str, Value]:
        name, equals, value = text.partition("=")
        if not (equals and name.strip() and name.isprintable()):
            raise ValueError(f"found {units.found(text)}; write {form}")
        try:
            return name.strip(), read(value)
        except ValueError as error:
            raise ValueError(f"{name.strip()}: {error}; write {form}") from None

    return pair


def parts(text: str, separator: str, *reads: Reader[float], form: str) -> tuple[float, ...]:
    """Read numbers with a separator between them, each by its reader.

    >>> parts("1300/80", "/", POSITIVE, POSITIVE, form="PROMPT/OUTPUT")
    (1300.0, 80.0)
    """
    words = text.split(separator)
    if len(words) != len(reads):
        raise ValueError(f"found {units.found(text)}; write {form}")
    return tuple(read(word) for read, word in zip(reads, words, strict=True))


def stage(text: str) -> Stage:
    """Read a stage of the chain: `60`, `12*0.7`, `10@0.15`."""
    read = units.stage(text)
    if not all(LEAST <= one <= MOST for one in (read.rate, read.factor, read.visits)):
        raise ValueError(f"found {units.found(text)}; possible is {STAGE.noun} of moderate numbers")
    return read


def visit(text: str) -> Visit:
    """Read the time of a phase, with its visits per request behind `@`.

    >>> visit("2s@15%"), visit("100ms")
    (Visit(seconds=2.0, visits=0.15), Visit(seconds=0.1, visits=1.0))
    """
    seconds, at, visits = text.partition("@")
    return Visit(DURATION_FROM_0(seconds), _positive(SHARE)(visits) if at else 1.0)


def by_name(option: str, pairs: Sequence[tuple[str, Value]]) -> dict[str, Value]:
    """Pairs as a mapping; a name given twice is refused."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"{option}: {twice!r} is given twice; give each name once")
    return found


def whole_mix(option: str, shares: Iterable[float]) -> None:
    """Refuse shares of a mix that do not add up to 1."""
    total = math.fsum(shares)
    if abs(total - 1) > MIX_TOLERANCE:
        raise UsageError(f"{option}: the shares add up to {total:.9g}; they must add up to 1")


def together(arguments: argparse.Namespace, options: Iterable[str], why: str) -> bool:
    """Whether all of some options are given; some without the others are refused."""
    given = {option: getattr(arguments, key(option)) for option in options}
    missing = [option for option, value in given.items() if value is None]
    if missing and len(missing) < len(given):
        raise UsageError(f"{missing[0]}: is missing; {why}")
    return not missing
