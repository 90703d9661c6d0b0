"""The optimizers: AdamW for everything, or Muon for the hidden matrices and AdamW for the rest."""

from typing import Any

import torch
from torch import nn

from model.gpt import MiniGPT
from model.settings import TrainConfig

_MOMENTUM = 0.95
_STEPS = 5
_QUINTIC = (3.4445, -4.7750, 2.0315)


def orthogonalize(matrices: torch.Tensor) -> torch.Tensor:
    """About U V^T of each of `matrices` (N, m, n) = U S V^T, m <= n: the nearest matrix of equal singular values.

    Five Newton-Schulz steps of Jordan et al. 2024 (Muon) leave the singular values between 0.7 and 1.2. Each step
    multiplies from the left by a polynomial of X X^T, so all are taken on that small square and X comes in once at
    the end. torch's own Muon takes them on X, in bfloat16, which many CPUs compute many times slower.
    """
    x = matrices / (matrices.norm(dim=(1, 2), keepdim=True) + 1e-7)
    gram = x @ x.mT  # (N, m, m)
    identity = torch.eye(gram.shape[-1], dtype=x.dtype, device=x.device)
    a, b, c = _QUINTIC
    product = a * identity + torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
    polynomial = product
    for _ in range(_STEPS - 1):
        gram = polynomial @ gram @ polynomial
        polynomial = a * identity + torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        product = polynomial @ product
    result: torch.Tensor = product @ x
    return result


class Muon(torch.optim.Optimizer):
    """Momentum whose step is orthogonalised: every direction of a matrix moves equally far (Jordan et al. 2024).

    The step of an (m, n) matrix is 0.2 * sqrt(max(m, n)) long per entry, which makes its root mean square AdamW's, so
    that both share learning rate and weight decay (Liu et al. 2025, "Muon is scalable", section 2.2).
    """

    def __init__(self, parameters: list[nn.Parameter], *, lr: float, weight_decay: float) -> None:
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One step from the gradients that are there."""
        for group in self.param_groups:
            by_size: dict[tuple[int, ...], list[nn.Parameter]] = {}
            for parameter in group["params"]:
                by_size.setdefault(tuple(sorted(parameter.shape)), []).append(parameter)
            for (_, longest), parameters in by_size.items():  # all of one size at once: few large products
                moves = orthogonalize(torch.stack([_lying(self._ahead(parameter)) for parameter in parameters]))
                length = 0.2 * longest**0.5
                for parameter, move in zip(parameters, moves, strict=True):
                    parameter.mul_(1.0 - group["lr"] * group["weight_decay"])
                    _lying(parameter).add_(move, alpha=-group["lr"] * length)

    def _ahead(self, parameter: nn.Parameter) -> torch.Tensor:
        """Nesterov's look ahead along the momentum, which takes in the present gradient."""
        state = self.state[parameter]
        if not state:
            state["momentum"] = torch.zeros_like(parameter)
        assert parameter.grad is not None, "a step follows a backward pass"
        momentum: torch.Tensor = state["momentum"].lerp_(parameter.grad, 1.0 - _MOMENTUM)
        return parameter.grad.lerp(momentum, _MOMENTUM)


def _lying(matrix: torch.Tensor) -> torch.Tensor:
    """A view of `matrix` that is not taller than wide."""
    return matrix.mT if matrix.shape[0] > matrix.shape[1] else matrix


class Optimizers:
    """All optimizers of a run behind one interface."""

    def __init__(self, model: MiniGPT, config: TrainConfig) -> None:
        """AdamW decays whatever has two dimensions, and nothing else; Muon takes the matrices of the blocks."""
        matrices = [parameter for parameter in model.parameters() if parameter.ndim >= 2]
        vectors = [parameter for parameter in model.parameters() if parameter.ndim < 2]
        self.all: list[torch.optim.Optimizer] = []
        if config.optimizer == "muon":
            hidden = [parameter for parameter in model.blocks.parameters() if parameter.ndim >= 2]
            self.all.append(Muon(hidden, lr=config.learning_rate, weight_decay=config.weight_decay))
            chosen = set(hidden)
            matrices = [parameter for parameter in matrices if parameter not in chosen]
        groups = [
            {"params": matrices, "weight_decay": config.weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ]
        groups = [group for group in groups if group["params"]]
        betas = (config.beta1, config.beta2)
        self.all.append(torch.optim.AdamW(groups, lr=config.learning_rate, betas=betas, fused=True))

    def step(self, learning_rate: float) -> None:
        """One step of all of them at `learning_rate`."""
        for optimizer in self.all:
            for group in optimizer.param_groups:
                group["lr"] = learning_rate
            optimizer.step()

    def state_dict(self) -> list[dict[str, Any]]:
        """What `load_state_dict` needs to go on."""
        return [optimizer.state_dict() for optimizer in self.all]

    def load_state_dict(self, states: list[dict[str, Any]]) -> None:
        """Take over `state_dict` of the same optimizers."""
        for optimizer, state in zip(self.all, states, strict=True):
            optimizer.load_state_dict(state)
