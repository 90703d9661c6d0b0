"""A model file of SentencePiece as a contestant: BPE, unigram, word or character models."""

from collections.abc import Sequence

from data.errors import TokenizerError
from tokenizer.foreign.libraries import library
from tokenizer.foreign.pieces import MOST_VOCABULARY, ForeignTokenizer
from tokenizer.foreign.wire import check_model

SPACE_MARK = "▁"


class SentencePieceTokenizer(ForeignTokenizer):
    """Control pieces such as `<s>` are never made from text, as in the library."""

    kind = "sentencepiece"

    def _load(self, name: str) -> list[bytes]:
        sentencepiece = library("sentencepiece")
        num_pieces = check_model(self.source, name)
        if num_pieces > MOST_VOCABULARY:
            raise TokenizerError(f"{name} has {num_pieces:,} pieces; up to {MOST_VOCABULARY:,} can be used")
        try:
            self._library = sentencepiece.SentencePieceProcessor(model_proto=self.source)
        except (RuntimeError, ValueError, OSError) as error:
            said = (str(error).splitlines() or [""])[0][:200]
            raise TokenizerError(f"{name}: the sentencepiece library cannot read it: {said}") from error
        ids = range(self._library.vocab_size())
        self.special_tokens = {self._library.id_to_piece(i): i for i in ids if self._library.is_control(i)}
        return [self._piece(index) for index in ids]

    def _piece(self, index: int) -> bytes:
        piece: str = self._library.id_to_piece(index)
        if self._library.is_byte(index):
            return bytes([int(piece[3:5], 16)])
        if self._library.is_control(index) or self._library.is_unknown(index):
            return piece.encode("utf-8")
        return piece.replace(SPACE_MARK, " ").encode("utf-8")

    def _encode_group(self, texts: Sequence[str]) -> list[list[int]]:
        ids: list[list[int]] = self._library.encode(list(texts), out_type=int, add_bos=False, add_eos=False)
        return ids
