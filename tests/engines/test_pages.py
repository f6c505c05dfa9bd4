"""Pages of all engines on the shelf: samples, renames by version, replicas and ranks, totals."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.dialect.vocabulary import MOST_REPLICAS
from capwatch.engines import page, replicas, shelf
from capwatch.record import EngineSample

SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "samples"
PAGES = (
    "engines/vllm-v1-0.32.prom",
    "engines/tgi-3.3.7.prom",
    "engines/llamacpp-b11434.prom",
    "engines/trtllm-1.x.prom",
    "engines/lmdeploy-0.18.prom",
    "engines/dynamo-1.6-frontend.prom",
    "captured/llama_server_metrics.prom",
)


def totals(text: str) -> dict[str, float]:
    """The counters of the one replica on a page, each by the first way that tells it."""
    (one,) = replicas(text)
    known = {name: [value for value in ways if value is not None] for name, ways in one.totals.items()}
    return {name: values[0] for name, values in known.items() if values}


@pytest.mark.parametrize("name", PAGES)
def test_a_shared_page_is_understood(name: str) -> None:
    """Every replica expected of a sample page is there, with every field that is expected of it."""
    if not (SAMPLES / name).exists():
        pytest.skip(f"the shared sample {name} is not beside this checkout")
    found = [msgspec.structs.asdict(one) for one in page((SAMPLES / name).read_text())]
    lines = (SAMPLES / f"{name}.expected.jsonl").read_text().splitlines()
    for expected in (json.loads(line)["record"] for line in lines):
        assert expected in [{field: one[field] for field in expected} for one in found]


def test_vllm_tells_each_engine_index() -> None:
    """One sample per data-parallel index; capacity from the labels of the configuration."""
    text = (
        'vllm:num_requests_running{engine="0",model_name="m"} 58.0\n'
        'vllm:num_requests_running{engine="1",model_name="m"} 12.0\n'
        'vllm:num_requests_waiting{engine="0",model_name="m"} 96.0\n'
        'vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="capacity"} 91.0\n'
        'vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.994\n'
        'vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="16384"} 1.0\n'
        'vllm:iteration_tokens_total_bucket{engine="0",le="+Inf",model_name="m"} 18231.0\n'
    )
    assert page(text) == [
        EngineSample(engine="0", running=58, waiting=96, kv_utilisation=0.994, kv_capacity_tokens=262144),
        EngineSample(engine="1", running=12),
    ]


@pytest.mark.parametrize("usage", ["vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc", "vllm_kv_cache_usage_perc"])
def test_vllm_names_of_all_versions_mean_the_same(usage: str) -> None:
    """Renamed metrics, and the colon that some gateways rewrite, lead to one field."""
    assert page(f'{usage}{{engine="0"}} 0.5\n') == [EngineSample(engine="0", kv_utilisation=0.5)]


def test_vllm_counters() -> None:
    """Computed prompt tokens go before all; requests are summed over reasons; a histogram is no counter."""
    text = (
        'vllm:num_requests_running{engine="0"} 1\n'
        'vllm:num_preemptions_total{engine="0"} 17\n'
        'vllm:prompt_tokens_total{engine="0"} 912200\n'
        'vllm:prompt_tokens_by_source_total{engine="0",source="local_compute"} 498000\n'
        'vllm:prompt_tokens_by_source_total{engine="0",source="local_cache_hit"} 401000\n'
        'vllm:generation_tokens_total{engine="0"} 210010\n'
        'vllm:prefix_cache_queries_total{engine="0"} 900100\n'
        'vllm:prefix_cache_hits_total{engine="0"} 401000\n'
        'vllm:iteration_tokens_total_count{engine="0"} 18231\n'
        'vllm:request_success_total{engine="0",finished_reason="stop"} 1200\n'
        'vllm:request_success_total{engine="0",finished_reason="length"} 3\n'
        "process_start_time_seconds 1.79e9\n"
    )
    assert totals(text) == {
        "preemptions": 17,
        "requests": 1203,
        "prompt_tokens": 498000,
        "output_tokens": 210010,
        "prefix_queries": 900100,
        "prefix_hits": 401000,
        "steps": 18231,
        "process_start_time_seconds": 1.79e9,
    }


def test_sglang_takes_one_rank_of_each_replica_and_the_total_of_priorities() -> None:
    """Tensor and pipeline ranks repeat a replica; priorities other than the empty one break its number down."""
    text = "".join(
        f'sglang:num_running_reqs{{dp_rank="{dp}",pp_rank="{pp}",priority="{priority}",tp_rank="{tp}"}} {value}\n'
        for dp in (0, 1)
        for pp in (0, 1)
        for tp in (0, 1)
        for priority, value in (("", 5 + dp), ("3", 4))
    )
    assert page(text) == [EngineSample(engine="0", running=5), EngineSample(engine="1", running=6)]


def test_the_lowest_rank_of_a_replica_is_taken() -> None:
    """With attention in parallel, tensor ranks are numbered over all replicas: the second one has no rank 0."""
    text = "".join(
        f'sglang:num_running_reqs{{dp_rank="{rank // 4}",pp_rank="0",tp_rank="{rank}"}} {10 + rank // 4}\n'
        for rank in (0, 2, 4, 10, 11)
    )
    assert [one.running for one in page(text)] == [10, 11, 12]


def test_triton_tells_quantities_by_label_value() -> None:
    """One metric holds several quantities; the capacity is blocks times tokens in a block."""
    text = (
        'nv_trt_llm_request_metrics{model="m",request_type="active",version="1"} 12\n'
        'nv_trt_llm_request_metrics{model="m",request_type="waiting",version="1"} 3\n'
        'nv_trt_llm_request_metrics{model="m",request_type="max",version="1"} 512\n'
        'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="m"} 0.25\n'
        'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max",model="m"} 1000\n'
        'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="tokens_per",model="m"} 64\n'
    )
    expected = EngineSample(running=12, waiting=3, kv_utilisation=0.25, kv_capacity_tokens=64000)
    assert page(text) == [expected]


def test_a_worker_that_passes_its_engine_on_is_read_as_that_engine() -> None:
    """The vocabulary that tells most of the page is taken."""
    text = (
        'dynamo_component_gpu_cache_usage_percent{dp_rank="0"} 0.9\n'
        'vllm:num_requests_running{engine="0"} 3\n'
        'vllm:kv_cache_usage_perc{engine="0"} 0.8\n'
    )
    assert page(text) == [EngineSample(engine="0", running=3, kv_utilisation=0.8)]


def test_series_without_an_index_belong_to_the_only_replica() -> None:
    """Beside one replica they are its own; beside several they are nobody's, for adding them to each would be wrong."""
    shared = "vllm:kv_cache_usage_perc 0.5\n"
    one = 'vllm:num_requests_running{engine="0"} 3\n'
    both = one + 'vllm:num_requests_running{engine="1"} 4\n'
    assert [each.kv_utilisation for each in page(one + shared) + page(both + shared)] == [0.5, None, None]


