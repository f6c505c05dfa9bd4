"""Overrides from the environment."""

import pytest

from capwatch.config import Budget, Config, Field, Match, parse
from capwatch.errors import ConfigError

TEXT = """
listen: :1
sources:
  - {name: a, path: /a, format: jsonl, fields: {ttft_s: {path: x, unit: ms}, tenant: team}}
  - {name: b, path: /b, format: jsonl}
pools: [{name: chat-70b, stages: {gateway: 60}}]
quotas: {chat-70b: {tokens_per_minute: 5}}
budgets:
"""


def read(text: str = TEXT, **environ: str) -> Config:
    """The configuration with `CAPWATCH__` variables, given without the prefix."""
    variables = {f"CAPWATCH__{name}": value for name, value in environ.items()}
    return parse(text, "capwatch.yml", variables, formats=frozenset({"jsonl", "vllm"}), is_root=True)


def error(**environ: str) -> str:
    """The line that these variables are refused with."""
    with pytest.raises(ConfigError) as caught:
        read(**environ)
    return str(caught.value)


def test_key() -> None:
    """A variable takes the place of a key that the file gives."""
    assert read(LISTEN=":2").listen == ":2"


def test_new_key() -> None:
    """A variable sets a key, and the sections above it, that the file does not give."""
    assert read(DRIFT__TICK="30s").drift.tick == 30


def test_no_file() -> None:
    """An empty file can be filled from the environment."""
    assert read("", SOURCES__0__NAME="x", SOURCES__0__PATH="/x", SOURCES__0__FORMAT="vllm").sources[0].format == "vllm"


def test_list_index() -> None:
    """A number is the index of a list; other items and keys stay."""
    config = read(SOURCES__1__FORMAT="vllm")
    assert [(source.name, source.format) for source in config.sources] == [("a", "jsonl"), ("b", "vllm")]


def test_append() -> None:
    """The index one past the end appends; indices are numbers, not texts."""
    config = read(CLASSES="[]", **{f"CLASSES__{n}__NAME": f"c{n}" for n in range(12)})
    assert [each.name for each in config.classes] == [f"c{n}" for n in range(12)]


def test_flow() -> None:
    """A value may be a list or a mapping in flow style."""
    config = read(BUDGETS="{acme: {rate: 30/min, burst: 6}}", POOLS__0__MATCH="{model: [a, b]}")
    assert (config.budgets, config.pools[0].match) == ({"acme": Budget(0.5, 6)}, Match(model=("a", "b")))


def test_part_of_a_whole() -> None:
    """A variable for a part goes into what a variable for the whole gives."""
    assert read(DRIFT="{tick: 30s}", DRIFT__MINIMUM_EFFECT="10%").drift.minimum_effect == 0.1


def test_free_keys() -> None:
    """A key that the user chose is spelled in capitals, other signs as underscores."""
    assert read(QUOTAS__CHAT_70B__TOKENS_PER_MINUTE="7").quotas["chat-70b"].tokens_per_minute == 7


def test_shorthand() -> None:
    """A key below a shorthand turns it into its long form."""
    config = read(SOURCES__0__FIELDS__TENANT__PATH="group", SOURCES__0__FIELDS__TTFT_S__UNIT="us")
    assert config.sources[0].fields == {"tenant": Field("group"), "ttft_s": Field("x", "us")}


def test_empty_value() -> None:
    """A variable without a value takes the key back to its default."""
    assert read(LISTEN="").listen == Config().listen


def test_other_variables() -> None:
    """Variables without the prefix and its two underscores are none of ours."""
    assert (
        parse("", "f", {"CAPWATCH_LISTN": "x", "LISTEN": "y"}, formats=frozenset(), is_root=True).listen
        == "127.0.0.1:10077"
    )


@pytest.mark.parametrize(
    ("variable", "value", "line"),
    [
        ("LISTN", ":1", "CAPWATCH__LISTN: names no key; did you mean 'LISTEN'?"),
        ("", ":1", "CAPWATCH__: names no key; possible: LISTEN, STATE_DIR, "),
        ("GPU__X", "on", "CAPWATCH__GPU__X: names no key; possible: NVML"),
        (
            "QUOTAS__X__TOKENS_PER_MINUTE",
            "5",
            "CAPWATCH__QUOTAS__X__TOKENS_PER_MINUTE: names no key; possible: CHAT_70B",
        ),
        ("BUDGETS__ACME__RATE", "5", "CAPWATCH__BUDGETS__ACME__RATE: names no key; possible: none"),
        ("SOURCES__X", "a", "CAPWATCH__SOURCES__X: names no key; after a list comes an index from 0 to 2"),
        ("SOURCES__3", "a", "CAPWATCH__SOURCES__3: names no key; after a list comes an index from 0 to 2"),
        ("LISTEN__PORT", "1", "CAPWATCH__LISTEN__PORT: names no key; PORT lies below ':1'"),
        ("COMMIT_INTERVAL", "1y", "CAPWATCH__COMMIT_INTERVAL: commit_interval: found '1y' with the unknown unit 'y'; "),
        (
            "SOURCES__1__FORMAT",
            "vlm",
            "CAPWATCH__SOURCES__1__FORMAT: sources[1].format: no format 'vlm'; did you mean 'vllm'?",
        ),
        ("GPU", "{nvml: x}", "CAPWATCH__GPU: gpu.nvml: found 'x'; possible: auto, on, off"),
        ("GPU", "{nvml: on, nvml: off}", "CAPWATCH__GPU: nvml: duplicate key"),
        ("LISTEN", "[::1]:5", "CAPWATCH__LISTEN: not YAML: "),
        ("LISTEN", "\udcff", "CAPWATCH__LISTEN: not a text that can be written as UTF-8"),
    ],
)
def test_error(variable: str, value: str, line: str) -> None:
    """A mistake in a variable is one line that names the variable, and the key where there is one."""
    told = error(**{variable: value})
    assert (told[: len(line)] if line.endswith(" ") else told) == line


def test_wrong_file() -> None:
    """An override below a key that is wrong in the file leaves the error with the file."""
    with pytest.raises(ConfigError, match="gpu: found a list; possible is a mapping with the keys nvml"):
        read("gpu: [auto]", GPU__NVML="on")
