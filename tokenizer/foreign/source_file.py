"""Reading the files of other tools: bounded in size, never unpickled, refused by what they are."""

from pathlib import Path

from data.errors import DataError, TokenizerError, cause_of, shown_path
from data.files import decode_utf8
from data.kinds import recognise

MOST_BYTES = 256_000_000
"""The largest files in use have about 35 MB."""


def read_source(path: Path, *, is_text: bool) -> bytes:
    """The bytes of `path`. Raises TokenizerError for what is no such file, or is too large."""
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise TokenizerError(f"cannot read {shown_path(path)}: {cause_of(error)}") from error
    if len(raw) > MOST_BYTES:
        raise TokenizerError(f"{path} has more than {MOST_BYTES:,} bytes; a tokenizer's file has at most that many")
    if not raw:
        raise TokenizerError(f"{path} is empty; put the file back whole")
    kind = recognise(raw)
    if kind is not None:
        raise TokenizerError(f"{path} is {kind}")
    if is_text:
        try:
            decode_utf8(raw, str(path))
        except DataError as error:
            raise TokenizerError(error.text) from error
    return raw
