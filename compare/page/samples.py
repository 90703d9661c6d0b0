"""What each model writes: the same beginnings for all contestants, drawn with one seed."""

import re
from collections.abc import Sequence
from pathlib import Path

from compare.page.values import Sample
from compare.runs import Entry
from data.splits import Split
from model import checkpoint
from model.generate import generate
from tokenizer.base import Tokenizer

_CHARACTERS = 300
_TEMPERATURES = (0.0, 0.8)
_SEED = 1
_MOST_PROMPT_CHARACTERS = 40
_WHOLE_WORDS = re.compile(rf".{{0,{_MOST_PROMPT_CHARACTERS - 1}}}\S(?!\S)", re.DOTALL)


def prompts_of(test: Split) -> list[str]:
    """A newline, as at the beginning of a document, and how the first document that has words begins.

    That beginning is what the document holds, white space between words included, up to the end of a word.
    """
    begun = next((begun for document in test.documents() if (begun := document.strip())), "")
    if not begun:
        return ["\n"]
    whole_words = _WHOLE_WORDS.match(begun)
    return ["\n", whole_words[0] if whole_words else begun[:_MOST_PROMPT_CHARACTERS]]


def samples_of(entry: Entry, tokenizer: Tokenizer, tokenizer_path: Path, prompts: Sequence[str]) -> list[Sample]:
    """About 300 characters after each prompt from the best checkpoint of the first seed, greedily and at 0.8.

    Raises what loading a checkpoint raises.
    """
    folder = entry.runs[0].folder
    model, _ = checkpoint.load_model(folder, "best", tokenizer, tokenizer_path)
    test = entry.runs[0].test
    num_tokens = max(1, round(_CHARACTERS * test.num_tokens / test.num_chars))
    return [
        Sample(
            prompt,
            "".join(generate(model, tokenizer, prompt, num_tokens=num_tokens, temperature=temperature, seed=_SEED)),
            temperature,
            _SEED,
        )
        for temperature in _TEMPERATURES
        for prompt in prompts
    ]
