"""Let a trained contestant continue a prompt.

On a terminal, control characters and others without a shape are shown as their code; a pipe or a file gets the text as
it is. CRLF and CR in the prompt become line feeds, as in every text that a model is trained on.
"""

import itertools
import sys
from collections.abc import Sequence

from compare import cli
from compare.options import number, whole
from compare.steps import Steps
from data.numbers import SEED, Range
from data.show import visible
from model import checkpoint
from model.generate import TEMPERATURE, clean_prompt, generate
from tokenizer.load import load_tokenizer


def main(argv: Sequence[str] | None = None) -> None:
    """Command `sample`. Whole characters are printed as they come."""
    parser = cli.parser(__doc__)
    parser.add_argument("--contestant", default="bpe")
    parser.add_argument("--prompt", default="", help="text to continue; empty starts a document")
    parser.add_argument("--tokens", type=whole(Range(0, 10**9)), default=200, help="tokens to generate")
    parser.add_argument(
        "--temperature", type=number(TEMPERATURE), default=0.8, help="0 always takes the likeliest token"
    )
    parser.add_argument("--top-k", type=whole(Range(1, 10**8)), default=None, help="draw among the k likeliest only")
    parser.add_argument("--seed", type=whole(SEED), default=1, help="of the drawing of tokens (%(default)s)")
    parser.add_argument(
        "--run-seed", type=whole(SEED), help="the run to take, where an experiment has several; the first"
    )
    arguments = parser.parse_args(argv)
    steps = Steps(cli.experiment_of(arguments), echo=lambda line: print(line, file=sys.stderr))
    name = steps.experiment.contestant(arguments.contestant).name
    run_seed = steps.experiment.seeds_of(name)[0] if arguments.run_seed is None else arguments.run_seed
    folder, tokenizer_path = steps.experiment.run_folder(name, run_seed), steps.layout.tokenizer(name)
    if not (folder / checkpoint.BEST).exists():
        steps.train(name, seed=run_seed)
    tokenizer = load_tokenizer(tokenizer_path)
    model, _ = checkpoint.load_model(folder, "best", tokenizer, tokenizer_path)
    pieces = generate(
        model,
        tokenizer,
        arguments.prompt,
        num_tokens=arguments.tokens,
        temperature=arguments.temperature,
        top_k=arguments.top_k,
        seed=arguments.seed,
    )
    is_terminal = sys.stdout.isatty()
    for piece in itertools.chain([clean_prompt(arguments.prompt)], pieces):
        print(visible(piece, keep="\n\t") if is_terminal else piece, end="", flush=True)
    print()


if __name__ == "__main__":
    cli.run(main)
