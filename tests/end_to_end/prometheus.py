"""The real Prometheus on a loopback port, over a folder of blocks."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import urlopen

PATIENCE_S = 60.0


class Prometheus:
    """A running server."""

    def __init__(self, url: str) -> None:
        self.url = url

    def query(self, promql: str, at: float) -> dict[tuple[str, ...], float]:
        """The values of an instant query, by the values of its labels in the order of their names."""
        found = self._get("query", {"query": promql, "time": f"{at:.3f}"})["result"]
        return {tuple(value for _, value in sorted(one["metric"].items())): float(one["value"][1]) for one in found}

    def answer(self, promql: str, begin: float, end: float, step: float) -> tuple[str, list[Any]]:
        """What a range query has to say against itself, and the series it finds, as the API has them."""
        asked = {"query": promql, "start": f"{begin:.3f}", "end": f"{end:.3f}", "step": f"{step}"}
        try:
            with urlopen(f"{self.url}/api/v1/query_range?{urlencode(asked)}", timeout=PATIENCE_S) as answer:
                told = json.load(answer)
        except HTTPError as refused:
            return json.load(refused)["error"], []
        return "; ".join(told.get("warnings", [])), told["data"]["result"]

    def raw(self, selector: str, at: float) -> dict[str, list[float]]:
        """The values of every series as they were scraped, in order of time, by its name and labels."""
        found = self._get("query", {"query": selector, "time": f"{at:.3f}"})["result"]
        return {
            json.dumps(one["metric"], sort_keys=True): [float(value) for _, value in one["values"]] for one in found
        }

    def names(self) -> list[str]:
        """The names of all metrics there are."""
        names: list[str] = self._get("label/__name__/values", {})
        return names

    def rules(self) -> list[dict[str, Any]]:
        """Every rule as the server reports it: its name, health, last error and, of an alert, the active ones."""
        return [rule for group in self._get("rules", {})["groups"] for rule in group["rules"]]

    def _get(self, path: str, arguments: Mapping[str, str]) -> Any:
        with urlopen(f"{self.url}/api/v1/{path}?{urlencode(arguments)}", timeout=PATIENCE_S) as answer:
            return json.load(answer)["data"]

    def is_ready(self) -> bool:
        """Whether it answers queries."""
        try:
            with urlopen(f"{self.url}/-/ready", timeout=PATIENCE_S):
                return True
        except (URLError, ConnectionError):
            return False


@contextmanager
def prometheus(folder: Path, document: str = "global: {}\n") -> Iterator[Prometheus]:
    """Debian's Prometheus over the blocks in ``folder``, configured by ``document``, until the block ends."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    config = folder.with_suffix(".yml")
    config.write_text(document)
    command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}"]
    command += [f"--web.listen-address={address}", "--storage.tsdb.retention.time=10y", "--log.level=error"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, cwd=folder) as process:
        try:
            server = Prometheus(f"http://{address}")
            deadline = time.monotonic() + PATIENCE_S
            while not server.is_ready():
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield server
        finally:
            process.terminate()
