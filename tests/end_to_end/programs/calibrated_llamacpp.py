"""Calibrates a real llama.cpp server from the log of mixed traffic, and compares with what it does when asked alone.

    python -m tests.end_to_end.programs.calibrated_llamacpp OUT [SECONDS]

The truth is what the server itself says of its times when it is asked alone: prompts one after the other, then decodes
that fill every slot; in turns with the traffic, so that whoever else is on the machine slows down both. The model is
large enough that its arithmetic and not its server takes the time, and prompts and outputs take about as much work as
each other: what takes a tenth of the time cannot be known to a tenth. The log gets the times that a container runtime
would give it, from its own uptime. Of the turns the median counts, as outliers count little in a calibration. Exit 1
where they are over a tenth apart.
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
from statistics import median
from threading import Thread
from typing import Any, Final

from capwatch.scrape.fetch import Failure, fetch

from ..command import printed
from ..comparison import Row, markdown
from .process import free_port, program, until
from .tiny_gguf import write

SLOTS: Final = 4
CLOSE: Final = 0.10
ROUND_S: Final = 4.0
"""Traffic between two times of asking alone: shorter than most of what else a machine does."""
PROMPT, OUTPUT = (30, 300), (20, 140)
"""Fewest and most tokens."""
LOAD: Final = 0.7
"""Of what the server can do."""
BEGAN: Final = datetime(2026, 3, 2, tzinfo=UTC).timestamp()
QUIET_S: Final = 0.2
_UPTIME = re.compile(r"(?:\x1b\[\d*m)*(\d+)\.(\d\d)\.(\d{3})\.(\d{3}) ")
CONFIG: Final = """
sources: [{name: engine, path: %s, format: llamacpp, wrapper: cri, pool: tiny, engine_from: llama}]
pools: [{name: tiny, replicas: 1}]
"""


def ask(port: int, prompt: str, output: int, slot: int | None = None) -> dict[str, Any]:
    """One request; what the server tells of its times. In a slot of its own what is computed already counts."""
    body = {"prompt": prompt, "n_predict": output, "ignore_eos": True, "cache_prompt": slot is not None}
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request(
        "POST", "/completion", json.dumps(body | ({} if slot is None else {"id_slot": slot})),
        {"Content-Type": "application/json"},
    )  # fmt: skip
    told: dict[str, Any] = json.loads(connection.getresponse().read())["timings"]
    connection.close()
    return told


def text(draw: random.Random, tokens: int) -> str:
    """A prompt of so many tokens: a byte is one, and a blank would be three."""
    return "".join(draw.choices("abcdefgh", k=tokens))


def alone(port: int, draw: random.Random) -> float:
    """Prompt tokens/s of prompts that come one after the other."""
    told = [ask(port, text(draw, draw.randint(*PROMPT)), 1) for _ in range(6)]
    return float(sum(one["prompt_n"] for one in told) / sum(one["prompt_ms"] for one in told) * 1e3)


def full(port: int, draw: random.Random) -> float:
    """Output tokens/s of as many sequences as there are slots, behind prompts as long as those of the traffic."""
    prompts = [text(draw, sum(PROMPT) // 2) for _ in range(SLOTS)]
    for slot, prompt in enumerate(prompts):
        ask(port, prompt, 1, slot)
    found: list[tuple[float, int]] = []

    def work(slot: int) -> None:
        told = ask(port, prompts[slot], 120, slot)
        found.append((told["predicted_ms"] / 1e3, told["predicted_n"]))

    together([Thread(target=work, args=(slot,)) for slot in range(SLOTS)])
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
        threads.append(Thread(target=ask, args=(port, text(draw, draw.randint(*PROMPT)), draw.randint(*OUTPUT))))
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
        ask(port, text(draw, 100), 10)
        for _ in range(round(seconds / ROUND_S)):
            prefill.append(alone(port, draw))
            decode.append(full(port, draw))
            time.sleep(QUIET_S)  # the log is written by a thread of its own
            begun = log.stat().st_size
            demand = sum(PROMPT) / 2 / prefill[-1] + sum(OUTPUT) / 2 / decode[-1]
            traffic(port, ROUND_S, LOAD / demand, draw)
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
        Row("prefill tokens/s: traffic, alone", rate, median(prefill), CLOSE),
        Row("decode tokens/s, all slots: traffic, alone", all_slots, median(decode), CLOSE),
        Row("prefill tokens/s alone: slowest, fastest round", min(prefill), max(prefill), None),
        Row("decode tokens/s alone: slowest, fastest round", min(decode), max(decode), None),
        Row("busy time predicted: told, whole", 1 + (made["busy_time_error_ratio"] or 0.0), 1, None),
    ]


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
