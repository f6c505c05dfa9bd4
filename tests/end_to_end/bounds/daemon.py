"""What a daemon under load holds and says."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.end_to_end.faults.daemon import Daemon


def source(path: Path, form: str = "jsonl", **more: Any) -> dict[str, Any]:
    """A source on one file, from its beginning."""
    return {"name": "log", "path": str(path), "format": form, "start": "beginning", **more}


def peak_mib(daemon: Daemon) -> float:
    """The most memory that the process ever had resident."""
    status = Path(f"/proc/{daemon.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def scrape_s(daemon: Daemon) -> float:
    """How long a page takes, the best of three: the machine has other work too."""
    took = []
    for _ in range(3):
        begun = time.perf_counter()
        assert daemon.page() is not None
        took.append(time.perf_counter() - begun)
    return min(took)
