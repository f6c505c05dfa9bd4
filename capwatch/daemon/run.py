"""The daemon as a whole: from its configuration to its end, by way of signals and reloads."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Final

import msgspec

from capwatch import __version__
from capwatch.config.check import of_reach, warnings
from capwatch.config.schema import Config
from capwatch.daemon.committing import Committing
from capwatch.daemon.control import Control
from capwatch.daemon.gpus import GpuWatch
from capwatch.daemon.learning import Learning
from capwatch.daemon.package import Ledger
from capwatch.daemon.reading import LONGEST_WAIT_S, Reading
from capwatch.daemon.shown import Shown
from capwatch.daemon.start import begin, fresh_history, opened_history, recall_notes
from capwatch.daemon.status import Board
from capwatch.daemon.wishes import Wishes
from capwatch.errors import CapwatchError
from capwatch.gpus import shelf as gpus
from capwatch.keep.state import Lock
from capwatch.pipeline import Pipeline
from capwatch.sourcing import engines
from capwatch.tail.wake import NOTHING, Wake
from capwatch.web import Door, Server

PATIENCE_S: Final = 4.0
"""A stop ends within five seconds, whatever the backlog (reliability: SIGTERM)."""
BOUND: Final = 96 << 20
"""Bytes of increments read but not durable, after which reading stops: the log is the buffer. 300,000 lines of busy
logs, far more than are read during a commit."""
LOOK_S: Final = 0.5
"""Between two looks of the waiting main thread."""
HELD: Final = frozenset({signal.SIGHUP, signal.SIGTERM})
"""Signals that `capwatch run` holds back from its first moment until `heed`: none is lost, and none ends it rudely."""
SILENT_S: Final = 10.0
"""Between two commits while nothing happens: the event clock runs on, and the commit's time says that all is well."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Flags:
    """What the command line says beside the configuration."""

    listen: tuple[str, ...] = ()
    """Addresses in place of the configuration's."""
    web_config: str | None = None
    """The web configuration file."""
    telemetry_path: str = "/metrics"
    lifecycle: bool = False
    reset: bool = False


