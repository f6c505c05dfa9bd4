"""The boards against Grafana's own types and units, as npm has them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dashboards import build
from tests.dashboards.linter import panels

HERE = Path(__file__).parent
MODULES = HERE / "node_modules"
BOARDS = {name: json.loads(content) for name, content in build.documents().items()}
OPTIONS = {"bargauge": "BarGauge", "stat": "Stat", "table": "Table", "text": "Text", "timeseries": "TimeSeries"}
"""Grafana's types of the options, by plugin."""
PRELUDE = """
import type { AnnotationQuery, Dashboard, GraphFieldConfig } from '@grafana/schema';
// What the Prometheus data source adds to an annotation; its plugin has the type, and is no package.
type Words = { expr?: string; step?: string; tagKeys?: string; textFormat?: string; titleFormat?: string };
type Asked = AnnotationQuery & Words;
type Board = Omit<Dashboard, 'annotations'> & { annotations: { list: Asked[] } };
// JSON has the values of enums, not their names.
type Plain<T> = T extends string ? `${T}` : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
// Strings of enums are told from others: a mistake is found.
// @ts-expect-error
export const mode: Plain<Stat> = { ...({} as Plain<Stat>), textMode: 'large' };
// @ts-expect-error
export const board: Plain<Board> = { annotations: { list: [] }, schemaVersion: 39, titel: 'a' };
"""

needs_npm = [
    pytest.mark.skipif(not shutil.which("node"), reason="npm is not installed"),
    pytest.mark.skipif(not MODULES.is_dir(), reason="node_modules is not filled: bash tests/prepare npm"),
]
pytestmark = needs_npm


def source() -> str:
    """A module of TypeScript that has every board, and the options of every panel, in the place of their types."""
    lines = [
        f"import type {{ Options as {name} }} from"
        f" '@grafana/schema/dist/esm/raw/composable/{kind}/panelcfg/x/{name}PanelCfg_types.gen';"
        for kind, name in OPTIONS.items()
    ]
    lines.append(PRELUDE)
    for number, board in enumerate(BOARDS.values()):
        lines.append(f"export const board{number}: Plain<Board> = {json.dumps(board)};")
        for panel in panels(board):
            at = f"{number}_{panel['id']}"
            lines.append(f"export const options{at}: Plain<{OPTIONS[panel['type']]}> = {json.dumps(panel['options'])};")
            if panel["type"] == "timeseries":
                custom = json.dumps(panel["fieldConfig"]["defaults"]["custom"])
                lines.append(f"export const custom{at}: Plain<GraphFieldConfig> = {custom};")
    return "\n".join(lines) + "\n"


def test_boards_are_of_grafana_s_types(tmp_path: Path) -> None:
    """The compiler finds no unknown field and no word out of an enum, in boards, panels and drawing styles."""
    (tmp_path / "node_modules").symlink_to(MODULES)
    (tmp_path / "boards.ts").write_text(source())
    options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "esnext", "--moduleResolution", "bundler"]
    command: list[str | Path] = [MODULES / ".bin" / "tsc", *options, "--target", "es2022", "boards.ts"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")


def units(panel: Any) -> list[str]:
    """The units that a panel names."""
    config = panel.get("fieldConfig", {"defaults": {"unit": "none"}, "overrides": []})
    named = [one["value"] for override in config["overrides"] for one in override["properties"] if one["id"] == "unit"]
    return [config["defaults"]["unit"], *named]


def test_units_are_grafana_s() -> None:
    """Every unit is one of the ids that @grafana/data has."""
    told = subprocess.run(["node", "units.cjs"], cwd=HERE, capture_output=True, text=True, check=True)
    known = set(json.loads(told.stdout))
    assert len(known) > 250
    named = {(board["uid"], unit) for board in BOARDS.values() for panel in panels(board) for unit in units(panel)}
    assert sorted(one for one in named if one[1] not in known) == []
