"""Train the contestants' tokenizers and tell what was learned."""

import argparse
from collections.abc import Sequence
from typing import Any

from compare import cli
from compare.options import whole
from compare.text_steps import TextSteps
from data.numbers import COUNT, Range, notes
from tokenizer.train import ENGINES, TokenizerConfig

_ALL = ("all", "null")
_RANGES = notes(TokenizerConfig, Range)


def main(argv: Sequence[str] | None = None) -> None:
    """Command `tokenizer`. The options for training concern contestants that are trained; later commands keep them."""
    parser = cli.parser(__doc__)
    parser.add_argument("--contestant", help="only this one; all by default")
    parser.add_argument("--vocab", type=whole(_RANGES["vocab_size"]), help="tokens to stop at, instead of vocab_size")
    parser.add_argument(
        "--training-characters", type=whole(COUNT, words=_ALL), help="characters of train to learn from, or `all`"
    )
    parser.add_argument(
        "--min-pair-frequency",
        type=whole(_RANGES["min_pair_frequency"]),
        help="stop when the best pair is seen less often",
    )
    parser.add_argument("--engine", choices=ENGINES, default="fast", help="`reference` is slow and says the same")
    arguments = parser.parse_args(argv)
    experiment = cli.experiment_of(arguments)
    steps = TextSteps(experiment)
    for name in cli.contestants_of(arguments, experiment):
        config = experiment.contestant(name).tokenizer
        own_settings = _own_settings(arguments) if config.is_trained else {}
        if config.kind.startswith("spm_"):
            own_settings.pop("min_pair_frequency", None)  # SentencePiece has no such setting
        steps.tokenizer(name, own_settings=own_settings, engine_name=arguments.engine)


def _own_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    given = {
        "vocab_size": arguments.vocab,
        "training_characters": arguments.training_characters,
        "min_pair_frequency": arguments.min_pair_frequency,
    }
    return {key: None if value in _ALL else value for key, value in given.items() if value is not None}


if __name__ == "__main__":
    cli.run(main)
