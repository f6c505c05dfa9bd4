"""The catalogue says what the contract promises, by the rules of Prometheus."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

from capwatch import metrics
from capwatch.metrics import CATALOGUE, Kind, Metric, as_json, as_text

HERE = Path(__file__).resolve().parent
CONTRACT = HERE.parents[1] / "shared" / "design" / "contract.md"
NAMES = (HERE / "data" / "contract_metrics.txt").read_text().split()

with_contract = pytest.mark.skipif(not CONTRACT.exists(), reason=f"the contract is not there: {CONTRACT.name}")
with_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")

BASE_UNITS = ["seconds", "tokens", "requests", "replicas", "series", "bytes", "joules", "watts", "celsius", "hertz"]

Said = tuple[tuple[str, ...], dict[str, tuple[str, ...]]]  # label names, and the values of enumerated ones


def section_four() -> str:
    """The contract's text about metrics."""
    return CONTRACT.read_text().split("## 4. Metrics", 1)[1].split("## 5.", 1)[0]


def table_rows() -> list[tuple[list[str], str, str]]:
    """(names, kind, label cell) of each row of the contract's tables 4.1, 4.2 and 4.4; a cell may name one more."""
    rows = re.findall(r"^\| (`capwatch_.*?) \| ([a-z ]+) \| (.*) \|$", section_four(), re.M)
    return [(re.findall(r"`(capwatch_\w+)", names + cell), kind, cell) for names, kind, cell in rows]


def table_labels(cell: str) -> Said:
    """The labels of a table's cell, like "pool, rank = 1..5 (remark)" or "route, kind = `a` `b`; remark"."""
    labels: list[str] = []
    values: dict[str, tuple[str, ...]] = {}
    for part in re.split(r" \(|;", cell.removeprefix("–"))[0].split(","):
        label, _, listed = (piece.strip() for piece in part.partition("="))
        labels += [label] if label else []
        if first_to_last := re.fullmatch(r"(\d+)\.\.(\d+)", listed):
            first, last = map(int, first_to_last.groups())
            values[label] = tuple(str(number) for number in range(first, last + 1))
        elif listed:
            values[label] = tuple(re.findall(r"`(\w+)`", listed))
    return tuple(labels), values


def inline_labels(braces: str) -> Said:
    """The labels of a name in running text, like `pool,promise="base|burst|zonal"`."""
    pairs = re.findall(r'(\w+)(?:="([^"]*)")?', braces)
    return tuple(label for label, _ in pairs), {label: tuple(listed.split("|")) for label, listed in pairs if listed}


def contract_labels() -> dict[str, Said]:
    """What the contract says of labels, for every metric where a table, braces or their absence says it."""
    _, prose, from_gpu_on = re.split(r"### 4\.3|### 4\.6", section_four())
    named = re.findall(r"`(capwatch_\w+)\{([^}]*)\}", prose)
    named += re.findall(r"`(capwatch_\w+)(?:\{([^}]*)\})?`", from_gpu_on)
    said = {name: inline_labels(braces) for name, braces in named}
    for name, (labels, values) in said.items():
        if name.startswith("capwatch_gpu_") and "gpu" not in labels:  # said once for all cards
            said[name] = ("gpu", "uuid", *labels), values
    return said | {name: table_labels(cell) for names, _, cell in table_rows() for name in names}


def exposition() -> str:
    """One sample of every metric in the text format, the native histograms written as classic ones."""
    lines: list[str] = []
    for metric in CATALOGUE.values():
        kind = Kind.HISTOGRAM if metric.kind is Kind.NATIVE else metric.kind
        labels = [f'{label}="{metric.values.get(label, ("x",))[0]}"' for label in metric.labels]
        samples = {
            Kind.SUMMARY: (("", 'quantile="0.95"'), ("_sum", ""), ("_count", "")),
            Kind.HISTOGRAM: (("_bucket", 'le="+Inf"'), ("_sum", ""), ("_count", "")),
        }.get(kind, (("", ""),))
        lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {kind.value}"]
        lines += [
            f"{metric.name}{ending}{{{','.join([*labels, *([own] if own else [])])}}} 1" for ending, own in samples
        ]
    return "\n".join(lines) + "\n"


@with_contract
def test_names_copied() -> None:
    """The committed list of names is that of the contract's section 4, in its order."""
    found = re.findall(r"`(capwatch_[a-z0-9_]+)", section_four())
    assert list(dict.fromkeys(name for name in found if name != "capwatch_")) == NAMES


def test_contract_names() -> None:
    """Every metric of the contract is in the catalogue, in the contract's order."""
    assert [name for name in CATALOGUE if name in NAMES] == NAMES


@with_contract
def test_contract_labels() -> None:
    """Label names are the contract's, wherever it says them."""
    wanted = {name: labels for name, (labels, _) in contract_labels().items()}
    assert {name: CATALOGUE[name].labels for name in wanted} == wanted


@with_contract
def test_contract_values() -> None:
    """The values of an enumerated label are the contract's, wherever it lists them."""
    wanted = {(name, label): said for name, (_, listed) in contract_labels().items() for label, said in listed.items()}
    assert {(name, label): CATALOGUE[name].values.get(label) for name, label in wanted} == wanted


