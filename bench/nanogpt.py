"""nanoGPT as it is trained: its own model.py where its folder is given, else a plain GPT-2 of torch's modules."""

import contextlib
import importlib.util
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from data.config import require
from model.settings import MiniGPTConfig

SETTINGS = {"steps": 2000, "batch_size": 12, "warmup_steps": 100, "learning_rate": 1e-3, "minimum": 1e-4}
"""nanoGPT's published settings for a CPU; further: beta2 0.99, weight decay 0.1, gradient clip 1."""


class PlainGPT2(nn.Module):
    """Stands in for nanoGPT where its folder is not given: the same operations and first weights, by torch's modules.

    As in nanoGPT, `has_bias` says whether linear layers and norms have one.
    """

    def __init__(self, config: MiniGPTConfig, *, has_bias: bool = True) -> None:
        super().__init__()
        C, self.config = config.embedding_dim, config
        self.tokens, self.positions = nn.Embedding(config.vocab_size, C), nn.Embedding(config.block_size, C)
        names = ("norm1", "qkv", "out", "norm2", "up", "down")
        sizes = [(C, 3 * C), (C, C), (C, 4 * C), (4 * C, C)]
        self.layers = nn.ModuleList()
        for _ in range(config.num_layers):
            qkv, out, up, down = (nn.Linear(*size, bias=has_bias) for size in sizes)
            parts = (nn.LayerNorm(C, bias=has_bias), qkv, out, nn.LayerNorm(C, bias=has_bias), up, down)
            self.layers.append(nn.ModuleDict(dict(zip(names, parts, strict=True))))
        self.norm = nn.LayerNorm(C, bias=has_bias)
        for name, weight in self.named_parameters():
            if weight.ndim >= 2:  # GPT-2's: what is added to the residual stream starts smaller
                is_residual = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(weight, std=0.02 / (2 * config.num_layers) ** 0.5 if is_residual else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(weight)

    def forward(self, ids: torch.Tensor, targets: torch.Tensor) -> tuple[None, torch.Tensor]:
        """(None, mean loss), which is the order of nanoGPT's results."""
        B, T = ids.shape
        F = nn.functional  # noqa: N806 - the field's name for it
        p = self.config.dropout if self.training else 0.0
        x = F.dropout(self.tokens(ids) + self.positions.weight[:T], p)
        for layer in self.layers:
            assert isinstance(layer, nn.ModuleDict)
            packed = layer["qkv"](layer["norm1"](x)).view(B, T, 3, self.config.num_heads, -1)
            q, k, v = packed.permute(2, 0, 3, 1, 4)
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=p)
            x = x + F.dropout(layer["out"](mixed.transpose(1, 2).reshape(B, T, -1)), p)
            x = x + F.dropout(layer["down"](F.gelu(layer["up"](layer["norm2"](x)))), p)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return None, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def from_folder(folder: str, config: MiniGPTConfig) -> Any:
    """nanoGPT's own model, without biases as its train.py has it, from model.py in `folder`."""
    spec = importlib.util.spec_from_file_location("nanogpt_model", Path(folder) / "model.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sizes = module.GPTConfig(
        block_size=config.block_size, vocab_size=config.vocab_size, n_layer=config.num_layers,
        n_head=config.num_heads, n_embd=config.embedding_dim, dropout=config.dropout, bias=False,
    )  # fmt: skip
    with contextlib.redirect_stdout(None):  # it says how many parameters it has
        return module.GPT(sizes)


def check_folder(folder: str) -> None:
    """Raise ConfigError unless `folder` is empty (the stand-in is wanted) or holds model.py."""
    model = Path(folder) / "model.py"
    require(not folder or model.exists(), f"--nanogpt: {model} does not exist; name nanoGPT's folder")


def rate(step: int) -> float:
    """The learning rate of step `step`: linear warm-up, then cosine decay to the minimum."""
    peak, minimum, warmup = SETTINGS["learning_rate"], SETTINGS["minimum"], SETTINGS["warmup_steps"]
    if step < warmup:
        return peak * (step + 1) / (warmup + 1)
    share = (step - warmup) / (SETTINGS["steps"] - warmup)
    return minimum + 0.5 * (1.0 + math.cos(math.pi * share)) * (peak - minimum)


def training_steps(model: Any, ids: torch.Tensor, block_size: int) -> Iterator[None]:
    """nanoGPT's training loop on `ids` by SETTINGS, one step at a time."""
    matrices = [weight for weight in model.parameters() if weight.ndim >= 2]
    vectors = [weight for weight in model.parameters() if weight.ndim < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=SETTINGS["learning_rate"], betas=(0.9, 0.99))
    window = torch.arange(block_size + 1)
    model.train()
    for step in range(int(SETTINGS["steps"])):
        starts = torch.randint(len(ids) - block_size, (int(SETTINGS["batch_size"]),))
        windows = ids[starts[:, None] + window]
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        model(windows[:, :-1].contiguous(), windows[:, 1:].contiguous())[1].backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield
