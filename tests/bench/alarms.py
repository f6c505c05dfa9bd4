"""The shipped rules on the live demo, in a real Prometheus that evaluates every 15 s: what fires, when, and is it true.

`python -m tests.bench.alarms [--scenario new-tenant|retrieval-depth|quiet] [--minutes 20]` runs the demo at the pace of
life beside Debian's Prometheus with the rules as the package has them. The detector's alarm has to become an alert
within a minute; every other alert is held against the requests in the demo's own log, by formulas that know neither
capwatch's metrics nor PromQL. In quiet traffic nothing may fire. Exit 1 where one of these does not hold.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import yaml

from capwatch import shipped
from capwatch.demo.scene import TARGETS
from capwatch.demo.workload import DECODE_RATE, KINDS, PREFILL_RATE, REPLICAS, SLOTS
from tests.end_to_end.command import COMMAND
from tests.end_to_end.programs.process import free_port
from tests.end_to_end.prometheus import Prometheus, prometheus

EVERY_S: Final = 15
"""Between two scrapes, and between two evaluations."""
LOOK_S: Final = 1.0
SOON_S: Final = 60.0
"""From the detector's alarm to the alert, at most."""
DRIFT: Final = "CapwatchMixDriftCostUp"
TARGET: Final = 0.7
OBJECTIVE: Final = 0.95
TPOT_S: Final = 0.060
WAIT_S: Final = 0.5
LATE: Final = 0.01
"""The default wait budget, and the share of requests that may wait longer."""
FIRST_S: Final = {kind.route: float(TARGETS[kind.name].rstrip("s")) for kind in KINDS}
ACTIVE: Final = re.compile(r'^capwatch_drift_active\{[^}]*direction="up"[^}]*\} 1(\.0)?$', re.M)


@dataclass
class Told:
    """What was seen, s since the epoch.

    Attributes:
        change: when the demo changed its traffic.
        active: when the detector's alarm was first on the page.
        fired: when each alert was first seen firing, by its name and what it is about.
    """

    change: float | None = None
    active: float | None = None
    fired: dict[str, float] = field(default_factory=dict)


@contextmanager
def demo(scenario: str, port: int, folder: Path, told: Told) -> Iterator[subprocess.Popen[str]]:
    """The demo as a user starts it; its words are printed, and the moment of the change is kept."""
    command = [*COMMAND, "demo", "--scenario", scenario, "--port", str(port), "--keep", str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)

    def listen() -> None:
        for line in process.stdout or ():
            print("   ", line, end="", flush=True)
            if "JUST NOW" in line:
                told.change = time.time()

    threading.Thread(target=listen, daemon=True).start()
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


def page(port: int) -> str:
    """The demo's metrics; empty where they cannot be had."""
    with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        return str(answer.read().decode())
    return ""


def watch(server: Prometheus, port: int, until: float, told: Told, process: subprocess.Popen[str]) -> None:
    """Look at page and alerts until a time."""
    while time.time() < until:
        if process.poll() is not None:
            raise SystemExit(f"the demo ended by itself ({process.returncode})")
        if told.active is None and ACTIVE.search(page(port)):
            told.active = time.time()
            print(f"{clock()} drift_active on the page", flush=True)
        for labels in firing(server):
            name = " ".join([labels.pop("alertname"), *(f"{key}={labels[key]}" for key in sorted(labels))])
            if name not in told.fired:
                told.fired[name] = time.time()
                print(f"{clock()} firing: {name}", flush=True)
        time.sleep(LOOK_S)


def firing(server: Prometheus) -> Iterator[dict[str, str]]:
    """What fires now: name and what it is about."""
    for rule in server.rules():
        for alert in rule.get("alerts", ()):
            if alert["state"] == "firing":
                kept = ("alertname", "pool", "route", "tenant", "reason", "source")
                yield {key: value for key, value in alert["labels"].items() if key in kept}


def clock() -> str:
    """The time of day."""
    return time.strftime("%H:%M:%S")


@dataclass(frozen=True)
class Row:
    """A request as the demo's log has it, with its cost, its wait for a slot and whether it kept its targets."""

    ended: float
    route: str
    tenant: str
    cost: float
    wait: float
    good: bool


def rows(folder: Path) -> list[Row]:
    """The requests of the log, in no order."""
    found = []
    for path in (folder / "litellm").glob("requests.jsonl*"):
        for line in path.read_text().splitlines():
            with suppress(json.JSONDecodeError):
                found.append(_row(json.loads(line)))
    return [row for row in found if row is not None]


def _row(told: dict[str, Any]) -> Row | None:
    if told.get("status") != "success":
        return None
    route = told["metadata"]["user_api_key_request_route"]
    cached = told["hidden_params"]["usage_object"]["prompt_tokens_details"]["cached_tokens"] or 0
    output, prefill = told["completion_tokens"], (told["prompt_tokens"] - cached) / PREFILL_RATE
    first = told["completionStartTime"] - told["startTime"]
    each = (told["endTime"] - told["completionStartTime"]) / (output - 1) if output > 1 else 0.0
    good = first <= FIRST_S[route] and each <= TPOT_S
    wait = first - SLOTS * prefill  # a slot has its part of the replica, alone or not
    tenant = told["metadata"]["user_api_key_team_alias"]
    return Row(told["endTime"], route, tenant, prefill + output / DECODE_RATE, wait, good)


Truth = Callable[[list[Row], float, dict[str, str]], tuple[bool, str]]
"""From the requests, the moment of firing and what the alert is about: is it true, and by which numbers."""