@with_contract
def test_contract_is_understood() -> None:
    """All but the engines' metrics, whose labels stand in a sentence, are held against the contract."""
    unsaid = set(NAMES) - set(contract_labels())
    assert {name for name in unsaid if not name.startswith("capwatch_engine_")} == set()


@with_contract
def test_contract_kinds() -> None:
    """Kinds are those of the contract's tables."""
    wanted = {name: kind for names, kind, _ in table_rows() for name in names}
    assert {name: CATALOGUE[name].kind.value for name in wanted} == wanted


def test_constants() -> None:
    """Each metric's constant is its name without prefix and `_total`, and the catalogue holds each once."""
    constants = {name: value for name, value in vars(metrics).items() if isinstance(value, Metric)}
    assert list(constants) == [name.removeprefix("capwatch_").removesuffix("_total").upper() for name in CATALOGUE]


def test_every_metric_is_measured() -> None:
    """There is none that no code but the catalogue speaks of by its constant."""
    package = Path(metrics.__file__).parent
    code = "".join(path.read_text() for path in package.rglob("*.py") if path != package / "metrics.py")
    spoken = set(re.findall(r"\bm\.([A-Z0-9_]+)\b", code))
    assert {name for name, value in vars(metrics).items() if isinstance(value, Metric)} - spoken == set()


def test_catalogue_keys() -> None:
    """The catalogue's key is the metric's own name."""
    assert [metric.name for metric in CATALOGUE.values()] == list(CATALOGUE)


@pytest.mark.parametrize("shared", [CATALOGUE, metrics.REQUESTS.values])
def test_immutable(shared: dict[str, object]) -> None:
    """Nobody can change the catalogue or a metric's values."""
    with pytest.raises(TypeError):
        shared["new"] = ()


def test_hashable() -> None:
    """A metric can be a key."""
    assert {metrics.REQUESTS: 1, metrics.TOKENS: 2}[metrics.TOKENS] == 2


def test_counters_end_in_total() -> None:
    """Counters end in `_total`, and nothing else does."""
    counters = [metric.name for metric in CATALOGUE.values() if metric.kind is Kind.COUNTER]
    assert [name for name in CATALOGUE if name.endswith("_total")] == counters


def test_family() -> None:
    """The family is the name without `_total`."""
    assert (metrics.REQUESTS.family, metrics.SERIES.family) == ("capwatch_requests", "capwatch_series")


def test_names_plain() -> None:
    """Names are lower case with the prefix, without the colons of recording rules or the endings of samples."""
    pattern = r"capwatch_[a-z][a-z0-9]*(_[a-z0-9]+)*(?<!_sum)(?<!_count)(?<!_bucket)(?<!_created)"
    assert [name for name in CATALOGUE if not re.fullmatch(pattern, name)] == []


def test_ratios() -> None:
    """A ratio is named `_ratio`, and what is so named is a gauge with that unit."""
    ratios = [metric.name for metric in CATALOGUE.values() if (metric.kind, metric.unit) == (Kind.GAUGE, "ratio")]
    assert [name for name in CATALOGUE if name.endswith("_ratio")] == ratios


def test_dimensionless_gauges() -> None:
    """A gauge without a unit is a flag, whose help says what 1 means, or one of three scores."""
    bare = [metric for metric in CATALOGUE.values() if metric.kind is Kind.GAUGE and not metric.unit]
    scores = {metrics.DRIFT_SCORE, metrics.ARRIVAL_CV2, metrics.SERVICE_CV2}
    assert {metric for metric in bare if not re.match(r"1\b", metric.help)} == scores


def test_units_are_plural_words() -> None:
    """Units are base units in the plural, or ratio."""
    rates = {"replica_seconds", "tokens_per_second", "tokens_per_minute", "rps"}
    assert {metric.unit for metric in CATALOGUE.values()} == {*BASE_UNITS, *rates, "lines", "ratio", ""}


@pytest.mark.parametrize("word", [*BASE_UNITS, "rps"])
def test_unit_of_name(word: str) -> None:
    """A name that ends in a unit has this unit."""
    named = [metric for metric in CATALOGUE.values() if metric.family.endswith(f"_{word}")]
    assert [metric.name for metric in named if not metric.unit.endswith(word)] == []


def test_replica_seconds_are_not_seconds() -> None:
    """Cost is in replica-seconds, never in seconds."""
    named = [metric for metric in CATALOGUE.values() if metric.family.endswith("_replica_seconds")]
    assert {metric.unit for metric in named} == {"replica_seconds"}


def test_no_scaled_or_singular_units() -> None:
    """No name ends in a scaled or singular unit; only a rate is per second."""
    wrong = r"_(ms|milliseconds|microseconds|minutes|hours|days|percent|kilobytes|gib|token|byte|request|replica)$"
    singular = r"(?<!_per)_second$|(?<!_per)_minute$"
    families = {metric.family for metric in CATALOGUE.values()}
    assert {family for family in families if re.search(f"{wrong}|{singular}", family)} == set()


