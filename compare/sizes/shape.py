"""The model of another size: how many layers, and how wide.

The weights of a transformer's blocks grow as L C^2, for L layers of C channels. A size is a factor of that product.
"""

import math
from dataclasses import dataclass

from data.config import require
from data.errors import ConfigError
from data.numbers import Range

SIZE = Range(0.01, 100)
MOST_SIZES = 5
TOLERANCE = 0.15
"""L C^2 is off its goal by no more than this share."""
_HEAD_STEPS = (8, 4, 2)
"""The size of a head is a multiple of the first of these that has a shape; it stays even, as rotary positions need."""
_MOST_STRETCH = 4.0
"""C / L is no more than so many times greater or smaller than the original's."""
_MOST_LAYERS, _MOST_CHANNELS = 1000, 2**16


@dataclass(frozen=True)
class Shape:
    """What a size changes of the model block."""

    num_layers: int
    """L."""
    embedding_dim: int
    """C."""

    @property
    def weight(self) -> int:
        """L C^2, to which the weights outside the embedding are nearly proportional."""
        return self.num_layers * self.embedding_dim**2

    @property
    def width(self) -> float:
        """C / L."""
        return self.embedding_dim / self.num_layers


def shape_of_size(original: Shape, num_heads: int, size: float) -> Shape:
    """The shape whose L C^2 is within TOLERANCE of `size` times that of `original`, with the nearest C / L.

    C is a multiple of 8 channels a head (of 4 or 2 where there is none), and the number of heads stays. C / L changes
    by a factor of 4 at most. Of equally near ratios the one nearest to the goal is taken, then the one with fewer
    layers. Size 1 is `original` itself.
    Raises ConfigError where no shape comes near enough.
    """
    if size == 1.0:
        return original
    for step in _HEAD_STEPS:
        near = _near(original.weight * size, num_heads * step)
        found = [shape for shape in near if _stretch(shape, original) <= math.log(_MOST_STRETCH)]
        if found:
            return min(found, key=lambda shape: _badness(shape, original, size))
    raise ConfigError(
        f"no model with {num_heads} heads has {size:g} times the weights of {original.num_layers} layers of "
        f"{original.embedding_dim}, give or take {TOLERANCE:.0%}; take another size, or a larger model"
    )


def _near(goal: float, step: int) -> list[Shape]:
    """All shapes within TOLERANCE of `goal` whose channels are a multiple of `step`."""
    found = []
    for channels in range(step, min(_MOST_CHANNELS, math.isqrt(int(goal * (1 + TOLERANCE))) + 1) + 1, step):
        least = math.ceil(goal * (1 - TOLERANCE) / channels**2)
        most = math.floor(goal * (1 + TOLERANCE) / channels**2)
        found += [Shape(layers, channels) for layers in range(max(1, least), min(most, _MOST_LAYERS) + 1)]
    return found


def _stretch(shape: Shape, original: Shape) -> float:
    return abs(math.log(shape.width / original.width))


def _badness(shape: Shape, original: Shape, size: float) -> tuple[float, float, int]:
    return round(_stretch(shape, original), 9), abs(math.log(shape.weight / (original.weight * size))), shape.num_layers


def check_sizes(sizes: tuple[float, ...], where: str) -> tuple[float, ...]:
    """`sizes` without 1, which is the model block itself. Raises ConfigError, beginning with `where`."""
    require(len(sizes) > 0, f"{where}: the list is empty; name at least one, such as [0.4, 1, 2.5]")
    for size in sizes:
        SIZE.check(f"{where}: every size", size)
    names = [f"{size:g}" for size in sizes]  # what folders are called
    twice = [name for name in names if names.count(name) > 1]
    require(not twice, f"{where}: must be distinct, found {', '.join(names)}")
    others = tuple(float(name) for name in names if name != "1")
    require(len(others) > 0, f"{where}: 1 is the size of the model block; name another one, such as [0.4, 1, 2.5]")
    require(len(others) <= MOST_SIZES, f"{where}: at most {MOST_SIZES} besides 1, found {len(others)}")
    return others
