"""Compile the engine's kernels once, so that no later command waits for it; numba keeps them on disk."""

import time

from tokenizer.bpe import BPETokenizer
from tokenizer.reference import TIE_BREAKS
from tokenizer.train import TokenizerConfig, learn_merges


def main() -> None:
    """Part of `make setup`: train and encode a few characters by every door."""
    started = time.perf_counter()
    tokenizer = BPETokenizer.train("low lower lowest", 12, verbose=False)
    tokenizer.encode("lowest")
    for tie_break in TIE_BREAKS:
        config = TokenizerConfig("char_bpe", 12, tie_break=tie_break)
        learn_merges(["low lower"], tokenizer.base_tokens, config, num_merges=2)
    print(f"kernels ready after {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
