"""Looking at the GPUs: what is told when, with a library that fails, loses cards, hangs, or is not wanted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from capwatch.daemon import gpus
from capwatch.daemon.gpus import FIRST_PAUSE_S, INTERVAL_S, LONGEST_PAUSE_S, PATIENCE_S, GpuWatch, _Look
from capwatch.errors import LibraryError
from capwatch.record import GpuReading, GpuSample


class Library:
    """A library whose answers are given; an error is raised, an event is waited for."""

    def __init__(self) -> None:
        self.answers: list[GpuReading | LibraryError] = []
        self.opened = self.closed = 0
        self.go_on = threading.Event()
        self.go_on.set()
        self.threads: set[int] = set()

    def open(self) -> Library:
        """Open it, unless the next answer is that it is not there."""
        self.opened += 1
        return self

    def read(self) -> GpuReading:
        """The next answer; the last one goes on."""
        self.threads.add(threading.get_ident())
        self.go_on.wait(30)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, LibraryError):
            raise answer
        return answer

    def close(self) -> None:
        """Count it."""
        self.closed += 1


def reading(*uuids: str, whole: bool = True) -> GpuReading:
    """A reading of some cards."""
    return GpuReading([GpuSample(gpu=str(index), uuid=uuid) for index, uuid in enumerate(uuids)], [], whole)


@pytest.fixture
def library() -> Library:
    """One that answers with one card."""
    found = Library()
    found.answers = [reading("a")]
    return found


@pytest.fixture
def clock() -> list[float]:
    """A clock that stands until it is set."""
    return [1000.0]


@pytest.fixture
def watch(library: Library, clock: list[float], monkeypatch: pytest.MonkeyPatch) -> Iterator[GpuWatch]:
    """A watch that looks all the time."""
    monkeypatch.setattr(gpus, "INTERVAL_S", 0.001)
    monkeypatch.setattr(gpus, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(gpus, "END_S", 5.0)
    found = GpuWatch(library.open, lambda: clock[0])
    yield found
    library.go_on.set()
    found.stop()


def until(true: Callable[[], bool]) -> None:
    """Wait until something is true; the threads of a busy machine may take their time."""
    for _ in range(30_000):
        if true():
            return
        time.sleep(0.001)
    raise AssertionError("waited in vain")


def told(watch: GpuWatch) -> GpuReading | None:
    """The last thing that is told, once something is."""
    found: list[GpuReading | None] = []

    def some() -> bool:
        found[:] = watch.news()
        return bool(found)

    until(some)
    return found[-1]


def test_readings_are_told(watch: GpuWatch) -> None:
    """Whatever the library answers, by whoever takes it."""
    watch.want("auto")
    assert told(watch) == reading("a")


def test_what_the_last_daemon_left_is_withdrawn_where_nobody_looks(watch: GpuWatch, library: Library) -> None:
    """Once; and the library is not touched."""
    watch.want("off")
    assert [watch.news(), watch.news()] == [[None], []]
    assert library.opened == 0


def test_a_call_that_hangs_costs_what_was_known_and_one_thread(
    watch: GpuWatch, library: Library, clock: list[float]
) -> None:
    """After the patience nothing is known, told once; reloads start no other thread; with the call all comes back."""
    watch.want("auto")
    assert told(watch) == reading("a")
    library.go_on.clear()
    until(lambda: not watch.news())
    clock[0] += PATIENCE_S - 1
    assert watch.news() == []
    clock[0] += 2
    assert [watch.news(), watch.news()] == [[None], []]
    before = threading.active_count()
    for mode in ("off", "on", "auto"):
        watch.want(mode)
    assert threading.active_count() == before
    library.go_on.set()
    assert told(watch) == reading("a")
    assert len(library.threads) == 1


def test_it_can_be_switched_off_and_on(watch: GpuWatch, library: Library) -> None:
    """Off gives the library back and withdraws; on opens it anew."""
    watch.want("auto")
    assert told(watch) == reading("a")
    watch.want("off")
    assert told(watch) is None
    until(lambda: library.closed == 1)
    watch.want("on")
    assert told(watch) == reading("a")
    assert library.opened == 2


def test_an_end_waits_for_no_call_that_hangs(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """The daemon stops in time whatever the library does."""
    monkeypatch.setattr(gpus, "END_S", 0.01)
    library.go_on.clear()
    watch = GpuWatch(library.open)
    watch.want("auto")
    until(lambda: bool(library.threads))
    watch.stop()
    library.go_on.set()


def test_a_library_that_does_not_answer_is_opened_again_with_growing_pauses(library: Library) -> None:
    """Nothing is known meanwhile; after it has answered the pauses are short again."""
    library.answers = [*[LibraryError("gone")] * 8, reading("a"), LibraryError("gone")]
    look, pauses = _Look(library.open), []
    for _ in range(8):
        assert look.read(0.0, aloud=False) is None
        pauses.append(look.pause)
    assert pauses == [min(FIRST_PAUSE_S * 2**n, LONGEST_PAUSE_S) for n in range(8)]
    assert look.read(0.0, aloud=False) == reading("a")
    assert (look.pause, library.opened, library.closed) == (INTERVAL_S, 9, 8)
    assert look.read(0.0, aloud=False) is None
    assert look.pause == FIRST_PAUSE_S


@pytest.mark.parametrize("lost", [reading("a"), reading("a", whole=False)], ids=["fewer cards", "an error"])
def test_a_lost_card_has_the_library_opened_again(library: Library, lost: GpuReading) -> None:
    """The others are read as ever; with growing pauses, since a card that comes back has a new handle."""
    library.answers = [reading("a", "b"), lost]
    look, opened = _Look(library.open), []
    for second in range(0, 100, 5):
        found = look.read(float(second), aloud=False)
        assert look.pause == INTERVAL_S
        opened.append((second, library.opened))
        assert found == (lost if second else reading("a", "b"))
    times = [second for (second, count), (_, before) in zip(opened[1:], opened, strict=False) if count > before]
    assert times == [20, 40, 80]
    library.answers = [reading("a", "b")]
    assert look.read(100.0, aloud=False) == reading("a", "b")
    assert [look.read(200.0, aloud=False) is not None, library.opened] == [True, 4]


def test_instances_that_are_gone_are_not_missed(library: Library) -> None:
    """MIG instances come and go as somebody wants."""
    instance = GpuSample(gpu="0:1", uuid="MIG-1")
    library.answers = [GpuReading([*reading("a").cards, instance]), reading("a")]
    look = _Look(library.open)
    for second in range(0, 1000, 5):
        look.read(float(second), aloud=False)
    assert library.opened == 1


@pytest.mark.parametrize(("aloud", "level"), [(True, "WARNING"), (False, "INFO")])
def test_what_is_wrong_is_said_once(
    library: Library, caplog: pytest.LogCaptureFixture, *, aloud: bool, level: str
) -> None:
    """Aloud where the operator wants GPUs to be read, quietly where there may be none."""
    library.answers = [LibraryError("no driver")]
    look = _Look(library.open)
    with caplog.at_level("INFO"):
        for _ in range(5):
            look.read(0.0, aloud=aloud)
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [(level, "GPUs: no driver")]
