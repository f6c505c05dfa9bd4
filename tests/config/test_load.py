"""Reading a configuration: the contract's example, defaults, and the one line each mistake gets."""

import re
from datetime import date
from pathlib import Path

import pytest
import yaml

from capwatch.config import (
    Budget,
    Class,
    Config,
    Engine,
    Field,
    Match,
    Pool,
    Price,
    Quota,
    Slo,
    Source,
    Stage,
    default_state_dir,
    load,
    parse,
)
from capwatch.errors import ConfigError

FORMATS = frozenset({"jsonl", "litellm", "nginx", "vllm"})
EXAMPLE = Path(__file__).with_name("contract_example.yml")
SOURCE = "sources: [{name: a, path: /a, format: jsonl"


def read(text: str) -> Config:
    """What a text means to root, without environment."""
    return parse(text, "capwatch.yml", {}, formats=FORMATS, is_root=True)


def error(text: str) -> str:
    """The line that a text is refused with."""
    with pytest.raises(ConfigError) as caught:
        read(text)
    return str(caught.value)


def test_contract_example() -> None:
    """The example of the contract means what it says."""
    config = load(str(EXAMPLE), {}, formats=FORMATS, is_root=True)
    assert config == Config(
        sources=(
            Source(
                name="gateway",
                path=("/var/log/litellm/requests.jsonl", "/var/log/litellm/requests.jsonl.*"),
                format="litellm",
                fields={
                    "tenant": Field("metadata.user_api_key_team_alias"),
                    "ttft_s": Field("timing.ttft_ms", unit="ms"),
                },
            ),
            Source(name="engine-logs", path=("/var/log/vllm/*.log",), format="vllm", pool="chat-70b", role="times"),
        ),
        engines=(Engine("http://10.0.0.7:8000/metrics", "chat-70b", "vllm-0", interval=5, patience=30),),
        pools=(
            Pool(
                name="chat-70b",
                match=Match(model=("chat-70b", "chat-70b-*")),
                replicas=12,
                slots=32,
                kv_pool_tokens=30500,
                inflight_target=3.5,
                zones=3,
                cold_start=170,
                scale_down_window=600,
                gpus=("0", "1"),
                stages={"gateway": Stage(60), "retrieval": Stage(45), "tool": Stage(10, visits=0.15)},
                price=Price(replica_hour_usd=12, rented_per_million_usd=8, as_of=date(2026, 11, 1)),
            ),
        ),
        classes=(
            Class("long_summary", Match(route=("/v1/summaries",))),
            Class("order_lookup", Match(route=("/v1/orders/*",))),
            Class("policy"),
        ),
        slo=(Slo(ttft=1.5, tpot=0.06),),
        budgets={"acme": Budget(rate=2, burst=6)},
        quotas={"chat-70b": Quota(2_000_000)},
        deploys="/var/log/deploys.jsonl",
    )


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "null", "{}", "sources:\ndrift:\n"])
def test_nothing_is_the_defaults(text: str) -> None:
    """An empty file, and keys without a value, mean the defaults and one pool with assumed rates."""
    assert read(text) == Config(pools=(Pool("default", assumed=True),))


@pytest.mark.parametrize(
    ("keys", "assumed"),
    [
        ("", True),
        (", prefill_tokens_per_second: 4000", True),
        (", prefill_tokens_per_second: 4000, decode_tokens_per_second: null", True),
        (", prefill_tokens_per_second: 4000, decode_tokens_per_second: 160", False),
        (", assumed: no", False),
        (", prefill_tokens_per_second: 4000, decode_tokens_per_second: 160, assumed: true", True),
    ],
)
def test_assumed(keys: str, assumed: bool) -> None:
    """A pool that is not given both rates assumes them, unless it says otherwise."""
    assert read(f"pools: [{{name: p{keys}}}]").pools[0].assumed == assumed


def test_observed_replicas() -> None:
    """The number of replicas may be left to observation."""
    assert read("pools: [{name: p, replicas: observed}]").pools[0].replicas == "observed"


