"""llama.cpp's metric names (`llama-server --metrics`; a router wants `?model=`).

`prompt_tokens_total` leaves cached tokens out. The `*_tokens_seconds` gauges are means since the last scrape of
anybody, so rates come from the counters. The KV metrics went away in 2025-05; there is no preemption.
"""

from capwatch.dialect.vocabulary import Vocabulary, most, told

VOCABULARY = Vocabulary(
    name="llamacpp",
    gauges={
        "running": (told("llamacpp:requests_processing"),),
        "waiting": (told("llamacpp:requests_deferred"),),
        "kv_utilisation": (most("llamacpp:kv_cache_usage_ratio"),),
    },
    counters={
        "prompt_tokens": (told("llamacpp:prompt_tokens_total"),),
        "output_tokens": (told("llamacpp:tokens_predicted_total"),),
        "prefix_queries": (told("llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total"),),
        "prefix_hits": (told("llamacpp:prompt_tokens_cached_total"),),
        "steps": (told("llamacpp:n_decode_total"),),
    },
)
