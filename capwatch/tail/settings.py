"""Settings: what one source asks of its follower."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Settings:
    """Times in seconds, sizes in bytes. The defaults are those of the daemon; only `name` and `globs` have none."""

    name: str
    globs: tuple[str, ...]
    start: Literal["end", "beginning"] = "end"  # for files that exist at the first ever start
    line_bytes: int = 16 << 20  # longest line
    block_bytes: int = 4 << 20  # one read: large enough that its overhead is nothing, small beside the memory limit
    poll_bytes: int = 64 << 20  # one poll hands out about this much, so that rotations are looked for in a backlog too
    max_open: int = 512  # descriptors; half of the usual limit of 1,024
    grace: float = 30.0  # a writer may go on writing to a rotated file for so long after its last line
    copy_wait: float = 2.0  # the copy of a truncated file may come under the glob so much later
    rescan: float = 1.0  # between two looks at the globs
    fastest: float = 0.02  # between two looks at a file that moves
    slowest: float = 0.5  # between two looks at a silent one
    remembered: int = 1000  # vanished contents known again if they come back
