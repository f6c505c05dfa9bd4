"""The running show: history, logs and the real daemon in one process, until somebody stops it."""

from __future__ import annotations

import json
import math
import signal
import socket
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from capwatch import sourcing
from capwatch.config.load import load
from capwatch.config.schema import Config
from capwatch.console.progress import Progress
from capwatch.daemon import log
from capwatch.daemon.run import Daemon, Flags
from capwatch.demo.clock import Clock
from capwatch.demo.history import DAYS, WARM_S, fill
from capwatch.demo.narrator import LEAST_S, Narrator
from capwatch.demo.scene import Scene
from capwatch.demo.simulation import BLOCK_S, STATISTICS_S, Simulation
from capwatch.demo.workload import MODEL, change
from capwatch.demo.writers import Writers
from capwatch.errors import UsageError

CHANGE_S: Final = 120.0
"""After the start until the scenario's change: enough to see what is usual."""
STEP_S: Final = 0.2
"""Between two looks of the writer at the clock: lines come out as they do from a busy gateway."""
TELL_S: Final = 10.0
"""Between two lines of the narrator at the usual speed; faster by the root of the speed."""
LOOK_S: Final = 20.0
"""Most simulated seconds between two looks at the daemon's page, so that what was before the change is not missed."""
FETCH_S: Final = 5.0
"""Patience with the daemon's page."""
HOST: Final = "127.0.0.1"
INTERRUPTED: Final = 130
"""The shell's exit code of what Ctrl-C has ended, here before the daemon ran; the daemon itself ends well by it."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says."""

    scenario: str
    speed: float
    port: int
    seed: int
    keep: Path | None


def play(options: Options, tell: Callable[[str], None], wall: Callable[[], float]) -> int:
    """Run the demo by the ``wall`` clock until it is stopped, and ``tell`` what there is to see; the exit code.

    Raises:
        UsageError: the port is taken, or the folder cannot be used.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that this, too, cleans up
    port = _free(options.port)
    with _folder(options.keep) as folder:
        try:
            code = _play(options, Scene(folder), port, tell, wall)
        except KeyboardInterrupt:
            code = INTERRUPTED
    tell(f"stopped; files {f'kept in {options.keep}' if options.keep else 'removed'}")
    return code


def _play(options: Options, scene: Scene, port: int, tell: Callable[[str], None], wall: Callable[[], float]) -> int:
    scene.set_up(f"{HOST}:{port}")
    log.begin("warning", "logfmt")
    config = _config(scene)
    clock = Clock(options.speed, wall)
    start = math.floor(clock() / BLOCK_S) * BLOCK_S
    live = Simulation(options.scenario, options.seed, start - WARM_S, WARM_S + CHANGE_S)
    tell(f"capwatch demo: making up {DAYS} days of history ...")
    _fill(config, live)
    daemon = Daemon(config, lambda: _config(scene), Flags(), clock)
    live.change_at = math.floor(clock() / BLOCK_S) * BLOCK_S + CHANGE_S  # however long all this has taken
    clock.let_go()
    daemon.heed()  # from here on an interruption ends the daemon, and with it, in order, all that writes
    tell(_programme(options, scene, config.listen))
    with _works(partial(_write, scene, live, clock), partial(_narrate, options, live, config.listen, tell)):
        return daemon.run()


def _config(scene: Scene) -> Config:
    """The configuration as it was written: nothing around the demo changes it."""
    return load(str(scene.configuration), {}, formats=sourcing.names(), is_root=False)


def _fill(config: Config, live: Simulation) -> None:
    progress = Progress(1000, "history")
    fill(config, live, lambda done: progress.show(int(1000 * done)))
    progress.end()


@contextmanager
def _works(*works: Callable[[threading.Event], None]) -> Iterator[None]:
    """Let each work run in a thread of its own, until the context ends; each hears then that it is over."""
    over = threading.Event()
    threads = [threading.Thread(target=work, args=(over,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _write(scene: Scene, live: Simulation, clock: Clock, over: threading.Event) -> None:
    """Write what has happened, in the order in which it did, until the show is over."""
    said_at = live.begin + WARM_S
    with closing(Writers(scene.gateway, scene.engines, live.seed)) as writers:
        writers.begin(said_at)
        while not over.wait(STEP_S):
            now = clock()
            while said_at + STATISTICS_S <= now:
                said_at += STATISTICS_S
                writers.write(live.until(said_at), live.statistics(said_at), said_at)
            writers.write(live.until(now), (), now)


def _narrate(
    options: Options, live: Simulation, listen: str, tell: Callable[[str], None], over: threading.Event
) -> None:
    """Say what the daemon's metrics show, until the show is over."""
    speed = max(options.speed, 1.0)
    every = 0.9 * TELL_S * math.sqrt(speed)  # a little less than between two looks, which differ by the log's own steps
    narrator = Narrator(options.scenario, live.change_at, every)
    pause = STEP_S
    while not over.wait(pause):
        page, drifts = _fetched(listen, "/metrics"), _fetched(listen, "/api/v1/drift")
        if page:
            pause = min(TELL_S / math.sqrt(speed), LOOK_S / speed)
        for line in narrator.hear(page) if page else ():
            tell(line)
        for line in narrator.warn(json.loads(drifts)["events"]) if drifts else ():
            tell(line)


