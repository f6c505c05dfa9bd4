"""The built pages of docs/ say what the code says."""

import importlib.util
import json
import re
import sys
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest

from capwatch.config.schema import Config, Pool
from capwatch.dialect.fields import KINDS
from capwatch.formats import shelf
from capwatch.record import EngineSample, Request

DOCS = Path(__file__).resolve().parents[2] / "docs"
PACKAGE = DOCS.parent / "capwatch"


def builder() -> ModuleType:
    """docs/build.py, which is a script and no part of the package."""
    if str(DOCS) not in sys.path:
        sys.path.append(str(DOCS))  # where its own neighbour is, as when it is run
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


def test_a_format_page_tells_what_the_goldens_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fields of the agreed results are found, those under `options.fields` only by name, the rest has its cost."""
    build = builder()
    (tmp_path / "jsonl").mkdir()
    case = tmp_path / "jsonl" / "case.expected.jsonl"
    records = [{"finished_at": 1.0, "cache_hit": False, "tenant": "acme"}, {"at": 1.0, "running": 2}]
    case.write_text("".join(f"{json.dumps({'line': 1, 'outcome': 'record', 'record': one})}\n" for one in records))
    case.with_name("case.options.json").write_text(json.dumps({"fields": {"tenant": "who"}}))
    monkeypatch.setattr(build.dialects, "GOLDENS", tmp_path)
    page = "".join(build.dialects.page("jsonl", shelf()["jsonl"]))
    assert "Of a request: `finished_at`.\n" in page
    assert "Where `fields:` says which key: `tenant`.\n" in page
    assert "Of an engine replica: `running`.\n" in page
    assert "| `tenant` (unless named) |" in page
    assert [name for name in build.dialects.COSTS if f"| `{name}` |" not in page] == ["tenant"]


def test_the_costs_are_of_fields_that_there_are() -> None:
    """No cost is told of a field that is gone."""
    build = builder()
    assert set(build.dialects.COSTS) <= set(Request.__struct_fields__)
    assert set(build.dialects.SAMPLE_COSTS) <= set(EngineSample.__struct_fields__)


def test_the_record_page_has_every_field() -> None:
    """No field without its unit and rule, and none that is gone."""
    assert list(builder().RECORD) == list(Request.__struct_fields__)
    assert [name for name in Request.__struct_fields__ if name not in builder().dialects.OWN] == [
        name for name in Request.__struct_fields__ if name in KINDS
    ]


def spoken(pattern: str) -> bool:
    """Whether code outside the configuration's own has a pattern."""
    files = (path for path in PACKAGE.rglob("*.py") if path.parent.name != "config")
    return any(re.search(pattern, path.read_text()) for path in files)


def test_keys_for_later_are_used_by_nobody() -> None:
    """A key that came into use loses its mark."""
    owned = {key: key.removeprefix("pools[].") for key in builder().LATER}
    found = {key for key, name in owned.items() if spoken(rf"{'config' if name == key else r'pools?'}\.{name}\b")}
    assert found == set()


def test_keys_in_use_are_not_for_later() -> None:
    """A new key of the whole or of a pool is used, or marked."""
    keys = [each.name for each in fields(Config)] + [f"pools[].{each.name}" for each in fields(Pool)]
    mine = [key for key in keys if key not in builder().LATER]
    assert [key for key in mine if not spoken(rf"\.{key.removeprefix('pools[].')}\b")] == []
