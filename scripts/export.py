"""Write a contestant's model or tokenizer for other programs, proven equal to the original before it is there.

FORMAT transformers or safetensors writes the trained model with its tokenizer into a new folder. The other formats
write the tokenizer alone: its ids are compared on the whole test split and on texts that are easily cut otherwise.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from compare import cli
from compare.options import folder, whole
from compare.text_steps import TextSteps
from data.config import require
from data.numbers import SEED
from data.show import say
from tokenizer.export.formats import FORMATS
from tokenizer.export.prove import export

if TYPE_CHECKING:
    from compare.runs import Run
    from model.export import Exported

MODEL_FORMATS = ("transformers", "safetensors")
ONNX = "onnx"


def main(argv: Sequence[str] | None = None) -> None:
    """Command `export`. What the contestant needs is made first."""
    parser = cli.parser(__doc__)
    parser.add_argument("--contestant", default="bpe", help="whose model or tokenizer (%(default)s)")
    parser.add_argument(
        "--format",
        default="transformers",
        choices=(*MODEL_FORMATS, *FORMATS, ONNX),
        help="transformers: for AutoModelForCausalLM and AutoTokenizer; safetensors: the model under our own names; "
        "the others: the tokenizer for that tool (%(default)s)",
    )
    parser.add_argument("--out", type=folder, metavar="FOLDER", help="the folder to write; a new one for a model")
    parser.add_argument("--run-seed", type=whole(SEED), help="the run to take, where there are several; the first")
    arguments = parser.parse_args(argv)
    require(
        arguments.format != ONNX,
        "ONNX is not written: torch's exporter needs the package onnxscript, and to prove the file equal needs "
        "onnxruntime; write FORMAT=transformers and convert that folder with a tool of your choice",
    )
    require(arguments.out is not None, "--out FOLDER is missing: the folder that is to be written")
    if arguments.format in FORMATS:
        _export_tokenizer(arguments)
    else:
        _export_model(arguments)


def _export_tokenizer(arguments: argparse.Namespace) -> None:
    steps = TextSteps(cli.experiment_of(arguments))
    name = steps.experiment.contestant(arguments.contestant).name
    tokenizer, test = steps.tokenizer(name), steps.data()["test"]
    paths = export(tokenizer, arguments.format, test.documents(), arguments.out)
    written = ", ".join(str(path) for path in paths)
    say(f"export {name}: wrote {written}; its library gives the same ids for the {len(test.text):,} characters of test")


def _export_model(arguments: argparse.Namespace) -> None:
    from compare.runs import read_run  # here: a tokenizer is exported without torch
    from compare.steps import Steps
    from model.exchange.card import Figures
    from model.exchange.loaded import load_run
    from model.export import export_model

    steps = Steps(cli.experiment_of(arguments), echo=lambda line: print(line, file=sys.stderr))
    name = steps.experiment.contestant(arguments.contestant).name
    seed = steps.experiment.seeds_of(name)[0] if arguments.run_seed is None else arguments.run_seed
    run = read_run(steps.train(name, seed=seed).parent)
    figures = Figures(run.report, steps.experiment.corpus.corpus_name, _interval(run))
    documents = steps.data()["test"].documents()
    exported = export_model(load_run(run.folder), figures, documents, arguments.out, arguments.format)
    print(as_text(exported, num_documents=len(documents)))


def _interval(run: "Run") -> tuple[float, float] | None:
    """The 95 % interval of bits per character over the documents of test."""
    from compare.certainty.intervals import over_text
    from compare.characters import document_char_offsets, document_nats

    evaluation = run.evaluations["test"]
    bits = document_nats(evaluation) / np.log(2)
    estimate = over_text(bits, np.zeros_like(bits), np.diff(document_char_offsets(evaluation)))
    return None if estimate is None else (estimate.interval.low, estimate.interval.high)


def as_text(exported: "Exported", *, num_documents: int) -> str:
    """What was written and what was checked."""
    lines = [f"export: wrote {exported.folder}: {exported.architecture}, {exported.num_parameters:,} weights"]
    if exported.architecture == "MiniGPT":
        lines.append(f"  checked: logits within {exported.largest_difference:.1e}")
        return "\n".join(lines)
    if exported.is_widened:
        lines.append("  every vector is kept twice: no architecture there has this model's norms (README.md explains)")
    lines.append(
        f"  checked: ids equal on all {num_documents:,} documents of test, logits within "
        f"{exported.largest_difference:.1e}, bits per character within {exported.bits_difference:.1e}"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    cli.run(main)
