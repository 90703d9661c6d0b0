"""The optimizers: AdamW for everything, or Muon for the hidden matrices and AdamW for the rest.

They are written out here and work on the arrays of `flat`. torch's own import its compiler at their first step, which
takes seconds, and call an operation for each parameter.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from model.fused import kernels
from model.fused.ops import has_kernels
from model.gpt import MiniGPT
from model.settings import TrainConfig
from model.step.muon import MOMENTUM, QUINTIC, STEPS, TINY, StackedMuon
from model.training.flat import layout_of

_EPSILON = 1e-8
NUM_SMALL_PRODUCTS = 4 * STEPS - 3
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
    length = gram.diagonal(dim1=1, dim2=2).sum(dim=1)[:, None, None] + TINY
    gram = gram / length
    a, b, c = QUINTIC
    product = polynomial = None
    for _ in range(STEPS):
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
            momentum.lerp_(gradient, 1.0 - MOMENTUM)
            ahead.append(_lying(gradient.lerp(momentum, MOMENTUM)))  # Nesterov's look ahead
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


def _dealt(stacks: list[torch.Tensor], share: int, num_shares: int) -> list[torch.Tensor]:
    """Share number `share` of the matrices in `stacks`. Where a stack leaves a rest, every second one deals it from
    behind, so that no thread gets all rests."""
    numbers = [num_shares - 1 - share if number % 2 else share for number in range(len(stacks))]
    parts = [stack.tensor_split(num_shares)[number] for stack, number in zip(stacks, numbers, strict=True)]
    return [part for part in parts if len(part)]


def _one_after_another(work: Sequence[Callable[[], None]]) -> None:
    with torch.no_grad():  # a thread of its own has its own mode
        for part in work:
            part()


def _nothing() -> None:
    pass


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
        self.shared: list[StackedMuon] = []  # Muon on the CPU: what each thread of a step does of it
        self.shared_gradient: torch.Tensor | None = None  # which those read

    @torch.no_grad()
    def step(
        self,
        learning_rate: float,
        gradient: torch.Tensor | None = None,
        run: Callable[[Sequence[Callable[[], None]]], None] | None = None,
        num_shares: int = 1,
    ) -> None:
        """One step of all of them at `learning_rate`.

        `gradient` is one array in the layout's order; without it, it is gathered from the parameters. `run` does
        `num_shares` parts of the step side by side.
        """
        if gradient is None:
            parts = [parameter.grad for parameter in self.layout.parameters]
            gradient = torch.cat([part.reshape(-1) for part in parts if part is not None])
        if len(gradient) != len(self.weights):
            raise ValueError("a step follows a backward pass")
        self.num_steps += 1
        work: list[Callable[[], None]] = []
        if self.begin:
            work += self._muon_parts(learning_rate, gradient, num_shares)
        begins = torch.linspace(self.begin, len(self.weights), num_shares + 1).round().long().tolist()
        work += [partial(self._adamw, learning_rate, gradient, *bounds) for bounds in itertools.pairwise(begins)]
        if run is None:
            _one_after_another(work)
        else:
            run([partial(_one_after_another, work[share::num_shares]) for share in range(num_shares)])

    def _muon_parts(self, learning_rate: float, gradient: torch.Tensor, num_shares: int) -> list[Callable[[], None]]:
        """Muon's step in `num_shares` parts; on the CPU the first call makes their buffers."""
        arrays = [self.layout.stacks(array) for array in (self.weights, self.momentum, gradient)]
        learning_rate *= self.config.muon_rate
        decay = self.config.weight_decay
        if not has_kernels(self.weights):
            muon = Muon(arrays[0], arrays[1], decay)
            return [partial(muon.step, arrays[2], learning_rate), *[_nothing] * (num_shares - 1)]
        if len(self.shared) != num_shares or self.shared_gradient is not gradient:
            shares = [[_dealt(stacks, share, num_shares) for stacks in arrays] for share in range(num_shares)]
            self.shared, self.shared_gradient = [StackedMuon(*share) for share in shares], gradient
        return [partial(muon.step, learning_rate, decay) for muon in self.shared]

    def _adamw(self, learning_rate: float, gradient: torch.Tensor, begin: int, end: int) -> None:
        """AdamW's step of the entries from `begin` to `end`; vectors do not decay, tables have a rate of their own."""
        config, layout = self.config, self.layout
        tables, vectors = (min(max(begin, border), end) for border in (layout.num_hidden, layout.num_decayed))
        parts = (
            (begin, tables, 1.0, config.weight_decay),
            (tables, vectors, config.table_rate, config.weight_decay),
            (vectors, end, 1.0, 0.0),
        )
        for low, high, ratio, decay in parts:
            own = slice(low - self.begin, high - self.begin)
            adamw(
                self.weights[low:high],
                gradient[low:high],
                (self.first[own], self.second[own]),
                betas=(config.beta1, config.beta2),
                step=self.num_steps,
                learning_rate=learning_rate * ratio,
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
