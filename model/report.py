"""report.json: the selected checkpoint of a finished run, scored on val and test, and what the run was."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from data.errors import CheckpointError, DataError
from data.files import read_json, sha256_file, write_json
from data.inputs import inputs_of, is_sealed, seal
from model import checkpoint
from model.evaluate import EvaluateConfig, describe, evaluate_split, write_nats
from model.gpt import FLOPS_FORMULA, MiniGPT
from model.training.schedule import choose_device
from tokenizer.base import Tokenizer
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
    *,
    folder: Path,
    tokenizer: Tokenizer,
    tokenizer_path: Path,
    splits: dict[str, EncodedSplit],
    num_words: dict[str, int],
    config: EvaluateConfig,
    device: str = "auto",
    progress: bool = True,
) -> dict[str, Any]:
    """Score best.pt in `folder` on val and test; write {val,test}_nats.npz and report.json, and return the report.

    `num_words` are the whitespace-separated words of each split's text. Raises CheckpointError when training is not
    finished or the checkpoint belongs to another tokenizer or text, and what `evaluate_split` raises.
    """
    model, best = checkpoint.load_model(folder, "best", tokenizer, tokenizer_path)
    last = checkpoint.load(folder / checkpoint.LAST)
    checkpoint.verify_same_run(best, last, folder)
    checkpoint.verify_data(best, folder / checkpoint.BEST, splits)
    if not last["finished"]:
        raise CheckpointError(
            f"{folder / checkpoint.LAST} is at step {last['spent']['steps']}, before the end of its budget; "
            "run the training again to finish it, then evaluate"
        )
    model.to(choose_device(device))
    scored: dict[str, Any] = {}
    for name in SCORED:
        evaluation = evaluate_split(model, splits[name], tokenizer, config, progress=progress)
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
            "evaluate": _resolved(config, model.config.block_size),
            "splits": scored,
            "checkpoint_sha256": sha256_file(folder / checkpoint.BEST),
            "inputs": report_inputs(folder, tokenizer, splits, num_words, config, model.config.block_size),
        }
    )
    write_json(folder / REPORT, report)
    return report


def report_inputs(
    folder: Path,
    tokenizer: Tokenizer,
    splits: Mapping[str, EncodedSplit],
    num_words: Mapping[str, int],
    config: EvaluateConfig,
    block_size: int,
) -> dict[str, Any]:
    """Everything that a report is made from: both checkpoints, texts and their documents, tokenizer, settings."""
    return inputs_of(
        SCORER_VERSION,
        texts={name: split.text_input for name, split in splits.items()},
        tokenizers={"tokenizer": tokenizer.fingerprint()},
        settings=_resolved(config, block_size) | {"num_words": {name: num_words[name] for name in SCORED}},
        files={
            **{name: sha256_file(folder / name) for name in (checkpoint.BEST, checkpoint.LAST)},
            **{f"{name}_ids": split.ids_sha256 for name, split in splits.items()},
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


def report_is_up_to_date(
    folder: Path,
    tokenizer: Tokenizer,
    splits: Mapping[str, EncodedSplit],
    num_words: Mapping[str, int],
    config: EvaluateConfig,
    block_size: int,
) -> bool:
    """Whether report.json is of these inputs (see `report_inputs`), unedited, and of the losses that lie beside it.

    A report that is damaged or of an older version is not: it is simply made again.
    """
    if not all((folder / name).exists() for name in (REPORT, checkpoint.BEST, checkpoint.LAST)):
        return False
    try:
        report = read_json(folder / REPORT)
    except DataError:
        return False
    if not is_sealed(report):
        return False
    if report.get("inputs") != report_inputs(folder, tokenizer, splits, num_words, config, block_size):
        return False
    return all(
        nats_path(folder, name).exists()
        and report["splits"][name]["nats_sha256"] == sha256_file(nats_path(folder, name))
        for name in SCORED
    )
