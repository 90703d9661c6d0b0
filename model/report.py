"""report.json: the selected checkpoint of a finished run, scored on val and test, and what the run was."""

import dataclasses
from pathlib import Path
from typing import Any

from data.errors import CheckpointError, DataError
from data.files import sha256_file, write_json
from model import checkpoint
from model.evaluate import EvaluateConfig, describe, evaluate_split, write_nats
from model.gpt import FLOPS_FORMULA, MiniGPT
from model.report_file import read_report
from model.schedule import choose_device
from tokenizer.base import Tokenizer
from tokenizer.encode_splits import EncodedSplit

REPORT = "report.json"
SCORED = ("val", "test")


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
    report = _run_facts(model, best, last, splits["train"]) | {
        "evaluate": _resolved(config, model.config.block_size),
        "splits": scored,
        "checkpoint_sha256": sha256_file(folder / checkpoint.BEST),
    }
    write_json(folder / REPORT, report)
    return report


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


def report_is_up_to_date(folder: Path, splits: dict[str, EncodedSplit], config: EvaluateConfig) -> bool:
    """Whether report.json is of this best.pt, this configuration, these splits, and the losses that lie beside it."""
    if not (folder / REPORT).exists() or not (folder / checkpoint.BEST).exists():
        return False
    try:
        report = read_report(folder / REPORT)
        if report["evaluate"] != _resolved(config, report["model"]["block_size"]):
            return False
        if report["checkpoint_sha256"] != sha256_file(folder / checkpoint.BEST):
            return False
        stored = report["splits"]
        return all(
            stored[name]["ids_sha256"] == splits[name].ids_sha256
            and stored[name]["text_sha256"] == splits[name].text_sha256
            and nats_path(folder, name).exists()
            and stored[name]["nats_sha256"] == sha256_file(nats_path(folder, name))
            for name in SCORED
        )
    except DataError:
        return False  # a damaged report is simply made again
