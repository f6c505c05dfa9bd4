"""A key that somebody pasted into the wrong place of a configuration is repeated nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import yaml

from capwatch import formats
from capwatch.cli import main
from capwatch.config import check, parse
from capwatch.config.schema import Config
from capwatch.errors import ConfigError
from capwatch.sourcing import engines

from .planting import MARK, SECRETS, _paths

EXAMPLE = Path(__file__).parents[1] / "config" / "contract_example.yml"


def documents() -> Iterator[str]:
    """The contract's example with a secret as a key, as a key more, or as a value, in every place."""
    found = yaml.safe_load(EXAMPLE.read_text())
    endless = cycle(SECRETS.values())
    for path in list(_paths(found)):
        for change in ("value", "key", "extra"):
            copy = deepcopy(found)
            inner: Any = copy
            for step in path[:-1]:
                inner = inner[step]
            if change == "value":
                inner[path[-1]] = next(endless)
            elif isinstance(inner, dict):
                inner[next(endless)] = inner.pop(path[-1]) if change == "key" else 1
            yield yaml.safe_dump(copy, sort_keys=False, width=1000)


def said(text: str) -> str:
    """All that check-config says of a document; and that the daemon logs of it."""
    try:
        config: Config = parse(text, "capwatch.yml", {}, formats=frozenset(formats.shelf()), is_root=True)
    except ConfigError as error:
        return str(error)
    return check.effective(config)


def test_no_mistake_repeats_a_secret() -> None:
    """Neither the one line of an error, nor the effective configuration; some of each are among them."""
    found = [said(text) for text in documents()]
    assert [one for one in found if MARK in one.lower()] == []
    assert {"capwatch.yml" in one for one in found} == {True, False}
    assert sum("***" in one for one in found) > len(found) / 2


@pytest.mark.parametrize(
    "text",
    [
        "a: *CANARY-sk-0123456789abcdef",
        "!sk-CANARY0123456789abcdef x",
        "sk-CANARY0123456789abcdef",
        "a: [sk-CANARY0123456789ab",
    ],
)
def test_no_broken_document_repeats_a_secret(text: str) -> None:
    """What YAML itself complains about is told without it."""
    assert "sk-canary" not in said(text).lower()


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
@pytest.mark.parametrize(
    "words",
    [
        ["explain", "--format", "{}", "log"],
        ["explain", "--format", "jsonl", "--timezone", "{}", "log"],
        ["explain", "--format", "jsonl", "--field", "tenant:{}", "log"],
        ["check-config", "{}"],
        ["init", "{}"],
        ["replay", "--config.file", "{}", "log"],
        ["{}"],
    ],
    ids=lambda words: words[0],
)
def test_no_refusal_repeats_a_secret(
    words: list[str], secret: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key in the place of an option or a file name is not in the line that refuses it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log").touch()
    code = main([word.format(secret) for word in words])
    shown = capsys.readouterr()
    assert (code, MARK in (shown.out + shown.err).lower(), len(shown.err.splitlines())) == (2, False, 1)


def test_a_good_configuration_is_not_touched() -> None:
    """Nothing of the example looks like a secret: what is printed is what is in effect."""
    config = parse(EXAMPLE.read_text(), "c.yml", {}, formats=frozenset(formats.shelf()), is_root=True)
    shown = check.effective(config)
    assert ("***" in shown, parse(shown, "c.yml", {}, formats=frozenset(formats.shelf()), is_root=True)) == (
        False,
        config,
    )
    assert [one for one in check.warnings(config, engines()) if "***" in one] == []