def test_zone_sizes() -> None:
    """Zones may be given by their sizes instead of their number."""
    assert read("pools: [{name: p, zone_sizes: [9, 9, 8]}]").pools[0].zone_sizes == (9, 9, 8)


@pytest.mark.parametrize(
    ("word", "meaning"),
    [("on", "on"), ("off", "off"), ("yes", "on"), ("No", "off"), ("TRUE", "on"), ("'on'", "on"), ("auto", "auto")],
)
def test_switches(word: str, meaning: str) -> None:
    """What YAML 1.1 takes for a boolean is accepted where a word is expected."""
    assert read(f"gpu: {{nvml: {word}}}").gpu.nvml == meaning


@pytest.mark.parametrize("word", ["no", "on", "12:30", "010", "1e3", "2026-11-01", ".inf", "0x1f", "1_000"])
def test_text_stays_text(word: str) -> None:
    """A text is what is written, whatever YAML 1.1 would make of it."""
    assert read(f"pools: [{{name: {word}}}]").pools[0].name == word


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kolkata"])
def test_timezone(zone: str) -> None:
    """A time zone is a name of the zone data base."""
    assert read(f"{SOURCE}, timezone: {zone}}}]").sources[0].timezone == zone


def test_aliases() -> None:
    """Anchors and aliases may save typing."""
    config = read("classes: [{name: a, match: &m {tenant: x}}, {name: b, match: *m}]")
    assert config.classes[1].match == Match(tenant=("x",))


