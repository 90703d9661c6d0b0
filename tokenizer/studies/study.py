"""One vocabulary's behaviour in figures: compression by size, glued punctuation, how words are cut, how far it sees.

Three byte-level vocabularies with equal numbers of merges are learned from the same train split under the split
patterns `gpt2`, `space` and `none`, and looked at on held-out text; GPT-2's own may be next to them. Everything
is returned as plain values, so that the page of text and the picture are made from the same file.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np
import regex
from numpy.typing import NDArray

from data.inputs import text_input
from data.numbers import COUNT, Range, check_ranges
from data.show import counted
from data.splits import Split
from tokenizer.base import Int64Array, Tokenizer
from tokenizer.bpe import BPETokenizer
from tokenizer.pretokenize import SplitPattern
from tokenizer.reference import StopReason
from tokenizer.studies.trace import spelled
from tokenizer.train import TRAINER_VERSION, TokenizerConfig, train_tokenizer

STUDIED_PATTERNS: tuple[SplitPattern, ...] = ("gpt2", "space", "none")
GPT2 = "GPT-2's own"
HELD_OUT = ("val", "test")
EXAMPLES: dict[str, tuple[str, ...]] = {
    "numbers": (" 7", " 42", " 1999", " 3.14159", " 8045311447", " 1,000,000", " 2024-01-31"),
    "contractions": (" don't", " DON'T", " don’t", " we'll", " it's", " should've"),
    "rare words": (" electromagnetism", " neurocomputational", " uncharacteristically"),
    "Chinese": (" 中文", "自然语言处理很有趣。"),
    "emoji": ("😀", "👍🏽", "👨‍👩‍👧", "🇩🇪"),
}
"""Words stand as in running text, with the space before them."""

OWN_WORDS = ("frequent in this corpus", "rare in this corpus")
_FORMAT = 3  # raise it when the figures are computed differently, so that old results are made again
_NUM_BYTES = 256
_GLUED = regex.compile(r"\p{L}.*[\p{P}\p{S}]|[\p{P}\p{S}].*\p{L}", regex.DOTALL)
_PERCENTILES = (5, 50, 95)
_WORD = regex.compile(r" ?[\p{L}\p{M}]+")
_NUM_OWN = 5
_LONGEST_WORD = 20  # characters; scripts without spaces have runs of any length
_SHORTEST_WORD = 4


@dataclass(frozen=True)
class StudyConfig:
    """What is studied."""

    num_merges: Annotated[int, Range(0, 10**8)] = 16_128
    """Merges of each vocabulary; with the 256 bytes 16,384 tokens."""
    width: Annotated[int, Range(1, 2**16)] = 128
    """Channels of the embedding whose parameters are counted."""
    window_tokens: Annotated[int, COUNT] = 128
    """Length of the context whose characters are counted, in tokens."""
    min_pair_frequency: Annotated[int, COUNT] = 2
    """Learning stops when the best pair is seen less often."""

    def __post_init__(self) -> None:
        check_ranges(self)


def study_inputs(
    config: StudyConfig, splits: Mapping[str, Split], contestants: Mapping[str, Tokenizer], gpt2: BPETokenizer | None
) -> dict[str, Any]:
    """Everything the study depends on, as plain values: equal inputs give the same study."""
    return {
        "format": _FORMAT,
        **asdict(config),
        "trainer_version": TRAINER_VERSION,
        "texts": {name: asdict(text_input(split.sha256, split.document_offsets)) for name, split in splits.items()},
        "contestants": {name: tokenizer.fingerprint() for name, tokenizer in contestants.items()},
        "gpt2": gpt2.fingerprint() if gpt2 else None,
    }


def run_study(
    config: StudyConfig,
    splits: Mapping[str, Split],
    contestants: Mapping[str, Tokenizer],
    *,
    gpt2: BPETokenizer | None = None,
    echo: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Learn the vocabularies, measure everything, and return it; `echo` gets a line before each long step.

    The three splits are those of one corpus; `contestants` are the tokenizers whose context is measured.
    """
    held_out = {name: splits[name] for name in HELD_OUT}
    examples = own_words(splits["test"].text) | EXAMPLES
    vocabularies: dict[str, Any] = {}
    for pattern in STUDIED_PATTERNS:
        echo(f"study: learning {counted(config.num_merges, 'merge')} with split pattern {pattern}")
        tokenizer, stop_reason = _learn(pattern, splits, config)
        echo(f"study: measuring {tokenizer.vocab_size:,} tokens on held-out text")
        vocabularies[pattern] = {"stop_reason": stop_reason} | _study_vocabulary(
            tokenizer, held_out, config.width, examples
        )
    if gpt2:
        echo(f"study: measuring {GPT2} {gpt2.vocab_size:,} tokens")
        vocabularies[GPT2] = {"stop_reason": None} | _study_vocabulary(gpt2, held_out, config.width, examples)
    return {
        "inputs": study_inputs(config, splits, contestants, gpt2),
        "texts": {
            name: {
                "characters": len(split.text),
                "bytes": len(split.text.encode("utf-8")),
                "documents": len(split.document_offsets) - 1,
            }
            for name, split in splits.items()
        },
        "vocabularies": vocabularies,
        "contestants": {
            name: {
                "kind": tokenizer.kind,
                "vocab_size": tokenizer.vocab_size,
                "embedding_parameters": tokenizer.vocab_size * config.width,
                "context": {
                    part: context_coverage(tokenizer, split, config.window_tokens) for part, split in held_out.items()
                },
            }
            for name, tokenizer in contestants.items()
        },
    }


