"""A finished run as a folder for other programs, proven equal before it is there.

`transformers`: AutoModelForCausalLM and AutoTokenizer load the folder, without a network. `safetensors`: the weights
under our own names, and a file of plain torch that computes the logits from them. `onnx`: a graph for onnxruntime.
"""

import dataclasses
import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from data.errors import ConfigError, TokenizerError
from data.files import write_json, write_text
from data.numbers import shown
from model import checkpoint
from model.exchange.card import Figures, model_card
from model.exchange.foreign import (
    ForeignModel,
    encode,
    first_difference,
    import_transformers,
    load_foreign,
    score_documents,
)
from model.exchange.huggingface import Converted, convert
from model.exchange.loaded import LanguageModel
from model.exchange.loader import loader_source
from model.exchange.onnx import GRAPH, write_graph
from tokenizer.base import Tokenizer
from tokenizer.export.formats import HF_FILE, files_of

TOLERANCE = 1e-4
"""Of logits, and of bits per character of the checked text."""
WEIGHTS = "model.safetensors"
_CHECKED_CHARACTERS = 20_000
_CHECKED_WINDOWS = 8


@dataclass(frozen=True)
class Exported:
    """What was written, and how close it is to the original."""

    folder: Path
    architecture: str
    num_parameters: int
    is_widened: bool
    largest_difference: float
    """Of two logits for the checked windows."""
    bits_difference: float
    """In bits per character of the checked documents."""


def export_model(
    model: LanguageModel, figures: Figures, documents: Sequence[str], out: Path, format_name: str = "transformers"
) -> Exported:
    """Write `model` into the new folder `out`; `documents` are those of test, on which the result is checked.

    Raises ConfigError where the format has no place for the model or `out` holds something, TokenizerError where the
    library encodes the text in another way. Nothing lies at `out` unless all checks have passed.
    """
    writers: dict[str, Callable[[LanguageModel, Figures, Sequence[str], Path], Exported]] = {
        "transformers": _write_transformers,
        "safetensors": _write_plain,
        "onnx": _write_onnx,
    }
    if format_name not in writers:
        raise ConfigError(f"a model is exported as {', '.join(writers)}, found {format_name!r}")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"{out} holds something already; give a new folder, or remove it")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as temporary:
        made = Path(temporary) / out.name
        made.mkdir()
        exported = writers[format_name](model, figures, documents, made)
        if out.exists():
            out.rmdir()
        made.rename(out)
    return dataclasses.replace(exported, folder=out)


# transformers


def _write_transformers(model: LanguageModel, figures: Figures, documents: Sequence[str], folder: Path) -> Exported:
    transformers = import_transformers()
    converted = convert(model.gpt)
    made = getattr(transformers, converted.architecture)
    theirs = made(made.config_class(**converted.config)).eval()
    missing, unexpected = theirs.load_state_dict(converted.weights, strict=False)
    if unexpected or set(missing) - {"lm_head.weight"}:  # the head is tied to the token table
        raise RuntimeError(f"{converted.architecture} lacks {missing} and does not know {unexpected}")
    theirs.tie_weights()
    theirs.generation_config = transformers.GenerationConfig(
        do_sample=True, temperature=0.8, max_length=model.gpt.config.block_size
    )
    theirs.save_pretrained(folder)
    (folder / HF_FILE).write_bytes(files_of(model.tokenizer, "hf")[HF_FILE])
    write_json(folder / "tokenizer_config.json", _tokenizer_config(model))
    foreign = load_foreign(folder)
    check_ids(foreign.tokenizer, model.tokenizer, documents)
    logits = _largest_difference(model, documents, lambda ids: foreign.module(input_ids=ids).logits)
    bits = _bits_difference(model, foreign, documents)
    exported = Exported(folder, converted.architecture, foreign.num_parameters, converted.is_widened, logits, bits)
    _refuse_differences(exported)
    write_text(folder / "README.md", model_card(model, figures, _how_to_load(converted)))
    return exported


def _tokenizer_config(model: LanguageModel) -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": model.gpt.config.block_size,
        "clean_up_tokenization_spaces": False,
    }


def check_ids(theirs: Any, ours: Tokenizer, documents: Sequence[str]) -> None:
    """Raise TokenizerError at the first document of which their ids or their decoded text are not ours."""
    for number, document in enumerate(documents, start=1):
        wanted, found = ours.encode(document), encode(theirs, document)
        if wanted != found:
            at = first_difference(wanted, found)
            before = ours.decode_bytes(wanted[:at]).decode("utf-8", "replace")
            raise TokenizerError(
                f"document {number} of test: after {len(before):,} characters the library gives the ids "
                f"{shown(found[at : at + 3])}, ours are {shown(wanted[at : at + 3])}; its edition of Unicode or its "
                "special tokens cut this text in another way, so nothing was written"
            )
        decoded = theirs.decode(found, clean_up_tokenization_spaces=False)
        if decoded != document:
            raise TokenizerError(f"document {number} of test comes back as another text; nothing was written")


