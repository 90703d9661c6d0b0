"""PPMd, the compressor that comes nearest to a language model, where the optional package pyppmd is installed.

It is prediction by partial matching (Shkarin 2001), variant H as in 7-Zip: adaptive, over bytes, with contexts up to an
order. The order is chosen on val, by the same use that is made of test: alone, or after train.
"""

import importlib.metadata
from collections.abc import Callable, Mapping

from compare.baselines.result import MIN_GAIN, Result, size_per_char
from data.errors import DataError
from data.splits import Split

ORDERS = (4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64)
"""Tried from the first one on; the last is the most that the compressor takes."""
ALWAYS_TRIED = 2
"""So many orders are tried whatever val says."""
MEMORY_MIB = 1024
"""Room for the contexts; only what the text needs is used. When it is full, the compressor forgets all and goes on."""
INSTALL = "pip install -c constraints.txt -e '.[baselines]'"


def installed_version() -> str | None:
    """The version of pyppmd; None where it is not installed."""
    try:
        return importlib.metadata.version("pyppmd")
    except importlib.metadata.PackageNotFoundError:
        return None


def compressed_size(raw: bytes, order: int) -> int:
    """Bytes that `raw` takes. Raises DataError if the package cannot be loaded."""
    try:
        import pyppmd
    except ImportError as error:
        raise DataError(f"pyppmd is installed but cannot be loaded ({error}); install it again: {INSTALL}") from error
    return len(pyppmd.compress(raw, max_order=order, mem_size=MEMORY_MIB << 20, variant="H"))


def alone(splits: Mapping[str, Split]) -> Result:
    """8 size(test) / C, at the order that does best on val compressed by itself."""

    def size(name: str, order: int) -> int:
        return compressed_size(splits[name].text.encode("utf-8"), order)

    return _at_best_order(splits, size, "the test text by itself")


def after_train(splits: Mapping[str, Split]) -> Result:
    """8 (size(train + test) - size(train)) / C, at the order that does best on val in place of test."""
    train = splits["train"].text.encode("utf-8")
    sizes_of_train: dict[int, int] = {}

    def size(name: str, order: int) -> int:
        if order not in sizes_of_train:
            sizes_of_train[order] = compressed_size(train, order)
        return compressed_size(train + splits[name].text.encode("utf-8"), order) - sizes_of_train[order]

    return _at_best_order(splits, size, "what test adds to train")


def _at_best_order(splits: Mapping[str, Split], size: Callable[[str, int], int], what: str) -> Result:
    """The figure on test; `size` gives the bytes of a split at an order."""
    on_val: dict[int, float] = {}
    ended_at_bound = True
    for number, order in enumerate(ORDERS, start=1):
        before = min(on_val.values(), default=float("inf"))
        on_val[order] = size_per_char(size("val", order), splits["val"])
        if number > ALWAYS_TRIED and before - on_val[order] < MIN_GAIN:
            ended_at_bound = False
            break
    best = min(on_val, key=lambda order: (on_val[order], order))
    num_bytes = size("test", best)
    tried = ", ".join(f"{order}: {bits:.3f}" for order, bits in on_val.items())
    note = (
        f"{what}, {num_bytes:,} bytes; PPMd variant H of pyppmd {installed_version()} with {MEMORY_MIB:,} MiB, order "
        f"{best}, chosen on val among {tried}"
    )
    if ended_at_bound:
        note += f"; the search ended at its bound (order {ORDERS[-1]}) while val still fell"
    if best == ORDERS[0]:
        note += f"; {best} is the lowest order that is tried: a lower one may need fewer bits"
    return Result(size_per_char(num_bytes, splits["test"]), note)
