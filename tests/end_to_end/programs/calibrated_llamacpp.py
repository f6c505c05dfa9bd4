"""Calibrates a real llama.cpp server from the log of mixed traffic, and compares with what it does when asked alone.

    python -m tests.end_to_end.programs.calibrated_llamacpp OUT [SECONDS]

The truth is what the server itself says of its times when it is asked alone: prompts one after the other, then decodes
that fill every slot behind contexts like the traffic's; in turns with the traffic. The model is large enough that its
arithmetic and not its server takes the time, and prompts and outputs take about as much work as each other: what takes
a tenth of the time cannot be known to a tenth. Rates are held against each other per second that the server was really
computing (its processor time over the time in which it had requests), since a machine with other work on it gives it
now more, now less. What a prompt takes whatever its length, which the calibration tells apart from its rate, is in
both. The log gets the times that a container runtime would give it, from its own uptime. Exit 1 where they are over a
tenth apart.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
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
BUSY: Final = 0.4
"""Part of the processor that others may take: with more of it away, single requests say nothing of the model."""
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


class Server:
    """A running server, and when it had requests."""

    def __init__(self, port: int, pid: int) -> None:
        self._port = port
        self._stat = Path(f"/proc/{pid}/stat")
        self._spans: list[tuple[float, float]] = []

    def ask(self, prompt: str, output: int, slot: int | None = None) -> dict[str, Any]:
        """One request; what the server tells of its times. In a slot of its own what is computed already counts."""
        body = {"prompt": prompt, "n_predict": output, "ignore_eos": True, "cache_prompt": slot is not None}
        body |= {} if slot is None else {"id_slot": slot}
        begin = time.monotonic()
        connection = HTTPConnection("127.0.0.1", self._port, timeout=120)
        connection.request("POST", "/completion", json.dumps(body), {"Content-Type": "application/json"})
        told: dict[str, Any] = json.loads(connection.getresponse().read())["timings"]
        connection.close()
        self._spans.append((begin, time.monotonic()))
        return told

    def computed(self) -> float:
        """Seconds of processor time so far."""
        fields = self._stat.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def busy(self) -> float:
        """Seconds since the last call in which there were requests."""
        spans, self._spans = sorted(self._spans), []
        total, until_s = 0.0, 0.0
        for begin, end in spans:
            total += max(0.0, end - max(begin, until_s))
            until_s = max(until_s, end)
        return total


@dataclass
class Share:
    """Processor time, and time in which there were requests."""

    computed: float = 0.0
    busy: float = 0.0

    def of(self, server: Server, work: Callable[[], Any]) -> Any:
        """Add what some work took."""
        server.busy()
        begun = server.computed()
        made = work()
        self.computed += server.computed() - begun
        self.busy += server.busy()
        return made

    def whole(self, rate: float) -> float:
        """A rate as it is while the server computes."""
        return rate * self.busy / self.computed


def text(draw: random.Random, tokens: int) -> str:
    """A prompt of so many tokens: a byte is one, and a blank would be three."""
    return "".join(draw.choices("abcdefgh", k=tokens))


def alone(server: Server, draw: random.Random) -> float:
    """Prompt tokens/s of prompts that come one after the other."""
    told = [server.ask(text(draw, draw.randint(*PROMPT)), 1) for _ in range(6)]
    return float(sum(one["prompt_n"] for one in told) / sum(one["prompt_ms"] for one in told) * 1e3)


def contexts(server: Server, draw: random.Random) -> list[str]:
    """A prompt for each slot, as long as those of the traffic and computed already."""
    prompts = [text(draw, sum(PROMPT) // 2) for _ in range(SLOTS)]
    for slot, prompt in enumerate(prompts):
        server.ask(prompt, 1, slot)
    return prompts


def full(server: Server, prompts: list[str]) -> float:
    """Output tokens/s of as many sequences as there are slots."""
    found: list[tuple[float, int]] = []

    def work(slot: int) -> None:
        told = server.ask(prompts[slot], 120, slot)
        found.append((told["predicted_ms"] / 1e3, told["predicted_n"]))

    together([Thread(target=work, args=(slot,)) for slot in range(SLOTS)])
    return sum(tokens / seconds for seconds, tokens in found)


def together(threads: list[Thread]) -> None:
    """Start all, and wait for all."""
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def traffic(server: Server, seconds: float, rate: float, draw: random.Random) -> None:
    """Requests by chance, of varied lengths."""
    threads: list[Thread] = []
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        time.sleep(draw.expovariate(rate))
        threads.append(Thread(target=server.ask, args=(text(draw, draw.randint(*PROMPT)), draw.randint(*OUTPUT))))
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
    command: list[str | Path] = [
        sys.executable, Path(__file__).with_name("llama_server.py"), model, str(port), str(SLOTS),
    ]  # fmt: skip
    prefill, decode, shares, kept = [], [], Share(), b""
    with program(command, port, log) as process:
        url = f"http://127.0.0.1:{port}/metrics"
        until(lambda: not isinstance(fetch(url, 10.0), Failure), "the model is not loaded")
        server = Server(port, process.pid)
        server.ask(text(draw, 100), 10)
        for _ in range(round(seconds / ROUND_S)):
            share = Share()
            rate = share.of(server, partial(alone, server, draw))
            prefill.append(share.whole(rate))
            prompts, share = contexts(server, draw), Share()
            filled = share.of(server, partial(full, server, prompts))
            decode.append(share.whole(filled))
            time.sleep(QUIET_S)  # the log is written by a thread of its own
            begun = log.stat().st_size
            demand = sum(PROMPT) / 2 / rate + sum(OUTPUT) / 2 / filled
            shares.of(server, partial(traffic, server, ROUND_S, LOAD / demand, draw))
            time.sleep(QUIET_S)
            kept += log.read_bytes()[begun:]
    pod = out / "pod.log"
    pod.write_text("".join(stamped(kept.decode(errors="replace"))))
    config = out / "capwatch.yml"
    config.write_text(CONFIG % pod)
    made = json.loads(printed("calibrate", "--config.file", config, "--json", cwd=out))
    (out / "calibration.json").write_text(json.dumps(made, indent=2))
    steps, rate, mean = made["step_seconds"], made["rates"]["prefill_tokens_per_second"]["value"], sum(PROMPT) / 2
    of_mean = shares.whole(mean / (mean / rate + made["first_token_overhead_seconds"]))
    all_slots = shares.whole(SLOTS / (steps["base"] + steps["per_sequence"] * SLOTS))
    return [
        Row("prefill tokens/s of a mean prompt: traffic, alone", of_mean, median(prefill), CLOSE),
        Row("decode tokens/s, all slots: traffic, alone", all_slots, median(decode), CLOSE),
        Row("prefill tokens/s alone: slowest, fastest round", min(prefill), max(prefill), None),
        Row("decode tokens/s alone: slowest, fastest round", min(decode), max(decode), None),
        Row("seconds with requests, computing: idle enough to tell", shares.busy, shares.computed, BUSY),
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
