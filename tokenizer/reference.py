"""Byte-pair encoding in plain Python: the specification. `engine.py` must give the same answers, only faster.

Training repeats one round: count all adjacent pairs, take the most frequent one, replace it everywhere.
Encoding replays the learned merges in the order in which they were learned.

A text is a list of sequences, one for each pretoken. A symbol is a number: the base tokens (characters or bytes) have
the lowest ids, and every merge makes the next id. So `abab` over the base `a` = 0, `b` = 1 is [0, 1, 0, 1]; the merge
(0, 1) -> 2 makes it [2, 2], and the merge (2, 2) -> 3 makes it [3].

The algorithm is that of Gage (1994), used for words by Sennrich et al. (2016). What papers leave open is fixed
here: how overlapping pairs are counted (all of them), how they are replaced (from the left), and who wins a tie
(a stated total order). One consequence is worth knowing: two merges never spell the same token. All places where
a string s ends up as one token have gone through the same states inside s, because no merge may cross its border
there; so the first merge that completes s completes it in every such place, and none is left for a second one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

Pair = tuple[int, int]
TieBreak = Literal["first_seen", "lowest_ids", "greatest_bytes"]
TIE_BREAKS: tuple[TieBreak, ...] = get_args(TieBreak)
StopReason = Literal["target reached", "no pair left", "best pair below the minimum frequency"]


class Merge(NamedTuple):
    """One learned rule: `pair` becomes `new_id`."""

    rank: int
    pair: Pair
    new_id: int
    count: int  # type: ignore[assignment]
    """Windows that held the pair at that round, overlapping ones included."""
    replacements: int
    """Replacements made from left to right; fewer than `count` where windows overlap."""


@dataclass(frozen=True)
class Training:
    """The learned merges in order, and why training ended."""

    merges: list[Merge]
    stop_reason: StopReason


def count_pairs(sequences: Sequence[Sequence[int]]) -> dict[Pair, int]:
    """Count all adjacent windows; the keys stand in the order in which the pairs are first seen.

    >>> count_pairs([[1, 2, 3, 1, 2]])
    {(1, 2): 2, (2, 3): 1, (3, 1): 1}
    >>> count_pairs([[7, 7, 7]])  # overlapping windows count
    {(7, 7): 2}
    >>> count_pairs([[1], [2]])  # no window spans two sequences
    {}
    """
    # Every window counts, also one that overlaps the window before it: 7, 7, 7 holds (7, 7) twice. So a count is a
    # fact about the text alone, not about an order in which replacements would be made.
    #
    # Each sequence is walked through on its own, so no window reaches from one into the next: what the split pattern
    # or a document's end has separated stays separate.
    #
    # A dictionary keeps its keys in the order in which they came. Walking through the text from its start makes that
    # the order of first sight, which `choose_pair` uses.
    counts: dict[Pair, int] = {}
    for sequence in sequences:
        for pair in pairwise(sequence):
            counts[pair] = counts.get(pair, 0) + 1
    return counts


def choose_pair(counts: Mapping[Pair, int], tie_break: TieBreak, token_bytes: Sequence[bytes]) -> Pair:
    """The most frequent pair; a tie is settled by `tie_break`. `counts` must not be empty.

    >>> choose_pair({(2, 1): 3, (0, 1): 3, (1, 1): 2}, "first_seen", [b"a", b"b", b"c"])
    (2, 1)
    >>> choose_pair({(2, 1): 3, (0, 1): 3, (1, 1): 2}, "lowest_ids", [b"a", b"b", b"c"])
    (0, 1)
    >>> choose_pair({(2, 1): 3, (0, 1): 3, (1, 1): 2}, "greatest_bytes", [b"z", b"b", b"c"])  # z b is above c b
    (0, 1)
    """
    best_count = max(counts.values())
    tied = [pair for pair, count in counts.items() if count == best_count]  # still in order of first sight

    # Ties are common, above all among rare pairs, and a different winner leads to different merges from there on. So
    # the rule is a total order: one pair wins, whatever the hash order, the machine or the number of threads.

    # The pair whose first window stands earliest in the text as it is in this round. This is what a trainer gives
    # that takes the first of the most frequent pairs of a counter.
    if tie_break == "first_seen":
        return tied[0]
    # The smallest left id, then the smallest right id: the older tokens win. HF tokenizers do this.
    if tie_break == "lowest_ids":
        return min(tied)
    # The greatest left token, then the greatest right token, as byte strings: independent of how ids are numbered.
    # No two tokens have the same bytes, as long as no base token is spelled like several others joined.
    return max(tied, key=lambda pair: (token_bytes[pair[0]], token_bytes[pair[1]]))


def replace_pair(sequence: Sequence[int], pair: Pair, new_id: int) -> tuple[list[int], int]:
    """Replace `pair` by `new_id` in one pass from the left; also returns how often that happened.

    >>> replace_pair([1, 2, 3, 1, 2], (1, 2), 4)
    ([4, 3, 4], 2)
    >>> replace_pair([7, 7, 7], (7, 7), 8)  # the middle one is taken only once
    ([8, 7], 1)
    >>> replace_pair([7, 7, 7, 7], (7, 7), 8)  # what is new is not looked at again in this pass
    ([8, 8], 2)
    """
    # One pass from the left. Where windows overlap, the leftmost one is taken and the next one is gone; taken from
    # the right, 7, 7, 7 would become 7, 8. Training and encoding must agree on this, so both call this function.
    replaced: list[int] = []
    position = replacements = 0
    while position < len(sequence):
        if tuple(sequence[position : position + 2]) == pair:
            replaced.append(new_id)
            position += 2  # both halves are used up
            replacements += 1
        else:
            replaced.append(sequence[position])
            position += 1
    return replaced, replacements


def train(
    sequences: Sequence[Sequence[int]],
    base_bytes: Sequence[bytes],
    *,
    num_merges: int,
    min_pair_frequency: int,
    tie_break: TieBreak,
) -> Training:
    """Learn up to `num_merges` merges from `sequences` (the pretokens of the corpus, as base ids, in text order).

    `base_bytes` are the bytes of each base id; they settle ties under `greatest_bytes`. No merge at all is a valid
    result, and so is a text without a single pair.

    >>> training = train(  # aaab: a a wins with two windows; the rest stands once each and is too rare
    ...     [[0, 0, 0, 1]], [b"a", b"b"], num_merges=9, min_pair_frequency=2, tie_break="first_seen"
    ... )
    >>> training.merges
    [Merge(rank=0, pair=(0, 0), new_id=2, count=2, replacements=1)]
    >>> training.stop_reason
    'best pair below the minimum frequency'
    """
    sequences = [list(sequence) for sequence in sequences]  # the caller's own stay as they are
    token_bytes = list(base_bytes)
    merges: list[Merge] = []
    while len(merges) < num_merges:
        # 1. Count again, in the text as the merges so far have left it. The engine never does this; it keeps its
        #    counts up to date. Here nothing can get out of date.
        counts = count_pairs(sequences)
        if not counts:  # every pretoken has become one token
            return Training(merges, "no pair left")

        # 2. Choose. If the best pair is too rare, so are all others.
        pair = choose_pair(counts, tie_break, token_bytes)
        if counts[pair] < min_pair_frequency:
            return Training(merges, "best pair below the minimum frequency")

        # 3. The new token gets the next id and is spelled as its two halves.
        new_id = len(token_bytes)
        token_bytes.append(token_bytes[pair[0]] + token_bytes[pair[1]])

        # 4. Replace the pair everywhere, and note how often: less often than it was counted where windows overlap.
        replacements = 0
        for index, sequence in enumerate(sequences):
            sequences[index], made = replace_pair(sequence, pair, new_id)
            replacements += made
        merges.append(Merge(len(merges), pair, new_id, counts[pair], replacements))
    return Training(merges, "target reached")


def encode(sequence: Sequence[int], merges: Sequence[Pair], base_size: int) -> list[int]:
    """Ids of one pretoken: every merge in learned order, each one pass from the left.

    >>> encode([2, 1, 1], [(2, 2), (1, 1), (2, 1)], base_size=3)  # cbb: bb was learned before cb
    [2, 4]
    >>> encode([0, 1, 0, 1, 0], [(0, 1), (2, 2)], base_size=2)  # ababa: first ab twice, then abab
    [3, 0]
    """
    # These are the steps of training, so a text of the training data gets the tokens that it had when training ended.
    # It is neither the longest token first nor the shortest result: on `cbb` above, `cb` + `b` is as short.
    ids = list(sequence)
    for rank, pair in enumerate(merges):
        if len(ids) < 2:
            break  # no window left
        ids, _ = replace_pair(ids, pair, base_size + rank)
    return ids
