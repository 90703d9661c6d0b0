"""The optimizers: AdamW for everything, or Muon for the hidden matrices and AdamW for the rest.

They are written out here and work on the arrays of `flat`. torch's own import its compiler at their first step, which
takes seconds, and call an operation for each parameter.
"""

import math
from typing import Any

import numpy as np
import torch

from model.fused import kernels
from model.fused.ops import has_kernels
from model.gpt import MiniGPT
from model.settings import TrainConfig
from model.training.flat import layout_of

_MOMENTUM = 0.95
_EPSILON = 1e-8
_STEPS = 5
_QUINTIC = (3.4445, -4.7750, 2.0315)
"""(a, b, c) of a x + b x^3 + c x^5, the polynomial of each step."""
NUM_SMALL_PRODUCTS = 4 * _STEPS - 3
"""Products of two (m, m) matrices for each matrix in a step of Muon."""


def orthogonalize(stacks: list[torch.Tensor]) -> list[torch.Tensor]:
    """About U V^T of each U S V^T in each of `stacks` (N, m, n), m <= n: the nearest matrix of equal singular values.

    Five Newton-Schulz steps of Jordan et al. 2024 (Muon) leave the singular values between 0.7 and 1.2. Each multiplies
    from the left by a polynomial of X X^T, so all are taken on that small square, for all stacks of one m together, and
    X comes in once at the end. Starting from a tighter bound of the largest singular value learned less per step, with
    five steps and with fewer (docs/benchmarks.md).
    """
    found: dict[int, torch.Tensor] = {}
    for m in sorted({stack.shape[1] for stack in stacks}):
        same = [number for number, stack in enumerate(stacks) if stack.shape[1] == m]
        products = _products(torch.cat([torch.bmm(stacks[number], stacks[number].mT) for number in same]))
        parts = torch.split(products, [len(stacks[number]) for number in same])
        found |= {number: torch.bmm(part, stacks[number]) for number, part in zip(same, parts, strict=True)}
    return [found[number] for number in range(len(stacks))]


def _products(gram: torch.Tensor) -> torch.Tensor:
    """What X has to be multiplied by, for each X X^T in `gram` (N, m, m)."""
    # The sum of the squares of X, which the square of its largest singular value does not exceed.
    length = gram.diagonal(dim1=1, dim2=2).sum(dim=1)[:, None, None] + 1e-14
    gram = gram / length
    a, b, c = _QUINTIC
    product = polynomial = None
    for _ in range(_STEPS):
        if polynomial is not None:
            gram = torch.bmm(torch.bmm(polynomial, gram), polynomial)
        polynomial = torch.bmm(gram, gram).mul_(c).add_(gram, alpha=b)
        polynomial.diagonal(dim1=1, dim2=2).add_(a)
        product = polynomial if product is None else torch.bmm(polynomial, product)
    assert product is not None
    result: torch.Tensor = product * length.rsqrt()
    return result


class Muon:
    """Momentum whose step is orthogonalised: every direction of a matrix moves equally far (Jordan et al. 2024).

    The step of an (m, n) matrix is 0.2 * sqrt(max(m, n)) long per entry, which makes its root mean square AdamW's, so
    that both share learning rate and weight decay (Liu et al. 2025, "Muon is scalable", section 2.2).
    """

    def __init__(self, weights: list[torch.Tensor], momenta: list[torch.Tensor], weight_decay: float) -> None:
        """`weights` and `momenta` are stacks (N, m, n), which the steps change."""
        self.weights, self.momenta, self.weight_decay = weights, momenta, weight_decay

    def step(self, gradients: list[torch.Tensor], learning_rate: float) -> None:
        """One step along `gradients`, stacks as well."""
        ahead = []
        for momentum, gradient in zip(self.momenta, gradients, strict=True):
            momentum.lerp_(gradient, 1.0 - _MOMENTUM)
            ahead.append(_lying(gradient.lerp(momentum, _MOMENTUM)))  # Nesterov's look ahead
        for weight, move in zip(self.weights, orthogonalize(ahead), strict=True):
            length = 0.2 * max(weight.shape[1:]) ** 0.5
            weight.mul_(1.0 - learning_rate * self.weight_decay)
            _lying(weight).add_(move, alpha=-learning_rate * length)


