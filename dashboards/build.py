"""Builds the dashboards of this folder: `python dashboards/build.py` writes the JSON files, a test checks them.

A board is one file in `boards/`, found by itself. Its panels speak of metrics by the names of the catalogue
(capwatch/metrics.py), which gives labels, units and help.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).resolve().parent
if str(HERE.parent) not in sys.path:
    sys.path.append(str(HERE.parent))  # run as a file it finds its own folder as well

if TYPE_CHECKING:
    from dashboards.panels import Board


def boards() -> list[Board]:
    """Every board, by its file's name."""
    names = sorted(path.stem for path in (HERE / "boards").glob("*.py"))
    return [import_module(f"dashboards.boards.{name}").BOARD for name in names]


def documents() -> dict[str, str]:
    """Every JSON file by its name."""
    document = import_module("dashboards.grafana").document
    return {
        f"{board.name}.json": json.dumps(document(board), indent=2, ensure_ascii=False, sort_keys=True) + "\n"
        for board in boards()
    }


def main() -> None:
    """Write the files, and remove those of boards that are gone."""
    argparse.ArgumentParser(
        description="Writes the dashboards of this folder from boards/ and the catalogue."
    ).parse_args()
    built = documents()
    for path in HERE.glob("*.json"):
        if path.name not in built:
            path.unlink()
    for name, content in built.items():
        (HERE / name).write_text(content)


if __name__ == "__main__":
    main()