def _learn(
    pattern: SplitPattern, splits: Mapping[str, Split], config: StudyConfig
) -> tuple[BPETokenizer, StopReason | None]:
    settings = TokenizerConfig(
        "byte_bpe",
        vocab_size=_NUM_BYTES + config.num_merges,
        training_characters=None,
        min_pair_frequency=config.min_pair_frequency,
        split_pattern=pattern,
    )
    tokenizer, training = train_tokenizer(settings, splits)
    assert isinstance(tokenizer, BPETokenizer) and training is not None
    return tokenizer, training.stop_reason


def own_words(text: str) -> dict[str, tuple[str, ...]]:
    """Words of `text` itself: the most frequent ones, and the longest of those that occur once.

    A word is a run of letters with the space before it, cut at 20 characters; short ones count only where there are
    no others. Where no word is left for a group, the group is left out.

    >>> own_words("one river, one tower and one extraordinary river")["frequent in this corpus"]
    (' river', ' tower', ' extraordinary')
    """
    counts = Counter(word[:_LONGEST_WORD] for word in _WORD.findall(text))
    long = Counter({word: count for word, count in counts.items() if len(word.strip()) >= _SHORTEST_WORD})
    counts = long or counts
    frequent = tuple(word for word, _ in counts.most_common(_NUM_OWN))  # of equal counts the first in the text
    once = [word for word, count in counts.items() if count == 1 and word not in frequent]
    rare = tuple(sorted(once, key=len, reverse=True)[:_NUM_OWN])
    return {group: words for group, words in zip(OWN_WORDS, (frequent, rare), strict=True) if words}


