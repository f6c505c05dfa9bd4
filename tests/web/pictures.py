"""Takes the pictures of the page that are in docs/: python -m tests.web.pictures."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from .browser import chromium
from .scene import playing

DOCS: Final = Path(__file__).parents[2] / "docs"
TENANTS: Final = ("claims", "billing", "support", "legal", "returns", "labs")


def main() -> None:
    """Both, of eight requests a second on twelve replicas."""
    with (
        tempfile.TemporaryDirectory() as scene_folder,
        tempfile.TemporaryDirectory() as profile,
        playing(Path(scene_folder), 8.0, 12, TENANTS) as scene,
        chromium(Path(profile)) as page,
    ):
        for name, width, height, scheme, phone in (
            ("page-light.png", 1280, 940, "light", False),
            ("page-phone.png", 400, 860, "dark", True),
        ):
            page.size(width, height, phone=phone, scale=1.25)
            page.scheme(scheme)
            page.open(scene.address)
            page.until("document.documentElement.dataset.updates >= 1")
            page.picture(DOCS / name)


if __name__ == "__main__":
    main()
