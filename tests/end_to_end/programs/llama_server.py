"""Runs llama.cpp's HTTP server until it is told to end: `python -m … MODEL PORT SLOTS`; its log goes to stderr."""

from __future__ import annotations

import signal
import sys
from typing import Final

CONTEXT: Final = 1024
"""Tokens of each slot."""


def main(model: str, port: int, slots: int) -> None:
    """Serve; a signal ends the process."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = model
    parameters.n_ctx = CONTEXT * slots
    parameters.n_parallel = slots
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.endpoint_metrics = True
    parameters.warmup = False
    parameters.n_threads_http = 32  # each waiting client holds one, and the page must be told meanwhile
    parameters.cpuparams.n_threads = 1
    server = xllamacpp.Server(parameters)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.pause()
    del server


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
