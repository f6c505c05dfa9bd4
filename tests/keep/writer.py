"""A process that fills a state until it is killed: `python -m tests.keep.writer FOLDER [MOMENT]`.

Delta n adds n; every seventh is followed by a checkpoint. A line on stdout acknowledges what is durable. With a moment
it kills itself at its seventh append: `append` and `checkpoint` before the commit of either, `appended` and
`checkpointed` after it and before the acknowledgement. With `hold` it holds the lock and waits.
"""

from __future__ import annotations

import os
import signal
import sys

from capwatch.keep.state import Lock, State

EVERY = 7


def total(state: State) -> int:
    """What the chunks and deltas of a state add up to."""
    return sum((int(value["add"]) for _, value in state.deltas()), int(state.chunks().get("total", 0)))


def write(state: State, moment: str) -> None:
    """Append and fold until somebody ends it."""
    grand = total(state)
    while True:
        number = state.number + 1
        last = number % EVERY == 0
        if last and moment == "append":
            _die_before_commit(state)
        state.append(number, {"add": number, "ballast": os.urandom(3000)})
        if last and moment == "appended":
            _die()
        state.number, grand = number, grand + number
        os.write(1, f"{number}\n".encode())
        if last:
            if moment == "checkpoint":
                _die_before_commit(state)
            state.checkpoint(number, {"total": grand, f"part/{number % 5}": "x" * number})
            if moment == "checkpointed":
                _die()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _die_before_commit(state: State) -> None:
    state._db.set_trace_callback(lambda statement: _die() if statement == "COMMIT" else None)


def main(folder: str, moment: str = "") -> None:
    """Hold the lock, and write."""
    lock = Lock(folder)
    os.write(1, b"ready\n")
    if moment == "hold":
        sys.stdin.read()
        lock.release()
        return
    write(State(folder), moment)


if __name__ == "__main__":
    main(*sys.argv[1:])
