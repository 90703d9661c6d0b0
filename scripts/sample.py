"""Let a trained contestant continue a prompt, or several, each as often as you like.

On a terminal, control characters and others without a shape are shown as their code; a pipe or a file gets the text as
it is. CRLF and CR in the prompt become line feeds, as in every text that a model is trained on. Seconds and tokens
per second go to stderr.
"""

import sys
import time
from collections.abc import Sequence

from compare import cli
from compare.finished.samples import add_options, load_writer, print_samples, prompts_of
from compare.steps import Steps
from data.show import counted
from model.generation.draw import Sampling


def main(argv: Sequence[str] | None = None) -> None:
    """Command `sample`. A single sample is printed character by character, as it comes."""
    parser = cli.parser(__doc__)
    add_options(parser)
    given = parser.parse_args(argv)
    prompts = prompts_of(given)
    steps = Steps(cli.experiment_of(given), echo=lambda line: print(line, file=sys.stderr))
    model, tokenizer = load_writer(steps, given.contestant, given.run_seed)
    sampling = Sampling(
        num_tokens=given.tokens,
        temperature=given.temperature,
        top_k=given.top_k,
        top_p=given.top_p,
        stop=tuple(given.stop),
        seed=given.seed,
    )
    start = time.perf_counter()
    num_tokens = print_samples(model, tokenizer, prompts, sampling, given.samples, as_json=given.json)
    seconds = time.perf_counter() - start
    print(f"{counted(num_tokens, 'token')} in {seconds:.2f} s: {num_tokens / seconds:,.0f} tokens/s", file=sys.stderr)


if __name__ == "__main__":
    cli.run(main)
