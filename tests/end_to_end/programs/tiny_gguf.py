"""Writes a tiny model with random weights that llama.cpp loads: two layers, 64 wide, a token for each byte."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

LAYERS: Final = 2
WIDE: Final = 64
FEED: Final = 128
HEADS: Final = 4
CONTEXT: Final = 8192
SPECIAL: Final = ("<unk>", "<s>", "</s>")


def write(path: Path, layers: int = LAYERS, wide: int = WIDE, feed: int = FEED) -> None:
    """Write the model, 0.4 MB where nothing else is asked for, always the same."""
    import gguf

    kinds = gguf.TokenType
    tokens = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256))]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(layers)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(wide)
    writer.add_feed_forward_length(feed)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(wide // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([kinds.UNKNOWN, kinds.CONTROL, kinds.CONTROL, *[kinds.BYTE] * 256])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    for name, shape in _tensors(len(tokens), layers, wide, feed).items():
        writer.add_tensor(name, _weights(name, shape))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _tensors(tokens: int, layers: int, wide: int, feed: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of everything in it."""
    square, up = (wide, wide), (feed, wide)
    block = {"attn_norm": (wide,), "ffn_norm": (wide,), "ffn_gate": up, "ffn_up": up, "ffn_down": (wide, feed)}
    block |= dict.fromkeys(("attn_q", "attn_k", "attn_v", "attn_output"), square)
    blocks = {f"blk.{i}.{name}.weight": shape for i in range(layers) for name, shape in block.items()}
    ends = {"token_embd.weight": (tokens, wide), "output.weight": (tokens, wide), "output_norm.weight": (wide,)}
    return {**ends, **blocks}


def _weights(name: str, shape: tuple[int, ...]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    draw = np.random.default_rng(sum(name.encode()))
    return np.ones(shape, np.float32) if len(shape) == 1 else draw.normal(0, 0.02, shape).astype(np.float32)
