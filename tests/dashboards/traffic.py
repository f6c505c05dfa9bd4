"""Seeded traffic as logs, and a real Prometheus with all of it: replayed history, and a daemon that is scraped.

The demo's simulated fleet writes a gateway's and twelve engines' logs; a second gateway tells what those do not: waits,
stages, retries, repeated and broken lines, requests without token counts. Some families exist live only (files,
commits, the process) or come from no log (GPUs): these are a daemon's over the same files, on a host whose cards are
told by a stub library.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml

from capwatch.demo.scene import Scene
from capwatch.demo.simulation import Simulation
from capwatch.demo.workload import MODEL
from capwatch.demo.writers import Writers
from tests.end_to_end.command import COMMAND, printed
from tests.end_to_end.programs.process import free_port, program, until
from tests.end_to_end.prometheus import Prometheus, prometheus

BEGIN: Final = 1_767_225_600.0
LENGTH: Final = 5400.0
"""Over an hour before the change, so that the drift detector knows what is usual."""
CHANGE: Final = BEGIN + LENGTH - 900.0
END: Final = BEGIN + LENGTH
SHOWN: Final = END - 1800.0
"""From here on Prometheus has it."""
STEP: Final = 60
SEED: Final = 11
SAMPLE: Final = re.compile(r"(\w+)(?:\{(.*)\})? (\S+ \S+\n)", re.DOTALL)
EDGE: Final = "edge.jsonl"
SETTINGS: Final[dict[str, Any]] = {
    "budgets": {"acme": {"rate": 0.05, "burst": 1}},
    "quotas": {MODEL: {"tokens_per_minute": 2_000_000}},
    "limits": {"tenants": 14},
}
POOL: Final = {
    "inflight_target": 3.5,
    "zones": 3,
    "burst": 1.5,
    "wait_budget": "500ms",
    "stages": {"gateway": 60, "retrieval": 45, "tool": "10@0.15"},
    "gpus": ["0", "1"],
}


def write(folder: Path) -> Path:
    """Write the logs and their configuration, whose path is returned."""
    scene = Scene(folder)
    scene.set_up("127.0.0.1:0")
    simulation = Simulation("new-tenant", SEED, BEGIN, CHANGE - BEGIN)
    writers = Writers(scene.gateway, scene.engines, seed=SEED, max_bytes=1 << 26, kept=9)
    writers.begin(BEGIN)
    for at in np.arange(BEGIN + 10, END + 1, 10).tolist():
        writers.write(simulation.until(at), simulation.statistics(at), at)
    writers.close()
    (folder / EDGE).write_text("".join(f"{line}\n" for line in edge()))
    config = yaml.safe_load(scene.configuration.read_text())
    config["sources"].append({"name": "edge", "path": str(folder / EDGE), "format": "jsonl", "start": "beginning"})
    config["pools"][0] |= POOL
    scene.configuration.write_text(yaml.safe_dump(config | SETTINGS, sort_keys=False))
    return scene.configuration


def edge() -> Iterator[str]:
    """Lines of the second gateway, one a second: every tenth is told twice, every fiftieth broken."""
    chance = random.Random(SEED)
    for second in range(int(LENGTH)):
        wait, prefill, decode = (chance.expovariate(1 / mean) for mean in (0.2, 0.4, 2.0))
        retrieval, tool = chance.expovariate(4), chance.choice([0.0, 0.0, 1.5])
        first = wait + prefill + retrieval + tool
        outcome = chance.choices(["ok", "client_abort", "timeout", "server_error", "rate_limited"], [90, 3, 2, 2, 3])[0]
        row: dict[str, Any] = {
            "request_id": f"edge-{second}",
            "finished_at": BEGIN + second + 0.5,
            "tenant": f"edge-{chance.randrange(6)}",
            "route": "/v1/agents",
            "model": MODEL,
            "duration_s": first + decode,
            "ttft_s": first,
            "queue_s": wait,
            "prefill_s": prefill,
            "retrieval_s": retrieval,
            "tool_s": tool,
            "outcome": outcome,
            "retries": chance.choice([0, 0, 0, 1]),
            "uncapped": chance.random() < 0.3,
        }
        if outcome != "rate_limited" and chance.random() < 0.9:
            row |= {
                "prompt_tokens": chance.randrange(200, 4000) * (3 if BEGIN + second > CHANGE else 1),
                "cached_tokens": 150,
                "output_tokens": 80,
            }
        if second % 300 == 299:
            row["finished_at"] -= 400.0
        line = json.dumps(row)
        yield line
        if second % 10 == 0:
            yield line
        if second % 50 == 0:
            yield line[:40]


def backfill(configuration: Path, blocks: Path) -> None:
    """Replay the logs, and make blocks of what is shown."""
    folder = configuration.parent
    printed("replay", "--config.file", configuration, "--openmetrics-out", "all.om", "--step", f"{STEP}s", cwd=folder)
    with (folder / "all.om").open() as told, (folder / "shown.om").open("w") as kept:
        kept.writelines(scraped(told))
    made = [
        "promtool",
        "tsdb",
        "create-blocks-from",
        "openmetrics",
        "--max-block-duration=256h",
        "shown.om",
        str(blocks),
    ]
    subprocess.run(made, cwd=folder, check=True, capture_output=True)


def scraped(lines: Iterable[str]) -> Iterator[str]:
    """The lines of an exposition from when it is shown, with the labels that a scrape gives."""
    for line in lines:
        if line.startswith("#"):
            yield line
        elif float(line.rsplit(" ", 1)[1]) >= SHOWN:
            found = SAMPLE.fullmatch(line)
            assert found is not None, line
            name, own, rest = found.groups()
            yield f'{name}{{job="capwatch",instance="replayed:10077"{"," + own if own else ""}}} {rest}'


@contextmanager
def daemon(configuration: Path, environment: dict[str, str]) -> Iterator[int]:
    """The real daemon on these files; the port it listens on."""
    port = free_port()
    command: list[str | Path] = [
        *COMMAND,
        "run",
        "--config.file",
        configuration,
        "--web.listen-address",
        f"127.0.0.1:{port}",
    ]
    with program(command, port, configuration.with_name("daemon.txt"), env=environment):
        yield port


@contextmanager
def filled(configuration: Path, environment: dict[str, str]) -> Iterator[Prometheus]:
    """Prometheus with the history, scraping the daemon once a second until GPU and commits have been seen."""
    blocks = configuration.with_name("blocks")
    blocks.mkdir()
    backfill(configuration, blocks)
    with daemon(configuration, environment) as port:
        job = {"job_name": "capwatch", "scrape_interval": "1s", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
        with prometheus(blocks, yaml.safe_dump({"scrape_configs": [job]})) as server:
            seen = "count_over_time(capwatch_gpu_xid_errors_total[1m]) > 3 and on () capwatch_source_up"
            until(lambda: bool(server.query(seen, time.time())), "no GPU was scraped")
            yield server
