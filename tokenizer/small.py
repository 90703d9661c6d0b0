"""BPE for small texts in plain Python: the answers of `reference.py`, sooner than compiled kernels could be loaded.

Importing numba and loading kernels takes a second or more; a text of some kilobytes is done in that time without
them. Training keeps pairs, their counts and their windows up to date instead of counting anew in every round, and
encoding takes the window of lowest rank from a heap. Both cost time in proportion to the text, up to a logarithm.

Symbols lie one behind the other in one list of cells with links to the cells before and behind. A merge writes the
new id into the left cell and kills the right one. A *window* is named by its left cell.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from tokenizer.reference import Merge, Pair, TieBreak, Training

_DEAD = -1  # the id of a cell whose symbol has become part of the token to its left
_NO_CELL = -1


class _Text:
    """The text's symbols as linked cells, and every pair's count and windows."""

    def __init__(self, sequences: Sequence[Sequence[int]], weights: Sequence[int]) -> None:
        self.ids: list[int] = []
        self.before: list[int] = []
        self.behind: list[int] = []
        self.weights: list[int] = []  # of each cell: how often its sequence stands in the text
        self.counts: dict[Pair, int] = {}
        self.windows: dict[Pair, list[int]] = {}  # in the order of the text; those that have gone stay in the list
        for sequence, weight in zip(sequences, weights, strict=True):
            first, last = len(self.ids), len(self.ids) + len(sequence) - 1
            self.ids += sequence
            self.before += [_NO_CELL if cell == first else cell - 1 for cell in range(first, last + 1)]
            self.behind += [_NO_CELL if cell == last else cell + 1 for cell in range(first, last + 1)]
            self.weights += [weight] * len(sequence)
        for cell, right in enumerate(self.behind):
            if right != _NO_CELL:
                self.add_window(cell)

    def pair_at(self, cell: int) -> Pair | None:
        """The pair whose window begins at `cell`; None where there is none."""
        right = self.behind[cell]
        return None if right == _NO_CELL or self.ids[cell] == _DEAD else (self.ids[cell], self.ids[right])

    def add_window(self, cell: int) -> Pair:
        """Enter the window that begins at `cell`; returns its pair."""
        pair = self.ids[cell], self.ids[self.behind[cell]]
        self.counts[pair] = self.counts.get(pair, 0) + self.weights[cell]
        self.windows.setdefault(pair, []).append(cell)
        return pair

    def remove_window(self, cell: int) -> None:
        """Uncount the window that begins at `cell`."""
        self.counts[self.ids[cell], self.ids[self.behind[cell]]] -= self.weights[cell]

    def first_window(self, pair: Pair) -> int:
        """The first cell of the text where a window of `pair` begins; there is one."""
        # Windows that have gone never come back: their cells hold younger ids or none. So they can be dropped for good.
        windows = self.windows[pair]
        gone = 0
        while self.pair_at(windows[gone]) != pair:
            gone += 1
        if gone:
            del windows[:gone]
        return windows[0]

    def replace(self, pair: Pair, new_id: int) -> tuple[int, set[Pair]]:
        """Replace `pair` by `new_id` from the left; returns the replacements and the pairs that came into being."""
        born: set[Pair] = set()
        replacements = 0
        for cell in self.windows.pop(pair):
            if self.pair_at(cell) != pair:  # gone, or overlapped by the window replaced just before
                continue
            right = self.behind[cell]
            previous, following = self.before[cell], self.behind[right]
            if previous != _NO_CELL:
                self.remove_window(previous)
            if following != _NO_CELL:
                self.remove_window(right)
                self.before[following] = cell
            self.ids[cell], self.ids[right] = new_id, _DEAD
            self.behind[cell] = following
            if previous != _NO_CELL:
                born.add(self.add_window(previous))
            if following != _NO_CELL:
                born.add(self.add_window(cell))
            replacements += self.weights[cell]
        del self.counts[pair]
        return replacements, born


def train(
    sequences: Sequence[Sequence[int]],
    weights: Sequence[int],
    base_bytes: Sequence[bytes],
    *,
    num_merges: int,
    min_pair_frequency: int,
    tie_break: TieBreak,
) -> Training:
    """Learn merges from distinct sequences, in the order in which the text first shows them, and how often each stands
    there. Equal to `reference.train` on that text.

    >>> train([[0, 0, 1]], [3], [b"a", b"b"], num_merges=1, min_pair_frequency=2, tie_break="lowest_ids").merges
    [Merge(rank=0, pair=(0, 0), new_id=2, count=3, replacements=3)]
    """
    text = _Text(sequences, weights)
    token_bytes = list(base_bytes)

    def key(pair: Pair) -> tuple[int, object, Pair]:
        """Sorts the pair to be merged next before all others."""
        return -text.counts[pair], _tie(pair, tie_break, text, token_bytes), pair

    # Counts only fall and first windows only move right. So a key in the heap may be too good, never too bad: the best
    # pair is found when the key on top is still true.
    heap = [key(pair) for pair in text.counts]
    heapq.heapify(heap)
    merges: list[Merge] = []
    while len(merges) < num_merges:
        while heap:
            pair = heap[0][2]
            if not text.counts.get(pair):
                heapq.heappop(heap)
            elif heap[0] != (present := key(pair)):
                heapq.heapreplace(heap, present)
            else:
                break
        if not heap:
            return Training(merges, "no pair left")
        pair, count = heap[0][2], text.counts[heap[0][2]]
        if count < min_pair_frequency:
            return Training(merges, "best pair below the minimum frequency")
        new_id = len(token_bytes)
        token_bytes.append(token_bytes[pair[0]] + token_bytes[pair[1]])
        replacements, born = text.replace(pair, new_id)
        for one in born:
            if text.counts.get(one):
                heapq.heappush(heap, key(one))
        merges.append(Merge(len(merges), pair, new_id, count, replacements))
    return Training(merges, "target reached")


def _tie(pair: Pair, tie_break: TieBreak, text: _Text, token_bytes: Sequence[bytes]) -> object:
    """Sorts `pair` among equally frequent ones; the rules are those of `reference.choose_pair`."""
    if tie_break == "lowest_ids":
        return pair
    first_window = text.first_window(pair)
    if tie_break == "first_seen":
        return first_window
    return _greatest_first(token_bytes[pair[0]]), _greatest_first(token_bytes[pair[1]]), first_window


def _greatest_first(token: bytes) -> tuple[int, ...]:
    """Sorts byte strings in falling order: `ab` before `a`, which ends with a number above all others."""
    return (*(-byte for byte in token), 1)


def encode(sequence: Sequence[int], rank_of: Mapping[Pair, int], base_size: int, limit: int) -> list[int]:
    """Ids of one pretoken: equal to `reference.encode` with the first `limit` merges of `rank_of`.

    Rank r makes id base_size + r. A merge makes pairs of higher rank only, so taking the lowest rank next, the leftmost
    window first, is the replay of the merges in learned order.

    >>> encode([2, 1, 1], {(2, 2): 0, (1, 1): 1, (2, 1): 2}, base_size=3, limit=3)  # cbb: bb was learned before cb
    [2, 4]
    """
    ids = list(sequence)
    before, behind = list(range(-1, len(ids) - 1)), [*range(1, len(ids)), _NO_CELL]
    windows = ((rank_of.get(pair, limit), cell) for cell, pair in enumerate(pairwise(ids)))
    heap = [(rank, cell) for rank, cell in windows if rank < limit]
    heapq.heapify(heap)

    def push(cell: int) -> None:
        rank = rank_of.get((ids[cell], ids[behind[cell]]), limit)
        if rank < limit:
            heapq.heappush(heap, (rank, cell))

    while heap:
        rank, cell = heapq.heappop(heap)
        right = behind[cell]
        if ids[cell] == _DEAD or right == _NO_CELL or rank_of.get((ids[cell], ids[right])) != rank:
            continue  # an earlier merge took one of the two
        following = behind[right]
        ids[cell], ids[right], behind[cell] = base_size + rank, _DEAD, following
        if following != _NO_CELL:
            before[following] = cell
            push(cell)
        if before[cell] != _NO_CELL:
            push(before[cell])
    return [index for index in ids if index != _DEAD]


def encode_texts(
    texts: Iterable[Iterable[str]],
    symbols_of: Callable[[str], Sequence[int]],
    rank_of: Mapping[Pair, int],
    base_size: int,
    limit: int,
) -> list[list[int]]:
    """Ids of texts, each given as its pretokens; `symbols_of` gives the base ids of one. See `encode`."""
    known: dict[str, list[int]] = {}
    encoded = []
    for pieces in texts:
        ids: list[int] = []
        for piece in pieces:
            if piece not in known:
                known[piece] = encode(symbols_of(piece), rank_of, base_size, limit)
            ids += known[piece]
        encoded.append(ids)
    return encoded
