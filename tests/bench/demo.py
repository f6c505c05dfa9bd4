"""How the demo's scenarios end, seed by seed: `python -m tests.bench.demo [--seeds 10] [--speed 20]`, some minutes.

Runs `capwatch demo` itself, with its logs and its daemon, and prints what was told and how long after the change. Exit
code 1 where fewer than nine in ten seeds of a scenario raise the right alarm within three minutes, or `quiet` is not.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

COMMAND = (sys.executable, "-m", "capwatch.cli", "demo", "--port", "0")
RIGHT = {"new-tenant": "tenant acme", "retrieval-depth": "longer prompts"}
"""What a sentence must say."""
IN_TIME_S = 180.0
WATCHED_S = 360.0
"""Simulated seconds after the change until a scenario counts as missed."""
QUIET_S = 3600.0


def main() -> int:
    """Run all and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--speed", type=float, default=20.0)
    options = parser.parse_args()
    print(f"{'scenario':16} {'seed':>4} {'alarm after':>11} {'began':>6}  told")
    good = True
    for scenario, word in RIGHT.items():
        right = 0
        for seed in range(1, options.seeds + 1):
            delay, event = _raised(scenario, seed, options.speed)
            sentence = "nothing" if event is None else str(event["sentence"])
            right += delay <= IN_TIME_S and word in sentence
            began = "" if event is None else f"{event['started_at'] - event['at'] + delay:+.0f} s"
            print(f"{scenario:16} {seed:4} {delay:9.0f} s {began:>6}  {sentence}", flush=True)
        print(f"{scenario:16} {right} of {options.seeds} right within {IN_TIME_S:.0f} s", flush=True)
        good = good and right >= 0.9 * options.seeds
    for seed in range(1, max(2, options.seeds // 3)):
        told = [line for _, line in _lines("quiet", seed, options.speed, QUIET_S) if "  ALARM: " in line]
        print(f"{'quiet':16} {seed:4} {len(told)} alarms in an hour", flush=True)
        good = good and not told
    return 0 if good else 1


def _raised(scenario: str, seed: int, speed: float) -> tuple[float, dict[str, Any] | None]:
    """Seconds from the change to the alarm, and the alarm as the API has it; infinite and None where there is none."""
    change = None
    for address, line in _lines(scenario, seed, speed, 120.0 + WATCHED_S):
        if "  JUST NOW: " in line:
            change = _second(line)
        if "  ALARM: " in line:
            with urlopen(f"http://{address}/api/v1/drift", timeout=30) as answer:
                event = next(one for one in json.load(answer)["events"] if one["event"] == "raised")
            return ((_second(line) - change) % 86_400 if change is not None else -1.0), event
    return float("inf"), None


def _second(line: str) -> int:
    """Of the day at which a line says that something happened."""
    hours, minutes, seconds = map(int, line[:8].split(":"))
    return 3600 * hours + 60 * minutes + seconds


def _lines(scenario: str, seed: int, speed: float, simulated: float) -> Iterator[tuple[str, str]]:
    """The daemon's address and a line of the demo, for so many simulated seconds from its first numbers on."""
    words = ("--scenario", scenario, "--seed", str(seed), "--speed", str(speed))
    with subprocess.Popen((*COMMAND, *words), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        address, until = "", float("inf")
        try:
            for line in process.stdout:
                found = re.search(r"the page +http://(\S+)/", line)
                if found:
                    address, until = found[1], time.monotonic() + simulated / speed
                if re.match(r"\d\d:\d\d:\d\d  ", line):
                    yield address, line
                if time.monotonic() > until:
                    return
        finally:
            process.send_signal(signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main())
