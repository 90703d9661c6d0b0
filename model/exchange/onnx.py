"""A model as an ONNX graph, made by torch's exporter from the specification and run by onnxruntime to prove it."""

import logging
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from model import reference
from model.gpt import MiniGPT
from tokenizer.foreign.libraries import library

GRAPH = "model.onnx"


class _Specification(nn.Module):
    """The model's formulas over its weights: kernels of its own are no part of a graph."""

    def __init__(self, model: MiniGPT) -> None:
        super().__init__()
        self.config = model.config
        self.of_name = {name: name.replace(".", "__") for name in model.state_dict()}
        for name, value in model.state_dict().items():
            self.register_buffer(self.of_name[name], value.detach().cpu())

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits (B, T, V) after `ids` (B, T)."""
        weights = {name: self.get_buffer(buffer) for name, buffer in self.of_name.items()}
        return reference.logits(weights, self.config, ids)


def write_graph(model: MiniGPT, folder: Path) -> Callable[[torch.Tensor], torch.Tensor]:
    """Write `folder`/model.onnx and give its logits as onnxruntime computes them from that file.

    The input `input_ids` has any batch and up to block_size tokens. Raises LibraryError without the two packages.
    """
    library("onnxscript")
    runtime = library("onnxruntime")
    length = torch.export.Dim("length", min=1, max=model.config.block_size)
    shown = logging.getLogger("torch.onnx")
    level = shown.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter about itself
        shown.setLevel(logging.ERROR)
        try:
            program = torch.onnx.export(
                _Specification(model).eval(),
                (torch.zeros(2, min(2, model.config.block_size), dtype=torch.long),),
                dynamo=True,
                verbose=False,
                input_names=["input_ids"],
                output_names=["logits"],
                dynamic_shapes=({0: torch.export.Dim("batch"), 1: length},),
            )
        finally:
            shown.setLevel(level)
    assert program is not None, "the exporter by torch.export returns its program"
    program.save(str(folder / GRAPH), include_initializers=True)
    session = runtime.InferenceSession(str(folder / GRAPH), providers=["CPUExecutionProvider"])
    return lambda ids: torch.from_numpy(session.run(None, {"input_ids": ids.numpy()})[0])