ERRORS = [
    ("listn: x", "capwatch.yml:1: listn: unknown key; did you mean 'listen'?"),
    (
        "sources:\n  - name: a\n    path: /a\n    formt: vllm\n",
        "capwatch.yml:4: sources[0].formt: unknown key; did you mean 'format'?",
    ),
    ("gpu: {zzz: 1}", "capwatch.yml:1: gpu.zzz: unknown key; possible: nvml"),
    (
        "quotas:\n  ? |\n    a\n    b\n  : {x: 1}",
        r"capwatch.yml:2: quotas: as a key: found 'a\nb\n'; possible is a text without control characters",
    ),
    ("listen: a\n\nlisten: b", "capwatch.yml:3: listen: duplicate key; first in line 1"),
    (
        "budgets: {acme: {rate: 1, rate: 2}}",
        "capwatch.yml:1: budgets.acme.rate: duplicate key; first in line 1",
    ),
    ("[a]: b", "capwatch.yml:1: found a list as a key; possible is a text"),
    ("a: b\n---\nc: d", "capwatch.yml:2: a second YAML document; one is possible"),
    ("- a", "capwatch.yml:1: found a list; possible is a mapping with the keys "),
    ("gpu: [auto]", "capwatch.yml:1: gpu: found a list; possible is a mapping with the keys nvml"),
    ("sources: /a", "capwatch.yml:1: sources: found '/a'; possible is a list"),
    ("sources: {name: a}", "capwatch.yml:1: sources: found a mapping; possible is a list"),
    ("sources: [null]", "capwatch.yml:1: sources[0]: found nothing; possible is a mapping with the keys "),
    ("budgets: [acme]", "capwatch.yml:1: budgets: found a list; possible is a mapping"),
    ("listen: {port: 1}", "capwatch.yml:1: listen: found a mapping; possible is an address"),
    (
        "listen: localhost",
        "capwatch.yml:1: listen: found 'localhost'; possible is an address such as 127.0.0.1:10077 or '[::1]:10077'",
    ),
    ("listen: ':99999'", "capwatch.yml:1: listen: found ':99999'; possible is an address such as "),
    ("deploys: ''", "capwatch.yml:1: deploys: found nothing; possible is a text"),
    (r'deploys: "a\tb"', r"capwatch.yml:1: deploys: found 'a\tb'; possible is a text without control characters"),
    (
        "sources: [{path: /a, format: jsonl}]",
        "capwatch.yml:1: sources[0].name: missing; needed is a text: becomes the label `source`",
    ),
    (
        "sources: [{name: , path: /a, format: jsonl}]",
        "capwatch.yml:1: sources[0].name: missing; needed is a text: becomes the label `source`",
    ),
    (
        "sources: [{name: a, path: [], format: jsonl}]",
        "capwatch.yml:1: sources[0].path: found an empty list; possible is at least one item",
    ),
    (SOURCE + ", wrapper: crio}]", "capwatch.yml:1: sources[0].wrapper: found 'crio'; did you mean 'cri'?"),
    (
        SOURCE + ", start: middle}]",
        "capwatch.yml:1: sources[0].start: found 'middle'; possible: end, beginning",
    ),
    ("gpu: {nvml: maybe}", "capwatch.yml:1: gpu.nvml: found 'maybe'; possible: auto, on, off"),
    (
        SOURCE + ", fields: {ttft_s: {path: a, unit: min}}}]",
        "capwatch.yml:1: sources[0].fields.ttft_s.unit: found 'min'; possible: s, ms, us, ns",
    ),
    (
        SOURCE + ", fields: {output_tokens: {path: a, unit: ms}}}]",
        "capwatch.yml:1: sources[0].fields.output_tokens.unit: output_tokens is no time; remove the unit",
    ),
    (
        SOURCE + ", fields: {ttft: a}}]",
        "capwatch.yml:1: sources[0].fields.ttft: no field of the record; did you mean 'ttft_s'?",
    ),
    (SOURCE + ", timezone: Europe/Berln}]", "capwatch.yml:1: sources[0].timezone: no time zone 'Europe/Berln'; "),
    (SOURCE + ", timezone: America}]", "capwatch.yml:1: sources[0].timezone: no time zone 'America'; "),
    (SOURCE + ", timezone: ../etc/passwd}]", "capwatch.yml:1: sources[0].timezone: no time zone '../etc/passwd'; "),
    (
        "sources: [{name: a, path: /a, format: vlm}]",
        "capwatch.yml:1: sources[0].format: no format 'vlm'; did you mean 'vllm'?",
    ),
    (
        "sources:\n- {name: a, path: /a, format: jsonl}\n- {name: a, path: /b, format: jsonl}",
        "capwatch.yml:3: sources[1].name: 'a' is given twice; names must differ",
    ),
    ("pools: [{name: a}, {name: a}]", "capwatch.yml:1: pools[1].name: 'a' is given twice; names must differ"),
    ("classes: [{name: a}, {name: a}]", "capwatch.yml:1: classes[1].name: 'a' is given twice; names must differ"),
    (
        "engines: [{url: 'http://h:1/a'}, {url: 'http://h:1/b'}]",
        "capwatch.yml:1: engines[1].engine: 'default/h:1' is given twice; names must differ",
    ),
    (SOURCE + ", pool: chat}]", "capwatch.yml:1: sources[0].pool: no pool 'chat'; possible: default"),
    (
        "engines: [{url: 'http://h/m', pool: chat}]",
        "capwatch.yml:1: engines[0].pool: no pool 'chat'; possible: default",
    ),
    (
        "engines: [{url: 'http://h/m'}]\npools: [{name: a}]",
        "capwatch.yml:1: engines[0].pool: no pool 'default'; possible: a",
    ),
    ("quotas: {chat: {tokens_per_minute: 5}}", "capwatch.yml:1: quotas.chat: no pool 'chat'; possible: default"),
    (
        "engines: [{url: 'ftp://u:secret@h'}]",
        "capwatch.yml:1: engines[0].url: found no usable URL; possible is one such as http://10.0.0.7:8000/metrics",
    ),
    (
        "engines: [{url: 'http://u:secret@h:x/'}]",
        "capwatch.yml:1: engines[0].url: found no usable URL; possible is one such as http://10.0.0.7:8000/metrics",
    ),
    (
        "pools: [{name: p, zones: 3, zone_sizes: [9]}]",
        "capwatch.yml:1: pools[0].zone_sizes: given beside zones; remove one of the two",
    ),
    (
        "pools: [{name: p, zone_sizes: []}]",
        "capwatch.yml:1: pools[0].zone_sizes: found an empty list; possible is at least one item",
    ),
    ("pools: [{name: p, zone_sizes: [9, 0]}]", "capwatch.yml:1: pools[0].zone_sizes[1]: found 0; must be at least 1"),
    (
        "pools: [{name: p, replicas: few}]",
        "capwatch.yml:1: pools[0].replicas: found 'few'; possible is a whole number (at least 1) or observed",
    ),
    (
        "pools: [{name: p, replicas: 0}]",
        "capwatch.yml:1: pools[0].replicas: found '0'; possible is a whole number (at least 1) or observed",
    ),
    (
        "pools: [{name: p, slots: 3.5}]",
        "capwatch.yml:1: pools[0].slots: found '3.5'; possible is a whole number such as 12",
    ),
    (
        "pools: [{name: p, slots: 010}]",
        "capwatch.yml:1: pools[0].slots: found '010'; possible is a whole number such as 12",
    ),
    (
        "pools: [{name: p, slots: '32'}]",
        "capwatch.yml:1: pools[0].slots: found the quoted text '32'; possible is a whole number ",
    ),
    ("pools: [{name: p, burst: 0.5}]", "capwatch.yml:1: pools[0].burst: found 0.5; must be at least 1"),
    (
        "pools: [{name: p, burst: .nan}]",
        "capwatch.yml:1: pools[0].burst: found '.nan'; possible is a number such as 4 or 0.5, not negative",
    ),
    (
        "pools: [{name: p, prefill_tokens_per_second: 0}]",
        "capwatch.yml:1: pools[0].prefill_tokens_per_second: found 0; must be at least 0.001",
    ),
    (
        "pools: [{name: p, target_utilisation: 70}]",
        "capwatch.yml:1: pools[0].target_utilisation: found 70; must be greater than 0 and at most 1",
    ),
    (
        "pools: [{name: p, late_share: 100%}]",
        "capwatch.yml:1: pools[0].late_share: found 100%; must be greater than 0 and less than 1",
    ),
    (
        "pools: [{name: p, wait_budget: 500}]",
        "capwatch.yml:1: pools[0].wait_budget: found '500' without a unit; write 500s for seconds ",
    ),
    (
        "pools: [{name: p, stages: {tool: 10/s}}]",
        "capwatch.yml:1: pools[0].stages.tool: found '10/s'; possible is a rate greater than 0 such as ",
    ),
    (
        "pools: [{name: p, price: {as_of: yesterday}}]",
        "capwatch.yml:1: pools[0].price.as_of: found 'yesterday'; possible is a date such as 2026-11-01",
    ),
    ("pools: [{name: p, assumed: so}]", "capwatch.yml:1: pools[0].assumed: found 'so'; possible is true or false"),
    ("pools: [{name: p, match: {modl: x}}]", "capwatch.yml:1: pools[0].match.modl: unknown key; did you mean 'model'?"),
    (
        "commit_interval: 20s",
        "capwatch.yml:1: commit_interval: found 20s; must be at least 50ms and at most 10s",
    ),
    ("drift: {tick: 500ms}", "capwatch.yml:1: drift.tick: found 500ms; must be at least 1s"),
    (
        "drift: {minimum_effect: 1}",
        "capwatch.yml:1: drift.minimum_effect: found 1; must be at least 0 and less than 1",
    ),
    (
        "budgets: {acme: {rate: 1}}",
        "capwatch.yml:1: budgets.acme.burst: missing; needed is a number (at least 0.001): ",
    ),
    ("budgets: {acme: {rate: 0, burst: 1}}", "capwatch.yml:1: budgets.acme.rate: found 0; must be at least 0.001"),
    ("limits: {tenants: 0}", "capwatch.yml:1: limits.tenants: found 0; must be at least 1"),
    (
        "limits: {line_bytes: 0.5B}",
        "capwatch.yml:1: limits.line_bytes: found '0.5B', which is no whole number of bytes",
    ),
    (
        "pools: [{name: p, decode_tokens_per_second: 1e-320}]",
        "capwatch.yml:1: pools[0].decode_tokens_per_second: found 1e-320; must be at least 0.001",
    ),
    (
        f"pools: [{', '.join(f'{{name: p{n}}}' for n in range(251))}]",
        "capwatch.yml:1: pools: 251 of them; at most 250",
    ),
    (
        f"sources: [{{name: a, path: a, format: jsonl, fields: {{tenant: {'a.' * 9}b}}}}]",
        "capwatch.yml:1: sources[0].fields.tenant: 9 dots; at most 8",
    ),
    ("slo: [{ttft: 0}]", "capwatch.yml:1: slo[0].ttft: found 0; must be greater than 0s"),
    (
        "listen: !!python/object/apply:os.system [id]",
        "capwatch.yml:1: listen: the tag 'tag:yaml.org,2002:python/object/apply:os…' is not allowed; remove it",
    ),
    ("listen: *nowhere", "capwatch.yml:1: listen: the alias '*nowhere' stands before the end of its anchor"),
    ("sources: &a [*a]", "capwatch.yml:1: sources[0]: the alias '*a' stands before the end of its anchor"),
]


