"""Compile the kernels of tokenizers and model once, so that no later command waits; numba keeps them on disk."""

import time

import torch

from model.gpt import MiniGPT
from model.settings import PRESETS, MiniGPTConfig
from model.training.gradient import ParallelGradient
from tokenizer.bpe import BPETokenizer, merge_strings
from tokenizer.bytelevel import BYTE_CHARACTERS
from tokenizer.reference import TIE_BREAKS
from tokenizer.train import TokenizerConfig, learn_merges


def main() -> None:
    """Part of `make setup`: train and encode a few characters by every door, and take one step of both presets."""
    started = time.perf_counter()
    character = BPETokenizer.train("low lower lowest", 12, verbose=False)
    config = TokenizerConfig("byte_bpe", 300, split_pattern="gpt2")
    training = learn_merges(["low lower lowest"], BYTE_CHARACTERS, config, num_merges=4)
    merges = merge_strings(BYTE_CHARACTERS, training)
    byte = BPETokenizer(BYTE_CHARACTERS, merges, kind="byte_bpe", split_pattern="gpt2")
    for tokenizer in (character, byte):
        tokenizer.encode("lowest")
        tokenizer.encode_documents(["lowest", "low " * 100])
    for tie_break in TIE_BREAKS:
        config = TokenizerConfig("char_bpe", 12, tie_break=tie_break)
        learn_merges(["low lower"], character.base_tokens, config, num_merges=2)
    _take_steps()
    print(f"kernels ready after {time.perf_counter() - started:.1f} s")


def _take_steps() -> None:
    """The gradient of one tiny batch, with dropout, for both presets."""
    ids = torch.zeros(1, 4, dtype=torch.long)
    for preset in PRESETS:
        config = MiniGPTConfig(
            vocab_size=5, block_size=4, embedding_dim=8, num_heads=2, num_layers=1, dropout=0.1, preset=preset
        )
        with ParallelGradient(MiniGPT(config).train(), num_threads=1) as gradient:
            gradient.backward(ids, ids)


if __name__ == "__main__":
    main()
