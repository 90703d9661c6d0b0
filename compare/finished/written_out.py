"""A contestant's model or tokenizer for other programs, proven equal to the original before it is there."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from compare.experiment import Experiment
from compare.text_steps import TextSteps
from data.show import counted, say
from tokenizer.export.prove import export

if TYPE_CHECKING:
    from compare.runs import Run
    from model.export import Exported

MODEL_FORMATS = ("transformers", "safetensors", "onnx")


def export_tokenizer(experiment: Experiment, contestant: str, form: str, out: Path) -> None:
    """Write the tokenizer of `contestant` into the folder `out`, in one of FORMATS, and say so. Raises UserError."""
    steps = TextSteps(experiment)
    name = experiment.contestant(contestant).name
    tokenizer, test = steps.tokenizer(name), steps.data()["test"]
    paths = export(tokenizer, form, test.documents(), out)
    written = ", ".join(str(path) for path in paths)
    say(f"export {name}: wrote {written}; its library gives the same ids for the {len(test.text):,} characters of test")


def export_trained_model(
    experiment: Experiment, contestant: str, form: str, out: Path, *, run_seed: int | None
) -> None:
    """Write the model of `contestant` into the new folder `out`, in one of MODEL_FORMATS, and say what was checked.

    `run_seed` names the run; by default it is the first. Raises UserError.
    """
    from compare.runs import read_run  # here: a tokenizer is exported without torch
    from compare.steps import Steps
    from model.exchange.card import Figures
    from model.exchange.loaded import load_run
    from model.export import export_model

    steps = Steps(experiment, echo=lambda line: print(line, file=sys.stderr))
    name = experiment.contestant(contestant).name
    seed = experiment.seeds_of(name)[0] if run_seed is None else run_seed
    run = read_run(steps.train(name, seed=seed).parent)
    figures = Figures(run.report, experiment.corpus.corpus_name, _interval(run))
    documents = steps.data()["test"].documents()
    exported = export_model(load_run(run.folder), figures, documents, out, form)
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
        lines.append(
            "  every vector is kept twice: no architecture there has this model's norms (README.md there explains)"
        )
    lines.append(
        f"  checked: ids equal on all of test ({counted(num_documents, 'document')}), logits within "
        f"{exported.largest_difference:.1e}, bits per character within {exported.bits_difference:.1e}"
    )
    return "\n".join(lines)
