"""Cut documents into pretokens. Nothing is ever merged across a pretoken's border.

The patterns are those of GPT-2 and GPT-4 (published with OpenAI's encoders), written for the `regex` module.
`space` keeps GPT-2's treatment of white space and drops its distinction of letters, digits and punctuation.
"""

from typing import Literal, get_args

import regex

SplitPattern = Literal["none", "space", "gpt2", "gpt4"]
SPLIT_PATTERNS: tuple[SplitPattern, ...] = get_args(SplitPattern)

PATTERNS: dict[str, str] = {
    "space": r" ?\S+|\s+(?!\S)|\s+",
    "gpt2": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "gpt4": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*"
        r"|\s*[\r\n]|\s+(?!\S)|\s+"
    ),
}
_COMPILED = {name: regex.compile(pattern) for name, pattern in PATTERNS.items()}


def pretokenize(text: str, split_pattern: SplitPattern) -> list[str]:
    """The pretokens of one document, in order; joined they are the document.

    >>> pretokenize("You're 42!", "gpt2")
    ['You', "'re", ' 42', '!']
    >>> pretokenize("You're 42!", "space")
    ["You're", ' 42!']
    >>> pretokenize("You're 42!", "none")
    ["You're 42!"]
    """
    if split_pattern == "none":
        return [text] if text else []
    return _COMPILED[split_pattern].findall(text)
