"""What `bench-train` measures, and how it is shown: shapes of batches, lines of tokens per second, tables."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from compare.table import as_text

BOUND = "bare products"


@dataclass(frozen=True)
class Shape:
    """What varies between the tables."""

    vocab_size: int
    dropout: float
    block_size: int = 128
    batch_size: int = 32

    @property
    def name(self) -> str:
        """In words."""
        return f"V {self.vocab_size:,}, dropout {self.dropout:g}, {self.batch_size} x {self.block_size}"


SHAPES = (Shape(256, 0.0), Shape(256, 0.1), Shape(4096, 0.0))
FEW_WINDOWS = (4, 8, 16)
DEMO_SHAPES = tuple(Shape(vocab, 0.0, 64, windows) for vocab in (149, 4096) for windows in FEW_WINDOWS)
"""The demo's. Their times against the number of windows tell the fixed cost of a step."""


@dataclass
class Line:
    """One contestant of one table."""

    shape: str
    name: str
    tokens_per_second: list[float] = field(default_factory=list)
    peak_bytes: int = 0
    failed: str = ""

    @property
    def best(self) -> float:
        """Of all turns."""
        return max(self.tokens_per_second)


def best_peer(lines: Sequence[Line]) -> Line | None:
    """The fastest that is neither ours nor the bound."""
    peers = [line for line in lines if line.name.startswith("nanoGPT") and not line.failed]
    return max(peers, key=lambda line: line.best, default=None)


def table(lines: Sequence[Line]) -> str:
    """One shape's lines, aligned."""
    fastest = best_peer(lines)
    bounds = {line.name: line.best for line in lines if line.name.startswith(BOUND) and not line.failed}
    cells = [[lines[0].shape, "tokens/s", "median", "x best peer", "of bound", "peak MB"]]
    for line in lines:
        if line.failed:
            cells.append([f"{line.name}: {line.failed}", "-", "-", "-", "-", "-"])
            continue
        ratio = f"{line.best / fastest.best:.2f}" if fastest else "-"
        median = statistics.median(line.tokens_per_second)
        preset = "modern" if line.name.endswith("modern") else "gpt2"
        bound = bounds.get(f"{BOUND}, {preset}")
        share = f"{line.best / bound:.0%}" if bound else "-"
        cells.append([line.name, f"{line.best:,.0f}", f"{median:,.0f}", ratio, share, f"{line.peak_bytes / 1e6:,.0f}"])
    return as_text(cells)


def fixed_costs(lines: Sequence[Line]) -> str:
    """Of the demo's shapes: ms of a step for each number of windows, and of a straight line through them at none."""
    cells = [["ms of a step, 64 tokens a window", *(f"{windows} windows" for windows in FEW_WINDOWS), "at none"]]
    for vocab_size in sorted({shape.vocab_size for shape in DEMO_SHAPES}):
        shapes = [shape for shape in DEMO_SHAPES if shape.vocab_size == vocab_size]
        for name in dict.fromkeys(line.name for line in lines):
            found = {line.shape: line for line in lines if line.name == name and not line.failed}
            if name.startswith("nanoGPT") or not all(shape.name in found for shape in shapes):
                continue
            ms = [1e3 * shape.batch_size * shape.block_size / found[shape.name].best for shape in shapes]
            at_none = statistics.linear_regression([shape.batch_size for shape in shapes], ms).intercept
            cells.append([f"V {vocab_size:,}, {name}", *(f"{value:.1f}" for value in (*ms, at_none))])
    return as_text(cells)
