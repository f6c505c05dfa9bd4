"""Names: which files the globs lead to, which belong to one family, which of a family is older."""

import glob
import os
import re
import stat
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from capwatch.tail.position import FileId

COMPRESSED = (".gz", ".zst", ".bz2", ".xz", ".lz4", ".Z", ".zip")
"""What log rotation leaves behind: the same content again, never read live."""

_ROTATED = re.compile(r"(?:\.\d[\dT:_.Z+-]*|-\d{8}[\dT:_.Z+-]*|\.(?:old|bak|prev|orig))+$")
"""What rotation puts behind a name: `.1`, `.20260101-120000`, `-20260101`, `-1767225600`, `.old`.
A dash needs eight digits: `vllm-0` and `vllm-1` are two engines."""

_NUMBER = re.compile(r"\.(\d{1,5})$")
"""logrotate's counter, in which the higher number is the older file."""


class File(NamedTuple):
    """A regular file found under the globs: all its names (in the order of the globs), size in bytes, mtime in ns."""

    id: FileId
    paths: tuple[str, ...]
    size: int
    mtime_ns: int


def listing(globs: Iterable[str]) -> dict[FileId, File]:
    """Regular, uncompressed files under the globs; links are followed, a file under two names is one.

    What cannot be looked at (a directory without permission, a name that goes meanwhile) is left out.
    """
    files: dict[FileId, File] = {}
    for path in dict.fromkeys(path for pattern in globs for path in sorted(glob.iglob(pattern, recursive=True))):
        if path.endswith(COMPRESSED):
            continue
        try:
            found = os.stat(path)
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode):
            file_id = FileId(found.st_dev, found.st_ino)
            known = files.get(file_id)
            paths = (*known.paths, path) if known else (path,)
            files[file_id] = File(file_id, paths, found.st_size, found.st_mtime_ns)
    return files


def roots(globs: Iterable[str]) -> set[str]:
    """For each glob the deepest directory without a wildcard in it.

    >>> sorted(roots(["/var/log/*/app.log", "/srv/x.log*"]))
    ['/srv', '/var/log']
    """
    found = set()
    for pattern in globs:
        directory = os.path.dirname(pattern)
        while glob.has_magic(directory):
            directory = os.path.dirname(directory)
        found.add(directory or ".")
    return found


@lru_cache(1 << 14)
def stem(path: str) -> str:
    """The live name of a family of rotated files: the path without what rotation put behind it.

    >>> [stem(path) for path in ("a/log.jsonl.1", "a/0.log.20260101-120000", "a/app-20260101", "a/vllm-0", "a/7")]
    ['a/log.jsonl', 'a/0.log', 'a/app', 'a/vllm-0', 'a/7']
    """
    directory, name = os.path.split(path)
    return os.path.join(directory, _ROTATED.sub("", name) or name)


def age(path: str, mtime_ns: int) -> tuple[int, int, str]:
    """Sort key, oldest first: by mtime, and within one tick of it by name: higher numbers first, the live file last.

    >>> sorted(["log", "log.1", "log.old", "log.2"], key=lambda path: age(path, 0))
    ['log.2', 'log.1', 'log.old', 'log']
    """
    number = _NUMBER.search(path)
    return mtime_ns, -int(number[1]) if number else int(stem(path) == path), path
