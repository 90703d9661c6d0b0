"""The wire format of protocol buffers, as far as SentencePiece's model file needs it.

A model is a list of pieces (field 1: text, score, type) and of settings. Every length in it is compared with what the
file holds, so that a damaged length costs no memory.
"""

from collections.abc import Iterator

from data.errors import TokenizerError

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
NORMAL, UNKNOWN, CONTROL = 1, 2, 3
"""Types of a piece."""


def check_model(raw: bytes, name: str) -> int:
    """The number of pieces in a SentencePiece model; raises TokenizerError for a file that is none, or is damaged."""
    num_pieces = num_unknown = 0
    try:
        for field, value in fields(raw):
            if field == 1:
                if not isinstance(value, bytes):
                    raise ValueError("a piece is no record")
                piece = dict(fields(value))
                text = piece.get(1, b"")
                if not isinstance(text, bytes) or not text:
                    raise ValueError(f"piece {num_pieces} is empty")
                text.decode("utf-8")
                num_pieces += 1
                num_unknown += piece.get(3) == UNKNOWN
    except ValueError as error:
        raise TokenizerError(
            f"{name} is no SentencePiece model, or is cut short or edited: {error}; put the file back whole"
        ) from error
    if not num_pieces or num_unknown != 1:
        raise TokenizerError(
            f"{name} is no SentencePiece model: it has {num_pieces:,} pieces and {num_unknown} of them stand for the "
            "unknown, where a model has exactly one"
        )
    return num_pieces


def fields(raw: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Number and value of every field of a record; raises ValueError with the offset of what is wrong."""
    position = 0
    while position < len(raw):
        start = position
        tag, position = _varint(raw, position)
        number, wire_type = tag >> 3, tag & 7
        if number == 0:
            raise ValueError(f"offset {start} holds no field")
        if wire_type == _VARINT:
            value, position = _varint(raw, position)
            yield number, value
            continue
        if wire_type == _BYTES:
            size, position = _varint(raw, position)
        elif wire_type in (_FIXED32, _FIXED64):
            size = 4 if wire_type == _FIXED32 else 8
        else:
            raise ValueError(f"offset {start} holds no field")
        if size > len(raw) - position:
            raise ValueError(f"offset {start} claims {size:,} bytes, and {len(raw) - position:,} follow")
        yield number, raw[position : position + size]
        position += size


def _varint(raw: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(raw):
            raise ValueError("it ends inside a number")
        byte = raw[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError(f"offset {position} holds a number without end")


def varint(value: int) -> bytes:
    """A whole number, 0 or more, as the format writes it."""
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])


def bytes_field(number: int, value: bytes) -> bytes:
    """A field of bytes or text, or a record inside a record."""
    return varint(number << 3 | _BYTES) + varint(len(value)) + value


def varint_field(number: int, value: int) -> bytes:
    """A field with a whole number."""
    return varint(number << 3 | _VARINT) + varint(value)


def fixed32_field(number: int, value: bytes) -> bytes:
    """A field of four bytes, such as a float."""
    return varint(number << 3 | _FIXED32) + value
