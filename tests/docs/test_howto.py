"""The how-to page's snippets are what the programs' own tests use, and every configuration in it loads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from capwatch.config.load import parse
from capwatch.sourcing import names
from tests.end_to_end.programs import nginx
from tests.end_to_end.programs.envoy import LOG_KEYS

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "howto.md").read_text()
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
CONFIGURATIONS = [one for one in BLOCKS if "sources:" in one]


def section(title: str) -> str:
    """The text under a heading."""
    return PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


@pytest.mark.parametrize("text", CONFIGURATIONS)
def test_a_configuration_loads(text: str) -> None:
    """By the loader that the commands use, with the formats that there are."""
    assert parse(text, "howto.md", {}, formats=names(), is_root=True).sources


@pytest.mark.parametrize("title", ["LiteLLM", "Envoy AI Gateway", "nginx", "vLLM", "llama.cpp", "Kubernetes"])
def test_every_section_has_a_configuration(title: str) -> None:
    """Nobody is left with words alone."""
    assert "sources:" in section(title)


@pytest.mark.parametrize("text", [one for one in BLOCKS if one not in CONFIGURATIONS])
def test_other_programs_configurations_are_yaml(text: str) -> None:
    """What is to be pasted elsewhere can be parsed."""
    assert isinstance(yaml.safe_load(text), dict)


def test_nginx_is_told_what_the_real_one_was_told() -> None:
    """The log format is the one of the dialect's documentation, which a real nginx is tested with."""
    (told,) = re.findall(r"```nginx\n(.*?;)\naccess_log", section("nginx"), flags=re.DOTALL)
    assert told.split() == nginx.log_format().split()


def access_log() -> dict[str, str]:
    """The keys that the page prints in Envoy's log."""
    (text,) = (one for one in BLOCKS if "accessLog" in one)
    keys: dict[str, str] = yaml.safe_load(text)["spec"]["telemetry"]["accessLog"]["settings"][0]["format"]["json"]
    return keys


def test_envoy_prints_what_the_real_one_printed() -> None:
    """Apart from the path, which the gateway rewrites, and from what only the gateway knows."""
    own = {key: value for key, value in access_log().items() if not key.startswith(("gen_ai.", "x-envoy-origin-path"))}
    assert own == {key: value for key, value in LOG_KEYS.items() if key != "path"}


def test_envoy_prints_what_is_looked_for() -> None:
    """The mapped keys are printed, and so are the tokens that the route counts."""
    (text,) = (one for one in CONFIGURATIONS if "x-tenant-id" in one)
    mapped = yaml.safe_load(text)["sources"][0]["fields"].values()
    assert [key for key in mapped if key not in access_log()] == []
    (costs,) = (yaml.safe_load(one)["spec"]["llmRequestCosts"] for one in BLOCKS if "llmRequestCosts" in one)
    printed = "".join(access_log().values())
    assert [one["metadataKey"] for one in costs if f"io.envoy.ai_gateway:{one['metadataKey']})" not in printed] == []


def test_links_lead_somewhere() -> None:
    """Files beside the page, and headings in it."""
    headings = {re.sub(r"[^a-z -]", "", one.lower()).replace(" ", "-") for one in re.findall(r"^## (.*)$", PAGE, re.M)}
    links = re.findall(r"\]\(([^)]+)\)", PAGE)
    assert [one for one in links if not (one[1:] in headings if one[0] == "#" else (DOCS / one).exists())] == []
