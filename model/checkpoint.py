"""Checkpoints: tensors and plain values only, tied to one tokenizer, one text and one configuration.

`last.pt` holds everything that resuming needs; `best.pt` the weights with the lowest figure on the val sample.
"""

import dataclasses
import errno
import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch

from data.config import build
from data.errors import CheckpointError, command
from data.files import atomic_write, sha256_file
from data.layout import Layout
from model.gpt import MiniGPT
from model.run_spec import RunSpec
from model.settings import MiniGPTConfig
from tokenizer.base import Tokenizer
from tokenizer.encode_splits import EncodedSplit

FORMAT = 2
TRAINING_VERSION = 5
"""Of how weights and figures follow from data, settings and seed. It goes up with every change of the model or of the
training that changes a run's result, the choice of best.pt included; a run of another version is refused. Checkpoints
that do not name it are of version 1. Version 2: the val sample is spread over the documents of val. Version 3: its
length and the number of its figures follow from the budget. Version 4: an optimizer's state is one array a moment.
Version 5: a step's sums are taken in another order."""
LAST, BEST, TOKENIZER_COPY, CONFIG, METRICS = "last.pt", "best.pt", "tokenizer.json", "config.json", "metrics.jsonl"
RESULTS = ("report.json", "val_nats.npz", "test_nats.npz")
IDENTITY_KEYS = (
    "format",
    "contestant",
    "tokenizer_kind",
    "tokenizer_fingerprint",
    "tokenizer_sha256",
    "vocab_size",
    "model_config",
    "train_config",
    "data",
)
REQUIRED_KEYS = (*IDENTITY_KEYS, "model", "spent", "best", "finished", "environment")
_KINDS: dict[str, type] = {
    **dict.fromkeys(("contestant", "tokenizer_kind", "tokenizer_fingerprint", "tokenizer_sha256"), str),
    **dict.fromkeys(("model_config", "train_config", "data", "model", "spent", "environment"), dict),
    "vocab_size": int,
    "finished": bool,
}
_DATA_KEYS = ("path", "ids_sha256", "text_sha256")
_ANEW = "train again with FORCE=1"
# How a run is carried out, not what it is: these may change between a checkpoint and its continuation.
FREE_SETTINGS = frozenset({"num_threads", "device", "checkpoint_every_seconds", "dtype", "compile"})


def restart_command(*contestants: str) -> str:
    """What a user types to train contestants again."""
    return f"make {' '.join(f'train-{name}' for name in contestants)} FORCE=1"


def restart_of(path: Path) -> str:
    """The restart command for the run in whose folder `path` lies, whatever run its files say they are of."""
    return restart_command(Layout.contestant_of(path.parent))


def identity_of(spec: RunSpec) -> dict[str, Any]:
    """What a run is: the part of a checkpoint that must agree before it is continued or evaluated."""
    return {
        "format": FORMAT,
        "training_version": TRAINING_VERSION,
        "contestant": spec.contestant,
        "tokenizer_kind": spec.tokenizer.kind,
        "tokenizer_fingerprint": spec.tokenizer.fingerprint(),
        "tokenizer_sha256": sha256_file(spec.tokenizer_path),
        "vocab_size": spec.tokenizer.vocab_size,
        "model_config": dataclasses.asdict(spec.model_config),
        "train_config": dataclasses.asdict(spec.train_config),
        "data": _data_of(spec.splits),
    }


def _data_of(splits: Mapping[str, EncodedSplit]) -> dict[str, dict[str, str]]:
    """Where the data of a run lies and what it is; test is no part of a run."""
    return {
        name: {
            "path": str(splits[name].path),
            "ids_sha256": splits[name].ids_sha256,
            "text_sha256": splits[name].text_sha256,
            "borders_sha256": splits[name].borders_sha256,
        }
        for name in ("train", "val")
    }


def save(path: Path, state: dict[str, Any]) -> None:
    """Write `state` atomically. Raises TypeError for a value that `weights_only` loading would refuse."""
    plain = _storable(state, "state")
    with atomic_write(path) as file:
        torch.save(plain, file)