@pytest.mark.parametrize("value", ["-1", "1.5", "98.3", "NaN", "+Inf", "1e300"])
def test_a_share_out_of_range_is_not_told(value: str) -> None:
    """A percent, a negative or an endless number never becomes a utilisation."""
    assert page(f"vllm:kv_cache_usage_perc {value}\nvllm:num_requests_running 1\n") == [EngineSample(running=1)]


@pytest.mark.parametrize(
    "text", ["", "up 1\n", "<html>no metrics</html>", '[{"iter": 1}]', "vllm:num_requests_running"]
)
def test_a_page_of_nobody_is_empty(text: str) -> None:
    """Garbage and other programs' pages tell of no engine."""
    assert page(text) == []


def test_replicas_of_a_page_are_bounded() -> None:
    """A page with endless engine labels does not become endless engines."""
    text = "".join(f'vllm:num_requests_running{{engine="{n}"}} 1\n' for n in range(2 * MOST_REPLICAS))
    assert len(page(text)) <= MOST_REPLICAS + 1


@given(st.data())
def test_no_cut_or_damaged_page_raises(data: st.DataObject) -> None:
    """Any piece of a page with any bytes in it gives samples or none."""
    whole = 'vllm:num_requests_running{engine="0"} 58.0\nvllm:cache_config_info{block_size="16",num_gpu_blocks="9"} 1\n'
    begin = data.draw(st.integers(0, len(whole)))
    text = whole[begin:] + data.draw(st.text()) + whole[: data.draw(st.integers(0, len(whole)))]
    assert all(one.running is None or one.running >= 0 for one in page(text))


@pytest.mark.parametrize("name", sorted(shelf()))
def test_fields_are_those_of_the_engine_sample(name: str) -> None:
    """A table fills fields that exist, and counts under the shelf's common words."""
    words = {
        "preemptions",
        "requests",
        "prompt_tokens",
        "output_tokens",
        "prefix_queries",
        "prefix_hits",
        "recomputed_tokens",
        "steps",
    }
    assert set(shelf()[name].gauges) <= set(EngineSample.__struct_fields__)
    assert set(shelf()[name].counters) <= words