def test_labels_do_not_clash() -> None:
    """No label has the name of a common target label, or of one that the exposition adds."""
    clashing = "region zone cluster datacenter owner customer stage service env type job instance le quantile"
    assert {label for metric in CATALOGUE.values() for label in metric.labels} & set(clashing.split()) == set()


def test_labels_are_names() -> None:
    """Label names are plain, without the leading underscores that Prometheus reserves, and unique in a metric."""
    wrong = [
        metric.name
        for metric in CATALOGUE.values()
        if len(set(metric.labels)) < len(metric.labels)
        or not all(re.fullmatch(r"[a-z][a-z0-9_]*", label) for label in metric.labels)
    ]
    assert wrong == []


def test_values_belong_to_labels() -> None:
    """Only a metric's own labels are enumerated."""
    assert [metric.name for metric in CATALOGUE.values() if not set(metric.values) <= set(metric.labels)] == []


def test_values_unique() -> None:
    """An enumeration names nothing twice and is not empty."""
    listed = [values for metric in CATALOGUE.values() for values in metric.values.values()]
    assert [values for values in listed if not values or len(set(values)) < len(values)] == []


def test_engine_labels() -> None:
    """What an engine tells carries its pool and its name."""
    told = [metric for metric in CATALOGUE.values() if metric.name.startswith("capwatch_engine_")]
    assert {metric.labels[:2] for metric in told} == {("pool", "engine")}


def test_card_labels() -> None:
    """What a card tells carries its index and its UUID."""
    told = [metric for metric in CATALOGUE.values() if metric.name.startswith("capwatch_gpu_")]
    assert {metric.labels[:2] for metric in told} == {("gpu", "uuid")}


def test_help_is_one_safe_line() -> None:
    """Help is one printable line of one or more sentences that no exposition format has to escape."""
    said = {metric.name: metric.help for metric in CATALOGUE.values()}
    wrong = r'["\\]|\.\.$|[^.]$|  |^[ a-z]'
    assert {name: text for name, text in said.items() if not text.isprintable() or re.search(wrong, text)} == {}


@pytest.mark.parametrize(
    ("kind", "rule"),
    [(Kind.SUMMARY, "last 5 minutes of event time"), (Kind.HISTOGRAM, "2^(k/4)"), (Kind.NATIVE, "schema 3")],
)
def test_help_tells_the_rule_of_its_kind(kind: Kind, rule: str) -> None:
    """Summaries say their window, histograms their buckets."""
    assert [metric.name for metric in CATALOGUE.values() if metric.kind is kind and rule not in metric.help] == []


def test_gpu_busy_is_not_capacity() -> None:
    """The help of the busy ratio says what it is not."""
    assert "share of time some kernel was resident, not capacity" in metrics.GPU_BUSY_RATIO.help.lower()


def test_sections() -> None:
    """Metrics of a section stand together, in the order of the reference."""
    sections = [metric.section for metric in CATALOGUE.values()]
    wanted = ["Requests", "In flight", "Engines", "Drift", "Capacity", "GPU", "capwatch itself"]
    assert list(dict.fromkeys(sections)) == wanted
    assert sections == sorted(sections, key=wanted.index)


@with_promtool
def test_promtool() -> None:
    """`promtool check metrics` has nothing to say about a page with one sample of each metric."""
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=exposition(), capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_json() -> None:
    """The JSON is a list of objects in the given order, with the contract's keys."""
    row = json.loads(as_json([metrics.SERIES, metrics.TENANT_SHARE_RATIO]))[1]
    assert row == {
        "name": "capwatch_tenant_share_ratio",
        "kind": "gauge",
        "unit": "ratio",
        "labels": ["pool", "rank"],
        "help": metrics.TENANT_SHARE_RATIO.help,
        "values": {"rank": ["1", "2", "3", "4", "5"]},
        "section": "Requests",
    }


def test_json_is_complete() -> None:
    """The JSON of the catalogue names every metric in its order."""
    assert [row["name"] for row in json.loads(as_json(CATALOGUE.values()))] == list(CATALOGUE)


def test_text_layout() -> None:
    """The text aligns names, kinds and labels under the section, wraps help and lists enumerated values."""
    assert as_text([metrics.OLDEST_WAITING_SECONDS, metrics.USABLE_RPS], width=60).splitlines() == [
        "In flight",
        "  capwatch_oldest_waiting_seconds  gauge  pool",
        *(f"      {line}" for line in textwrap.wrap(metrics.OLDEST_WAITING_SECONDS.help, 54)),
        "Capacity",
        "  capwatch_usable_rps              gauge  pool, routing",
        "      Largest request rate that keeps the late share, with a",
        "      queue for each replica (isolated) or one for all",
        "      (pooled).",
        "      routing = isolated | pooled",
    ]


def test_text_is_complete() -> None:
    """The text of the catalogue names every metric in its order."""
    assert re.findall(r"^  (capwatch_\w+)", as_text(CATALOGUE.values()), re.M) == list(CATALOGUE)


def test_text_of_nothing() -> None:
    """No metrics make an empty text."""
    assert as_text([]) == ""
