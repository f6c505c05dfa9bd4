"""Series over time as columns: what counters added, sums by label, quantiles of buckets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from capwatch.record import Floats

Matrix = npt.NDArray[np.float64]
SMALLEST: Final = 1e-300


@dataclass(frozen=True, slots=True)
class Columns:
    """Series at the same moments.

    Attributes:
        at: float64[n], s since the epoch, evenly apart.
        labels: of each of m series, `__name__` among them where the expression keeps it.
        values: float64[m, n]; NaN where a series has no value.
    """

    at: Floats
    labels: Sequence[Mapping[str, str]]
    values: Matrix

    def __len__(self) -> int:
        return len(self.labels)

    @staticmethod
    def joined(parts: Sequence[Columns]) -> Columns:
        """Stretches of time, one after another; a series may be missing in some.

        >>> one, two = ({"pool": name} for name in ("one", "two"))
        >>> first = Columns(np.array([0.0]), [one], np.ones((1, 1)))
        >>> then = Columns(np.array([1.0]), [two], np.ones((1, 1)))
        >>> Columns.joined([first, then]).by("pool")
        {('one',): array([ 1., nan]), ('two',): array([nan,  1.])}
        """
        if len(parts) == 1:
            return parts[0]
        rows = {_key(labels): labels for part in parts for labels in part.labels}
        places = {key: row for row, key in enumerate(rows)}
        at = np.concatenate([part.at for part in parts])
        values = np.full((len(rows), len(at)), np.nan)
        begin = 0
        for part in parts:
            end = begin + len(part.at)
            values[[places[_key(labels)] for labels in part.labels], begin:end] = part.values
            begin = end
        return Columns(at, list(rows.values()), values)

    def where(self, **labels: str) -> Columns:
        """The series with these labels."""
        kept = [row for row, one in enumerate(self.labels) if labels.items() <= one.items()]
        return Columns(self.at, [self.labels[row] for row in kept], self.values[kept])

    def by(self, *names: str) -> dict[tuple[str, ...], Floats]:
        """float64[n] by the values of some labels, in their order ("" where one is missing).

        Series that have them in common are added up; a moment at which none has a value stays NaN.
        """
        found: dict[tuple[str, ...], list[int]] = {}
        for row, labels in enumerate(self.labels):
            found.setdefault(tuple(labels.get(name, "") for name in names), []).append(row)
        return {key: _summed(self.values[rows]) for key, rows in sorted(found.items())}

    def total(self) -> Floats:
        """float64[n], all series added up; NaN where none has a value."""
        return _summed(self.values) if len(self) else np.full(len(self.at), np.nan)

    def continued(self, *own: str) -> Columns:
        """Series that are equal in these labels, one after another, as one: a restart at another address goes on.

        Those that are told at the same time stay apart. Of several that have ended a new one continues that with the
        largest count up to its own; where there is none, it is new.

        >>> values = np.array([[5.0, 7, np.nan, np.nan], [np.nan, np.nan, 8, 9]])
        >>> Columns(np.arange(4.0), [{"instance": "a"}, {"instance": "b"}], values).continued("pool").values
        array([[5., 7., 8., 9.]])
        """
        known = ~np.isnan(self.values)
        firsts, lasts = known.argmax(axis=1), known.shape[1] - 1 - known[:, ::-1].argmax(axis=1)
        chains: dict[tuple[str, ...], list[list[int]]] = {}
        for row in np.argsort(firsts, kind="stable").tolist():
            mine = chains.setdefault(tuple(self.labels[row].get(name, "") for name in own), [])
            begins = self.values[row, firsts[row]]
            ended = [chain for chain in mine if lasts[chain[-1]] < firsts[row]]
            counts = [float(self.values[chain[-1], lasts[chain[-1]]]) for chain in ended]
            fitting = [(count, place) for place, count in enumerate(counts) if count <= begins]
            if fitting:
                ended[max(fitting)[1]].append(row)
            else:
                mine.append([row])
        found = [chain for mine in chains.values() for chain in mine]
        return Columns(self.at, [self.labels[chain[-1]] for chain in found], _stacked(self.values, found))

    def bridged(self) -> Columns:
        """Counters that rise evenly over the moments at which they are not told, unless they began anew there.

        >>> values = np.array([[5.0, np.nan, 7, np.nan, 1]])
        >>> Columns(np.arange(5.0), [{}], values).bridged().values
        array([[5., 6., 7., 7., 1.]])
        """
        values = self.values.copy()
        for row in values:
            known = np.flatnonzero(~np.isnan(row))
            if len(known):
                row[:] = np.interp(np.arange(len(row)), known, row[known], left=np.nan, right=np.nan)
        return Columns(self.at, self.labels, np.where(values < _carried(self.values), _carried(self.values), values))

    def rises(self) -> Columns:
        """What each series of a counter added from each moment to the next, without extrapolation.

        A counter that falls began anew, so what it shows is added. A series that appears while others are being told
        begins at 0, as series of capwatch do; one that comes back after a gap, or is there first, adds what it has more
        than before. So the sum over time is the exact count, whichever moments are missing.

        Returns:
            Columns of n − 1 moments, the ends of the steps; NaN where nothing is known yet of a series.

        >>> values = np.array([[5.0, 7, np.nan, 2], [np.nan, np.nan, 3, 4]])
        >>> Columns(np.arange(4.0), [{}, {"born": "late"}], values).rises().values
        array([[ 2., nan,  2.],
               [nan,  3.,  1.]])
        """
        values = self.values
        before = _carried(values)[:, :-1]
        now = values[:, 1:]
        told_before = ~np.isnan(values[:, :-1]).all(axis=0)
        start = np.where(np.isnan(before) & told_before, 0.0, before)
        added = np.where(now < start, now, now - start)
        return Columns(self.at[1:], self.labels, added)


def buckets(counts: Columns) -> tuple[Floats, Matrix]:
    """Upper bounds float64[b], ascending, and what lies in them or below float64[b, n], of series with the label `le`.

    Series with the same bound are added up.
    """
    found = {float(bound): column for (bound,), column in counts.by("le").items()}
    bounds = np.array(sorted(found))
    return bounds, np.array([found[bound] for bound in bounds.tolist()]).reshape(len(bounds), len(counts.at))


def quantile(bounds: Floats, counts: Floats, q: float) -> float | None:
    """The quantile of one histogram, as PromQL's `histogram_quantile` has it; None without observations.

    Args:
        bounds: float64[b], ascending, the last one infinite.
        counts: float64[b], of observations up to each bound.
        q: 0 to 1.

    The value lies in the right bucket, linearly between its bounds: buckets of 2^(k/4) are 19 % wide. Beyond the last
    finite bound it is that bound.

    >>> quantile(np.array([1.0, 2.0, np.inf]), np.array([10.0, 30.0, 30.0]), 0.5)
    1.25
    """
    if len(bounds) < 2 or not counts[-1] > 0:
        return None
    counts = np.maximum.accumulate(counts)
    rank = max(q * float(counts[-1]), SMALLEST)  # so that the quantile 0 lies in a bucket with something in it
    place = min(int(np.searchsorted(counts, rank)), len(bounds) - 1)
    above: list[float] = bounds.tolist()
    if place == len(above) - 1:
        return above[-2]
    if place == 0 and above[0] <= 0:
        return above[0]
    low, below = (above[place - 1], float(counts[place - 1])) if place else (0.0, 0.0)
    return low + (above[place] - low) * (rank - below) / (float(counts[place]) - below)


def selector(name: str, **labels: str | None) -> str:
    r"""A selector of series; labels that are None are left out.

    >>> selector("capwatch_arrivals_total", pool='a"b'), selector("up", pool=None)
    ('capwatch_arrivals_total{pool="a\\"b"}', 'up')
    """
    told = ",".join(f'{label}="{escaped(value)}"' for label, value in labels.items() if value is not None)
    return f"{name}{{{told}}}" if told else name


def any_of(names: Iterable[str]) -> str:
    r"""A selector of all series that have one of these metric names.

    >>> any_of(["a", "b"])
    '{__name__=~"a|b"}'
    """
    return f'{{__name__=~"{"|".join(names)}"}}'


def escaped(text: str) -> str:
    """A text as it stands between double quotes in PromQL."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _key(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


def _summed(values: Matrix) -> Floats:
    summed: Floats = np.where(np.isnan(values).all(axis=0), np.nan, np.nansum(values, axis=0))
    return summed


def _stacked(values: Matrix, chains: Sequence[Sequence[int]]) -> Matrix:
    """One row for each chain of rows that are never told at the same moment."""
    return np.array([_summed(values[chain]) for chain in chains]).reshape(len(chains), values.shape[1])


def _carried(values: Matrix) -> Matrix:
    """Each value or the last one before it."""
    known = np.where(np.isnan(values), 0, np.arange(1, values.shape[1] + 1))
    last = np.maximum.accumulate(known, axis=1) if values.size else known
    carried: Matrix = np.where(last > 0, np.take_along_axis(values, np.maximum(last - 1, 0), axis=1), np.nan)
    return carried
