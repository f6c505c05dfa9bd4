"""KV memory of a replica: bytes per token, tokens and sequences that fit, and the ceiling on decode steps.

Bytes per token come from the model's dimensions (2 × layers × KV heads × head dimension × bytes per element) or are
given. GB is 1e9 bytes and GiB 2^30. Texts disagree on the runtime's reserve (0 or 6 GB of each GPU): it is an input.
Each doubling of the context halves the sequences.
"""

from __future__ import annotations

import argparse

from capwatch.capacity import kv
from capwatch.console.answer import Answer, number
from capwatch.console.options import COUNT, POSITIVE, SIZE_ABOVE_0, SIZE_FROM_0, Option, bandwidth, key, together
from capwatch.errors import UsageError

EXAMPLE = (
    "capwatch plan kv --layers 80 --kv-heads 8 --head-dim 128 --element-bytes 2 --weights 140GB --gpus 2 "
    "--gpu-memory 80GB --reserve 6GB --context 4000 --bandwidth 3.35TB/s"
)
MODEL = ("--layers", "--kv-heads", "--head-dim", "--element-bytes")
MEMORY = ("--weights", "--gpus", "--gpu-memory")
OPTIONS = (
    Option("--layers", COUNT, "N", "of the model", optional=True),
    Option("--kv-heads", COUNT, "N", "key and value heads of a layer", optional=True),
    Option("--head-dim", COUNT, "N", "elements of a head", optional=True),
    Option("--element-bytes", POSITIVE, "N", "bytes of a cached element: 2 for 16 bit, 1 for 8", optional=True),
    Option(
        "--kv-per-token", SIZE_ABOVE_0, "SIZE", "bytes of a token, instead of the model's dimensions", optional=True
    ),
    Option("--weights", SIZE_ABOVE_0, "SIZE", "bytes of the model, once over all GPUs of a replica", optional=True),
    Option("--gpus", COUNT, "N", "GPUs of a replica", optional=True),
    Option("--gpu-memory", SIZE_ABOVE_0, "SIZE", "bytes of each GPU", optional=True),
    Option("--reserve", SIZE_FROM_0, "SIZE", "bytes of each GPU that the runtime keeps", "0"),
    Option("--context", COUNT, "TOKENS", "tokens of a sequence", optional=True),
    Option("--bandwidth", bandwidth, "SIZE/s", "memory bandwidth of each GPU, bytes/s", optional=True),
)


def plan(arguments: argparse.Namespace) -> Answer:
    """What is known of the pool from what was given."""
    token, how = _token(arguments)
    result: dict[str, object] = {"bytes_per_token": token}
    steps = [how]
    context = arguments.context
    if context is not None:
        result["sequence_bytes"] = context * token
        steps.append(f"a sequence: context * bytes per token = {_bytes(context * token)}")
    if together(arguments, MEMORY, "--weights, --gpus and --gpu-memory go together"):
        _pool(arguments, token, result, steps)
    elif arguments.bandwidth is not None:
        raise UsageError("--weights: is missing; --bandwidth needs it, --gpus and --gpu-memory")
    elif arguments.reserve:
        raise UsageError("--gpu-memory: is missing; --reserve is a part of it")
    return Answer(result, steps)


def _token(arguments: argparse.Namespace) -> tuple[float, str]:
    """Bytes of a token, and where they come from."""
    given = [option for option in MODEL if getattr(arguments, key(option)) is not None]
    if arguments.kv_per_token is not None:
        if given:
            raise UsageError(f"--kv-per-token: says already what {given[0]} would; give one of them")
        return arguments.kv_per_token, f"a token: {_bytes(arguments.kv_per_token)}, as given"
    if not together(arguments, MODEL, "the model's dimensions go together"):
        raise UsageError(f"--kv-per-token: is missing; give it, or {', '.join(MODEL)}")
    values = (arguments.layers, arguments.kv_heads, arguments.head_dim, arguments.element_bytes)
    token = kv.bytes_per_token(*values)
    return (
        token,
        f"a token: 2 * layers * KV heads * head dim * bytes = 2 * {' * '.join(map(number, values))} = {_bytes(token)}",
    )


def _pool(arguments: argparse.Namespace, token: float, result: dict[str, object], steps: list[str]) -> None:
    """Add what the memory holds."""
    weights, gpus, memory, reserve = arguments.weights, arguments.gpus, arguments.gpu_memory, arguments.reserve
    pool = kv.pool_bytes(gpus, memory, weights, reserve)
    if pool < 0:
        room = gpus * (memory - reserve)
        raise UsageError(f"--weights: {_bytes(weights)} do not fit: {gpus} * (gpu-memory - reserve) = {_bytes(room)}")
    result["pool_bytes"] = pool
    result["pool_tokens"] = kv.pool_tokens(pool, token)
    steps += [
        f"the pool: gpus * (gpu-memory - reserve) - weights = {_bytes(pool)}",
        f"tokens in it: {number(pool)}/{number(token)} = {number(pool / token)}",
    ]
    if arguments.context is not None:
        result["sequences"] = fit = kv.sequences(pool, arguments.context, token)
        steps.append(f"sequences in it: floor({number(pool / (arguments.context * token))}) = {fit}")
    if arguments.bandwidth is not None:
        result["max_steps_per_second"] = most = kv.steps_per_second(arguments.bandwidth, gpus, weights)
        steps.append(f"decode steps/s at most: bandwidth * gpus/weights = {number(most)}; each reads all weights once")


def _bytes(count: float) -> str:
    return f"{number(count)} B ({count / 1e9:.4g} GB, {count / 2**30:.4g} GiB)"
