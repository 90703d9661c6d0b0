"""Documents -> the three cleaned splits on disk, with a manifest that ties them to their source."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Split:
    """One cleaned split of a corpus: the text that is scored, and where its documents begin."""

    name: str
    """`train`, `val` or `test`."""
    text: str
    """All documents, one after the other; each ends with a newline."""
    document_offsets: NDArray[np.int64]
    """Shape (D+1,), in characters: document d is text[o[d]:o[d+1]]."""
    sha256: str
    """Hex sha256 of the text's UTF-8 bytes."""

    def documents(self) -> list[str]:
        """The documents as strings."""
        bounds = self.document_offsets.tolist()
        return [self.text[start:end] for start, end in zip(bounds[:-1], bounds[1:], strict=True)]
