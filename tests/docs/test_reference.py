"""The built pages of docs/ say what the code says."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


def builder() -> ModuleType:
    """docs/build.py, which is a script and no part of the package."""
    spec = importlib.util.spec_from_file_location("docs_build", DOCS / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", sorted(builder().pages()))
def test_a_page_is_fresh(name: str) -> None:
    """Each built page is committed as it is built; `python docs/build.py` mends it."""
    assert (DOCS / name).read_text() == builder().pages()[name]
