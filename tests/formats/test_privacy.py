"""Nothing of a line comes out but record fields: prompts, answers, keys and addresses stay inside."""

from __future__ import annotations

import json

import pytest

from capwatch import wrappers
from capwatch.dialect import Options
from capwatch.explain import as_json, as_text, best_fit, explain
from capwatch.formats import shelf

from .compare import NEAR, SAMPLES, cases, options_of, sample

CANARIES = (
    "SYNTHETIC-PROMPT-CANARY-7f3a",
    "SYNTHETIC-ANSWER-CANARY-91bc",
    "sk-CANARY-not-a-real-key",
    "@example.invalid",
)
FILES = [
    ("gateways/jsonl_records.jsonl", "jsonl", None),
    ("gateways/litellm_slp.jsonl", "litellm", None),
    ("gateways/litellm_stdout.log", "litellm", None),
    ("captured/litellm_standard_logging_payload.jsonl", "litellm", None),
    ("captured/litellm_proxy_json_logs.jsonl", "litellm", None),
    ("gateways/envoy_ai_gateway.jsonl", "envoy", None),
    ("captured/envoy_access_json.jsonl", "envoy", None),
    ("gateways/k8s_cri.log", "envoy", "cri"),
    ("gateways/journald.jsonl", "envoy", "journald"),
    ("gateways/kong_filelog.jsonl", "kong", None),
    ("gateways/apisix_filelogger.jsonl", "apisix", None),
    ("gateways/apisix_access.log", "apisix", None),
    ("gateways/higress.jsonl", "higress", None),
    ("gateways/nginx_json.jsonl", "nginx", None),
    ("captured/nginx_access_json.jsonl", "nginx", None),
    ("gateways/haproxy_httplog.log", "haproxy", None),
    ("gateways/traefik_access.jsonl", "traefik", None),
    ("gateways/portkey_export.jsonl", "portkey", None),
    ("gateways/cloudflare_ai_gateway_events.jsonl", "cloudflare", None),
    ("gateways/bedrock_invocation.jsonl", "bedrock", None),
    ("gateways/azure_openai_requestresponse.jsonl", "azure_openai", None),
    ("gateways/azure_apim_gateway.jsonl", "azure_apim", None),
    ("gateways/otlp_traces.jsonl", "otlp", None),
]
LOST = {"tenant": "metadata.no_such_key", "model": "modle", "route": "messages.content", "priority": "user_api_key"}


def told(data: bytes, name: str, wrapper: str | None, options: Options) -> str:
    """Everything that `explain` can say about a file."""
    around = wrappers.shelf()[wrapper]() if wrapper else None
    judged = list(explain(data.splitlines(), shelf()[name], options, around, NEAR))
    return "\n".join([as_json(one) + as_text(one, options) for one in judged])


@pytest.mark.parametrize("fields", [{}, LOST], ids=["plain", "with lost paths"])
@pytest.mark.parametrize(("name", "form", "wrapper"), FILES)
def test_explain_tells_no_secret_of_a_sample(name: str, form: str, wrapper: str | None, fields: dict[str, str]) -> None:
    """Whatever the samples hide in their lines, no form of `explain` shows it."""
    text = told(sample(name).read_bytes(), form, wrapper, options_of(fields))
    assert [canary for canary in CANARIES if canary in text] == []


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.log.parent.name}/{case.log.stem}")
def test_no_secret_is_in_a_golden_result(case: object) -> None:
    """What was agreed to holds none of them either."""
    text = case.expected.read_text()  # type: ignore[attr-defined]
    assert [canary for canary in CANARIES if canary in text] == []


def test_the_samples_hold_what_is_looked_for() -> None:
    """The canaries are there to be found, or the tests above would prove nothing."""
    text = (sample("gateways/litellm_slp.jsonl").parent / "litellm_slp.jsonl").read_text()
    assert [canary for canary in CANARIES if canary in text] == [*CANARIES[:2], CANARIES[3]]
    assert SAMPLES.exists()


def test_a_secret_in_a_kept_field_is_hashed() -> None:
    """A tenant that is an address, an id that is a key: their names are kept, their texts are not."""
    line = {"finished_at": NEAR, "tenant": "jane@example.invalid", "request_id": "sk-CANARY-not-a-real-key"}
    judged = next(explain([json.dumps(line).encode()], shelf()["jsonl"], Options()))
    record = json.loads(as_json(judged))["record"]
    assert [record["tenant"][:7], record["request_id"][:7]] == ["hashed-", "hashed-"]


def test_the_best_fit_tells_names_and_numbers_only() -> None:
    """Names of formats are all that is said."""
    fits = best_fit(sample("gateways/litellm_slp.jsonl").read_bytes().splitlines())
    assert {fit.format for fit in fits} == set(shelf())
