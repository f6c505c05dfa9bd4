"""A real llama.cpp server under load, read by the product: its log, its page and its clients agree."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest


def test_log_page_and_clients_of_a_loaded_server_agree(tmp_path: Path) -> None:
    """Requests and tokens to the last one; what is in flight by Little's law and by gauge within 5 %."""
    for package in ("xllamacpp", "gguf"):
        if find_spec(package) is None:
            pytest.skip(f"no {package} in this environment: pip install {package}")
    from .real_llamacpp import SECONDS, run

    rows = run(tmp_path, SECONDS)
    assert [row for row in rows if not row.holds] == []
    assert rows[0].one > 2 * len(rows)
