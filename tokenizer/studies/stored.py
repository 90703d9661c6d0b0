"""The study and its pictures on disk: made once, and again when what they were made from has changed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from data.errors import ConfigError, DataError
from data.files import read_json, write_json
from data.inputs import is_sealed, output_hashes, seal
from data.lock import alone
from data.splits import Split
from tokenizer.base import Tokenizer
from tokenizer.bpe import BPETokenizer
from tokenizer.interop import find_gpt2_files, load_gpt2
from tokenizer.studies.study import StudyConfig, run_study, study_inputs
from tokenizer.studies.study_plot import draw_study, study_plot_paths


def stored_study(
    reports: Path,
    config: StudyConfig,
    splits: Mapping[str, Split],
    contestants: Mapping[str, Tokenizer],
    gpt2: BPETokenizer | None,
) -> tuple[dict[str, Any], str]:
    """The study in the folder `reports`, which is made if it is not up to date, and a line that says which it was."""
    path, pictures = reports / "study.json", study_plot_paths(reports)
    study = _stored(path) if all(file.exists() for file in (path, *pictures)) else {}
    is_current = study.get("inputs") == study_inputs(config, splits, contestants, gpt2)
    if is_current and study.get("outputs") == output_hashes(pictures):
        return study, f"study: up to date ({path})"
    study = run_study(config, splits, contestants, gpt2=gpt2)
    with alone(path):
        draw_study(reports, study)
        study = seal(study | {"outputs": output_hashes(pictures)})
        write_json(path, study)  # last: it is what says that the pictures are its own
    return study, "study: wrote " + ", ".join(map(str, (path, *pictures)))


def _stored(path: Path) -> dict[str, Any]:
    """The study as it was written; nothing if the file is damaged or edited, and then it is simply made again."""
    try:
        study = read_json(path)
    except DataError:
        return {}
    return study if is_sealed(study) else {}


def gpt2_tokenizer(folder: Path | None) -> BPETokenizer | None:
    """GPT-2's vocabulary from `folder`, else from what tiktoken fetched earlier, else None. Raises ConfigError."""
    if folder is not None:
        if not folder.is_dir():
            raise ConfigError(f"--gpt2 {folder}: no such folder; it holds encoder.json and vocab.bpe")
        return load_gpt2(folder / "encoder.json", folder / "vocab.bpe")
    found = find_gpt2_files()
    return load_gpt2(*found) if found else None
