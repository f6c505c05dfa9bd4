"""Draws a board with Grafana's own components in headless Chromium, from answers that Prometheus gave before."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
ESBUILD: Final = HERE / "node_modules" / ".bin" / "esbuild"
COLUMNS, COLUMN, LINE, MARGIN = 24, 60, 36, 24
"""The grid, and the pixels of a cell, as page/main.tsx has them."""
PAGE: Final = """<!doctype html><meta charset="utf-8">
<link rel="stylesheet" href="main.css"><div id="board"></div>
<script src="{name}.js"></script><script src="main.js"></script>"""
LABEL: Final = re.compile(r"\{\{(\w+)\}\}")
STATE: Final = re.compile(r'CONSOLE.*?"DRAWN (.*)", source')

Json = dict[str, Any]


def bundle(folder: Path) -> None:
    """Build the page's script and style into a folder."""
    loaders = [f"--loader:.{ending}=dataurl" for ending in ("png", "ttf", "woff2")]
    options = ["--bundle", "--minify", "--format=iife", "--log-level=error", f"--outdir={folder}", "--loader:.svg=text"]
    defined = ["--define:global=globalThis", '--define:process.env.NODE_ENV="production"']
    command: list[str | Path] = [ESBUILD, HERE / "page" / "main.tsx", *options, *loaders, *defined]
    subprocess.run(command, cwd=HERE, check=True)


def named(labels: Mapping[str, str], found: re.Match[str]) -> str:
    """A label's value in the place of its name."""
    return labels.get(found[1], "")


def series(found: Iterable[Json], target: Json) -> list[Json]:
    """The series of one target as the page takes them, named by the legend; what is no number is a gap."""
    return [
        {
            "name": LABEL.sub(partial(named, one["metric"]), target["legendFormat"]),
            "labels": one["metric"],
            "refId": target["refId"],
            "values": [
                [at, float(value) if value not in ("NaN", "+Inf", "-Inf") else None] for at, value in one["values"]
            ],
        }
        for one in found
    ]


def draw(folder: Path, name: str, board: Json, answers: Mapping[int, list[Json]], span: tuple[float, float]) -> Json:
    """Write ``name``.png beside the bundle; what became of each panel, by its title.

    A panel that was drawn has the number of its canvases, marks and letters; one that failed has what it threw.
    """
    page = {"board": board, "answers": answers, "from": span[0], "to": span[1]}
    (folder / f"{name}.js").write_text(f"window.PAGE = {json.dumps(page)};")
    (folder / f"{name}.html").write_text(PAGE.format(name=name))
    height = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in board["panels"]) * LINE + MARGIN
    command = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += [f"--user-data-dir={folder / 'chromium'}", f"--window-size={COLUMNS * COLUMN + MARGIN},{height}"]
    command += ["--virtual-time-budget=8000", "--enable-logging=stderr", f"--screenshot={folder / name}.png"]
    url = (folder / f"{name}.html").as_uri()
    shown = subprocess.run([*command, url], capture_output=True, text=True, check=True, timeout=120)
    told = STATE.findall(shown.stderr)
    assert told, shown.stderr[-3000:]
    drawn: Json = json.loads(told[-1])
    return drawn
