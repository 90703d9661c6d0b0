"""The libraries of other tokenizers, imported only where one of them is used."""

import importlib
import importlib.metadata
from typing import Any

from data.errors import LibraryError

LIBRARY_OF = {
    "hf": "tokenizers",
    "hf_bpe": "tokenizers",
    "hf_wordpiece": "tokenizers",
    "tiktoken": "tiktoken",
    "sentencepiece": "sentencepiece",
    "spm_bpe": "sentencepiece",
    "spm_unigram": "sentencepiece",
}
"""Kind of a tokenizer -> the library that it needs."""


def library(name: str) -> Any:
    """The imported library `name`; raises LibraryError with the command that installs it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:  # something that the library itself needs
            raise
        extra = "onnx" if name.startswith("onnx") else "interop"
        raise LibraryError(
            f"the Python package {name} is not installed; run `.venv/bin/python -m pip install -c constraints.txt "
            f"{name}` (or `-e '.[{extra}]'` for all of them)"
        ) from error


def version_of(name: str) -> str:
    """The library as it decides ids: `tokenizers 0.23.3`. Raises LibraryError if it is not installed."""
    library(name)
    return f"{name} {importlib.metadata.version(name)}"
