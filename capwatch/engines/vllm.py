"""vLLM's metric names, V0 and V1 up to 0.32 (`/metrics` of the API server; on by default).

Renames: `gpu_cache_usage_perc` and `gpu_prefix_cache_*` lost their prefix in 0.9 to 0.12. The names in `_perc` are
shares. Prompt tokens include cached ones, except where told by source (0.16 on). V1 has a series per engine index.
"""

from capwatch.dialect.vocabulary import Vocabulary, label_product, most, told

VOCABULARY = Vocabulary(
    name="vllm",
    replica="engine",
    gauges={
        "running": (told("vllm:num_requests_running"),),
        "waiting": (told("vllm:num_requests_waiting"),),
        "kv_utilisation": (most("vllm:kv_cache_usage_perc"), most("vllm:gpu_cache_usage_perc")),
        "kv_capacity_tokens": (label_product("vllm:cache_config_info", "num_gpu_blocks", "block_size"),),
        "prompt_tokens_per_s": (told("vllm:avg_prompt_throughput_toks_per_s"),),  # V0
        "output_tokens_per_s": (told("vllm:avg_generation_throughput_toks_per_s"),),  # V0
        "prefix_hit_ratio": (most("vllm:gpu_prefix_cache_hit_rate"),),  # V0
    },
    counters={
        "preemptions": (told("vllm:num_preemptions_total"),),
        "requests": (told("vllm:request_success_total"),),
        "prompt_tokens": (
            told('vllm:prompt_tokens_by_source_total{source="local_compute"}'),
            told("vllm:prompt_tokens_total"),
        ),
        "output_tokens": (told("vllm:generation_tokens_total"),),
        "prefix_queries": (told("vllm:prefix_cache_queries_total"), told("vllm:gpu_prefix_cache_queries_total")),
        "prefix_hits": (told("vllm:prefix_cache_hits_total"), told("vllm:gpu_prefix_cache_hits_total")),
        "recomputed_tokens": (told("vllm:prompt_tokens_recomputed_total"),),  # lived in early 2026
        "steps": (told("vllm:iteration_tokens_total_count"),),
    },
)