def _study_vocabulary(
    tokenizer: BPETokenizer, held_out: Mapping[str, Split], width: int, examples: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    base_size = len(tokenizer.base_tokens)
    prefixes = []
    uses: dict[str, Int64Array] = {}
    for limit in prefix_limits(base_size, len(tokenizer.merges)):
        row: dict[str, Any] = {
            "tokens": base_size + limit,
            "merges": limit,
            "embedding_parameters": (base_size + limit) * width,
        }
        for name, split in held_out.items():
            ids, _ = tokenizer.encode_documents(split.documents(), limit=limit)
            row[name] = _compression(split, len(ids))
            uses[name] = np.bincount(ids, minlength=tokenizer.vocab_size)  # the last limit is the whole table
        prefixes.append(row)
    return {
        "split_pattern": tokenizer.split_pattern,
        "vocab_size": tokenizer.vocab_size,
        "num_merges": len(tokenizer.merges),
        "embedding_parameters": tokenizer.vocab_size * width,
        "fingerprint": tokenizer.fingerprint(),
        "prefixes": prefixes,
        "glued": _glued(tokenizer, uses),
        "cuts": {
            group: [{"text": text, "tokens": cut(tokenizer, text)} for text in texts]
            for group, texts in examples.items()
        },
    }


def prefix_limits(base_size: int, num_merges: int) -> list[int]:
    """How many merges are used at each size: none, then up to every power of two, then all.

    >>> prefix_limits(256, 1000)  # 256, 512, 1,024 and 1,256 tokens
    [0, 256, 768, 1000]
    """
    limits, size = [0], 1 << base_size.bit_length()
    while size - base_size < num_merges:
        limits.append(size - base_size)
        size *= 2
    return limits if num_merges == 0 else [*limits, num_merges]


def _compression(split: Split, num_tokens: int) -> dict[str, float]:
    return {
        "num_tokens": num_tokens,
        "bytes_per_token": len(split.text.encode("utf-8")) / num_tokens,
        "characters_per_token": len(split.text) / num_tokens,
    }


def _glued(tokenizer: BPETokenizer, uses: Mapping[str, Int64Array]) -> dict[str, Any]:
    found = glued_tokens(tokenizer)
    return {
        "count": len(found),
        "share_of_learned": len(found) / max(len(tokenizer.merges), 1),
        "share_of_text": {name: float(counts[found].sum() / counts.sum()) for name, counts in uses.items()},
        "tokens": [
            {
                "id": index,
                "text": spelled(tokenizer.token_bytes[index]),
                "uses": {name: int(counts[index]) for name, counts in uses.items()},
            }
            for index in found
        ],
    }


def glued_tokens(tokenizer: BPETokenizer) -> list[int]:
    """Ids of the learned tokens that hold both a letter and a punctuation mark or symbol (Unicode's L; P or S).

    Bytes of a token that are no whole character count as neither.
    """
    first = len(tokenizer.base_tokens)
    learned = range(first, first + len(tokenizer.merges))
    return [index for index in learned if _GLUED.search(tokenizer.token_bytes[index].decode("utf-8", "ignore"))]


def cut(tokenizer: Tokenizer, text: str) -> list[str]:
    r"""The tokens of `text` as strings; bytes that are no whole character are spelled like \xf0.

    Raises TokenizerError for a character that has no token.
    """
    return [spelled(tokenizer.decode_bytes([index])) for index in tokenizer.encode(text)]


def context_coverage(tokenizer: Tokenizer, split: Split, window_tokens: int) -> dict[str, Any]:
    """Characters that `window_tokens` tokens span: on average over the whole text, and percentiles of the windows.

    Windows begin at every token and stay inside their document; documents that are shorter have none, and where no
    document is longer the percentiles are None.
    """
    ids, offsets = tokenizer.encode_documents(split.documents())
    spans = _window_characters(tokenizer.token_num_chars[ids], offsets, window_tokens)
    percentiles = np.percentile(spans, _PERCENTILES).tolist() if len(spans) else [None] * len(_PERCENTILES)
    return {
        "mean_characters": window_tokens * len(split.text) / len(ids),
        "num_windows": len(spans),
        **{f"percentile_{percent}": found for percent, found in zip(_PERCENTILES, percentiles, strict=True)},
    }


def _window_characters(lengths: Int64Array, offsets: Int64Array, window_tokens: int) -> NDArray[np.int64]:
    """Characters of every window: the sum of `lengths` (tokens,) over each run inside a document (offsets (D+1,))."""
    ends = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    spans = ends[window_tokens:] - ends[:-window_tokens]  # also those that reach into the next document
    starts = np.arange(len(spans))
    document = np.searchsorted(offsets, starts, side="right") - 1
    inside: NDArray[np.int64] = spans[starts + window_tokens <= offsets[document + 1]]
    return inside
