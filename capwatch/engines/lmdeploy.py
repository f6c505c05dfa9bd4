"""LMDeploy's metric names, 0.9 to 0.18 (`--enable-metrics`).

Requests wait in the API server and in the engine: both gauges count. `gpu_cache_usage_perc` is a share that includes
reusable cached blocks. `num_requests_succeeded` is typed gauge but only grows. Gauges refresh every 10 s.
"""

from capwatch.dialect.vocabulary import Vocabulary, most, told

VOCABULARY = Vocabulary(
    name="lmdeploy",
    replica="engine",
    gauges={
        "running": (told("lmdeploy:num_requests_running"),),
        "waiting": (told("lmdeploy:num_requests_waiting", "lmdeploy:num_api_requests_waiting"),),
        "kv_utilisation": (most("lmdeploy:gpu_cache_usage_perc"),),
        "prefix_hit_ratio": (most("lmdeploy:prefix_cache_hit_rate"),),
    },
    counters={
        "requests": (
            told("lmdeploy:num_requests_succeeded"),
            told("lmdeploy:num_requests_finished"),  # until early 2026
        ),
        "prompt_tokens": (told("lmdeploy:prompt_tokens_total"),),
        "output_tokens": (told("lmdeploy:generation_tokens_total"),),
        "steps": (told("lmdeploy:iteration_tokens_total_count"),),
    },
)
