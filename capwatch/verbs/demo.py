"""Everything in one process, without any configuration: made-up history, live logs, and the daemon that reads them.

Twelve replicas answer eight requests a second for twelve tenants. After two minutes the scenario's change comes, at
the same rate: new-tenant turns the mix from 85/14/1 to 80/12/8, retrieval-depth makes prompts longer, quiet does
neither. The terminal tells what to look at, what has just happened, and what it did to rate, work and utilisation.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from capwatch.demo.stage import Options, play
from capwatch.demo.workload import SCENARIOS
from capwatch.errors import UsageError

EXAMPLE = "capwatch demo --scenario new-tenant"

FASTEST = 100.0
"""Times the usual speed: some 800 requests a second, which one core still simulates, writes, reads and commits."""


def describe(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("--scenario", choices=SCENARIOS, default=SCENARIOS[0], help=f"what changes ({SCENARIOS[0]})")
    parser.add_argument(
        "--speed", type=float, metavar="X", default=1.0, help="how many times faster than life, up to 100 (1)"
    )
    parser.add_argument("--port", type=int, metavar="N", default=10077, help="where to listen; 0 is any (10077)")
    parser.add_argument(
        "--seed", type=int, metavar="N", default=7, help="of all chance: the same seed, the same run (7)"
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep logs, configuration and state in a new folder")


def run(arguments: argparse.Namespace) -> int:
    """Run until stopped."""
    if not 0 < arguments.speed <= FASTEST:
        raise UsageError(f"--speed: {arguments.speed:g} is not more than 0 and at most {FASTEST:g}")
    if not 0 <= arguments.port < 1 << 16:
        raise UsageError(f"--port: {arguments.port} is no port")
    if arguments.seed < 0:
        raise UsageError("--seed: must be 0 or more")
    return play(
        Options(arguments.scenario, arguments.speed, arguments.port, arguments.seed, arguments.keep), _tell, time.time
    )


def _tell(line: str) -> None:
    print(line, flush=True)