class Daemon:
    """One daemon on one state directory."""

    def __init__(
        self, config: Config, load: Callable[[], Config], flags: Flags, clock: Callable[[], float] = time.time
    ) -> None:
        """Everything that can be refused is refused here.

        Args:
            config: the effective configuration.
            load: reads it again, for a reload.
            flags: see `Flags`.
            clock: the wall clock (s, epoch) that bounds the time of events; the demo has one that runs faster.

        Raises:
            CapwatchError: the state is held, or newer; the address is taken.
        """
        self._config = config
        self._load = load
        self._flags = flags
        self._clock = clock
        self._door = Door(flags.web_config)
        self._lock = Lock(config.state_dir)
        self._signals: SimpleQueue[int] = SimpleQueue()
        self._stop = threading.Event()
        self._reload = threading.Event()
        self._failed: BaseException | None = None
        begun = begin(config, reset=flags.reset)
        self._state = begun.state
        self._ledger: Ledger = begun.ledger
        history = opened_history(config)
        recall_notes(history, begun.pipeline)
        self._shown = Shown(begun.totals, begun.pipeline.meters, frozenset(config.metrics.disable))
        self._shown.live.started_at = self._shown.live.reload_at = time.time()
        self._board = Board(self._shown, config)
        self._server = Server(
            flags.listen or (config.listen,),
            self._board,
            telemetry_path=flags.telemetry_path,
            reload=self.reload if flags.lifecycle else None,
            door=self._door,
        )
        self._gpus = GpuWatch(gpus()["nvml"])  # from here on something runs that may have a word to say
        self._reading = Reading(config, begun.pipeline, self._ledger.sources, clock, self._gpus)
        self._committing = Committing(self._state, history, self._ledger, self._shown, partial(fresh_history, config))
        self._learning = Learning(config.state_dir)
        self._wishes = Wishes(config, self._committing, self._shown.live)
        self._control = Control(config.state_dir, self._wishes.answer)
        self._note_settings()

    def _note_settings(self) -> None:
        """Keep the pools' settings that are in force, so that a review needs no configuration."""
        pools = {one.name: msgspec.to_builtins(one) for one in self._config.pools}
        self._committing.later(lambda history: history.note_settings(self._clock(), pools))

    def heed(self) -> None:
        """Take the process's signals from now on; those before `run` are obeyed there."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD)

    def run(self) -> int:
        """Run until told to stop; the exit code."""
        self.heed()
        for warning in self._warnings():
            _log.warning("%s", warning)
        reading = threading.Thread(target=self._read, name="reading", daemon=True)
        self._committing.start()
        self._server.start()
        self._control.start()
        self._learning.start()
        reading.start()
        _log.info("capwatch %s listens on %s", __version__, ", ".join(self._server.addresses))
        while not self._stop.is_set():
            self._obey()
            if self._committing.failed is not None:
                self._failed = self._committing.failed
                self._stop.set()
        deadline = time.monotonic() + PATIENCE_S
        self._learning.stop()
        reading.join(PATIENCE_S)
        whole = self._committing.stop(max(LOOK_S, deadline - time.monotonic()))
        self._server.stop()
        self._control.stop()
        self._gpus.stop()
        if not whole:
            _log.error("stopped before everything was durable; what is missing will be read again")
        self._state.close()
        self._lock.release()
        _log.info("stopped")
        return int(self._failed is not None)

    def _warnings(self) -> Iterator[str]:
        """What is allowed but probably not meant."""
        for listen in self._flags.listen or (self._config.listen,):
            yield from of_reach(listen, auth=self._door.asks)
        yield from warnings(self._config, engines())
        yield from self._door.warnings()

    def stop(self) -> None:
        """End `run` soon."""
        self._stop.set()

    def reload(self) -> bool:
        """Read the configuration again; a bad one leaves the old one running. Whether it was good."""
        try:
            config = self._load()
        except CapwatchError as error:
            _log.error("the configuration was not reloaded: %s", error)
            self._shown.live.reload_ok = False
            return False
        for key in ("state_dir",) if self._flags.listen else ("listen", "state_dir"):
            if getattr(config, key) != getattr(self._config, key):
                _log.warning("%s has changed; that needs a restart", key)
        self._next = replace(config, listen=self._config.listen, state_dir=self._config.state_dir)
        self._reload.set()
        return True

    def _on_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the signature of a handler
        # A handler interrupts the main thread anywhere: of all ways to tell somebody, this one alone takes no lock.
        self._signals.put(number)

    def _obey(self) -> None:
        """Wait a moment for a signal, and do what it says."""
        try:
            number = self._signals.get(timeout=LOOK_S)
        except Empty:
            return
        if number == signal.SIGHUP:
            self.reload()
        else:
            self._stop.set()

    def _read(self) -> None:
        """The reading thread."""
        wake = Wake()
        try:
            wake.watch(self._reading.directories())
            touched = NOTHING
            while not self._stop.is_set():
                if self._reload.is_set():
                    self._switch()
                if not self._full():
                    self._reading.poll(touched, self._due)
                self._due()
                wake.watch(self._reading.directories())
                touched = wake.wait(self._pause(full=self._full()))
            self._finish()
        except Exception as error:  # noqa: BLE001 - it ends the daemon, whatever it is
            _log.exception("reading has failed")
            self._failed = error
            self._stop.set()
        finally:
            wake.close()
            self._reading.close()

    _commit_at = 0.0
    """When the next package is to be handed over, monotonic."""
    _silent_until = 0.0
    """When a package is handed over though nothing has happened."""
    _next: Config

    def _due(self) -> bool:
        """Hand over what was read, if it is time and the committer is idle; whether reading shall go on."""
        now, starting = time.monotonic(), not self._shown.live.ready
        if self._committing.idle and (now >= self._commit_at or (starting and self._reading.caught_up())):
            self._commit_at = now + self._config.commit_interval
            if now >= self._silent_until or starting or self._reading.has_news() or self._asked():
                self._silent_until = now + SILENT_S
                self._hand_over()
        return not (self._full() or self._stop.is_set() or self._reload.is_set())

    def _asked(self) -> bool:
        """Whether somebody waits for the next package."""
        return self._wishes.waiting() or self._learning.waiting()

    def _full(self) -> bool:
        """Whether so much waits for a commit that nothing more is to be read."""
        return self._reading.pipeline.held >= BOUND

    def _pause(self, *, full: bool) -> float:
        """How long (s) there is nothing to do; a committer that is late is looked at now and then, not all the time."""
        wait = LONGEST_WAIT_S if full else self._reading.wait()
        return min(wait, max(0.0, self._commit_at - time.monotonic())) if self._committing.idle else wait

    def _hand_over(self) -> None:
        done = self._wishes.grant(self._reading.pipeline)
        self._learning.look(self._reading.pipeline.drifts)
        package = self._reading.freeze(checkpoint=self._committing.wants_checkpoint)
        package.done = done
        self._board.files = self._reading.files()
        if self._reading.caught_up():
            package.caught_up = True
        self._committing.hand_over(package)

    def _finish(self) -> None:
        """The last package of a stop."""
        deadline = time.monotonic() + PATIENCE_S
        while not self._committing.idle and time.monotonic() < deadline:
            time.sleep(0.01)
        if self._committing.idle:
            self._committing.hand_over(self._reading.freeze(checkpoint=True))

    def _switch(self) -> None:
        """Go on with a new configuration, between two batches."""
        self._reload.clear()
        config = self._next
        old = self._reading
        old.flush()
        pipeline = Pipeline(config, old.pipeline.names, secret=old.pipeline.secret)
        pipeline.load(old.pipeline.save())
        pipeline.inherit(old.pipeline)
        self._reading = Reading(config, pipeline, old.states(), self._clock, self._gpus)
        old.close()
        self._config = config
        self._note_settings()
        self._shown.reshape(pipeline.meters, frozenset(config.metrics.disable))
        self._board.config = self._wishes.config = config
        self._shown.live.reload_ok, self._shown.live.reload_at = True, time.time()
        _log.info("configuration reloaded")
