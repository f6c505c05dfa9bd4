"""Text Generation Inference's metric names, the 3.3 line (`/metrics` on the port of the server).

There is no KV usage, only a token budget: its size is the one capacity that TGI tells, and what is reserved of it is
no utilisation. Counters have no `_total`; token counts are the sums of histograms.
"""

from capwatch.dialect.vocabulary import Vocabulary, told

VOCABULARY = Vocabulary(
    name="tgi",
    gauges={
        "running": (told("tgi_batch_current_size"),),
        "waiting": (told("tgi_queue_size"),),
        "kv_capacity_tokens": (told("tgi_batch_max_total_tokens"),),
    },
    counters={
        "requests": (told("tgi_request_success"),),
        "prompt_tokens": (told("tgi_request_input_length_sum"),),
        "output_tokens": (told("tgi_request_generated_tokens_sum"),),
        "steps": (told("tgi_batch_inference_duration_count"),),
    },
)
