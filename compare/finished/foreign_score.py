"""Bits per character of a model that others trained, and its differences from the runs of an experiment."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from compare.certainty.intervals import over_text
from compare.characters import Float64Array, Int64Array, document_nats
from compare.runs import read_run
from compare.steps import Steps
from data.clean import end_with_newline, minimal
from data.sources.local_text import load_local_text
from model.exchange.foreign import ForeignModel, ForeignScore, load_foreign, score_documents
from model.report import REPORT

_LN2 = float(np.log(2))


def score_model(
    steps: Steps, folder: Path, paths: Sequence[str], *, block: int | None, stride: int | None
) -> dict[str, Any]:
    """The figure of the model in `folder` and its interval, and, on the experiment's own test, its finished runs.

    `paths` name the text; where there are none, it is the experiment's test split. `block` and `stride` are in tokens.
    Raises UserError.
    """
    documents = _documents(steps, paths)
    model = load_foreign(folder, block_size=block)
    score = score_documents(model, documents, stride=stride)
    ours = {} if paths else _finished_runs(steps)
    return _as_data(model, score, ours, "given files" if paths else steps.experiment.corpus.corpus_name)


def _documents(steps: Steps, paths: Sequence[str]) -> list[str]:
    """The documents of test, or those in the given files, cleaned as a corpus is."""
    if not paths:
        return steps.data()["test"].documents()
    corpus = load_local_text({None: list(paths)}, None)
    return [end_with_newline(minimal(document.text)) for document in corpus.documents]


def _finished_runs(steps: Steps) -> dict[str, Float64Array]:
    """Contestant -> nats (D,) of each document of test, the mean over its runs, where all of them are scored."""
    experiment, test = steps.experiment, steps.data()["test"]
    found = {}
    for name in experiment.contestants:
        folders = [experiment.run_folder(name, seed) for seed in experiment.seeds_of(name)]
        if not all((place / REPORT).exists() for place in folders):
            continue
        runs = [read_run(place) for place in folders]
        if all(run.test.text_sha256 == test.sha256 for run in runs):
            found[name] = np.mean([document_nats(run.evaluations["test"]) for run in runs], axis=0)
    return found


def _as_data(model: ForeignModel, score: ForeignScore, ours: dict[str, Float64Array], text: str) -> dict[str, Any]:
    chars = score.num_chars
    return {
        "model": str(model.folder),
        "architecture": model.architecture,
        "parameters": model.num_parameters,
        "block_size": model.block_size,
        "stride": score.stride,
        "context": model.context_in_words,
        "text": text,
        "num_chars": int(chars.sum()),
        "num_documents": len(chars),
        "num_tokens": score.num_tokens,
        "disjoint_bits_per_char": score.disjoint_total_nats / _LN2 / int(chars.sum()),
        **_figure(score.nats, np.zeros_like(score.nats), chars),
        "differences": {name: _figure(score.nats, nats, chars) for name, nats in ours.items()},
        "contestants": {name: _figure(nats, np.zeros_like(nats), chars) for name, nats in ours.items()},
    }


def _figure(nats: Float64Array, less: Float64Array, chars: Int64Array) -> dict[str, Any]:
    """(nats - less) in bits per character, with the 95 % interval over documents where there are two at least."""
    estimate = over_text(nats / _LN2, less / _LN2, chars)
    return {
        "bits_per_char": float((nats - less).sum()) / _LN2 / int(chars.sum()),
        "interval": None if estimate is None else [estimate.interval.low, estimate.interval.high],
    }


def as_text(found: dict[str, Any]) -> str:
    """What the command prints."""
    lines = [
        f"{found['model']}: {found['architecture']}, {found['parameters']:,} parameters",
        f"on {found['num_chars']:,} characters in {found['num_documents']:,} documents of {found['text']};",
        f"each document is read after {found['context']};",
        f"windows of {found['block_size']:,} tokens that move on by {found['stride']:,}",
        "",
        f"bits per character: {_with_interval(found)}",
        f"  disjoint windows: {found['disjoint_bits_per_char']:.4f}",
        f"characters per token: {found['num_chars'] / found['num_tokens']:.3f}",
    ]
    if found["contestants"]:
        lines += ["", "The contestants of the experiment on the same text, and this model's figure minus theirs:"]
        for name, figure in found["contestants"].items():
            difference = _with_interval(found["differences"][name], "+")
            lines.append(f"  {name}: {_with_interval(figure)}; difference {difference}")
    return "\n".join(lines)


def _with_interval(figure: dict[str, Any], sign: str = "") -> str:
    form = f"{{:{sign}.4f}}"
    written = form.format(figure["bits_per_char"])
    if figure["interval"] is None:
        return f"{written} (no interval: one document)"
    low, high = (form.format(end) for end in figure["interval"])
    return f"{written} (95 % interval over documents {low} to {high})"
