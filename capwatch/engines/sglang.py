"""SGLang's metric names (`--enable-metrics`), 0.4 to 0.5.23.

`prompt_tokens_total` and its like move only when a request finishes, `realtime_tokens_total` with the work. With
priority scheduling `priority=""` is the total and the other values break it down. Old versions keep the last gauges
for ever when traffic stops. `num_retracted_reqs` is a gauge of one report; the counter has another name on purpose.
"""

from capwatch.dialect.vocabulary import Vocabulary, most, told

VOCABULARY = Vocabulary(
    name="sglang",
    replica="dp_rank",
    ranks=("tp_rank", "pp_rank", "moe_ep_rank"),
    gauges={
        "running": (told('sglang:num_running_reqs{priority=""}'),),
        "waiting": (told('sglang:num_queue_reqs{priority=""}'),),
        "kv_utilisation": (most("sglang:token_usage"),),
        "kv_capacity_tokens": (told("sglang:max_total_num_tokens"),),
        "output_tokens_per_s": (told('sglang:gen_throughput{priority=""}'),),
        "prefix_hit_ratio": (most("sglang:cache_hit_rate"),),
    },
    counters={
        "preemptions": (told("sglang:num_retracted_requests_total"), told("sglang:total_retracted_reqs_total")),
        "requests": (told('sglang:num_requests_total{priority=""}'),),
        "prompt_tokens": (
            told('sglang:realtime_tokens_total{mode="prefill_compute"}'),
            told('sglang:prompt_tokens_total{priority=""}'),
        ),
        "output_tokens": (
            told('sglang:realtime_tokens_total{mode="decode"}'),
            told('sglang:generation_tokens_total{priority=""}'),
        ),
        "prefix_queries": (
            told(
                'sglang:realtime_tokens_total{mode="prefill_compute"}',
                'sglang:realtime_tokens_total{mode="prefill_cache"}',
            ),
            told('sglang:prompt_tokens_total{priority=""}'),
        ),
        "prefix_hits": (
            told('sglang:realtime_tokens_total{mode="prefill_cache"}'),
            told('sglang:cached_tokens_total{priority=""}'),
        ),
        "recomputed_tokens": (
            told("sglang:num_retracted_input_tokens_total", "sglang:num_retracted_output_tokens_total"),
        ),
    },
)