def _how_to_load(converted: Converted) -> str:
    widened = (
        "\nThe model divides queries and keys by their root mean square. No architecture of transformers has that "
        "together with LayerNorm, so each vector is kept twice and the second half is multiplied by zero. The logits "
        "are the same; the file holds more weights than the model has, and they must not be trained further.\n"
    )
    return (
        "```python\nfrom transformers import AutoModelForCausalLM, AutoTokenizer\n\n"
        'model = AutoModelForCausalLM.from_pretrained("FOLDER")\n'
        'tokenizer = AutoTokenizer.from_pretrained("FOLDER")\n```\n' + (widened if converted.is_widened else "")
    )


# Our own names


def _write_plain(model: LanguageModel, figures: Figures, documents: Sequence[str], folder: Path) -> Exported:
    try:
        from safetensors.torch import load_file, save_file
    except ModuleNotFoundError as error:
        raise ConfigError("the package safetensors is not installed; `pip install safetensors` installs it") from error
    weights = {name: value.detach().cpu().contiguous() for name, value in model.gpt.state_dict().items()}
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
    write_json(folder / "config.json", {"architecture": "MiniGPT", **dataclasses.asdict(model.gpt.config)})
    shutil.copyfile(model.folder / checkpoint.TOKENIZER_COPY, folder / "tokenizer.json")
    source = loader_source()
    write_text(folder / "logits.py", source)
    names: dict[str, Any] = {"__name__": "logits"}
    exec(compile(source, "logits.py", "exec"), names)  # what is checked is the very file that was written
    config = SimpleNamespace(**json.loads((folder / "config.json").read_text(encoding="utf-8")))
    read = load_file(folder / WEIGHTS)
    logits = _largest_difference(model, documents, lambda ids: names["logits"](read, config, ids))
    exported = Exported(folder, "MiniGPT", model.gpt.num_parameters(), False, logits, 0.0)
    _refuse_differences(exported)
    how = (
        "```python\nimport logits  # the file in this folder; it needs torch and safetensors\n\n"
        'weights, config = logits.load("FOLDER")\nprint(logits.logits(weights, config, ids))  # ids (B, T)\n```\n'
    )
    write_text(folder / "README.md", model_card(model, figures, how))
    return exported


def _write_onnx(model: LanguageModel, figures: Figures, documents: Sequence[str], folder: Path) -> Exported:
    run = write_graph(model.gpt, folder)
    write_json(folder / "config.json", {"architecture": "MiniGPT", **dataclasses.asdict(model.gpt.config)})
    shutil.copyfile(model.folder / checkpoint.TOKENIZER_COPY, folder / "tokenizer.json")
    logits = _largest_difference(model, documents, run)
    exported = Exported(folder, "MiniGPT", model.gpt.num_parameters(), False, logits, 0.0)
    _refuse_differences(exported)
    how = (
        "```python\nimport onnxruntime\n\n"
        f'session = onnxruntime.InferenceSession("FOLDER/{GRAPH}")\n'
        'print(session.run(None, {"input_ids": ids})[0])  # ids (B, T), int64\n```\n'
    )
    write_text(folder / "README.md", model_card(model, figures, how))
    return exported


# Checks


@torch.inference_mode()
def _largest_difference(
    model: LanguageModel, documents: Sequence[str], logits: Callable[[torch.Tensor], torch.Tensor]
) -> float:
    """The largest difference of two logits over the first windows of the text."""
    block_size = model.gpt.config.block_size
    ids: list[int] = []
    for document in documents:
        ids += model.encode(document[:_CHECKED_CHARACTERS])
        if len(ids) >= _CHECKED_WINDOWS * block_size:
            break
    largest = 0.0
    for begin in range(0, min(len(ids), _CHECKED_WINDOWS * block_size), block_size):
        window = torch.tensor([ids[begin : begin + block_size]])
        largest = max(largest, float((model.gpt(window) - logits(window)).abs().max()))
    return largest


def _bits_difference(model: LanguageModel, foreign: ForeignModel, documents: Sequence[str]) -> float:
    """The difference in bits per character of the first documents, both scored by the rules of the comparison."""
    checked: list[str] = []
    for document in documents:
        checked.append(document[: _CHECKED_CHARACTERS - sum(map(len, checked))])
        if sum(map(len, checked)) >= _CHECKED_CHARACTERS:
            break
    ours = model.score(checked)
    theirs = score_documents(foreign, checked, stride=ours.stride)
    bits = float(theirs.nats.sum()) / float(np.log(2)) / ours.num_chars
    return abs(bits - ours.bits_per_char)


def _refuse_differences(exported: Exported) -> None:
    """Raise RuntimeError, which is a bug, if the copy does not compute what the original does."""
    if not max(exported.largest_difference, exported.bits_difference) <= TOLERANCE:
        raise RuntimeError(
            f"the exported {exported.architecture} differs from the model: logits by {exported.largest_difference}, "
            f"bits per character by {exported.bits_difference}; at most {TOLERANCE} is allowed"
        )
