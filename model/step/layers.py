"""Norm, linear map and MLP of the hand-written pass: forward, backward, and the buffers in between.

Each piece holds the weights and the parts of the flat gradient that are its own, under the names that MiniGPT gives
them. Shapes: R rows (batch * time), C channels, m and n widths.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from model.fused import kernels as fused
from model.fused.ops import NORM_EPSILON
from model.step import kernels

EPSILON = np.float32(NORM_EPSILON)


@dataclass(frozen=True)
class Tensors:
    """Weights and their gradients by name; all of them are views that a step reads and writes."""

    weights: Mapping[str, torch.Tensor]
    gradients: Mapping[str, torch.Tensor]

    def of(self, name: str) -> tuple[torch.Tensor, torch.Tensor]:
        """Weight `name` and its gradient."""
        return self.weights[name], self.gradients[name]


class LayerNorm:
    """LayerNorm with weight and bias."""

    def __init__(self, tensors: Tensors, name: str, shape: tuple[int, int]) -> None:
        """For rows of `shape` (R, C)."""
        weight, grad_weight = tensors.of(f"{name}.weight")
        bias, grad_bias = tensors.of(f"{name}.bias")
        self.own = weight.numpy(), bias.numpy()
        self.grads = grad_weight.numpy(), grad_bias.numpy()
        self.out, hat, inverse = torch.empty(shape), torch.empty(shape), torch.empty(shape[0])
        self.kept = hat.numpy(), inverse.numpy()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(R, C) -> (R, C)."""
        kernels.layer_norm(x.numpy(), *self.own, EPSILON, *self.kept, self.out.numpy())
        return self.out

    def backward(self, grad: torch.Tensor, total: torch.Tensor) -> None:
        """Add the gradient by the input to `total`, from `grad` by the output."""
        kernels.layer_norm_backward(*self.kept, self.own[0], grad.numpy(), total.numpy(), *self.grads)


class RMSNorm:
    """A division by the root mean square, without weights."""

    def __init__(self, shape: tuple[int, int]) -> None:
        """For rows of `shape` (R, C)."""
        self.out, self.inverse = torch.empty(shape), torch.empty(shape[0])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(R, C) -> (R, C)."""
        fused.rms_norm(x.numpy(), EPSILON, self.out.numpy(), self.inverse.numpy())
        return self.out

    def backward(self, grad: torch.Tensor, total: torch.Tensor) -> None:
        """Add the gradient by the input to `total`, from `grad` by the output."""
        kernels.rms_norm_backward(self.out.numpy(), self.inverse.numpy(), grad.numpy(), total.numpy())


class Linear:
    """x W^T + b."""

    def __init__(self, tensors: Tensors, name: str) -> None:
        self.weight, self.grad_weight = tensors.of(f"{name}.weight")  # (n, m)
        self.bias, self.grad_bias = tensors.of(f"{name}.bias")

    def forward(self, x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        """(R, m) -> `out` (R, n)."""
        return torch.addmm(self.bias, x, self.weight.T, out=out)

    def backward(self, x: torch.Tensor, grad: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        """The gradient by the input into `out` (R, m), from `grad` (R, n) by the output; those of the weights."""
        torch.mm(grad.T, x, out=self.grad_weight)
        kernels.column_sums(grad.numpy(), self.grad_bias.numpy())
        return torch.mm(grad, self.weight, out=out)


class MLP:
    """Widen, bend, narrow."""

    def __init__(self, tensors: Tensors, name: str, num_rows: int, *, is_relu_squared: bool) -> None:
        """For R = `num_rows`. GELU unless `is_relu_squared`."""
        self.widen, self.projection = Linear(tensors, f"{name}.widen"), Linear(tensors, f"{name}.projection")
        self.is_relu_squared = is_relu_squared
        hidden = len(self.widen.weight)
        self.widened, self.bent = torch.empty(num_rows, hidden), torch.empty(num_rows, hidden)
        # Of ReLU squared the positive part, which takes the place of what was bent; of GELU the slope.
        self.slope = self.widened if is_relu_squared else torch.empty(num_rows, hidden)

    def forward(self, x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        """(R, C) -> `out` (R, C)."""
        widened, bent = self.widen.forward(x, self.widened).view(-1), self.bent.view(-1)
        if self.is_relu_squared:
            kernels.relu_squared(widened.numpy(), bent.numpy())
        else:
            fused.gelu(widened.numpy(), bent.numpy(), self.slope.view(-1).numpy())
        return self.projection.forward(self.bent, out)

    def backward(self, x: torch.Tensor, grad: torch.Tensor, wide: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        """The gradient by the input `x` into `out` (R, C), from `grad` (R, C); `wide` (R, hidden) is scratch."""
        self.projection.backward(self.bent, grad, wide)
        if self.is_relu_squared:
            kernels.relu_squared_backward(self.slope.view(-1).numpy(), wide.view(-1).numpy())
        else:
            wide.mul_(self.slope)
        return self.widen.backward(x, wide, out)
