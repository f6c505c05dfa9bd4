"""TensorRT-LLM's metric names: `trtllm-serve` (`/prometheus/metrics`) and Triton's backend.

The first needs `return_perf_metrics: true`, its iteration gauges `enable_iter_perf_stats: true`. Triton has one metric
per kind, one label value per quantity. Paused requests are a gauge, so they are no count of preemptions. The prefix
cache is counted in blocks.
"""

from capwatch.dialect.vocabulary import Vocabulary, most, product, told

VOCABULARY = Vocabulary(
    name="trtllm",
    gauges={
        "running": (told("trtllm_num_requests_running"), told('nv_trt_llm_request_metrics{request_type="active"}')),
        "waiting": (told("trtllm_num_requests_waiting"), told('nv_trt_llm_request_metrics{request_type="waiting"}')),
        "kv_utilisation": (
            most("trtllm_kv_cache_utilization"),
            most('nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction"}'),
        ),
        "kv_capacity_tokens": (
            product("trtllm_kv_cache_max_blocks", "trtllm_kv_cache_tokens_per_block"),
            product(
                'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max"}',
                'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="tokens_per"}',
            ),
        ),
    },
    counters={
        "requests": (told("trtllm_request_success_total"),),
        "prompt_tokens": (told("trtllm_prompt_tokens_total"),),
        "output_tokens": (told("trtllm_generation_tokens_total"),),
        "prefix_queries": (told("trtllm_kv_cache_reused_blocks_total", "trtllm_kv_cache_missed_blocks_total"),),
        "prefix_hits": (told("trtllm_kv_cache_reused_blocks_total"),),
    },
)
