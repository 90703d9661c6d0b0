"""Whether what is stored of a run is the run that is asked for: settings, data, and how it was carried out."""

from pathlib import Path
from typing import Any

from data.errors import CheckpointError, command
from data.files import sha256_file
from model.checkpoint import BEST, FREE_SETTINGS, IDENTITY_KEYS, LAST, restart_of
from model.settings import TrainConfig


def verify_run(state: dict[str, Any], path: Path, wanted: dict[str, Any]) -> None:
    """Raise CheckpointError unless `state` read from `path` is of the run that `wanted` (identity_of) describes."""
    _verify_hashes(state, path, wanted["data"])
    mend = f"or train again with {command(restart_of(path))}"
    version = state.get("training_version", 1)
    if version != wanted["training_version"]:
        raise CheckpointError(
            f"{path} was trained by version {version} of the training, this is version {wanted['training_version']}, "
            f"which gives other results; use that version, {mend}"
        )
    for block in ("model_config", "train_config"):
        differences = _differences(state[block], wanted[block], block.removesuffix("_config"))
        if differences:
            is_of_ladder = state["train_config"].get("selection") == "last"
            has_other_budget = any(line.startswith("train.budget.amount was") for line in differences)
            on = "; a run with `ladder: {}` can go on" if has_other_budget and not is_of_ladder else ""
            raise CheckpointError(
                f"{path} was made with other settings: {'; '.join(differences)} in the configuration; "
                f"put them back, {mend}{on}"
            )
    if state["contestant"] != wanted["contestant"]:
        raise CheckpointError(
            f"{path} is of contestant {state['contestant']!r}, not of {wanted['contestant']!r}; "
            f"put it into its own folder, {mend}"
        )


def verify_environment(state: dict[str, Any], path: Path, train_config: TrainConfig) -> None:
    """Raise CheckpointError if the finished run in `state` was carried out in another way than settings now say.

    Numbers of threads, devices and types of product change the rounding and so the figures. What is left to `auto` or
    null agrees with everything; a run that is not finished yet may go on in another way.
    """
    carried_out = state["environment"]
    for key in ("device", "dtype", "compile", "num_threads"):
        wanted, done = getattr(train_config, key), carried_out.get(key)
        if key == "compile":
            done = "on" if done else "off"
        if wanted not in ("auto", None, done):
            free = "null" if key == "num_threads" else "auto"
            raise CheckpointError(
                f"{path} was finished with train.{key} {done}, but it is now {wanted}, which gives other figures; set "
                f"it to {done} or {free}, or train again with {command(restart_of(path))}"
            )


def verify_metrics(state: dict[str, Any], path: Path, last: Path) -> None:
    """Raise CheckpointError if the metrics in `path` are not those of the finished run in `state`, read from `last`."""
    recorded = state.get("metrics_sha256")  # older checkpoints record the number of lines only
    if recorded is not None:
        is_same = path.exists() and sha256_file(path) == recorded
    else:
        is_same = path.exists() and path.read_bytes().count(b"\n") == state["metrics_lines"]
    if not is_same:
        raise CheckpointError(
            f"{path} is missing or is not the file that {last} was written next to; put it back, or train again with "
            f"{command(restart_of(path))}"
        )


def _verify_hashes(state: dict[str, Any], path: Path, wanted: dict[str, dict[str, str]]) -> None:
    for name, data in wanted.items():
        stored = state["data"][name]
        anew = f"or train again with {command(restart_of(path))}"
        for key in ("text_sha256", "ids_sha256"):
            if stored[key] != data[key]:
                raise CheckpointError(
                    f"{path} was trained on {name} data with {key} {stored[key][:12]}… ({stored['path']}), but "
                    f"{data['path']} now has {data[key][:12]}…; put back that text, {anew}"
                )
        borders = stored.get("borders_sha256")
        if borders is None:
            raise CheckpointError(
                f"{path} does not record where the documents of {name} began when it was trained, so they may have "
                f"been others; put back a checkpoint that does, {anew}"
            )
        if borders != data["borders_sha256"]:
            raise CheckpointError(
                f"{path} was trained on {name} data cut into other documents (borders_sha256 {borders[:12]}…, "
                f"{data['path']} now has {data['borders_sha256'][:12]}…) of the same text; put back that separator or "
                f"those files, {anew}"
            )


def verify_same_run(best: dict[str, Any], last: dict[str, Any], folder: Path) -> None:
    """Raise CheckpointError unless best.pt and last.pt of `folder` are of one run.

    Where the data lies may differ: a folder that was copied to another machine is continued there, and best.pt may
    still be from before.
    """
    differing = [
        key for key in IDENTITY_KEYS if _differences(_without_paths(best[key]), _without_paths(last[key]), key)
    ]
    if differing or best["best"] != last["best"]:
        raise CheckpointError(
            f"{folder / BEST} and {folder / LAST} are not of the same run ({', '.join(differing) or 'best'} differs); "
            f"train again with {command(restart_of(folder / LAST))}"
        )


def _without_paths(value: Any) -> Any:
    """`value` with every `path` below it left out."""
    if isinstance(value, dict):
        return {key: _without_paths(item) for key, item in value.items() if key != "path"}
    return value


def _differences(stored: Any, wanted: Any, where: str) -> list[str]:
    """The settings that differ, each as `train.learning_rate was 0.001, is 0.003`."""
    if isinstance(stored, dict) and isinstance(wanted, dict):
        keys = [key for key in {**stored, **wanted} if key not in FREE_SETTINGS]
        absent = "not there"
        return [
            line
            for key in keys
            for line in _differences(stored.get(key, absent), wanted.get(key, absent), f"{where}.{key}")
        ]
    return [] if stored == wanted else [f"{where} was {stored}, is {wanted}"]
