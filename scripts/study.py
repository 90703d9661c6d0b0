"""Look at vocabularies: compression by size, glued punctuation, how words are cut, what a context spans."""

from collections.abc import Sequence

from compare import cli
from compare.options import folder, whole
from compare.steps import Steps
from data.numbers import Range, notes
from tokenizer.studies.stored import gpt2_tokenizer, stored_study
from tokenizer.studies.study import StudyConfig
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
    given = parser.parse_args(argv)
    steps = Steps(cli.experiment_of(given))
    config = StudyConfig(
        num_merges=given.merges,
        width=steps.experiment.embedding_dim() if given.width is None else given.width,
        window_tokens=given.window,
    )
    gpt2 = gpt2_tokenizer(given.gpt2)
    splits = steps.data()
    contestants = {name: steps.tokenizer(name) for name in steps.experiment.contestants}
    study, line = stored_study(steps.layout.reports, config, splits, contestants, gpt2)
    print(line)
    print(f"\n{as_text(study)}")
    if gpt2 is None:
        print("\nGPT-2's own vocabulary is not here; --gpt2 FOLDER (its encoder.json and vocab.bpe) adds it to these.")


if __name__ == "__main__":
    cli.run(main)
