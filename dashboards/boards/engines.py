"""What replicas and cards say of themselves, and why a busy GPU is no measure of capacity."""

from dashboards.panels import AMBER, GREEN, RED, Board, Query, Row, lines, number, table, text
from dashboards.promql import least, most, rate

BUSY = """
The driver's *GPU utilisation* is the share of time in which **some** kernel was resident. Decode is a stream of small
kernels bound by memory: one sequence keeps the card as *busy* as forty do. So

- it reads 90-100 % with room for ten times the load, and stays there when the queue grows without bound;
- an autoscaler on it scales at night and sleeps in the rush;
- there is no alert on it here.

Capacity is work over what the replicas can do (*utilisation*), the wait it causes, and the KV cache. See them beside
each other.
"""

engines = Row(
    "Engines",
    (
        number(
            "How many replicas are heard of?",
            "By state; unknown is an engine not heard of within its patience.",
            Query(
                f"sum by (pool, state) ({most('capwatch_engine_state', 'pool, engine, state')})", "{{pool}} {{state}}"
            ),
            width=8,
        ),
        number(
            "Are engines even?",
            "Coefficient of variation of running requests over the engines of a pool; above 0.5 routing wastes"
            " replicas.",
            Query(most("capwatch_load_imbalance_ratio"), "{{pool}}"),
            steps=((None, GREEN), (0.5, AMBER), (1, RED)),
            width=8,
        ),
        number(
            "Did engines restart?",
            "Restarts within the range of this board.",
            Query(
                "sum by (pool) (max by (pool, engine) (increase(capwatch_engine_restarts_total[$__range])))", "{{pool}}"
            ),
            steps=((None, GREEN), (1, AMBER)),
            width=8,
        ),
        lines(
            "How much runs on each engine?",
            "Sequences at once. One far below the others is new, sick or avoided by the router.",
            Query(most("capwatch_engine_running_requests", "pool, engine"), "{{engine}}"),
        ),
        lines(
            "Where do requests wait inside engines?",
            "A queue in one engine beside idle ones: routing. Queues in all: capacity.",
            Query(most("capwatch_engine_waiting_requests", "pool, engine"), "{{engine}}"),
        ),
        lines(
            "How full is each engine's KV cache?",
            "High is by design; at 100 % sequences are pushed out.",
            Query(most("capwatch_engine_kv_cache_utilisation_ratio", "pool, engine"), "{{engine}}"),
            unit="percentunit",
        ),
        lines(
            "Which engines push sequences out?",
            "Preemptions a second.",
            Query(
                "max by (pool, engine) (rate(capwatch_engine_preemptions_total[$__rate_interval]))",
                "{{engine}}",
            ),
            unit="ops",
            stacked=True,
        ),
        lines(
            "Does each engine find its prefixes?",
            "Cached share of prompt tokens. One below the others gets tenants whose prefixes lie elsewhere.",
            Query(most("capwatch_engine_prefix_hit_ratio", "pool, engine"), "{{engine}}"),
            unit="percentunit",
        ),
        lines(
            "How many tokens do engines make?",
            "Prompt and output tokens a second of a pool: what engines say of themselves, to hold against what logs"
            " say.",
            Query(
                f"sum by (pool) ({most('capwatch_engine_prompt_tokens_per_second', 'pool, engine')})", "{{pool}} prompt"
            ),
            Query(
                f"sum by (pool) ({most('capwatch_engine_output_tokens_per_second', 'pool, engine')})", "{{pool}} output"
            ),
            axis="tokens a second",
        ),
        lines(
            "Does what engines count agree with Little's law?",
            "Measured over λW, less 1. Above 0 for long: work that no log tells of.",
            Query(most("capwatch_littles_law_residual_ratio"), "{{pool}}"),
            unit="percentunit",
            limits=(None, None),
        ),
        lines(
            "How many requests are in flight, as counted?",
            "Waiting and running in engines, and λW over all phases. What waits before an engine is only in the"
            " latter.",
            Query(most("capwatch_inflight_measured", "pool, phase"), "{{pool}} {{phase}}"),
            Query(f"sum by (pool) ({most('capwatch_inflight_littles_law', 'pool, phase')})", "{{pool}} λW"),
            dashed=("λW$",),
        ),
        lines(
            "Do logs and engines tell of the same requests?",
            "Coverage: seen in logs over counted by engines. Join: requests found in an engine's log as well.",
            Query(least("capwatch_coverage_ratio"), "{{pool}} coverage"),
            Query(least("capwatch_join_ratio"), "{{pool}} join"),
            unit="percentunit",
        ),
        lines(
            "How long does a new replica take?",
            "From the newest start of an engine, by phase. Bursts shorter than the last are over before it helps.",
            Query(most("capwatch_cold_start_seconds", "pool, phase"), "{{pool}} {{phase}}"),
            unit="s",
        ),
        lines(
            "How much is computed twice?",
            "Tokens a second that preempted sequences need once more, where an engine tells it.",
            Query(rate("capwatch_recomputed_tokens_total", "pool"), "{{pool}}"),
            axis="tokens a second",
        ),
    ),
)