def drifted(found: list[Row], at: float, about: dict[str, str]) -> tuple[bool, str]:
    """A request of the last minute costs over a tenth more than the demo's usual mix."""
    lately = [row.cost for row in found if at - 60 < row.ended <= at]
    mean = sum(lately) / max(len(lately), 1)
    return mean > 1.1 * 0.992, f"mean cost of the last minute {mean:.3f}, before 0.992 replica-seconds"


def short_of_replicas(found: list[Row], at: float, about: dict[str, str]) -> tuple[bool, str]:
    """More than the twelve replicas give at the target, for all of the quarter of an hour that the alert waits."""
    works = [sum(row.cost for row in found if end - 300 < row.ended <= end) / 300 for end in (at - 600, at - 300, at)]
    needed = [work / TARGET for work in works]
    told = ", ".join(f"{one:.1f}" for one in needed)
    return min(needed) > REPLICAS, f"replicas needed at 0.7, by 5 min: {told}; {REPLICAS} there"


def waiting(found: list[Row], at: float, about: dict[str, str]) -> tuple[bool, str]:
    """More requests waited longer than the budget than may, in the ten minutes that the alert looks back on."""
    waits = [row.wait for row in found if at - 600 < row.ended <= at]
    late = sum(wait > WAIT_S for wait in waits) / max(len(waits), 1)
    told = f"{late:.0%} of the last 10 min waited over {WAIT_S} s, {LATE:.0%} may; mean {sum(waits) / len(waits):.2f} s"
    return late > LATE, told


def burning(found: list[Row], at: float, about: dict[str, str]) -> tuple[bool, str]:
    """Misses of a long and a short window come 14.4 times, or 6 times, as fast as one in twenty allows."""
    mine = [row for row in found if all(getattr(row, key) == about[key] for key in ("route", "tenant") if key in about)]
    rates = {}
    for window in (300, 1800, 3600, 21600):
        inside = [row.good for row in mine if at - window < row.ended <= at]
        rates[window] = (1 - sum(inside) / len(inside)) / (1 - OBJECTIVE) if inside else 0.0
    fast, slow = min(rates[3600], rates[300]) > 14.4, min(rates[21600], rates[1800]) > 6
    return fast or slow, "burn rates " + ", ".join(f"{window // 60} min {rate:.1f}" for window, rate in rates.items())


def unheard_of(found: list[Row], at: float, about: dict[str, str]) -> tuple[bool, str]:
    """What nothing in the demo is like."""
    return False, "nothing in the demo is like that"


TRUTHS: Final[dict[str, Truth]] = {
    DRIFT: drifted,
    "CapwatchHeadroomNegative": short_of_replicas,
    "CapwatchExpectedWaitOverBudget": waiting,
    "CapwatchGoodputBurnFast": burning,
}
"""What can be true in the demo; any other alert is held for untrue."""


def verdicts(scenario: str, told: Told, folder: Path) -> Iterator[tuple[bool, str]]:
    """(does it hold, what) for all that is promised."""
    found = rows(folder / "demo")
    yield bool(found), f"{len(found)} requests in the log"
    drift = next((at for name, at in told.fired.items() if name.startswith(DRIFT)), None)
    if scenario != "quiet":
        yield told.active is not None, f"detector's alarm {_after(told.active, told.change)} after the change"
        soon = drift is not None and told.active is not None and drift - told.active <= SOON_S
        yield soon, f"{DRIFT} {_after(drift, told.active)} after it, at most {SOON_S:.0f} s"
    for name, at in sorted(told.fired.items(), key=lambda pair: pair[1]):
        alert, *labels = name.split(" ")
        about = dict(label.partition("=")[::2] for label in labels)
        true, why = TRUTHS.get(alert, unheard_of)(found, at, about)
        yield true and scenario != "quiet", f"{name}, {_after(at, told.change)} after the change: {why}"
    if not told.fired:
        yield scenario == "quiet", "nothing fired"


def _after(at: float | None, since: float | None) -> str:
    return "never" if at is None else "at an unknown time" if since is None else f"{at - since:.0f} s"


def main(arguments: list[str]) -> int:
    """Run, and print the verdicts."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.alarms", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--scenario", default="new-tenant", choices=("new-tenant", "retrieval-depth", "quiet"))
    parser.add_argument("--minutes", type=float, default=20.0, help="of life from the demo's start on (20)")
    given = parser.parse_args(arguments)
    told, port = Told(), free_port()
    with tempfile.TemporaryDirectory(prefix="capwatch-alarms-") as name:
        folder = Path(name)
        shipped.write(shipped.rules(), str(folder / "rules"))
        (folder / "data").mkdir()
        job = {"job_name": "capwatch", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
        document = {
            "global": {"scrape_interval": f"{EVERY_S}s", "evaluation_interval": f"{EVERY_S}s"},
            "scrape_configs": [job],
            "rule_files": [str(folder / "rules" / one) for one in shipped.RULE_FILES],
        }
        with demo(given.scenario, port, folder / "demo", told) as process:
            while not page(port) and process.poll() is None:
                time.sleep(LOOK_S)
            with prometheus(folder / "data", yaml.safe_dump(document)) as server:
                began = time.time()
                with suppress(KeyboardInterrupt):  # what was seen so far is judged all the same
                    watch(server, port, began + 60 * given.minutes, told, process)
                minutes = (time.time() - began) / 60
        print(f"\n{given.scenario}, {minutes:.0f} minutes, scraped and evaluated every {EVERY_S} s")
        found = list(verdicts(given.scenario, told, folder))
    for good, what in found:
        print(f"{'ok' if good else 'NOT':4}{what}")
    return int(not all(good for good, _ in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
