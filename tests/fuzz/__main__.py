"""`python -m tests.fuzz TARGET [options of libFuzzer]`: bytes that atheris makes up, against all that reads bytes.

TARGET is a format's or a wrapper's name, `page` (an engine's metrics), `config`, `blocks` or `state`. It needs
`pip install atheris`, which is no part of the development environment. A crash is a traceback and a file with the
bytes. Whatever is read, nothing but the errors that are meant for it is raised, and every line has one fate.

    python -m tests.fuzz litellm -max_total_time=60
"""

from __future__ import annotations

import sys
from pathlib import Path

SEEDS = Path(__file__).parents[1] / "formats"


def main() -> None:
    """Fuzz one target, from the golden lines of its format on."""
    import atheris

    with atheris.instrument_imports(include=["capwatch"]):
        from tests.fuzz.targets import TARGETS
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(f"usage: python -m tests.fuzz TARGET [options]; TARGET is one of {', '.join(TARGETS)}")
    name = sys.argv.pop(1)
    seeds = sorted((SEEDS / name).glob("*.log")) if (SEEDS / name).is_dir() else []
    corpus = [line for seed in seeds for line in seed.read_bytes().splitlines()]

    def one(data: bytes) -> None:
        # The first byte chooses a golden line, the second where in it the made up bytes stand.
        if corpus and data and data[0] % 2:
            line = corpus[data[0] // 2 % len(corpus)]
            cut = data[1] * len(line) // 256 if len(data) > 1 else 0
            data = line[:cut] + data[2:] + line[cut:]
        TARGETS[name](data)

    atheris.Setup(sys.argv, one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
