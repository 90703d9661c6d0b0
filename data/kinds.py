"""What a file is, told by its bytes, and what reads it: for files that are given as text and are none."""

import re

_LOOK = 1 << 16  # bytes at the start of a file that are looked at

_UNPACK = "unpack it and give the text files that are in it"
_SAVE_AS_TEXT = "open it in the program that reads it and save it as plain text in UTF-8"
_NO_TEXT = "leave it out"
_TABLE = "`source: hub` reads such a table when it is a dataset of the Hub; or write its text column to a text file"
_PICKLE = "this program never unpickles; write its text to a text file where you trust the file"
_LFS = "the text itself is not here; run `git lfs pull` in its repository"

_ZIPPED = (
    (b"word/document.xml", "a Word document (.docx)", _SAVE_AS_TEXT),
    (b"xl/workbook.xml", "an Excel workbook (.xlsx)", "save its text column as plain text in UTF-8"),
    (b"ppt/presentation.xml", "a PowerPoint presentation (.pptx)", _SAVE_AS_TEXT),
    (b"application/epub+zip", "an EPUB book", _SAVE_AS_TEXT),
    (b"application/vnd.oasis.opendocument", "an OpenDocument file", _SAVE_AS_TEXT),
    (b"data.pkl", "a PyTorch file", _PICKLE),
    (b".npy", "a NumPy archive (.npz)", "write its text to a text file"),
)
_SIGNATURES = (  # offset, bytes, what the file is, how to go on
    (0, b"\x1f\x8b", "compressed with gzip", "run `gunzip` on it first"),
    (0, b"\x28\xb5\x2f\xfd", "compressed with Zstandard", "run `unzstd` on it first"),
    (0, b"\xfd7zXZ\x00", "compressed with xz", "run `unxz` on it first"),
    (0, b"BZh", "compressed with bzip2", "run `bunzip2` on it first"),
    (0, b"\x04\x22\x4d\x18", "compressed with LZ4", "run `unlz4` on it first"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    (0, b"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    (257, b"ustar", "a tar archive", _UNPACK),
    (0, b"PAR1", "a Parquet table", _TABLE),
    (0, b"ARROW1\x00\x00", "an Arrow table", _TABLE),
    (0, b"SQLite format 3\x00", "a SQLite database", "write its text column to a text file"),
    (0, b"\x89HDF\r\n\x1a\n", "an HDF5 file", "write its text to a text file"),
    (0, b"\x93NUMPY", "a NumPy array (.npy)", "write its text to a text file"),
    (0, b"%PDF-", "a PDF document", "run `pdftotext` on it first"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document (.doc, .xls or .ppt)", _SAVE_AS_TEXT),
    (0, b"\x89PNG\r\n\x1a\n", "a PNG image", _NO_TEXT),
    (0, b"\xff\xd8\xff", "a JPEG image", _NO_TEXT),
    (0, b"GIF87a", "a GIF image", _NO_TEXT),
    (0, b"GIF89a", "a GIF image", _NO_TEXT),
    (0, b"II*\x00", "a TIFF image", _NO_TEXT),
    (0, b"MM\x00*", "a TIFF image", _NO_TEXT),
    (8, b"WEBPVP8", "a WebP image", _NO_TEXT),
    (4, b"ftyp", "an MP4 video or HEIC image", _NO_TEXT),
    (0, b"OggS\x00", "an Ogg recording", _NO_TEXT),
    (8, b"WAVEfmt ", "a WAV recording", _NO_TEXT),
    (0, b"ID3\x03\x00", "an MP3 recording", _NO_TEXT),
    (0, b"ID3\x04\x00", "an MP3 recording", _NO_TEXT),
    (0, b"\x7fELF", "a compiled program or library", _NO_TEXT),
    (0, b"\x00asm", "a WebAssembly program", _NO_TEXT),
)
_PLAIN = (b"%PDF-", b"SQLite format 3\x00", b"Rar!\x1a\x07", b"\x7fELF", b"ARROW1\x00\x00")
"""Signatures that are valid UTF-8 and that no text starts with: enough by themselves."""
# Protocol 0 of pickle writes ASCII: a list, dict or tuple with its memo number, a known object, one string to the end.
_ASCII_PICKLE = re.compile(
    rb"(?:\([ldt]p\d+\n|\(?c(?:copy_reg|copyreg|__builtin__|builtins|numpy[\w.]*)\n\w+\n|V[^\n]*\np\d+\n\.\Z)"
)
_BINARY_PICKLE = re.compile(rb"(?:\x80[\x02-\x05]|[\]}(]q\x00|[XU].*q\x00\.\Z)", re.DOTALL)


def recognise(raw: bytes) -> str | None:
    r"""What the file with the bytes `raw` is and how to go on, for a message; None for text and for the unknown.

    Valid UTF-8 without a NUL is taken for text unless its first bytes are those of a format that no text starts with.

    >>> recognise(b"\x1f\x8b\x08")
    'compressed with gzip; run `gunzip` on it first'
    >>> recognise(b"BZh is how this sentence starts") is None
    True
    """
    wide = _wide(raw)
    if wide is not None:
        return wide
    if raw.startswith(b"version https://git-lfs.github.com/spec/v1\n"):
        return f"a pointer of Git LFS; {_LFS}"
    if raw.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zipped(raw)
    if _ASCII_PICKLE.match(raw):
        return f"a pickle of Python; {_PICKLE}"
    if not raw.startswith(_PLAIN) and _is_text(raw):
        return None
    if _BINARY_PICKLE.match(raw) and raw.endswith(b"."):
        return f"a pickle of Python; {_PICKLE}"
    for offset, signature, what, way_on in _SIGNATURES:
        if raw.startswith(signature, offset):
            return f"{what}; {way_on}"
    return None


def _is_text(raw: bytes) -> bool:
    try:
        return "\0" not in raw.decode("utf-8")
    except UnicodeDecodeError:
        return False


def _zipped(raw: bytes) -> str:
    for name, what, way_on in _ZIPPED:
        if name in raw:
            return f"{what}; {way_on}"
    return f"a zip archive; {_UNPACK}"


def _wide(raw: bytes) -> str | None:
    """UTF-16 and UTF-32: by the byte order mark, else by where the NUL bytes stand."""
    for mark, name in (
        (b"\xff\xfe\x00\x00", "UTF-32LE"),
        (b"\x00\x00\xfe\xff", "UTF-32BE"),
        (b"\xff\xfe", "UTF-16LE"),
        (b"\xfe\xff", "UTF-16BE"),
    ):
        # U+0000 right after the mark of UTF-16LE looks like the mark of UTF-32LE; four bytes a character tell.
        if raw.startswith(mark) and (len(mark) == 2 or len(raw) % 4 == 0):
            short = name.removesuffix("LE").removesuffix("BE")
            return f"{short} (it starts with the byte order mark {mark.hex()}); save it as UTF-8{_iconv(short)}"
    for name in ("UTF-32LE", "UTF-32BE", "UTF-16LE", "UTF-16BE"):
        if _looks_like(raw, name):
            return f"{name} without a byte order mark, as it looks; save it as UTF-8{_iconv(name)}"
    return None


def _looks_like(raw: bytes, name: str) -> bool:
    """Whether NUL bytes stand as in text of the encoding `name`: only where its high bytes are, and often enough."""
    width = int(name[4:6]) // 8
    piece = raw[: _LOOK - _LOOK % width]
    if not piece or len(raw) % width:
        return False
    num_nuls = piece.count(0)
    if width == 4:
        high = piece[3::4] if name.endswith("LE") else piece[0::4]
        expected = high.count(0) == len(high)  # no character lies above U+10FFFF
    else:
        # Spaces and line ends have a zero high byte in every script; a lone NUL in something else proves nothing.
        high = piece[1::2] if name.endswith("LE") else piece[0::2]
        expected = num_nuls >= 4 and num_nuls >= len(piece) / 50 and high.count(0) == num_nuls
    if not expected:
        return False
    try:
        text = piece.decode(name, "strict" if len(piece) == len(raw) else "ignore")
    except UnicodeDecodeError:
        return False
    return sum(character.isprintable() or character.isspace() for character in text) >= 0.95 * len(text)


def _iconv(name: str) -> str:
    return f", for example with `iconv -f {name} -t UTF-8 OLD > NEW`"
