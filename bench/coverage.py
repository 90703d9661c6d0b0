"""How often the 95 % intervals of differences hold the true difference, by simulation: `python -m bench.coverage`.

Differences of documents and of seeds are drawn from normal distributions. A cell of the table holds the lowest and the
highest coverage over the ratios of the two variances. Every interval comes from the code that the report uses.
"""

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from compare.certainty.intervals import Combined, Estimate, over_seeds, over_text

RATIOS = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
"""Variance of the mean over seeds as a multiple of that over the text."""
COUNTS = (2, 3, 5, 20)
TRUE = 0.05

Sizes = Callable[[np.random.Generator, int], NDArray[np.int64]]


def equal_sizes(_rng: np.random.Generator, count: int) -> NDArray[np.int64]:
    """(count,) documents of 1,000 characters."""
    return np.full(count, 1_000, np.int64)


def unequal_sizes(rng: np.random.Generator, count: int) -> NDArray[np.int64]:
    """(count,) documents with log-normal lengths, sigma 1: of 20, the longest has a quarter of the text."""
    return np.maximum(1, rng.lognormal(7.0, 1.0, count)).astype(np.int64)


def draw(rng: np.random.Generator, units: int, seeds: int, ratio: float, sizes: Sizes) -> tuple[Estimate, Estimate]:
    """The estimates over text and over seeds of one simulated comparison; ratio 0 is one without training noise."""
    num_chars = sizes(rng, units)
    of_text = rng.normal(0.0, 0.1, units)
    weights = num_chars / num_chars.sum()
    # The noise of the mean over seeds is so many times that of this text, whatever the lengths of its documents.
    seed_sd = float(np.sqrt(ratio * seeds * (weights**2).sum())) * 0.1
    of_seeds = rng.normal(0.0, seed_sd, seeds)
    text = over_text((TRUE + of_text + of_seeds.mean()) * num_chars, np.zeros(units), num_chars)
    assert text is not None
    return text, over_seeds((TRUE + float(weights @ of_text) + of_seeds).tolist())


def coverage(units: int, seeds: int, ratio: float, sizes: Sizes, times: int) -> float:
    """The share of `times` simulated comparisons whose interval over text and seeds holds the truth.

    Without seeds (0), that of the interval over text alone.
    """
    rng = np.random.default_rng([units, seeds, round(1_000 * ratio)])
    holds = 0
    for _ in range(times):
        if seeds:
            interval = Combined(*draw(rng, units, seeds, ratio, sizes)).interval
        else:
            interval = draw(rng, units, 1, 0.0, sizes)[0].interval
        holds += interval.low <= TRUE <= interval.high
    return holds / times


def table(sizes: Sizes, times: int) -> list[str]:
    """The lines of the table, in Markdown; its first row is that of the intervals over text alone."""
    lines = [
        "| seeds | " + " | ".join(f"{units} documents" for units in COUNTS) + " |",
        "| ----: | " + " | ".join("-" * len(f"{units} document") + ":" for units in COUNTS) + " |",
    ]
    bar = tqdm(total=len(COUNTS) * (1 + len(COUNTS) * len(RATIOS)), desc=sizes.__name__, file=sys.stderr)
    for seeds in (0, *COUNTS):
        cells = []
        for units in COUNTS:
            shares = []
            for ratio in RATIOS if seeds else (0.0,):
                shares.append(100.0 * coverage(units, seeds, ratio, sizes, times))
                bar.update()
            cells.append(f"{min(shares):.1f}–{max(shares):.1f}" if seeds else f"{shares[0]:.1f}")
        lines.append(
            f"| {seeds or 'text':>5} | "
            + " | ".join(f"{cell:>{len(f'{units} documents')}}" for units, cell in zip(COUNTS, cells, strict=True))
            + " |"
        )
    bar.close()
    return lines


def main() -> None:
    """Print the tables of docs/method.md."""
    for sizes in (equal_sizes, unequal_sizes):
        print(sizes.__name__.replace("_", " "), *table(sizes, 4_000), "", sep="\n")


if __name__ == "__main__":
    main()
