"""All parameters of a model in one array, in an order that suits the optimizers.

    hidden matrices, all of one shape side by side | tables (token, position) | vectors (biases, norms)
    ------------- Muon's, or AdamW's ------------- | ---------------- AdamW's ----------------------
    ----------------------- decayed -------------------------------------- | ----- not decayed -----

A gradient has the same order: it is summed over threads, measured, clipped and used up in one pass each.
"""

import itertools
from dataclasses import dataclass

import torch
from torch import nn

from model.gpt import MiniGPT


@dataclass(frozen=True)
class Layout:
    """Where each parameter of a model lies in the array."""

    parameters: list[nn.Parameter]
    """In the array's order."""
    shapes: list[tuple[int, int, int]]
    """(N, m, n): the array begins with N matrices (m, n), for each of these."""
    num_hidden: int
    """Entries of all those matrices."""
    num_decayed: int
    """Entries of these and of the tables, which come next."""

    @property
    def size(self) -> int:
        """Entries of the array."""
        return sum(parameter.numel() for parameter in self.parameters)

    def views(self, array: torch.Tensor) -> list[torch.Tensor]:
        """The part of `array` (size,) that is each parameter's, in its shape."""
        parts = torch.split(array, [parameter.numel() for parameter in self.parameters])
        return [part.view(parameter.shape) for part, parameter in zip(parts, self.parameters, strict=True)]

    def named(self, model: MiniGPT, array: torch.Tensor) -> dict[str, torch.Tensor]:
        """The same by the names that `model`, whose layout this is, gives its parameters."""
        views = {id(parameter): view for parameter, view in zip(self.parameters, self.views(array), strict=True)}
        return {name: views[id(parameter)] for name, parameter in model.named_parameters()}

    def stacks(self, array: torch.Tensor) -> list[torch.Tensor]:
        """The hidden matrices in `array` (at least num_hidden,), those of one shape as one view (N, m, n)."""
        sizes = [number * rows * columns for number, rows, columns in self.shapes]
        parts = torch.split(array[: self.num_hidden], sizes)
        return [part.view(shape) for part, shape in zip(parts, self.shapes, strict=True)]

    def lay(self) -> torch.Tensor:
        """A new array with all weights, of which the parameters are views from now on."""
        array = torch.cat([parameter.detach().reshape(-1) for parameter in self.parameters])
        for parameter, view in zip(self.parameters, self.views(array), strict=True):
            parameter.data = view
        return array


def layout_of(model: MiniGPT) -> Layout:
    """The order of `model`'s parameters, which follows from its configuration alone."""
    hidden = [parameter for parameter in model.blocks.parameters() if parameter.ndim == 2]
    hidden.sort(key=lambda parameter: parameter.shape)  # stable: layers keep their order
    chosen = set(hidden)
    tables = [parameter for parameter in model.parameters() if parameter.ndim == 2 and parameter not in chosen]
    vectors = [parameter for parameter in model.parameters() if parameter.ndim < 2]
    groups = [(shape, len(list(group))) for shape, group in itertools.groupby(hidden, key=lambda matrix: matrix.shape)]
    num_hidden = sum(matrix.numel() for matrix in hidden)
    return Layout(
        parameters=hidden + tables + vectors,
        shapes=[(number, shape[0], shape[1]) for shape, number in groups],
        num_hidden=num_hidden,
        num_decayed=num_hidden + sum(table.numel() for table in tables),
    )