@pytest.mark.parametrize(("text", "line"), ERRORS, ids=[line[:70] for _, line in ERRORS])
def test_error(text: str, line: str) -> None:
    """A mistake is one line that names file, line, key, what was found and what is possible.

    A line that ends in a blank is the beginning of a longer one (a list of all keys).
    """
    told = error(text)
    assert (told[: len(line)] if line.endswith(" ") else told) == line


@pytest.mark.parametrize("text", ["a: [}", "a: b: c", "\t", "a: 'b", "%YAML 9", "{a, ]", "@"])
def test_broken_yaml(text: str) -> None:
    """What is no YAML is one line that names the line."""
    assert error(text).startswith("capwatch.yml:1: not YAML: ")


def test_control_character() -> None:
    """A character that YAML does not know is one line too."""
    assert error("a: \x07").startswith("capwatch.yml: not YAML: ")


def test_error_attributes() -> None:
    """An error knows its file, key and line."""
    with pytest.raises(ConfigError) as caught:
        read("gpu:\n  nvml: x")
    assert (caught.value.file, caught.value.path, caught.value.line) == ("capwatch.yml", "gpu.nvml", 2)


def bomb(levels: int, width: int) -> str:
    """An anchor bomb: ``width ** levels`` values from a few lines."""
    lines = ["a0: &a0 x"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, levels + 1)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (bomb(9, 9), "capwatch.yml:4: a3: more than 100 aliases once expanded"),
        (bomb(1, 101), "capwatch.yml:2: a1: more than 100 aliases once expanded"),
        (f"a: &a [{'x, ' * 5000}]\nb: [{'*a, ' * 99}]", "capwatch.yml:2: b: more than 100000 values"),
        (f"a: [{'x, ' * 100_000}]", "capwatch.yml:1: a: more than 100000 values"),
        (f"a: {'[' * 40}{']' * 40}", "capwatch.yml:1: deeper than 32 levels"),
        ("- " * 100_000, "capwatch.yml:1: deeper than 32 levels"),
        ("#" * (1 << 20) + "#", "capwatch.yml: larger than 1024 KiB, which no configuration is"),
    ],
    ids=["bomb", "many aliases", "wide alias", "many values", "deep", "deep blocks", "large"],
)
@pytest.mark.parametrize("loader", ["CSafeLoader", "SafeLoader"])
def test_bomb(monkeypatch: pytest.MonkeyPatch, loader: str, text: str, line: str) -> None:
    """What is small on paper and large in memory, or just large, is refused in one line, by either parser."""
    monkeypatch.setattr("capwatch.config.tree._LOADER", getattr(yaml, loader))
    assert error(text) == line


