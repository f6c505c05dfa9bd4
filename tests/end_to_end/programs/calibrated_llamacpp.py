"""Calibrates a real llama.cpp server from the log of mixed traffic, and compares with what it does when asked alone.

    python -m tests.end_to_end.programs.calibrated_llamacpp OUT [SECONDS]

The truth is what the server itself says of its times when it is asked alone: prompts one after the other, then decodes
that fill every slot; in turns with the traffic, so that whoever else is on the machine slows down both. The model is
large enough that its arithmetic and not its server takes the time, and prompts and outputs take about as much work as
each other: what takes a tenth of the time cannot be known to a tenth. The log gets the times that a container runtime
would give it, from its own uptime. Exit 1 where they are over a tenth apart.
"""

from __future__ import annotations

import json
import random
import re
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any, Final

from capwatch.scrape.fetch import Failure, fetch

from ..command import printed
from ..comparison import Row, markdown
from .process import free_port, program, until
from .tiny_gguf import write

SLOTS: Final = 4
CLOSE: Final = 0.10
ROUNDS: Final = 6
"""Turns of asking alone and traffic."""
PROMPT, OUTPUT = (30, 300), (20, 140)
"""Fewest and most tokens."""
LOAD: Final = 0.7
"""Of what the server can do."""
BEGAN: Final = datetime(2026, 3, 2, tzinfo=UTC).timestamp()
QUIET_S: Final = 0.5
_UPTIME = re.compile(r"(?:\x1b\[\d*m)*(\d+)\.(\d\d)\.(\d{3})\.(\d{3}) ")
CONFIG: Final = """
sources: [{name: engine, path: %s, format: llamacpp, wrapper: cri, pool: tiny, engine_from: llama}]
pools: [{name: tiny, replicas: 1}]
"""


def ask(port: int, prompt: int, output: int, draw: random.Random) -> dict[str, Any]:
    """One request; what the server tells of its times."""
    body = {
        "prompt": "".join(draw.choices("abcdefgh", k=prompt)), "n_predict": output, "ignore_eos": True,
        "cache_prompt": False,
    }  # fmt: skip
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("POST", "/completion", json.dumps(body), {"Content-Type": "application/json"})
    told: dict[str, Any] = json.loads(connection.getresponse().read())["timings"]
    connection.close()
    return told


def alone(port: int, draw: random.Random) -> float:
    """Prompt tokens/s of prompts that come one after the other."""
    told = [ask(port, draw.randint(*PROMPT), 1, draw) for _ in range(10)]
    return float(sum(one["prompt_n"] for one in told) / sum(one["prompt_ms"] for one in told) * 1e3)


def full(port: int) -> float:
    """Output tokens/s of as many sequences as there are slots."""
    found: list[tuple[float, int]] = []

    def work(seed: int) -> None:
        told = ask(port, 2, 120, random.Random(seed))
        found.append((told["predicted_ms"] / 1e3, told["predicted_n"]))

    together([Thread(target=work, args=(seed,)) for seed in range(SLOTS)])
    return sum(tokens / seconds for seconds, tokens in found)


def together(threads: list[Thread]) -> None:
    """Start all, and wait for all."""
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def traffic(port: int, seconds: float, rate: float, draw: random.Random) -> None:
    """Requests by chance, of varied lengths."""
    threads: list[Thread] = []
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        time.sleep(draw.expovariate(rate))
        threads.append(Thread(target=ask, args=(port, draw.randint(*PROMPT), draw.randint(*OUTPUT), draw)))
        threads[-1].start()
    for thread in threads:
        thread.join()


def stamped(text: str) -> Iterator[str]:
    """The lines as a container runtime keeps them, at the times that their uptimes tell."""
    at = BEGAN
    for line in text.splitlines():
        if found := _UPTIME.match(line):
            minutes, seconds, thousandths, millionths = map(int, found.groups())
            at = BEGAN + minutes * 60 + seconds + thousandths * 1e-3 + millionths * 1e-6
        yield f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S.%fZ} stderr F {line}\n"


def run(out: Path, seconds: float) -> list[Row]:
    """Run a server, ask it, load it, and compare."""
    model, log = out / "small.gguf", out / "server.log"
    write(model, layers=4, wide=512, feed=2048)
    port, draw = free_port(), random.Random(7)
    server: list[str | Path] = [
        sys.executable, Path(__file__).with_name("llama_server.py"), model, str(port), str(SLOTS),
    ]  # fmt: skip
    prefill, decode, kept = [], [], b""
    with program(server, port, log):
        url = f"http://127.0.0.1:{port}/metrics"
        until(lambda: not isinstance(fetch(url, 10.0), Failure), "the model is not loaded")
        ask(port, 100, 10, draw)
        for _ in range(ROUNDS):
            prefill.append(alone(port, draw))
            decode.append(full(port))
            time.sleep(QUIET_S)  # the log is written by a thread of its own
            begun = log.stat().st_size
            demand = sum(PROMPT) / 2 / prefill[-1] + sum(OUTPUT) / 2 / decode[-1]
            traffic(port, seconds / ROUNDS, LOAD / demand, draw)
            time.sleep(QUIET_S)
            kept += log.read_bytes()[begun:]
    pod = out / "pod.log"
    pod.write_text("".join(stamped(kept.decode(errors="replace"))))
    config = out / "capwatch.yml"
    config.write_text(CONFIG % pod)
    made = json.loads(printed("calibrate", "--config.file", config, "--json", cwd=out))
    (out / "calibration.json").write_text(json.dumps(made, indent=2))
    steps, rate = made["step_seconds"], made["rates"]["prefill_tokens_per_second"]["value"]
    all_slots = SLOTS / (steps["base"] + steps["per_sequence"] * SLOTS)
    return [
        Row("prefill tokens/s: traffic, alone", rate, _mean(prefill), CLOSE),
        Row("decode tokens/s, all slots: traffic, alone", all_slots, _mean(decode), CLOSE),
        Row("prefill tokens/s alone: slowest, fastest round", min(prefill), max(prefill), None),
        Row("decode tokens/s alone: slowest, fastest round", min(decode), max(decode), None),
        Row("busy time predicted: told, whole", 1 + (made["busy_time_error_ratio"] or 0.0), 1, None),
    ]


def _mean(rates: list[float]) -> float:
    """Of work that is the same in each round: by its times."""
    return len(rates) / sum(1 / rate for rate in rates)


def main(out: Path, seconds: float) -> int:
    """Run, compare, write the table."""
    out.mkdir(parents=True, exist_ok=True)
    rows = run(out, seconds)
    table = markdown(rows)
    (out / "calibration.md").write_text(table)
    sys.stdout.write(table)
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), float(sys.argv[2]) if len(sys.argv) > 2 else 60.0))
