"""Builds the package: setuptools, and before it the one file of the page that is not written here, uPlot.

uPlot draws the plots of the page. It lives on npm and on no package index of Python, and a copy of a minified file has
no place in a repository: nobody could review it, and nobody would renew it. So the build has npm fetch the release that
is pinned below, from wherever npm is configured to, takes it only if its checksum is the one that was published, and
puts three of its files beside the page's own. An sdist has them, so that a build from it needs neither npm nor network.
A build that cannot fetch them goes on, and its page has no plots; where that must not be, as in a release,
`CAPWATCH_PLOTS=required` makes it fail.

To renew: `npm view uplot version dist.integrity`.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Final

from setuptools import build_meta

VERSION: Final = "1.6.32"
INTEGRITY: Final = "KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw=="
"""SHA-512 of the archive, as the registry tells it (`dist.integrity`)."""
FILES: Final = {
    "package/dist/uPlot.iife.min.js": "uPlot.iife.min.js",
    "package/dist/uPlot.min.css": "uPlot.min.css",
    "package/LICENSE": "uPlot.LICENSE",
}
FOLDER: Final = Path(__file__).resolve().parents[2] / "capwatch" / "web" / "assets"
STAMP: Final = "uPlot.version"
"""What is there, so that another pin brings another file."""
PATIENCE_S: Final = 60.0


class UnavailableError(Exception):
    """The library could not be had, or is not what was pinned."""


def fetch() -> bytes:
    """The archive of the pinned release.

    Raises:
        UnavailableError: it could not be had, or its checksum is another.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise UnavailableError("npm, which fetches uPlot, is not on PATH")
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", f"uplot@{VERSION}", "--silent", "--pack-destination", folder]
        try:
            subprocess.run(command, check=True, capture_output=True, cwd=folder, timeout=PATIENCE_S)  # noqa: S603
            archive = next(Path(folder).glob("*.tgz")).read_bytes()
        except (OSError, StopIteration, subprocess.SubprocessError) as error:
            raise UnavailableError(f"npm could not fetch uplot@{VERSION}: {error}") from None
    found = base64.b64encode(hashlib.sha512(archive).digest()).decode()
    if found != INTEGRITY:
        raise UnavailableError(f"uplot@{VERSION}: its SHA-512 is {found}, not {INTEGRITY}")
    return archive


def unpack(archive: bytes, folder: Path) -> None:
    """Put the files of a release into a folder, the stamp last."""
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as packed:
        for member, name in FILES.items():
            file = packed.extractfile(member)
            if file is None:
                raise UnavailableError(f"{member} is no file of the archive")
            (folder / name).write_bytes(file.read())
    (folder / STAMP).write_text(f"{VERSION}\n")


def provide(folder: Path = FOLDER) -> None:
    """See that the library is in the folder; without it go on or fail, as the environment says."""
    stamp = folder / STAMP
    if stamp.is_file() and stamp.read_text().strip() == VERSION:
        return
    try:
        unpack(fetch(), folder)
    except UnavailableError as error:
        if os.environ.get("CAPWATCH_PLOTS") == "required":
            raise
        sys.stderr.write(f"capwatch is built without the plots of its page: {error}\n")


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """See PEP 517."""
    provide()
    return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    """See PEP 517."""
    provide()
    return build_meta.build_sdist(sdist_directory, config_settings)


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """See PEP 660."""
    provide()
    return build_meta.build_editable(wheel_directory, config_settings, metadata_directory)


get_requires_for_build_wheel = build_meta.get_requires_for_build_wheel
get_requires_for_build_sdist = build_meta.get_requires_for_build_sdist
get_requires_for_build_editable = build_meta.get_requires_for_build_editable
prepare_metadata_for_build_wheel = build_meta.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = build_meta.prepare_metadata_for_build_editable

if __name__ == "__main__":  # a checkout that was installed before there was npm
    provide()
