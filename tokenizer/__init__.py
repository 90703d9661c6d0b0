"""Text to ids and back: the tokenizers, their training and their files. Imports only from `data`."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizer.base import Tokenizer


def load(path: Path | str) -> "Tokenizer":
    """The tokenizer in the file `path`, such as `demo/tokenizer/byte_bpe_tokenizer.json`.

    It has `encode`, `decode`, `encode_batch`, `encode_documents` and `len()`. Raises TokenizerError for a file that is
    no tokenizer or is damaged, DataError for one that may not be read.
    """
    from tokenizer.loading import load_tokenizer  # here: `import tokenizer` alone needs neither numpy nor numba

    return load_tokenizer(Path(path).expanduser())
