"""The files of the page: script, style, and the library that draws its plots, from the package and from nowhere else.

They hold nothing of anybody, so browsers may keep them: the address has what names the content of all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from capwatch.web.answer import Answer

FOLDER: Final = Path(__file__).parent / "assets"
LIBRARY: Final = ("uPlot.iife.min.js", "uPlot.min.css")
"""uPlot, which the build puts beside the page's own files; see deploy/package/backend.py."""
_TYPES: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_KEPT: Final = ("Cache-Control", "private, max-age=31536000, immutable")


def _read() -> Mapping[str, Answer]:
    files = sorted(path for path in FOLDER.iterdir() if path.suffix in _TYPES)
    return {path.name: Answer(200, path.read_bytes(), _TYPES[path.suffix], headers=(_KEPT,)) for path in files}


_FILES: Final = _read()
BASE: Final = f"/page/{sha256(b''.join(file.body for file in _FILES.values())).hexdigest()[:12]}/"
"""Where they are; scripts name each other without it."""
COMPLETE: Final = all(name in _FILES for name in LIBRARY)
"""Whether the library is there; without it the page has everything but its plots."""


def answer(path: str) -> Answer | None:
    """The file at a path; None where there is none."""
    return _FILES.get(path.removeprefix(BASE)) if path.startswith(BASE) else None
