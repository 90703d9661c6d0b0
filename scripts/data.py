"""Fetch or build the corpus, clean it and cut it into splits; print what the splits hold."""

from collections.abc import Sequence

from compare import cli
from compare.text_steps import TextSteps
from data.splits import read_manifest
from data.summary import describe_corpus


def main(argv: Sequence[str] | None = None) -> None:
    """Command `data`."""
    experiment = cli.experiment_of(cli.parser(__doc__).parse_args(argv))
    steps = TextSteps(experiment)
    steps.data()
    if steps.num_done == 0:  # what was just written has been described
        name = experiment.corpus.corpus_name
        print(describe_corpus(name, read_manifest(experiment.layout, name)))


if __name__ == "__main__":
    cli.run(main)
