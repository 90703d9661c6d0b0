"""Tokens per second of generation with the cache of keys and values and without, for both presets: a table.

The weights are random: the work does not depend on them. `python -m bench.generation` prints it.
"""

import argparse
import time
from collections.abc import Sequence

import torch

from compare import cli
from compare.options import Parser, whole
from data.numbers import Range
from model.generation.draw import Sampling, draws
from model.gpt import MiniGPT
from model.settings import PRESETS, MiniGPTConfig


def main(argv: Sequence[str] | None = None) -> None:
    """One line for each preset and number of samples at once."""
    parser = Parser(description=__doc__)
    parser.add_argument("--tokens", type=whole(Range(1, 10**6)), default=500, help="of each sample (%(default)s)")
    parser.add_argument("--block", type=whole(Range(1, 10**6)), default=128, help="block size (%(default)s)")
    parser.add_argument("--vocab", type=whole(Range(2, 10**6)), default=2_000, help="vocabulary (%(default)s)")
    parser.add_argument("--repeat", type=whole(Range(1, 100)), default=3, help="the fastest of these (%(default)s)")
    arguments = parser.parse_args(argv)
    print(f"{arguments.tokens} tokens, block {arguments.block}, {torch.get_num_threads()} threads; tokens/s:")
    print(f"{'preset':<8} {'samples':>7} {'without':>9} {'with cache':>11} {'factor':>7}")
    for preset in PRESETS:
        for num_rows in (1, 8):
            plain, cached = (tokens_per_second(arguments, preset, num_rows, cache=cache) for cache in (False, True))
            print(f"{preset:<8} {num_rows:>7} {plain:>9,.0f} {cached:>11,.0f} {cached / plain:>6.1f}x")


def tokens_per_second(arguments: argparse.Namespace, preset: str, num_rows: int, *, cache: bool) -> float:
    """The fastest of several times, over all samples."""
    torch.manual_seed(1)
    model = MiniGPT(MiniGPTConfig(arguments.vocab, block_size=arguments.block, preset=preset))  # type: ignore[arg-type]
    sampling = Sampling(arguments.tokens)
    seconds = []
    for _ in range(arguments.repeat):
        start = time.perf_counter()
        for _step in draws(model.eval(), [1], sampling, num_rows, cache=cache):
            pass
        seconds.append(time.perf_counter() - start)
    num_tokens: int = num_rows * arguments.tokens
    return num_tokens / min(seconds)


if __name__ == "__main__":
    cli.run(main)
