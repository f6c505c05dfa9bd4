"""Writes a tiny Llama with random weights and a tokenizer of made-up words; runs in the engine's own environment."""

from __future__ import annotations

import random
import sys
from pathlib import Path

WORDS = 800
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"


def words() -> list[str]:
    """The made-up words, always the same."""
    draw = random.Random(7)
    syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
    return ["".join(draw.choices(syllables, k=draw.choice((2, 2, 3)))) for _ in range(WORDS)]


def main(folder: Path) -> None:
    """Train the tokenizer, save both."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    draw, known = random.Random(8), words()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=2000, special_tokens=["<s>", "</s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator((" ".join(draw.choices(known, k=20)) for _ in range(2000)), trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")  # noqa: S106 - no password
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=len(fast),
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=4096,
        bos_token_id=fast.bos_token_id,
        eos_token_id=fast.eos_token_id,
    )
    LlamaForCausalLM(config).save_pretrained(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
