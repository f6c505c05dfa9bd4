"""The square: alert, threshold, heading of the runbook and unit test go by one name; what they speak of exists."""

from __future__ import annotations

import re

import pytest
import yaml

from capwatch.metrics import CATALOGUE

from .rulebook import ALERTS, FILES, RECORDED, RUNBOOK, TESTS, asked, groups, headings, names, queries, rules, section

PARTS = ["Meaning", "Impact", "Diagnosis", "Remedies"]
SAMPLES = r"_(bucket|sum|count)$"
NOT_ALERTS = {"Using the rules", "Thresholds", "Many instances", "Names"}
THRESHOLD = "capwatch:threshold:"


def test_every_alert_has_its_heading_and_nothing_else_has() -> None:
    """The runbook has the alerts in the order of the file, each once."""
    assert [one for one in headings(2) if one not in NOT_ALERTS] == list(ALERTS)


def test_every_alert_has_its_unit_tests_and_nothing_else_has() -> None:
    """A test file is named after its alert."""
    assert sorted(TESTS) == sorted(ALERTS)


@pytest.mark.parametrize("alert", ALERTS)
def test_the_runbook_url_leads_to_the_heading(alert: str) -> None:
    """Its anchor is the alert's name as a rendered heading has it."""
    assert ALERTS[alert]["annotations"]["runbook_url"] == f"rules/README.md#{alert.lower()}"


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_says_what_an_alert_must(alert: str) -> None:
    """Prefix, duration, severity, three texts; the summary has no number that would change while it fires."""
    rule = ALERTS[alert]
    assert re.fullmatch(r"Capwatch([A-Z]+[a-z]*)+", alert)
    assert re.fullmatch(r"\d+[smh]", rule["for"])
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert list(rule["annotations"]) == ["summary", "description", "runbook_url"]
    assert "$value" not in rule["annotations"]["summary"]
    assert "query" not in rule["annotations"]["summary"]


@pytest.mark.parametrize("alert", ALERTS)
def test_a_section_has_its_parts(alert: str) -> None:
    """Meaning, impact, diagnosis with queries, and remedies in an order that is numbered."""
    text = section(alert)
    assert re.findall(r"^\*\*(\w+)\.\*\*", text, re.M) == PARTS
    assert queries(alert)
    assert re.search(r"^1\. ", text.split("**Remedies.**")[1], re.M)


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_is_tested_both_ways(alert: str) -> None:
    """At least one case in which it fires, and at least three in which it stays silent, as their names say."""
    document = yaml.safe_load(TESTS[alert].read_text())
    assert document["rule_files"] == [f"../{name}" for name in FILES]
    assert document["group_eval_order"] == [group["name"] for name in FILES for group in groups(name)]
    fires = [
        any(one.get("exp_alerts") for one in case["alert_rule_test"] if one["alertname"] == alert)
        for case in document["tests"]
    ]
    assert [case["name"].startswith("fires: ") for case in document["tests"]] == fires
    assert all(case["name"].startswith(("fires: ", "silent: ")) for case in document["tests"])
    assert (sum(fires) >= 1, fires.count(False) >= 3) == (True, True)


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_stays_silent_when_nothing_is_wrong(alert: str) -> None:
    """Twice the requests of the same mix are no finding, and what is gone raises nothing but the alert for that."""
    cases = [one["name"] for one in yaml.safe_load(TESTS[alert].read_text())["tests"]]
    silent = [name for name in cases if name.startswith("silent: ")]
    assert any("the request rate doubles" in name for name in silent)
    assert any("the target has gone" in name for name in silent) == (alert != "CapwatchBlind")


def speaking() -> dict[str, set[str]]:
    """The names that each rule and each query of the runbook reads."""
    spoken = {name: names(expr) for name, expr in RECORDED.items()}
    spoken |= {alert: asked(rule) for alert, rule in ALERTS.items()}
    return spoken | {f"{alert} in the runbook": names(" ".join(queries(alert))) for alert in ALERTS}


def test_every_name_exists() -> None:
    """What is read is recorded here or is in the catalogue."""
    known = set(RECORDED) | set(CATALOGUE)
    unknown = {
        place: missing
        for place, read in speaking().items()
        if (missing := {name for name in read if name not in known and re.sub(SAMPLES, "", name) not in known})
    }
    assert unknown == {}


def test_recorded_names_are_level_metric_operations() -> None:
    """Three parts, counters without _total, and an operation that says the window of a rate."""
    assert [name for name in RECORDED if not re.fullmatch(r"[a-z_]+(:[a-z0-9_]+){1,2}", name) or "_total" in name] == []


def test_a_rule_is_recorded_once() -> None:
    """No name is recorded twice, so that no override is undone by the file itself."""
    recorded = [rule["record"] for name in FILES[:2] for rule in rules(name)]
    assert len(recorded) == len(set(recorded))


def test_nothing_averages_averages() -> None:
    """No quantile of a summary, no mean over instances; ratios come of sums."""
    wrong = r'quantile="|\bavg(?!_over_time)\b|quantile_over_time|avg_over_time\([^)]*ratio'
    assert [name for name, expr in RECORDED.items() if re.search(wrong, expr)] == []


def test_nothing_looks_at_gpu_busy() -> None:
    """GPU busy is not capacity."""
    assert [place for place, read in speaking().items() if any("gpu_busy" in name for name in read)] == []


def test_a_threshold_is_a_number_that_an_alert_compares_with() -> None:
    """Every threshold is a constant, and there is none that nothing reads."""
    thresholds = {rule["record"]: rule["expr"] for rule in rules("thresholds.yml")}
    assert [name for name, expr in thresholds.items() if not re.fullmatch(r"vector\([\d.]+\)", expr)] == []
    read = set.union(*(asked(rule) for rule in ALERTS.values()))
    short = {name.removeprefix(THRESHOLD) for name in thresholds}
    used = {name.split(":threshold:")[1] for name in read if ":threshold:" in name}
    goodput = {"goodput_objective"}  # is in the burn rates that the alerts compare
    assert short == used | goodput


def test_a_pool_may_have_its_own_threshold() -> None:
    """Each of them is looked up in one and the same way."""
    for name, expr in RECORDED.items():
        if name.startswith("pool:threshold:"):
            own = f"{THRESHOLD}{name.rsplit(':', 1)[1]}"
            assert expr == f'{own}{{pool!=""}} or on (pool) pool:capwatch:known * scalar({own}{{pool=""}})'


def test_the_runbook_s_own_thresholds_are_some() -> None:
    """What it shows to be written for one pool or route records names that there are, by labels that are looked up."""
    (block,) = (one for one in re.findall(r"```yaml\n(.*?)```", RUNBOOK, re.S) if "our-thresholds" in one)
    (group,) = yaml.safe_load(block)["groups"]
    known = {rule["record"] for rule in rules("thresholds.yml")}
    assert {rule["record"] for rule in group["rules"]} <= known
    assert {label for rule in group["rules"] for label in rule["labels"]} <= {"pool", "route", "tenant"}


def test_alerts_hold_no_numbers_of_their_own() -> None:
    """What is compared with stands in thresholds.yml: an alert compares with 0, 1 or a floor of validity."""
    numbers = r"(?:[<>]=?|==) (-?[\d.]+)"
    compared = {alert: set(re.findall(numbers, rule["expr"])) - {"0", "1"} for alert, rule in ALERTS.items()}
    assert {alert: found for alert, found in compared.items() if found} == {"CapwatchCacheHitCliff": {"0.2"}}
