"""Let a trained contestant continue a prompt, or several, each as often as you like.

On a terminal, control characters and others without a shape are shown as their code; a pipe or a file gets the text as
it is. CRLF and CR in the prompt become line feeds, as in every text that a model is trained on. Seconds and tokens
per second go to stderr.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compare import cli
from compare.options import number, whole
from compare.steps import Steps
from data.config import require
from data.errors import DataError
from data.files import decode_utf8
from data.numbers import SEED, Range
from data.show import visible
from data.sources.local_text import read_own_text
from model import checkpoint
from model.generate import Sample, clean_prompt, generate_samples, pieces_of
from model.generation.draw import TEMPERATURE, TOP_P, Sampling
from model.gpt import MiniGPT
from tokenizer.base import Tokenizer
from tokenizer.loading import load_tokenizer

_STDIN = "-"


def main(argv: Sequence[str] | None = None) -> None:
    """Command `sample`. A single sample is printed character by character, as it comes."""
    arguments = _parser().parse_args(argv)
    prompts = _prompts_of(arguments)
    steps = Steps(cli.experiment_of(arguments), echo=lambda line: print(line, file=sys.stderr))
    model, tokenizer = _load(steps, arguments)
    sampling = Sampling(
        num_tokens=arguments.tokens,
        temperature=arguments.temperature,
        top_k=arguments.top_k,
        top_p=arguments.top_p,
        stop=tuple(arguments.stop),
        seed=arguments.seed,
    )
    for prompt in prompts:
        tokenizer.encode(clean_prompt(prompt))  # what has no token is refused before anything is printed
    is_single = len(prompts) == arguments.samples == 1
    start, num_tokens = time.perf_counter(), 0
    if is_single and not arguments.json:
        num_tokens = _print_as_it_comes(model, tokenizer, prompts[0], sampling)
    else:
        for prompt_number, prompt in enumerate(prompts, start=1):
            samples = generate_samples(model, tokenizer, prompt, sampling, arguments.samples)
            num_tokens += sum(len(sample.drawn) for sample in samples)
            for sample_number, sample in enumerate(samples, start=1):
                if arguments.json:
                    _print_json(prompt, sample, sampling, tokenizer)
                else:
                    print(f"--- prompt {prompt_number}, sample {sample_number}, seed {sample.seed} ---")
                    print(_shown(clean_prompt(prompt) + sample.text), flush=True)
    seconds = time.perf_counter() - start
    print(f"{num_tokens:,} tokens in {seconds:.2f} s: {num_tokens / seconds:,.0f} tokens/s", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = cli.parser(__doc__)
    parser.add_argument("--contestant", default="bpe", help="whose model writes (%(default)s)")
    parser.add_argument("--prompt", help="text to continue; without it, or empty, a document is started")
    parser.add_argument("--prompt-file", metavar="PATH", help="the same from a file; - is the standard input")
    parser.add_argument("--prompts", metavar="PATH", help="a file with one prompt a line; - is the standard input")
    parser.add_argument(
        "--samples", type=whole(Range(1, 10**4)), default=1, help="continuations of each prompt (%(default)s)"
    )
    parser.add_argument("--tokens", type=whole(Range(0, 10**9)), default=200, help="tokens to generate (%(default)s)")
    parser.add_argument(
        "--temperature", type=number(TEMPERATURE), default=0.8, help="0 always takes the likeliest token (%(default)s)"
    )
    parser.add_argument("--top-k", type=whole(Range(1, 10**8)), default=None, help="draw among the k likeliest only")
    parser.add_argument(
        "--top-p", type=number(TOP_P), help="draw among the likeliest that together have this probability"
    )
    parser.add_argument(
        "--stop", action="append", default=[], metavar="TEXT", help="end before this text; may be repeated"
    )
    parser.add_argument(
        "--seed", type=whole(SEED), default=1, help="of the first sample; the next have the next seeds (%(default)s)"
    )
    parser.add_argument(
        "--run-seed", type=whole(SEED), help="the run to take, where an experiment has several; the first by default"
    )
    parser.add_argument(
        "--json", action="store_true", help="one object a line: text, tokens, log-probability of each character"
    )
    return parser


def _prompts_of(arguments: argparse.Namespace) -> list[str]:
    """The prompts that were given, one empty one by default. Raises ConfigError or DataError."""
    given = [name for name in ("prompt", "prompt_file", "prompts") if getattr(arguments, name) is not None]
    listed = " and ".join(f"--{name.replace('_', '-')}" for name in given)
    require(len(given) <= 1, f"{listed} were given together; give one of them")
    if arguments.prompt_file is not None:
        return [clean_prompt(_read(arguments.prompt_file)).removesuffix("\n")]
    if arguments.prompts is None:
        return [arguments.prompt or ""]
    lines = clean_prompt(_read(arguments.prompts)).split("\n")
    return lines[:-1] if len(lines) > 1 and lines[-1] == "" else lines


def _read(written: str) -> str:
    """The text of the file `written`, or of the standard input. Raises DataError."""
    if written != _STDIN:
        return read_own_text(Path(written).expanduser())
    if sys.stdin is None:
        raise DataError("the standard input is closed; give a file")
    return decode_utf8(sys.stdin.buffer.read(), "the standard input")


def _load(steps: Steps, arguments: argparse.Namespace) -> tuple[MiniGPT, Tokenizer]:
    """The best weights of the run that was asked for, which is trained first if it is not there."""
    name = steps.experiment.contestant(arguments.contestant).name
    run_seed = steps.experiment.seeds_of(name)[0] if arguments.run_seed is None else arguments.run_seed
    folder, tokenizer_path = steps.experiment.run_folder(name, run_seed), steps.layout.tokenizer(name)
    if not (folder / checkpoint.BEST).exists():
        steps.train(name, seed=run_seed)
    tokenizer = load_tokenizer(tokenizer_path)
    model, _ = checkpoint.load_model(folder, "best", tokenizer, tokenizer_path)
    return model, tokenizer


def _print_as_it_comes(model: MiniGPT, tokenizer: Tokenizer, prompt: str, sampling: Sampling) -> int:
    """Print the prompt and its continuation; returns the number of tokens drawn."""
    print(_shown(clean_prompt(prompt)), end="", flush=True)
    num_pieces = 0
    for piece in pieces_of(model, tokenizer, prompt, sampling):
        print(_shown(piece), end="", flush=True)
        num_pieces += 1
    print(flush=True)
    return num_pieces - 1  # the last is what was held back


def _print_json(prompt: str, sample: Sample, sampling: Sampling, tokenizer: Tokenizer) -> None:
    """One line: what was drawn and how, log-probabilities as natural logarithms of the model's own probabilities."""
    values: dict[str, Any] = {
        "prompt": clean_prompt(prompt),
        "text": sample.text,
        "stopped_by": sample.stopped_by,
        "seed": sample.seed,
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "characters": [list(pair) for pair in sample.characters],
        "tokens": [[one.token, one.log_probability] for one in sample.drawn],
    }
    is_escaped = sys.stdout.isatty() or not cli.is_stdout_utf8()
    print(json.dumps(values, ensure_ascii=is_escaped, allow_nan=False), flush=True)


def _shown(text: str) -> str:
    return visible(text, keep="\n\t") if sys.stdout.isatty() else text


if __name__ == "__main__":
    cli.run(main)
