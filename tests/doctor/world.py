"""A real Prometheus with series that are written down: each with its value now and how much it grows an hour."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.end_to_end.prometheus import Prometheus, prometheus

STEP_S = 60
SPAN_S = 3900


@contextmanager
def world(folder: Path, series: Mapping[str, tuple[float, float]], rules: str = "") -> Iterator[Prometheus]:
    """A server over an hour of these series up to now; ``rules`` is the content of a file of rules.

    Args:
        folder: an empty one.
        series: (value now, growth in an hour) by series.
        rules: YAML.
    """
    now = time.time()
    lines = [
        f"{name} {value - growth * back / 3600} {now - back:.3f}\n"
        for name, (value, growth) in series.items()
        for back in range(SPAN_S, -1, -STEP_S)
    ]
    (folder / "series.om").write_text("".join(lines) + "# EOF\n")
    blocks = folder / "blocks"
    blocks.mkdir()
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "--max-block-duration=256h"]
    if lines:
        subprocess.run([*command, folder / "series.om", blocks], check=True, capture_output=True)
    document = "global: {evaluation_interval: 1s}\n"
    if rules:
        (folder / "rules.yml").write_text(rules)
        document += f"rule_files: [{folder / 'rules.yml'}]\n"
    with prometheus(blocks, document) as server:
        yield server


def own(text: str) -> dict[str, tuple[float, float]]:
    """Series from lines `name{labels} value` or `name{labels} value +growth`."""
    found = {}
    for line in filter(None, text.splitlines()):
        name, value, growth = re.fullmatch(r"(\S+) (\S+)(?: \+(\S+))?", line.strip()).groups()  # type: ignore[union-attr]
        found[name] = (float(value), float(growth or 0))
    return found
