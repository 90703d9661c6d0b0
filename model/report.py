"""report.json: the selected checkpoint of a finished run, scored on val and test, and what the run was."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from data.errors import CheckpointError, DataError
from data.files import read_json, sha256_file, write_json
from data.inputs import inputs_of, is_sealed, seal
from model import checkpoint
from model.evaluate import describe, evaluate_split, write_nats
from model.gpt import FLOPS_FORMULA, MiniGPT
from model.run_spec import RunSpec
from model.settings import EvaluateConfig
from model.training import same_run
from model.training.device import choose_device
from tokenizer.encode_splits import EncodedSplit

REPORT = "report.json"
SCORED = ("val", "test")
SCORER_VERSION = 1
"""Of how figures follow from a checkpoint and a text, and of what the report holds. It goes up with every change of
the scoring (windows, context, counts, formulas) that can change a figure: older reports are made again."""


def nats_path(folder: Path, split: str) -> Path:
    """Where the losses of `split` lie."""
    return folder / f"{split}_nats.npz"


def evaluate_contestant(
    spec: RunSpec,
    num_words: Mapping[str, int],
    config: EvaluateConfig,
    *,
    progress: bool = True,
) -> dict[str, Any]:
    """Score best.pt of the run `spec` on val and test; write {val,test}_nats.npz and report.json next to it, and return
    the report.

    `num_words` are the whitespace-separated words of each split's text. Raises CheckpointError when training is not
    finished or the checkpoint belongs to another tokenizer, text or configuration, and what `evaluate_split` raises.
    """
    folder, splits = spec.folder, spec.splits
    model, best = checkpoint.load_model(folder, "best", spec.tokenizer, spec.tokenizer_path)
    last = checkpoint.load(folder / checkpoint.LAST)
    same_run.verify_same_run(best, last, folder)
    same_run.verify_run(best, folder / checkpoint.BEST, checkpoint.identity_of(spec))
    if not last["finished"]:
        raise CheckpointError(
            f"{folder / checkpoint.LAST} is at step {last['spent']['steps']}, before the end of its budget; "
            "run the training again to finish it, then evaluate"
        )
    model.to(choose_device(spec.train_config.device))
    scored: dict[str, Any] = {}
    for name in SCORED:
        evaluation = evaluate_split(model, splits[name], spec.tokenizer, config, progress=progress)
        path = nats_path(folder, name)
        write_nats(path, evaluation)
        scored[name] = describe(evaluation, num_words[name]) | {
            "ids_sha256": splits[name].ids_sha256,
            "nats_file": path.name,
            "nats_sha256": sha256_file(path),
        }
    report = seal(
        _run_facts(model, best, last, splits["train"])
        | {
            "evaluate": _resolved(config, spec.model_config.block_size),
            "splits": scored,
            "checkpoint_sha256": sha256_file(folder / checkpoint.BEST),
            "inputs": report_inputs(spec, num_words, config),
        }
    )
    write_json(folder / REPORT, report)
    return report


def report_inputs(spec: RunSpec, num_words: Mapping[str, int], config: EvaluateConfig) -> dict[str, Any]:
    """Everything that a report is made from: both checkpoints, texts and their documents, tokenizer, settings."""
    settings = _resolved(config, spec.model_config.block_size)
    settings["num_words"] = {name: num_words[name] for name in SCORED}
    return inputs_of(
        SCORER_VERSION,
        texts={name: split.text_input for name, split in spec.splits.items()},
        tokenizers={"tokenizer": spec.tokenizer.fingerprint()},
        settings=settings,
        files={
            **{name: sha256_file(spec.folder / name) for name in (checkpoint.BEST, checkpoint.LAST)},
            **{f"{name}_ids": split.ids_sha256 for name, split in spec.splits.items()},
        },
    )


def _resolved(config: EvaluateConfig, block_size: int) -> dict[str, Any]:
    return dataclasses.asdict(config) | {"stride": config.stride_for(block_size)}


def _run_facts(model: MiniGPT, best: dict[str, Any], last: dict[str, Any], train: EncodedSplit) -> dict[str, Any]:
    """What the report says about the run itself. `seen` is the whole run, `selected` the checkpoint scored."""
    spent = last["spent"]
    total, embedding = model.num_parameters(), model.num_embedding_parameters()
    block_size = model.config.block_size
    return {
        "contestant": best["contestant"],
        "tokenizer": {
            "kind": best["tokenizer_kind"],
            "fingerprint": best["tokenizer_fingerprint"],
            "vocab_size": best["vocab_size"],
        },
        "model": best["model_config"],
        "train": best["train_config"],
        "parameters": {"total": total, "embedding": embedding, "rest": total - embedding},
        "seen": spent | {"epochs": spent["tokens"] / len(train.ids)},
        "tokens_per_second": spent["tokens"] / spent["seconds"],
        "flops_per_token": model.flops_per_token(),
        "flops_formula": FLOPS_FORMULA,
        "environment": last["environment"],
        "selected": best["best"],
        "block": {"tokens": block_size, "mean_characters": block_size * train.num_chars / len(train.ids)},
        "train_text_sha256": train.text_sha256,
    }


def report_is_up_to_date(spec: RunSpec, num_words: Mapping[str, int], config: EvaluateConfig) -> bool:
    """Whether report.json is of these inputs (see `report_inputs`), unedited, and of the losses that are next to it.

    A report that is damaged or of an older version is not: it is simply made again.
    """
    folder = spec.folder
    if not all((folder / name).exists() for name in (REPORT, checkpoint.BEST, checkpoint.LAST)):
        return False
    try:
        report = read_json(folder / REPORT)
    except DataError:
        return False
    if not is_sealed(report):
        return False
    if report.get("inputs") != report_inputs(spec, num_words, config):
        return False
    return all(
        nats_path(folder, name).exists()
        and report["splits"][name]["nats_sha256"] == sha256_file(nats_path(folder, name))
        for name in SCORED
    )
