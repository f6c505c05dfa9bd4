"""A log whose traffic is known, in a real Prometheus that has scraped capwatch over it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.command import printed
from tests.end_to_end.prometheus import prometheus

needs_prometheus = pytest.mark.skipif(
    not (shutil.which("promtool") and shutil.which("prometheus")), reason="prometheus is not installed"
)


@contextmanager
def scraped(folder: Path, config: str, rows: Sequence[Mapping[str, Any]], step: str = "15s") -> Iterator[str]:
    """The address of a server that has seen the rows, as lines of x.jsonl in the order of their ends."""
    (folder / "capwatch.yml").write_text(config)
    (folder / "x.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    printed(
        "replay", "--openmetrics-out", "x.om", "--step", step, "--config.file", "capwatch.yml", "x.jsonl", cwd=folder
    )
    blocks = folder / "blocks"
    blocks.mkdir()
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(folder / "x.om"), str(blocks)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    with prometheus(blocks) as running:
        yield running.url
