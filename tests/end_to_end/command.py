"""Runs the real command line, as a user's shell would, and reads the page that it prints."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

COMMAND = (sys.executable, "-m", "capwatch.cli")

Labels = tuple[str, ...]


def capwatch(
    *words: str | Path, cwd: Path, stdin: bytes | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """What the command does in a folder; it never waits for a terminal, and ``env`` is added to the environment."""
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        cwd=cwd,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        env={**os.environ, **(env or {})},
        capture_output=True,
        check=False,
        timeout=120,
    )


def printed(*words: str | Path, cwd: Path, stdin: bytes | None = None, code: int = 0) -> str:
    """Standard output of a call that has nothing to say on stderr."""
    result = capwatch(*words, cwd=cwd, stdin=stdin)
    told = (result.returncode, result.stderr.decode())
    assert told == (code, ""), told
    return result.stdout.decode()


class Page:
    """A page as prometheus_client's parser reads it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.samples: defaultdict[str, list[tuple[Mapping[str, str], float]]] = defaultdict(list)
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                self.samples[sample.name].append((sample.labels, sample.value))

    def values(self, name: str, *labels: str, **where: str) -> dict[Labels, float]:
        """The samples of this name (without `capwatch_`), summed over all labels but these, where the others fit."""
        sums: defaultdict[Labels, float] = defaultdict(float)
        for found, value in self.samples[f"capwatch_{name}"]:
            if where.items() <= found.items():
                sums[tuple(found[label] for label in labels)] += value
        return dict(sums)

    def value(self, name: str, **where: str) -> float:
        """The sum of all samples of this name whose labels fit; 0 without any."""
        return self.values(name, **where).get((), 0.0)
