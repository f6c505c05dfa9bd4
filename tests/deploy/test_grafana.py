"""The provisioning of Grafana: its file format, and that it speaks of what is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
PROVISIONING = ROOT / "deploy" / "grafana" / "provisioning"


def read(folder: str) -> dict[str, Any]:
    """The one file of a folder."""
    (path,) = (PROVISIONING / folder).glob("*.yaml")
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    assert document["apiVersion"] == 1
    return document


def test_the_data_source_says_its_scrape_interval() -> None:
    """A fixed uid, and the interval without which $__rate_interval is a guess."""
    (source,) = read("datasources")["datasources"]
    assert (source["type"], source["uid"], source["jsonData"]["timeInterval"]) == (
        "prometheus",
        "capwatch-prometheus",
        "15s",
    )


def test_the_boards_are_read_from_where_the_words_put_them() -> None:
    """The provider's path is the one that dashboards/README.md copies the files to, and they are not edited there."""
    (provider,) = read("dashboards")["providers"]
    assert (provider["type"], provider["allowUiUpdates"]) == ("file", False)
    assert f"cp dashboards/*.json {provider['options']['path']}/" in (ROOT / "dashboards" / "README.md").read_text()
