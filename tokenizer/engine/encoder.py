"""One tokenizer's merges in the form that the encoding kernels want; made when a text is first worth compiled code."""

from collections.abc import Sequence

import numpy as np

from tokenizer.base import Int32Array, Int64Array, groups_of
from tokenizer.engine import kernels
from tokenizer.engine.cuts import NEVER, Cuts, cuts_of
from tokenizer.engine.encode import encode_short, encode_texts
from tokenizer.engine.intern import text_bytes
from tokenizer.engine.piece import MergeTable
from tokenizer.pretokenize import SplitPattern

_GROUP_CHARACTERS = 1 << 26  # characters encoded in one go


class Encoder:
    """Encodes texts by compiled kernels."""

    def __init__(
        self,
        pairs: Int32Array,
        base_ids: Int32Array,
        token_bytes: Sequence[bytes],
        *,
        is_bytes: bool,
        base_size: int,
        split_pattern: SplitPattern,
    ) -> None:
        """`pairs` (R, 2) are the merges as ids, `base_ids` the id of each byte or code point (-1: unknown), and
        `token_bytes` the bytes of the base tokens and of each merge's token.
        """
        self._pairs, self._base_ids, self._token_bytes = pairs, base_ids, token_bytes
        self._is_bytes, self._base_size, self._split_pattern = is_bytes, base_size, split_pattern
        self._ranks = kernels.build_ranks(pairs)
        self._low_ranks = kernels.build_low_ranks(pairs, base_size)
        self._latest_table: MergeTable | None = None
        self._latest_cuts: tuple[int, Cuts] | None = None

    def short(self, raw: bytes, lengths: Sequence[int], limit: int) -> Int32Array:
        """Ids of the pretokens of `lengths` bytes that make up the UTF-8 text `raw`, for a text that is too short for
        looking for repetitions to pay. Empty if a character has no id.
        """
        text = np.frombuffer(bytearray(raw), dtype=np.uint8)  # writable, as long texts are: one compiled kernel
        ids: Int32Array = encode_short(text, np.cumsum([0, *lengths], dtype=np.int64), *self.table(limit))
        return ids

    def documents(
        self, texts: Sequence[str], limit: int, *, num_threads: int | None = None
    ) -> tuple[Int64Array, Int64Array]:
        """Ids of all documents and their D+1 offsets. Each distinct pretoken is encoded once.

        Memory beside the ids is bounded: documents are taken in groups. Raises TokenizerError for a character without
        an id and for a lone surrogate.
        """
        table, cuts = self.table(limit), self.cuts(limit)
        all_ids, all_offsets = np.zeros(0, dtype=np.int64), [np.zeros(1, dtype=np.int64)]
        for group in groups_of(texts, _GROUP_CHARACTERS):
            ids, offsets = encode_texts(text_bytes(group), table, self._split_pattern, cuts, num_threads=num_threads)
            before = len(all_ids)
            all_offsets.append(offsets[1:] + before)
            if before == 0:
                all_ids = ids
            else:
                # It grows where it is: joined at the end, all ids would take their memory twice. Nobody else has it.
                all_ids.resize(before + len(ids), refcheck=False)
                all_ids[before:] = ids
        return all_ids, np.concatenate(all_offsets)

    def table(self, limit: int) -> MergeTable:
        """The first `limit` merges for the kernels; kept for the latest limit."""
        if self._latest_table is None or self._latest_table.limit != limit:
            self._latest_table = MergeTable(
                pairs=self._pairs,
                ranks=self._ranks,
                low_ranks=self._low_ranks,
                base_ids=self._base_ids,
                is_bytes=self._is_bytes,
                base_size=self._base_size,
                limit=limit,
            )
        return self._latest_table

    def cuts(self, limit: int) -> Cuts:
        """Where no token of the first `limit` merges reaches across; kept for the latest limit."""
        if self._split_pattern != "none":
            return NEVER
        if self._latest_cuts is None or self._latest_cuts[0] != limit:
            tokens = self._token_bytes[: self._base_size + limit]
            self._latest_cuts = limit, cuts_of(tokens, ascii_only=not self._is_bytes)
        return self._latest_cuts[1]
