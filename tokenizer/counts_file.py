"""Counting the pretokens of a file block by block: a text of any size needs the memory of one block."""

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from data.errors import DataError
from tokenizer.borders import UInt64Array, eight_at_a_time
from tokenizer.counts import PretokenCounts, count_pretokens, merge_counts, shifted
from tokenizer.intern import AT_BLANKS, PADDING, BoolArray, TextBytes, padded
from tokenizer.jit import kernel
from tokenizer.pretokenize import SplitPattern
from tokenizer.scan import UInt8Array

BLOCK_BYTES = 12 << 20


def count_file(
    path: Path, split_pattern: SplitPattern, *, num_threads: int | None = None, block_bytes: int = BLOCK_BYTES
) -> PretokenCounts:
    """The counts of a UTF-8 file, which is one document; equal to `count_pretokens` of its text.

    The file is read once, `block_bytes` at a time; only a longer stretch without a blank is held in one piece. Raises
    DataError when the file cannot be read or is not UTF-8, with the byte offset.
    """
    total = count_pretokens([], split_pattern)
    for start, block in _blocks(path, block_bytes):
        counts = shifted(count_pretokens(block, split_pattern, num_threads=num_threads), start)
        total = merge_counts([total, counts]) if start else counts
        _give_back_memory()
    return total


def _blocks(path: Path, block_bytes: int) -> Iterator[tuple[int, TextBytes]]:
    """Parts of a file and the bytes before each, cut where no pretoken goes on; a part's memory serves the next one.

    Invariant: `filled` bytes of the buffer, at least one less than it has room for, are those from `start` on.
    """
    buffer, filled, start = padded(block_bytes), 0, 0
    try:
        with path.open("rb") as file:
            while num_read := file.readinto(buffer[filled:-PADDING].data):
                filled += num_read
                if filled < len(buffer) - PADDING:
                    continue
                cut = _last_cut(buffer[:filled], AT_BLANKS)
                if cut == 0:
                    buffer = np.concatenate([buffer, padded(len(buffer))])
                    continue
                rest = buffer[cut:filled].copy()
                yield start, _checked(path, buffer, cut, start)
                buffer[: len(rest)] = rest
                start, filled = start + cut, len(rest)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    yield start, _checked(path, buffer, filled, start)


@kernel
def _last_cut(text: UInt8Array, may_cut: BoolArray) -> Any:
    """The last place, 1 or more, at which `text` may be cut, or 0; `may_cut` as in intern.AT_BLANKS."""
    cut = len(text) - 1
    while cut > 0 and not may_cut[text[cut - 1], text[cut]]:
        cut -= 1
    return max(cut, 0)


def _checked(path: Path, buffer: UInt8Array, size: int, start: int) -> TextBytes:
    """The first `size` bytes of the buffer, which stand at `start` in the file, laid out and known to be UTF-8."""
    buffer[size : size + PADDING] = 0
    text = buffer[: size + PADDING]
    block = TextBytes(text, eight_at_a_time(text), np.array([size], dtype=np.int64))
    offset = first_invalid(block.text, block.at, size)
    if offset < size:
        raise DataError(
            f"{path} is not valid UTF-8 at byte {start + offset} (0x{text[offset]:02x}); convert it to UTF-8"
        )
    return block


def _give_back_memory() -> None:
    """Let the C library return what was freed to the system; glibc would keep tens of megabytes for later."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's own; other libraries have none and need none
    if trim is not None:
        trim(0)


@kernel
def first_invalid(text: UInt8Array, at: UInt64Array, size: int) -> Any:
    """The first byte at which `text` is not UTF-8 (Unicode standard, table 3-7), or `size`; padded with NUL."""
    i = 0
    while i < size:
        if at[i] & np.uint64(0x8080808080808080) == 0:
            i += 8
            continue
        first, second = text[i], text[i + 1]
        least, most, length = 0x80, 0xBF, 4
        if first < 0x80:
            i += 1
            continue
        if 0xC2 <= first < 0xE0:
            length = 2
        elif 0xE0 <= first < 0xF0:
            length = 3
            least = 0xA0 if first == 0xE0 else 0x80
            most = 0x9F if first == 0xED else 0xBF  # beyond lie the surrogates
        elif 0xF0 <= first < 0xF5:
            least = 0x90 if first == 0xF0 else 0x80
            most = 0x8F if first == 0xF4 else 0xBF
        else:
            return i
        if not least <= second <= most:
            return i
        for j in range(i + 2, i + length):
            if not 0x80 <= text[j] <= 0xBF:
                return i
        i += length
    return size