def _lying(matrices: torch.Tensor) -> torch.Tensor:
    """A view of `matrices` (N, m, n) that are not taller than wide."""
    return matrices.mT if matrices.shape[1] > matrices.shape[2] else matrices


def adamw(
    weights: torch.Tensor,
    gradient: torch.Tensor,
    moments: tuple[torch.Tensor, torch.Tensor],
    *,
    betas: tuple[float, float],
    step: int,
    learning_rate: float,
    weight_decay: float,
) -> None:
    """Step number `step`, from 1, of AdamW (Loshchilov and Hutter 2019) on arrays (n,): `weights`, and both `moments`.

    The kernel is one pass; elsewhere than on the CPU in float32 the formula is taken operation by operation.
    """
    first, second = moments
    size = learning_rate / (1.0 - betas[0] ** step)
    root, kept = math.sqrt(1.0 - betas[1] ** step), 1.0 - learning_rate * weight_decay
    if has_kernels(weights):
        arrays = (array.numpy() for array in (weights, gradient, first, second))
        kernels.adamw(*arrays, *(np.float32(value) for value in (*betas, size, root, kept, _EPSILON)))
        return
    weights.mul_(kept)
    first.lerp_(gradient, 1.0 - betas[0])
    second.mul_(betas[1]).addcmul_(gradient, gradient, value=1.0 - betas[1])
    weights.addcdiv_(first, second.sqrt().div_(root).add_(_EPSILON), value=-size)


class Optimizers:
    """All optimizers of a run behind one interface."""

    def __init__(self, model: MiniGPT, config: TrainConfig) -> None:
        """AdamW decays whatever has two dimensions, and nothing else; Muon takes the matrices of the blocks.

        The parameters of `model` become views of one array.
        """
        self.config, self.layout = config, layout_of(model)
        self.weights = self.layout.lay()
        self.num_steps = 0
        self.begin = self.layout.num_hidden if config.optimizer == "muon" else 0  # of what AdamW takes
        self.momentum = torch.zeros_like(self.weights[: self.begin])
        self.first, self.second = (torch.zeros_like(self.weights[self.begin :]) for _ in range(2))
        self.muon = None
        if self.begin:
            stacks = self.layout.stacks(self.weights), self.layout.stacks(self.momentum)
            self.muon = Muon(*stacks, config.weight_decay)

    @torch.no_grad()
    def step(self, learning_rate: float, gradient: torch.Tensor | None = None) -> None:
        """One step of all of them at `learning_rate`.

        `gradient` is one array in the layout's order; without it, it is gathered from the parameters.
        """
        if gradient is None:
            parts = [parameter.grad for parameter in self.layout.parameters]
            gradient = torch.cat([part.reshape(-1) for part in parts if part is not None])
        if len(gradient) != len(self.weights):
            raise ValueError("a step follows a backward pass")
        self.num_steps += 1
        if self.muon is not None:
            self.muon.step(self.layout.stacks(gradient), learning_rate)
        config, middle = self.config, self.layout.num_decayed
        for begin, end, decay in ((self.begin, middle, config.weight_decay), (middle, len(self.weights), 0.0)):
            own = slice(begin - self.begin, end - self.begin)
            adamw(
                self.weights[begin:end],
                gradient[begin:end],
                (self.first[own], self.second[own]),
                betas=(config.beta1, config.beta2),
                step=self.num_steps,
                learning_rate=learning_rate,
                weight_decay=decay,
            )

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` needs to go on."""
        moments = {"momentum": self.momentum, "first": self.first, "second": self.second}
        return {"num_steps": self.num_steps, **moments}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over `state_dict` of the same optimizers."""
        self.num_steps = state["num_steps"]
        for name in ("momentum", "first", "second"):
            getattr(self, name).copy_(state[name])
