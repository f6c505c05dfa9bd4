"""`make engine`: real engines and a real proxy, for longer than the default tests can; says what could not be run.

    python -m tests.end_to_end.engine [PROGRAM…]

Virtual environments lie under `.venv-engine/` (4 GB, made at the first run, minutes), logs and tables in its `out/`.
Exit 1 where something disagrees or could not be run.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from ..programs import calibrated_llamacpp, real_litellm, real_llamacpp
from . import real_vllm

ROOT: Final = Path(__file__).resolve().parents[3]
ENVIRONMENTS: Final = ROOT / ".venv-engine"
OUT: Final = ENVIRONMENTS / "out"
"""Not under `tests/`: the callback is copied there, and tests and types would be looked for in it."""
LLAMACPP_S: Final = 60.0
CALIBRATION_S: Final = 120.0
"""Of load; the default tests give it three and a half."""

PROGRAMS: Final[Mapping[str, Callable[[], int]]] = {
    "llamacpp": lambda: real_llamacpp.main(OUT / "llamacpp", LLAMACPP_S),
    "calibration": lambda: calibrated_llamacpp.main(OUT / "calibration", CALIBRATION_S),
    "litellm": lambda: real_litellm.main(ENVIRONMENTS / "litellm", OUT / "litellm"),
    "vllm": lambda: real_vllm.main(ENVIRONMENTS / "vllm", OUT / "vllm"),
}


def main(names: list[str]) -> int:
    """Run some of the programs, or all."""
    ENVIRONMENTS.mkdir(exist_ok=True)
    failed = 0
    for name in names or PROGRAMS:
        print(f"\n{name}\n", flush=True)
        try:
            failed += PROGRAMS[name]()
        except (OSError, RuntimeError, AssertionError, subprocess.CalledProcessError) as error:
            print(f"{name} could not be run: {error}")
            failed += 1
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
