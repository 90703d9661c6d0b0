"""What a run shows on stderr while it trains. Nothing of it may cost the run: whoever listened may have gone."""

import contextlib
import math
import sys
from types import TracebackType
from typing import Any

from tqdm import tqdm

from model.settings import Budget, Spent


def say(line: str) -> None:
    """Print `line` on stderr, where anybody is still there to read it."""
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)


class _WhileHeard:
    """A stream whose other end may go away: a terminal that is closed, a `tee` that Ctrl-C has ended."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self.stream.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class ProgressBar:
    """The bar of one run, in the unit of its budget; use it as a context."""

    def __init__(self, label: str, budget: Budget, spent: Spent, *, is_shown: bool) -> None:
        self.budget = budget
        self.bar = tqdm(
            total=budget.amount,
            initial=round(spent.amount(budget.unit)),
            desc=label,
            unit=f" {budget.unit}",
            unit_scale=True,
            disable=not is_shown,
            file=_WhileHeard(sys.stderr),
        )

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.close()

    def show(self, spent: Spent, loss_nats: float, val_sample_bits_per_char: float) -> None:
        """Move to `spent`; the figures are the latest, NaN where there is none yet."""
        val = "" if math.isnan(val_sample_bits_per_char) else f", val sample {val_sample_bits_per_char:.3f} bits/char"
        rate = spent.tokens / spent.seconds
        self.bar.set_postfix_str(f"loss {loss_nats:.3f} nats/token{val}, {rate:,.0f} tokens/s", refresh=False)
        self.bar.update(min(round(spent.amount(self.budget.unit)), self.budget.amount) - self.bar.n)