def test_abyss() -> None:
    """What is so deep that the parser itself gives up is refused in one line."""
    assert re.fullmatch(
        "capwatch.yml:1: (not YAML: exceeded maximum nesting depth|deeper than .*)", error("[" * 99_999)
    )


@pytest.mark.parametrize(("content", "reason"), [(b"x" * 10_000_000, "larger"), ("é".encode() * 5_000_000, "larger")])
def test_large_file(tmp_path: Path, content: bytes, reason: str) -> None:
    """Of a file of 10 MB no more is read than shows that it is too large."""
    file = tmp_path / "large.yml"
    file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load(str(file), {}, formats=FORMATS, is_root=True)
    assert str(caught.value) == f"{file}: {reason} than 1024 KiB, which no configuration is"


def test_endless_file() -> None:
    """A file without an end is refused like a large one."""
    with pytest.raises(ConfigError, match="larger than 1024 KiB"):
        load("/dev/zero", {}, formats=FORMATS, is_root=True)


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("none.yml", None, "cannot be read: No such file or directory"),
        (".", None, "cannot be read: Is a directory"),
        ("latin.yml", b"a: b\nc: \xe9\n", "not UTF-8"),
    ],
)
def test_unreadable_file(tmp_path: Path, name: str, content: bytes | None, line: str) -> None:
    """A file that cannot be read is one line too."""
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load(str(file), {}, formats=FORMATS, is_root=True)
    assert str(caught.value) == (f"{file}:2: {line}" if content else f"{file}: {line}")


