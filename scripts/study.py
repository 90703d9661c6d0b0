"""Look at vocabularies: compression by size, glued punctuation, how words are cut, what a context spans."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compare import cli
from compare.options import folder, whole
from compare.steps import Steps
from data.errors import ConfigError, DataError
from data.files import read_json, write_json
from data.inputs import is_sealed, output_hashes, seal
from data.lock import alone
from data.numbers import Range, notes
from tokenizer.bpe import BPETokenizer
from tokenizer.interop import find_gpt2_files, load_gpt2
from tokenizer.studies.study import StudyConfig, run_study, study_inputs
from tokenizer.studies.study_plot import draw_study, study_plot_paths
from tokenizer.studies.study_text import as_text

DEFAULTS = StudyConfig()
_RANGES = notes(StudyConfig, Range)


def main(argv: Sequence[str] | None = None) -> None:
    """Command `study`: writes study.json and its picture into the experiment's reports, and prints a page."""
    parser = cli.parser(__doc__)
    parser.add_argument(
        "--merges",
        type=whole(_RANGES["num_merges"]),
        default=DEFAULTS.num_merges,
        help="of each vocabulary (%(default)s)",
    )
    parser.add_argument(
        "--width", type=whole(_RANGES["width"]), help="channels of the embedding; the experiment's by default"
    )
    parser.add_argument(
        "--window",
        type=whole(_RANGES["window_tokens"]),
        default=DEFAULTS.window_tokens,
        help="tokens of a context (%(default)s)",
    )
    parser.add_argument("--gpt2", type=folder, metavar="FOLDER", help="GPT-2's vocabulary: encoder.json and vocab.bpe")
    arguments = parser.parse_args(argv)
    steps = Steps(cli.experiment_of(arguments))
    config = StudyConfig(
        num_merges=arguments.merges,
        width=_embedding_dim(steps) if arguments.width is None else arguments.width,
        window_tokens=arguments.window,
    )
    gpt2 = _load_gpt2(arguments)
    splits = steps.data()
    contestants = {name: steps.tokenizer(name) for name in steps.experiment.contestants}
    reports = steps.layout.reports
    path = reports / "study.json"
    written = (path, *study_plot_paths(reports))
    study = _stored(path) if all(file.exists() for file in written) else {}
    if study.get("inputs") == study_inputs(config, splits, contestants, gpt2) and study.get("outputs") == output_hashes(
        study_plot_paths(reports)
    ):
        print(f"study: up to date ({path})")
    else:
        study = run_study(config, splits, contestants, gpt2=gpt2)
        with alone(path):
            draw_study(reports, study)
            study = seal(study | {"outputs": output_hashes(study_plot_paths(reports))})
            write_json(path, study)  # last: it is what says that the pictures are its own
        print("study: wrote " + ", ".join(map(str, written)))
    print(f"\n{as_text(study)}")
    if gpt2 is None:
        print("\nGPT-2's own vocabulary is not here; --gpt2 FOLDER (its encoder.json and vocab.bpe) adds it to these.")


def _stored(path: Path) -> dict[str, Any]:
    """The study as it was written; nothing if the file is damaged or edited, and then it is simply made again."""
    try:
        study = read_json(path)
    except DataError:
        return {}
    return study if is_sealed(study) else {}


def _embedding_dim(steps: Steps) -> int:
    """Channels of the model block; of the first contestant, should contestants differ."""
    first = next(iter(steps.experiment.contestants.values()))
    return first.model_config(vocab_size=1).embedding_dim


def _load_gpt2(arguments: argparse.Namespace) -> BPETokenizer | None:
    """GPT-2's vocabulary from the folder that was given, else from what tiktoken fetched earlier, else None."""
    if arguments.gpt2 is not None:
        if not arguments.gpt2.is_dir():
            raise ConfigError(f"--gpt2 {arguments.gpt2}: no such folder; it holds encoder.json and vocab.bpe")
        return load_gpt2(arguments.gpt2 / "encoder.json", arguments.gpt2 / "vocab.bpe")
    found = find_gpt2_files()
    return load_gpt2(*found) if found else None


if __name__ == "__main__":
    cli.run(main)