def _storable(value: Any, where: str) -> Any:
    """A copy of `value` fit for the file: tensors on the CPU, each owning just its own storage."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().clone(memory_format=torch.contiguous_format)
    if isinstance(value, dict):
        return {_storable(key, where): _storable(item, f"{where}[{key!r}]") for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_storable(item, f"{where}[{index}]") for index, item in enumerate(value)]
        return items if isinstance(value, list) else tuple(items)
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise TypeError(f"{where} is a {type(value).__name__}; checkpoints hold tensors and plain values only")


def load(path: Path) -> dict[str, Any]:
    """Read a checkpoint. Raises CheckpointError when it is absent, damaged, or not one of ours."""
    anew = command(restart_of(path))
    if not path.exists():
        raise CheckpointError(f"{path} does not exist; train the contestant with {anew}")
    try:
        with zipfile.ZipFile(path) as archive:  # torch checks no checksums: a flipped bit would pass for a weight
            packed = [item.filename for item in archive.infolist() if item.compress_type != zipfile.ZIP_STORED]
            if packed:  # ours are stored as they are, and a small file could claim any amount of memory
                raise zipfile.BadZipFile(f"{packed[0]} is compressed, which no checkpoint of this program is")
            damaged = archive.testzip()
        if damaged is not None:
            raise zipfile.BadZipFile(f"bad checksum of {damaged}")
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, pickle.UnpicklingError, zipfile.BadZipFile, EOFError, KeyError, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):  # a short file ends in EINVAL
            raise CheckpointError(f"cannot read {path}: {error.strerror}; the file itself may be whole") from error
        cause = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointError(
            f"{path} is damaged and cannot be read ({cause}); put it back, or train again with {anew}"
        ) from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        found = state.get("format") if isinstance(state, dict) else type(state).__name__
        raise CheckpointError(
            f"{path} is not a checkpoint of format {FORMAT} (found {found!r}); train again with {anew}"
        )
    missing = [key for key in REQUIRED_KEYS if key not in state]
    if missing:
        raise CheckpointError(f"{path} lacks {', '.join(missing)}; train again with {anew}")
    _check_kinds(state, path)
    return state


def _check_kinds(state: dict[str, Any], path: Path) -> None:
    """Raise CheckpointError unless what is used of `state` later is of the kind that was written."""
    for key, kind in _KINDS.items():
        if type(state[key]) is not kind:
            raise CheckpointError(f"{path}: {key} is {type(state[key]).__name__}, not {kind.__name__}; {_ANEW}")
    if type(state["best"]) not in (dict, type(None)):  # None before the first figure on the val sample
        raise CheckpointError(f"{path}: best is {type(state['best']).__name__}, not dict; {_ANEW}")
    for name in ("train", "val"):
        data = state["data"].get(name)
        if not (isinstance(data, dict) and all(type(data.get(key)) is str for key in _DATA_KEYS)):
            raise CheckpointError(f"{path}: data does not say what {name} was; {_ANEW}")
    if not all(isinstance(name, str) and isinstance(value, torch.Tensor) for name, value in state["model"].items()):
        raise CheckpointError(f"{path}: model holds something that is no tensor; {_ANEW}")


def verify_tokenizer(state: dict[str, Any], path: Path, tokenizer: Tokenizer, tokenizer_path: Path) -> None:
    """Raise CheckpointError unless the checkpoint `state` read from `path` was made with `tokenizer`.

    Identity is the fingerprint, so another tokenizer of equal size is refused as well; the copy of the tokenizer
    file that is next to the checkpoint must be unchanged.
    """
    stored, given = state["tokenizer_fingerprint"], tokenizer.fingerprint()
    if stored != given:
        raise CheckpointError(
            f"{path} was trained with tokenizer {stored[:12]}… ({state['vocab_size']} tokens), but {tokenizer_path} is "
            f"{given[:12]}… ({tokenizer.vocab_size} tokens); put back that tokenizer (a copy is "
            f"{path.parent / TOKENIZER_COPY}) or train again with {command(restart_of(path))}"
        )
    copy = path.parent / TOKENIZER_COPY
    found = sha256_file(copy) if copy.exists() else "nothing"
    if found != state["tokenizer_sha256"]:
        raise CheckpointError(
            f"{copy} is not the tokenizer file that {path} was trained with (sha256 {found[:12]}…, it recorded "
            f"{state['tokenizer_sha256'][:12]}…); copy {tokenizer_path} there again if that file has this hash, or "
            f"train again with {command(restart_of(path))}"
        )


def restore_model(state: dict[str, Any], path: Path) -> MiniGPT:
    """The model of a checkpoint, in evaluation mode, on the CPU. Raises CheckpointError if the weights do not fit."""
    config = build(MiniGPTConfig, state["model_config"], f"{path}: model_config")
    model = MiniGPT(config)
    try:
        model.load_state_dict(state["model"])
    except RuntimeError as error:
        cause = " ".join(str(error).split())
        raise CheckpointError(f"the weights in {path} do not fit its own model_config: {cause}; {_ANEW}") from error
    return model.eval()


def load_model(
    folder: Path, which: Literal["best", "last"], tokenizer: Tokenizer, tokenizer_path: Path
) -> tuple[MiniGPT, dict[str, Any]]:
    """The model (evaluation mode, on the CPU) and the whole state of `best.pt` or `last.pt` in `folder`.

    Raises CheckpointError for a missing or damaged file and for any tokenizer but the one it was trained with.
    """
    path = folder / (BEST if which == "best" else LAST)
    state = load(path)
    verify_tokenizer(state, path, tokenizer, tokenizer_path)
    return restore_model(state, path), state