def _fetched(listen: str, path: str) -> str | None:
    """A page of the daemon; None where it cannot be had now."""
    try:
        with urllib.request.urlopen(f"http://{listen}{path}", timeout=FETCH_S) as answer:
            page: bytes = answer.read()
    except (urllib.error.URLError, OSError):
        return None
    return page.decode()


def _programme(options: Options, scene: Scene, listen: str) -> str:
    """What there is to look at, and when."""
    metrics = f"curl -s http://{listen}/metrics"
    simulated = f"The clock is simulated and runs {options.speed:g} times as fast as yours. "
    return f"""
  the page       http://{listen}/
  all metrics    {metrics}
  the alarm      curl -s http://{listen}/api/v1/drift   # and capwatch_drift_… of all metrics
  who costs      {metrics} | grep 'tenant_share_ratio{{pool="{MODEL}"'     # of the last hour's work, dearest first
  in flight      {metrics} | grep 'inflight_littles_law{{pool="{MODEL}"'   # requests, mean of 5 minutes
  KV caches      {metrics} | grep 'kv_cache_utilisation_ratio{{pool="{MODEL}"'
  the logs       tail -f {scene.gateway}

{simulated if options.speed != 1 else ""}Scenario {options.scenario}, seed {options.seed}.
First numbers within {_time(LEAST_S + TELL_S / 2, options)}; in {_time(CHANGE_S, options)}: {change(options.scenario)}.
Ctrl-C ends it{"" if options.keep else " and removes its files"}.
"""


def _time(simulated: float, options: Options) -> str:
    """How long some simulated seconds take.

    >>> _time(120.0, Options("quiet", 1.0, 0, 7, None)), _time(120.0, Options("quiet", 10.0, 0, 7, None))
    ('2 min', '12 s')
    """
    seconds = simulated / options.speed
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{max(seconds, 1):.0f} s"


def _free(port: int) -> int:
    """The port, if it can be had; any that is free where it is 0.

    Raises:
        UsageError: it is taken.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise UsageError(
                f"--port: {HOST}:{port} cannot be had ({error.strerror}); name another, or 0 for any that is free "
                "(make demo OPTIONS='--port 0')"
            ) from None
        found: int = probe.getsockname()[1]
    return found


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """Where everything lies: a folder that goes at the end, or the one to keep.

    Raises:
        UsageError: that one cannot be used, or something is in it.
    """
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="capwatch-demo-") as folder:
            yield Path(folder)
        return
    try:
        keep.mkdir(parents=True, exist_ok=True)
        full = any(keep.iterdir())
    except OSError as error:
        raise UsageError(f"--keep: {keep}: {error.strerror}; name another folder") from None
    if full:
        raise UsageError(f"--keep: {keep}: is not empty; name a new folder")
    yield keep.resolve()
