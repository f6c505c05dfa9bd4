"""NVIDIA Dynamo's own metric names, 0.7 to 1.6: of its workers (`DYN_SYSTEM_PORT`) and of its front end (port 8000).

`gpu_cache_usage_percent` is a share. The front end's requests are those of all its workers, not of one engine, and its
`queued_requests` reach from HTTP entry to the first token: neither is taken. Workers pass their engine's series on.
"""

from capwatch.dialect.vocabulary import Vocabulary, most, told

VOCABULARY = Vocabulary(
    name="dynamo",
    replica="dp_rank",
    gauges={"kv_utilisation": (most("dynamo_component_gpu_cache_usage_percent"),)},
    counters={"requests": (told("dynamo_component_requests_total"),)},
)
