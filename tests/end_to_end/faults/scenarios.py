"""The scenarios that any tool can be asked, by family; a test file of the family's name holds capwatch to their bars.

A quick one is part of the representative third that runs with all tests.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .lines import (
    bom,
    cri,
    cri_streams,
    crlf,
    docker,
    garbage,
    garbage_dropped,
    journald,
    light_dropped,
    light_garbage,
    long_lines,
    noise_dropped,
)
from .scenario import Scenario, linked
from .stage import (
    behind_a_link,
    chain,
    compressed,
    copytruncate,
    copytruncate_gap,
    delete_unopened,
    down,
    interleaved,
    kill,
    killed_within_a_rename,
    recreate,
    rename,
    rename_late,
    rename_unlinked,
    stopped_over,
    swapped,
    terminate,
    then,
)

GAP, GAP_BY_POLLING = 0.005, 0.03
"""The shares that copytruncate may lose with lines between copy and cut: where inotify wakes the reader, or not."""
FINE_S = 0.001
"""Five lines a write: how close to a cut something was written is what counts there."""

ROTATION = (
    Scenario("baseline"),
    Scenario("rename", (rename,) * 6),
    Scenario("rename, name missing 20 ms, old descriptor still written", (rename_late(0.02),) * 6, quick=True),
    Scenario("rename, name missing 2 s", (rename_late(2.0),)),
    Scenario("rename, old file unlinked", (rename_unlinked,) * 6),
    Scenario("chain .1 → .2 → .3", (chain,) * 6, quick=True),
    Scenario("three renames inside one poll", (then(rename, rename, rename),) * 4, quick=True),
    Scenario("deleted and made anew", (recreate,) * 4, quick=True),
    Scenario("gzip of the rotated file", (compressed,) * 4),
    Scenario("renames while it is stopped", (rename, down(rename, rename), rename), quick=True),
    Scenario("renames while it is down after kill -9", (rename, down(rename, rename, killed=True), rename)),
    Scenario("chain while it is stopped", (chain, down(chain, chain), chain)),
)
SYMLINK = (
    Scenario("symlink swap", (swapped,) * 6, globs=linked, linked=True, quick=True),
    Scenario("symlink and rename", (behind_a_link,) * 6, globs=linked, linked=True),
    Scenario("symlink swap while it is stopped", (swapped, down(swapped, swapped)), globs=linked, linked=True),
)
TRUNCATION = (
    Scenario("copytruncate", (copytruncate,) * 6, quick=True),
    Scenario("copytruncate while it is stopped", (copytruncate, down(copytruncate, copytruncate))),
    Scenario(
        "copytruncate, lines between copy and cut", (copytruncate_gap(0.0),) * 6, loss=GAP, tick=FINE_S, torn=False
    ),
    Scenario("copytruncate, 10 ms of lines between", (copytruncate_gap(0.01),) * 6, loss=GAP, tick=FINE_S, torn=False),
    Scenario(
        "copytruncate, copy out of reach", (copytruncate_gap(0.0, kept=False),) * 6, loss=GAP, tick=FINE_S, torn=False
    ),
    Scenario(
        "copytruncate at 200 lines/s",
        (copytruncate_gap(0.0),) * 4,
        loss=GAP,
        tick=FINE_S,
        torn=False,
        lines=1000,
        rate=200.0,
    ),
)
KILL = (
    Scenario("kill -9 × 3", (kill,) * 3, quick=True),
    Scenario("kill -9 while renaming, 12 rotations", interleaved((rename,) * 6, (killed_within_a_rename,) * 6)),
    Scenario("kill -9 between renames", interleaved((rename,) * 3, (kill,) * 3)),
    Scenario("kill -9 between copytruncates", interleaved((copytruncate,) * 3, (kill,) * 3)),
    Scenario("SIGTERM × 3", (terminate,) * 3, quick=True),
)
POLLING = tuple(
    replace(
        one,
        name=f"{one.name}, by polling",
        quick=one.name == "copytruncate",
        loss=GAP_BY_POLLING if one.loss else 0.0,
        blind=True,
        peers=False,
    )
    for one in (*ROTATION[1:9], *TRUNCATION)
)
"""The same without inotify, as on network file systems."""
PAUSE = (
    Scenario("SIGSTOP while files rotate", (stopped_over(rename, rename),) * 2, quick=True),
    Scenario("SIGSTOP while files rotate and are deleted", (stopped_over(rename, delete_unopened),) * 2),
    Scenario("SIGSTOP while files are copied and cut", (stopped_over(copytruncate, copytruncate),)),
)
LINES = (
    Scenario("CRLF", (rename,) * 3, wrap=crlf),
    Scenario("BOM", (rename,), wrap=bom),
    Scenario("0.4 % garbage, light", (rename,) * 3, wrap=light_garbage, drops=light_dropped, quick=True),
    Scenario("all kinds of garbage", (rename,) * 3, wrap=garbage, drops=garbage_dropped, quick=True),
    Scenario("lines of 2 MiB among them", (rename,) * 2, wrap=long_lines),
)
_TURNS = interleaved((rename,) * 4, (kill,) * 2)
_SLOWER: Any = {"lines": 6000, "rate": 1500.0}
"""Wrapping costs the writer more than the reader."""
WRAPPERS = (
    Scenario("CRI parts", _TURNS, **_SLOWER, wrap=cri, source={"wrapper": "cri"}, peers=False, quick=True),
    Scenario(
        "CRI, two streams in turn",
        _TURNS,
        wrap=cri_streams,
        source={"wrapper": "cri"},
        drops=noise_dropped,
        peers=False,
    ),
    Scenario("Docker parts", _TURNS, **_SLOWER, wrap=docker, source={"wrapper": "docker"}, peers=False),
    Scenario("journald", _TURNS, **_SLOWER, wrap=journald, source={"wrapper": "journald"}, peers=False),
)
FAMILIES = {
    "rotation": ROTATION,
    "symlink": SYMLINK,
    "truncation": TRUNCATION,
    "kill": KILL,
    "pause": PAUSE,
    "lines": LINES,
    "wrappers": WRAPPERS,
}