busy = Row(
    "Why GPU busy is not capacity",
    (
        text("Why is there no alert on GPU busy?", "What the driver's utilisation measures.", BUSY, width=12),
        lines(
            "What does GPU busy say, and what is used?",
            "The mean over the cards of each pool beside the utilisation of the pool. Where both agree, it is chance.",
            Query(
                "avg by (pool) (max by (gpu, uuid, pool) (capwatch_gpu_pool_info)"
                " * on (gpu, uuid) group_left () max by (gpu, uuid) (capwatch_gpu_busy_ratio))",
                "{{pool}} GPU busy",
            ),
            Query(most("capwatch_utilisation_ratio"), "{{pool}} utilisation"),
            unit="percentunit",
            width=6,
        ),
        lines(
            "And how does the wait follow?",
            "The wait bends up with utilisation. GPU busy is at its top long before.",
            Query(most("capwatch_expected_wait_seconds"), "{{pool}} expected wait"),
            unit="s",
            width=6,
        ),
    ),
)


gpus = Row(
    "GPUs",
    (
        table(
            "Which cards are there?",
            "Name and driver of every card that NVML knows.",
            Query(most("capwatch_gpu_info", "instance, gpu, uuid, name, driver"), column="present"),
            sort="present",
            width=16,
        ),
        number(
            "Does the driver answer?",
            "Whether NVML answers; without it there is no figure below.",
            Query(least("capwatch_nvml_up", "instance"), "{{instance}}"),
            steps=((None, AMBER), (1, GREEN)),
            words={"0": "no", "1": "yes"},
            height=9,
        ),
        number(
            "Are all cards read?",
            "Cards whose last reading failed. Lost cards stay here until they are gone from the driver.",
            Query("count(capwatch_gpu_up == 0) or 0 * count(capwatch_gpu_up)", "not read"),
            steps=((None, GREEN), (1, RED)),
            empty="no GPU",
            height=9,
        ),
        lines(
            "How much memory is taken?",
            "Engines reserve theirs at start, so this does not tell the KV cache in use.",
            Query(
                "max by (instance, gpu) (capwatch_gpu_memory_used_bytes)"
                " / max by (instance, gpu) (capwatch_gpu_memory_total_bytes)",
                "{{instance}} {{gpu}}",
            ),
            unit="percentunit",
            limits=(0, 1),
        ),
        lines(
            "How busy are card and memory?",
            "Share of time some kernel ran, and some memory was touched: neither is capacity nor bandwidth.",
            Query(most("capwatch_gpu_busy_ratio", "instance, gpu"), "{{instance}} {{gpu}} kernels"),
            Query(most("capwatch_gpu_memory_busy_ratio", "instance, gpu"), "{{instance}} {{gpu}} memory"),
            unit="percentunit",
            limits=(0, 1),
        ),
        lines(
            "How much power do the cards draw?",
            "Power follows the work closer than busy does.",
            Query(most("capwatch_gpu_power_watts", "instance, gpu"), "{{instance}} {{gpu}}"),
            Query(
                "max by (instance, gpu) (rate(capwatch_gpu_energy_joules_total[$__rate_interval]))",
                "{{instance}} {{gpu}} by energy",
            ),
            unit="watt",
            dashed=("by energy$",),
        ),
        lines(
            "Are cards slowed down?",
            "Reasons that hold now. A thermal one on a few cards makes their replicas the slow ones of the pool.",
            Query(
                "sum by (instance, gpu, reason) (capwatch_gpu_throttled)",
                "{{instance}} {{gpu}} {{reason}}",
            ),
        ),
        lines(
            "How fast do the chips run?",
            "Clock of the streaming multiprocessors.",
            Query(most("capwatch_gpu_sm_clock_hertz", "instance, gpu"), "{{instance}} {{gpu}}"),
            unit="hertz",
        ),
        lines(
            "How hot are the chips?",
            "Temperature of the chip.",
            Query(most("capwatch_gpu_temperature_celsius", "instance, gpu"), "{{instance}} {{gpu}}"),
            unit="celsius",
        ),
        lines(
            "Do cards fail?",
            "Memory errors and XID events within an hour. Uncorrected ones and XID 79 (fallen off the bus) end a"
            " replica.",
            Query(
                "sum by (instance, gpu, kind) (increase(capwatch_gpu_ecc_errors_total[1h]))",
                "{{instance}} {{gpu}} ECC {{kind}}",
            ),
            Query(
                "sum by (instance, gpu, xid) (increase(capwatch_gpu_xid_errors_total[1h]))",
                "{{instance}} {{gpu}} XID {{xid}}",
            ),
        ),
    ),
)

BOARD = Board(
    "engines-and-gpus",
    "Engines and GPUs",
    "What replicas and cards say of themselves, and why a busy GPU is no measure of capacity.",
    ("pool",),
    (engines, busy, gpus),
)
