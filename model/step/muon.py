"""Muon's step on the CPU, for stacks of matrices in buffers that are made once.

The formulas are those of `model.training.optimizer`, which takes them operation by operation elsewhere. Here each of
momentum, normalising, polynomial and move is one pass, and only the products are torch's.
"""

from dataclasses import dataclass

import numpy as np
import torch

from model.step import kernels

MOMENTUM = 0.95
STEPS = 5
QUINTIC = (3.4445, -4.7750, 2.0315)
"""(a, b, c) of a x + b x^3 + c x^5, the polynomial of each step."""
TINY = 1e-14
"""Added to the sum of squares, so that a gradient of zero moves nothing."""


@dataclass(frozen=True)
class _Stack:
    """Some matrices of one shape (N, m, n), standing or lying as the model has them."""

    weight: torch.Tensor
    momentum: torch.Tensor
    gradient: torch.Tensor
    ahead: torch.Tensor
    move: torch.Tensor
    own: slice  # its matrices among the squares of its group


class _Squares:
    """Buffers (N, m, m) for all matrices whose shorter side is m."""

    def __init__(self, number: int, side: int) -> None:
        self.gram, self.other, self.polynomial, self.product, self.next = (
            torch.empty(number, side, side) for _ in range(5)
        )
        self.inverse = np.empty(number, dtype=np.float32)

    def multiply_up(self) -> torch.Tensor:
        """What each matrix has to be multiplied by, but for `inverse`, from its square in `gram`."""
        kernels.normalise(self.gram.numpy(), np.float32(TINY), self.inverse)
        coefficients = [np.float32(value) for value in QUINTIC]
        product, spare = self.product, self.next
        for step in range(STEPS):
            if step:
                torch.bmm(self.polynomial, self.gram, out=self.other)
                torch.bmm(self.other, self.polynomial, out=self.gram)
            # The first polynomial is the first product.
            polynomial = self.polynomial if step else product
            torch.bmm(self.gram, self.gram, out=polynomial)
            kernels.polynomial(self.gram.numpy(), polynomial.numpy(), *coefficients)
            if step:
                product, spare = torch.bmm(polynomial, product, out=spare), product
            else:
                self.polynomial.copy_(product)
        return product


class StackedMuon:
    """Muon for some stacks of matrices. One thread uses it at a time."""

    def __init__(self, weights: list[torch.Tensor], momenta: list[torch.Tensor], gradients: list[torch.Tensor]) -> None:
        """All are contiguous views (N, m, n) of what the steps read and change."""
        counts: dict[int, int] = {}
        self.stacks: list[tuple[int, _Stack]] = []
        for weight, momentum, gradient in zip(weights, momenta, gradients, strict=True):
            side, begin = min(weight.shape[1:]), counts.get(min(weight.shape[1:]), 0)
            counts[side] = begin + len(weight)
            buffers = torch.empty_like(weight), torch.empty_like(weight)
            self.stacks.append((side, _Stack(weight, momentum, gradient, *buffers, slice(begin, counts[side]))))
        self.squares = {side: _Squares(number, side) for side, number in counts.items()}

    @torch.no_grad()
    def step(self, learning_rate: float, weight_decay: float) -> None:
        """One step along the gradients."""
        for side, stack in self.stacks:
            flat = [array.view(-1).numpy() for array in (stack.gradient, stack.momentum, stack.ahead)]
            kernels.look_ahead(*flat, np.float32(MOMENTUM))
            ahead, square = stack.ahead, self.squares[side].gram[stack.own]
            is_lying = ahead.shape[1] <= ahead.shape[2]
            torch.bmm(*((ahead, ahead.mT) if is_lying else (ahead.mT, ahead)), out=square)
        products = {side: squares.multiply_up() for side, squares in self.squares.items()}
        for side, stack in self.stacks:
            product, ahead = products[side][stack.own], stack.ahead
            # The product is symmetric, so a standing matrix takes it from its right.
            is_lying = ahead.shape[1] <= ahead.shape[2]
            torch.bmm(*((product, ahead) if is_lying else (ahead, product)), out=stack.move)
            length = learning_rate * 0.2 * max(ahead.shape[1:]) ** 0.5
            inverse = self.squares[side].inverse[stack.own]
            kept = np.float32(1.0 - learning_rate * weight_decay)
            kernels.move(stack.weight.numpy(), stack.move.numpy(), inverse, kept, np.float32(length))
