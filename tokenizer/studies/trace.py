"""Training made visible: every round's candidates, the winner and why it won, and the sequences afterwards.

Nothing is computed here that is not the reference's own doing: a round is `count_pairs`, `choose_pair` and
`replace_pair` of `tokenizer.reference`, kept for looking at.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tokenizer.bpe import BPEKind
from tokenizer.bytelevel import BYTE_CHARACTERS, utf8
from tokenizer.char import Alphabet
from tokenizer.pretokenize import SplitPattern, pretokenize
from tokenizer.reference import (
    Merge,
    Pair,
    StopReason,
    TieBreak,
    choose_pair,
    count_pairs,
    replace_pair,
)

Document = list[list[int]]
"""The pretokens of one document, each a sequence of ids."""


@dataclass(frozen=True)
class Round:
    """One round of training."""

    candidates: dict[Pair, int]
    """Every pair with its windows, in the order in which the pairs are first seen."""
    merge: Merge
    """The winner, with its windows (`count`) and what was replaced."""
    tied: list[Pair]
    """All pairs with the winner's count, in order of first sight; the winner alone if nothing was tied."""
    documents: list[Document]
    """The sequences after the replacement."""


@dataclass(frozen=True)
class Trace:
    """A whole training, round by round."""

    kind: BPEKind
    split_pattern: SplitPattern
    tie_break: TieBreak
    min_pair_frequency: int
    num_merges: int
    """Rounds that were asked for."""
    documents: list[Document]
    """The sequences before the first round."""
    rounds: list[Round]
    stop_reason: StopReason
    base_size: int
    token_bytes: list[bytes]
    """UTF-8 bytes of every id, base tokens first."""


def trace_training(
    texts: Sequence[str],
    *,
    kind: BPEKind = "byte_bpe",
    split_pattern: SplitPattern = "none",
    tie_break: TieBreak = "lowest_ids",
    num_merges: int = 10,
    min_pair_frequency: int = 1,
) -> Trace:
    """Learn up to `num_merges` merges from the documents `texts`, taken as they are, and keep every round.

    Base tokens are the 256 bytes in order, or for `char_bpe` the characters of the texts by code point. Raises
    TokenizerError for a lone surrogate.
    """
    if kind == "byte_bpe":
        token_bytes = [bytes([byte]) for byte in range(len(BYTE_CHARACTERS))]
        documents = [[list(utf8(piece)) for piece in pretokenize(text, split_pattern)] for text in texts]
    else:
        alphabet = sorted(set("".join(texts)))
        ids_of = Alphabet(alphabet).ids
        token_bytes = [utf8(character) for character in alphabet]
        documents = [[ids_of(piece).tolist() for piece in pretokenize(text, split_pattern)] for text in texts]
    base_size, start, rounds = len(token_bytes), documents, list[Round]()
    stop_reason: StopReason = "target reached"
    while len(rounds) < num_merges:
        candidates = count_pairs([pretoken for document in documents for pretoken in document])
        if not candidates:
            stop_reason = "no pair left"
            break
        winner = choose_pair(candidates, tie_break, token_bytes)
        if candidates[winner] < min_pair_frequency:
            stop_reason = "best pair below the minimum frequency"
            break
        documents, replacements = _replace(documents, winner, len(token_bytes))
        rounds.append(
            Round(
                candidates=candidates,
                merge=Merge(len(rounds), winner, len(token_bytes), candidates[winner], replacements),
                tied=[pair for pair, count in candidates.items() if count == candidates[winner]],
                documents=documents,
            )
        )
        token_bytes.append(token_bytes[winner[0]] + token_bytes[winner[1]])
    return Trace(
        kind=kind,
        split_pattern=split_pattern,
        tie_break=tie_break,
        min_pair_frequency=min_pair_frequency,
        num_merges=num_merges,
        documents=start,
        rounds=rounds,
        stop_reason=stop_reason,
        base_size=base_size,
        token_bytes=token_bytes,
    )


def _replace(documents: list[Document], pair: Pair, new_id: int) -> tuple[list[Document], int]:
    replaced, replacements = [], 0
    for document in documents:
        results = [replace_pair(pretoken, pair, new_id) for pretoken in document]
        replaced.append([ids for ids, _ in results])
        replacements += sum(made for _, made in results)
    return replaced, replacements


def as_data(trace: Trace) -> dict[str, Any]:
    """The trace as plain values for JSON. Sequences are documents of pretokens of ids; `tokens` says what ids are."""
    used = {index for document in trace.documents for pretoken in document for index in pretoken}
    learned = range(trace.base_size, len(trace.token_bytes))
    return {
        "kind": trace.kind,
        "split_pattern": trace.split_pattern,
        "tie_break": trace.tie_break,
        "min_pair_frequency": trace.min_pair_frequency,
        "num_merges": trace.num_merges,
        "tokens": [
            {"id": index, "text": spelled(trace.token_bytes[index]), "bytes": trace.token_bytes[index].hex()}
            for index in (*sorted(used), *learned)
        ],
        "sequences": trace.documents,
        "rounds": [
            {
                "round": made.merge.rank,
                "candidates": [{"pair": list(pair), "windows": count} for pair, count in made.candidates.items()],
                "winner": list(made.merge.pair),
                "tied": [list(pair) for pair in made.tied],
                "decided_by": "count" if len(made.tied) == 1 else trace.tie_break,
                "new_id": made.merge.new_id,
                "windows": made.merge.count,
                "replacements": made.merge.replacements,
                "sequences": made.documents,
            }
            for made in trace.rounds
        ],
        "stop_reason": trace.stop_reason,
    }


def spelled(raw: bytes) -> str:
    r"""`raw` as text; a byte that is no part of a whole character is spelled like \xf0."""
    return raw.decode("utf-8", "backslashreplace")
