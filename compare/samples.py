"""What each model writes: the same beginnings for all contestants, drawn with one seed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compare.runs import Entry
from data.splits import Split
from model import checkpoint
from model.generate import generate
from tokenizer.base import Tokenizer

_CHARACTERS = 300
_TEMPERATURES = (0.0, 0.8)
_SEED = 1
_MOST_PROMPT_CHARACTERS = 40


def prompts_of(test: Split) -> list[str]:
    """A newline, as at the beginning of a document, and how the first document that has words begins."""
    words = next((words for document in test.documents() if (words := document.split())), [])
    beginning = ""
    for word in words:
        if beginning and len(beginning) + 1 + len(word) > _MOST_PROMPT_CHARACTERS:
            break
        beginning = f"{beginning} {word}".lstrip()
    return ["\n", beginning[:_MOST_PROMPT_CHARACTERS]] if beginning else ["\n"]


def samples_of(
    entry: Entry, tokenizer: Tokenizer, tokenizer_path: Path, prompts: Sequence[str]
) -> list[dict[str, Any]]:
    """About 300 characters after each prompt from the best checkpoint of the first seed, greedily and at 0.8.

    Each is {"prompt", "text", "temperature", "seed"}, `text` without the prompt. Raises what loading a checkpoint
    raises.
    """
    folder = entry.runs[0].folder
    model, _ = checkpoint.load_model(folder, "best", tokenizer, tokenizer_path)
    test = entry.runs[0].test
    num_tokens = max(1, round(_CHARACTERS * test["num_tokens"] / test["num_chars"]))
    return [
        {
            "prompt": prompt,
            "text": "".join(
                generate(model, tokenizer, prompt, num_tokens=num_tokens, temperature=temperature, seed=_SEED)
            ),
            "temperature": temperature,
            "seed": _SEED,
        }
        for temperature in _TEMPERATURES
        for prompt in prompts
    ]
