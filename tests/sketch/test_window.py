"""The window: whatever is added and however the clock turns, it equals a recomputation from all that was accepted."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from capwatch.sketch import SLICES, Cells, SumWindow, Window
from capwatch.sketch.grid import Ints

START = 100
Step = tuple[int, list[int] | None]

# A step adds keys to a slice (the number relative to START), or turns the clock to it.
step = st.tuples(st.integers(-15, 40), st.none() | st.lists(st.integers(0, 6), max_size=5))
steps = st.lists(step, max_size=40)


def ones(keys: list[int]) -> tuple[Ints, Ints]:
    """The keys, each counted once."""
    return np.array(keys, np.int64), np.ones(len(keys), np.int64)


def played(script: list[Step]) -> tuple[Window, Cells]:
    """The window after the script, and its content recomputed from the script."""
    window = Window(current=START)
    accepted: list[tuple[int, list[int]]] = []
    clock = START
    for number, keys in script:
        if keys is None:
            clock = max(clock, START + number)
            window.advance(START + number)
        elif window.add(START + number, *ones(keys)):
            accepted.append((START + number, keys))
    brute = Cells()
    for number, keys in accepted:
        if clock - SLICES < number <= clock:
            brute.add(*ones(keys))
    return window, brute


@given(steps)
def test_the_running_counts_equal_a_recomputation(script: list[Step]) -> None:
    """After any adds and advances the running cells are exactly those of the current slice and the ten before."""
    window, brute = played(script)
    assert window.running() == brute


@given(steps, steps)
def test_a_restored_window_goes_on_like_the_saved_one(script: list[Step], rest: list[Step]) -> None:
    """Saved and restored, it gives the same answers to whatever follows, for slices ahead of the clock too."""
    window, _ = played(script)
    twin = Window(window.current, window.slices())
    for number, keys in rest:
        for each in (window, twin):
            if keys is None:
                each.advance(START + number)
            else:
                each.add(START + number, *ones(keys))
    assert (twin.running(), twin.current) == (window.running(), window.current)


def test_a_slice_is_in_the_window_from_its_first_to_its_eleventh_turn() -> None:
    """The current slice and the ten before it count."""
    window = Window(current=START)
    window.add(START, *ones([7]))
    seen = []
    for later in range(12):
        window.advance(START + later)
        seen.append(len(window.running()))
    assert seen == [1] * 11 + [0]


def test_a_slice_the_window_has_passed_is_refused() -> None:
    """A record older than the window counts in totals only."""
    window = Window(current=START)
    accepted = [window.add(number, *ones([7])) for number in (START - 11, START - 10)]
    assert (accepted, len(window.slices())) == ([False, True], 1)


def test_a_slice_ahead_waits_for_the_clock() -> None:
    """Counts of the future are kept, and shown when their time has come."""
    window = Window(current=START)
    window.add(START + 1, *ones([7]))
    before = len(window.running())
    window.advance(START + 1)
    assert (before, len(window.running())) == (0, 1)


def test_a_slice_that_was_never_reached_expires_unseen() -> None:
    """A clock that leaps over a waiting slice neither shows nor subtracts it."""
    window = Window(current=START)
    window.add(START + 1, *ones([7]))
    window.advance(START + 50)
    assert (len(window.running()), window.slices()) == (0, {})


def test_the_clock_never_turns_back() -> None:
    """An earlier slice number changes nothing."""
    window = Window(current=START)
    window.add(START, *ones([7]))
    window.advance(START - 5)
    assert (window.current, len(window.running())) == (START, 1)


def test_the_running_counts_are_a_snapshot() -> None:
    """What was read does not change when the window goes on."""
    window = Window(current=START)
    window.add(START, *ones([7]))
    snapshot = window.running()
    window.advance(START + 50)
    assert len(snapshot) == 1


@given(steps)
def test_sums_equal_a_recomputation(script: list[Step]) -> None:
    """Sums follow the same window; quarters are exact in floats, so the sums must be too."""
    window = SumWindow(columns=2, current=START)
    accepted: list[tuple[int, list[int]]] = []
    for number, keys in script:
        if keys is None:
            window.advance(START + number)
        elif window.add(START + number, np.array(keys, np.int64), np.tile([0.25, 1.0], (len(keys), 1))):
            accepted.append((START + number, keys))
    inside = [key for number, keys in accepted if window.current - SLICES < number <= window.current for key in keys]
    found, sums = window.total()
    truth = [(key, [0.25 * inside.count(key), float(inside.count(key))]) for key in sorted(set(inside))]
    assert list(zip(found.tolist(), sums.tolist(), strict=True)) == truth


def test_a_sum_slice_the_window_has_passed_is_refused() -> None:
    """Late sums count in totals only, and a slice gone is not kept."""
    window = SumWindow(columns=1, current=START)
    accepted = [window.add(number, np.array([1]), np.array([[1.0]])) for number in (START - 11, START - 10)]
    window.advance(START + 1)
    assert (accepted, window.slices()) == ([False, True], {})


def test_sums_leave_no_dust_when_they_go() -> None:
    """0.1 + 0.2 - 0.1 is not 0.2 in floats; a window that has lost the 0.1 shows 0.2 exactly."""
    window = SumWindow(columns=1, current=START)
    window.add(START, np.array([1]), np.array([[0.1]]))
    window.add(START + 5, np.array([1]), np.array([[0.2]]))
    window.advance(START + 11)
    assert window.total()[1].tolist() == [[0.2]]


@given(st.lists(st.tuples(st.integers(-10, 5), st.floats(-1e9, 1e9)), max_size=30))
def test_restored_sums_are_the_same_to_the_last_bit(rows: list[tuple[int, float]]) -> None:
    """Saved and restored, the total is equal, not merely close."""
    window = SumWindow(columns=1, current=START)
    for number, value in rows:
        window.add(START + number, np.array([1]), np.array([[value]]))
    twin = SumWindow(1, window.current, window.slices())
    assert twin.total()[1].tolist() == window.total()[1].tolist()


def test_an_empty_sum_window_has_its_columns() -> None:
    """Nothing was added: no keys, and a table of no rows."""
    keys, sums = SumWindow(columns=3).total()
    assert (keys.shape, sums.shape) == ((0,), (0, 3))
