"""The vocabulary that follows from base tokens, merges and special tokens, with everything checked."""

from collections.abc import Collection, Mapping, Sequence, Set
from typing import Literal

import numpy as np
import regex

from data.errors import TokenizerError
from tokenizer.base import Int32Array
from tokenizer.reference import Training


def build_tokens(base_tokens: list[str], merges: list[tuple[str, str]]) -> tuple[list[str], Int32Array]:
    """All tokens in id order, and the merges as pairs of ids (R, 2); raises TokenizerError."""
    tokens = list(base_tokens)
    id_of = {token: index for index, token in enumerate(tokens)}
    pairs = np.empty((len(merges), 2), dtype=np.int32)
    for rank, (left, right) in enumerate(merges):
        for half in (left, right):
            if half not in id_of:
                raise TokenizerError(f"merge {rank} ({left!r}, {right!r}): {half!r} is not a token by then")
        if left + right in id_of:
            raise TokenizerError(f"merge {rank} ({left!r}, {right!r}) makes {left + right!r}, which exists already")
        pairs[rank] = id_of[left], id_of[right]
        id_of[left + right] = len(tokens)
        tokens.append(left + right)
    return tokens, pairs


def check_special_tokens(special_tokens: Sequence[str], first_id: int) -> Mapping[str, int]:
    """Special token -> id, from `first_id` on; raises TokenizerError naming the one that is wrong."""
    table: dict[str, int] = {}
    for token in special_tokens:
        if not isinstance(token, str) or not token or token in table:
            raise TokenizerError(f"special token {token!r} is empty, not a string, or stands twice")
        table[token] = first_id + len(table)
    return table


def check_separator(separator: str | None, special_tokens: Mapping[str, int]) -> str | None:
    """`separator`; raises TokenizerError unless it is None or one of `special_tokens`."""
    if separator is not None and separator not in special_tokens:
        known = ", ".join(map(repr, special_tokens)) or "there are none"
        raise TokenizerError(f"document_separator {separator!r} is not among the special tokens ({known})")
    return separator


def chosen_special(chosen: Literal["all"] | Collection[str], special_tokens: Mapping[str, int]) -> frozenset[str]:
    """The special tokens that `chosen` names; raises TokenizerError for a name that is none."""
    if chosen == "all":
        return frozenset(special_tokens)
    if isinstance(chosen, str):
        raise TokenizerError(f"special tokens are given as 'all' or as a collection of them; found {chosen!r}")
    for token in chosen:
        if token not in special_tokens:
            raise TokenizerError(f"{token!r} is not among the special tokens of this tokenizer")
    return frozenset(chosen)


def split_at_special(text: str, special: Set[str]) -> list[str]:
    """`text` cut at every one of `special`, which stay as pieces; the longest where two begin at one place."""
    longest_first = sorted(special, key=lambda token: (-len(token), token))
    pieces: list[str] = regex.split("(" + "|".join(map(regex.escape, longest_first)) + ")", text)
    return pieces


def refuse_special(text: str, disallowed: Set[str]) -> None:
    """Raise TokenizerError if one of `disallowed` stands in `text`, with its offset."""
    found = [(text.find(token), -len(token), token) for token in disallowed if token in text]
    if found:
        offset, _, token = min(found)
        raise TokenizerError(
            f"the text has the special token {token!r} at offset {offset}, which is disallowed; allow it with "
            f"allowed_special={{{token!r}}}, or take it as text with disallowed_special=()"
        )


def check_target(target_vocab_size: int, base_size: int) -> None:
    """Raise TokenizerError if the vocabulary could not even hold the base tokens."""
    if target_vocab_size < base_size:
        raise TokenizerError(
            f"vocab_size {target_vocab_size} is below the {base_size} base tokens; the minimum here is {base_size}"
        )


def merge_strings(base_tokens: Sequence[str], training: Training) -> list[tuple[str, str]]:
    """The merges of `training` as pairs of tokens."""
    tokens = list(base_tokens)
    pairs = []
    for merge in training.merges:
        left, right = (tokens[half] for half in merge.pair)
        pairs.append((left, right))
        tokens.append(left + right)
    return pairs