def test_byte_order_mark(tmp_path: Path) -> None:
    """A byte order mark is no part of the text."""
    file = tmp_path / "bom.yml"
    file.write_bytes(b"\xef\xbb\xbflisten: :1\n")
    assert load(str(file), {}, formats=FORMATS, is_root=True).listen == ":1"


@pytest.mark.parametrize(
    ("environ", "is_root", "directory"),
    [
        ({"XDG_STATE_HOME": "/x", "HOME": "/home/a"}, True, "/var/lib/capwatch"),
        ({"XDG_STATE_HOME": "/x/", "HOME": "/home/a"}, False, "/x/capwatch"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/home/a"}, False, "/home/a/.local/state/capwatch"),
        ({"HOME": "/home/a"}, False, "/home/a/.local/state/capwatch"),
    ],
)
def test_default_state_dir(environ: dict[str, str], is_root: bool, directory: str) -> None:
    """The state of root lies in /var/lib, that of others where XDG says."""
    assert default_state_dir(environ, is_root=is_root) == directory


def test_no_state_dir() -> None:
    """Without a home there is no default for the state, and the error says so."""
    with pytest.raises(ConfigError) as caught:
        parse("", "capwatch.yml", {}, formats=FORMATS, is_root=False)
    assert str(caught.value) == "environment: state_dir: not given, and neither XDG_STATE_HOME nor HOME says where"


def test_given_state_dir() -> None:
    """A state directory that is given needs no home."""
    assert parse("state_dir: /s", "capwatch.yml", {}, formats=FORMATS, is_root=False).state_dir == "/s"


@pytest.mark.parametrize("pattern", ["/**/[", "/**", "//**/x.log", "/*/**/x.log"])
def test_a_pattern_over_the_whole_disk_is_refused(pattern: str) -> None:
    """It would be walked every second; one that begins with a folder is fine."""
    told = error(f"sources: [{{name: a, path: [/ok, '{pattern}'], format: jsonl}}]")
    assert told.startswith("capwatch.yml:1: sources[0].path[1]: found") or "walk the whole disk" in told
    assert read("sources: [{name: a, path: '/var/log/**/x.log', format: jsonl}]").sources[0].path == (
        "/var/log/**/x.log",
    )


def test_names_in_an_error_are_in_order() -> None:
    """Sets have none of their own, and one line must not differ from run to run."""
    assert "possible: jsonl, litellm, nginx, vllm" in error("sources: [{name: a, path: /a, format: zzzz}]")
