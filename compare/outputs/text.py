"""A comparison to read: comparison.txt for a terminal, comparison.md in Markdown. The answer comes first."""

from collections.abc import Mapping, Sequence

from compare.certainty.intervals import Interval
from compare.certainty.pairs import Pair
from compare.ladder.words import TITLE as LADDER_TITLE
from compare.ladder.words import cells as ladder_cells
from compare.ladder.words import lines as ladder_lines
from compare.outputs.comparison import BaselineLine, Comparison
from compare.sizes.words import TITLE as SIZES_TITLE
from compare.sizes.words import cells as size_cells
from compare.sizes.words import lines as size_lines
from compare.table import TERMINAL_COLUMNS, as_markdown, as_text, in_markdown, legend, names_in_tables, table_cells
from data.show import counted, visible, wrapped

MOST_SEEDS = 5  # whose differences are printed one by one
NOTE = (
    "Bits per character: the sum of all token losses of the split over ln 2 and over its characters; every character "
    "is scored exactly once, in sliding windows with stride half a block; every document is read after one newline "
    "or its tokenizer's separator, "
    "so its first character is scored too. Losses and perplexities per token cannot be compared across tokenizers and "
    "are not shown."
)
_ABOUT_PAIRS = "Differences in bits per character on test, with 95 % intervals; `all` is over text and training noise"


def comparison_text(comparison: Comparison) -> str:
    """What `make compare` prints: under 100 columns, whatever the names."""
    names = names_in_tables([row.contestant for row in comparison.rows])
    lines = [_wrapped(f"{comparison.experiment}: characters or BPE?", 0), ""]
    lines += [_wrapped(comparison.answer, 0), ""]
    lines += [_wrapped(f"  - {line}", 4) for line in _how_sure(comparison)]
    lines += ["", *legend(names), as_text(table_cells(comparison.rows, names)), ""]
    if comparison.certainty.pairs:
        lines += [_wrapped(f"{_ABOUT_PAIRS}:", 0), as_text(_pair_cells(comparison, names)), ""]
    lines += [*_ladder_text(comparison, names), *_sizes_text(comparison, names)]
    marginal = [_wrapped(f"  - {line}", 4) for line in comparison.marginal_sentences]
    lines += ["Own segmentation and all others:", *marginal, ""] if marginal else []
    lines += ["Baselines, bits per character on test:"]
    for one in comparison.baselines:
        line = f"  {one.name:<20}{one.bits_per_char:8.4f}  {_beaten(comparison, one)}"
        lines.append(_wrapped(line.rstrip(), 32))
    lines += ["", "With the character n-gram, bits per character on test:"]
    lines += [_wrapped(f"  - {one.sentence}", 4) for one in comparison.mixtures]
    lines += ["", "Not held equal:", *(_wrapped(f"  - {line}", 4) for line in comparison.not_held_equal), ""]
    return "\n".join(lines)


def comparison_markdown(comparison: Comparison) -> str:
    """The same in Markdown, with the curves, and with what was compared by hash."""
    lines = [f"# {in_markdown(comparison.experiment)}: characters or BPE?", ""]
    lines += [f"**{in_markdown(comparison.answer)}**", ""]
    lines += [*(f"- {in_markdown(line)}" for line in _how_sure(comparison)), ""]
    lines += [as_markdown(table_cells(comparison.rows)), ""]
    lines += ["![val bits per character against characters seen](curve_characters.svg)", ""]
    lines += ["![val bits per character against seconds](curve_seconds.svg)", ""]
    if comparison.certainty.pairs:
        lines += ["## Every pair", "", f"{_ABOUT_PAIRS}.", "", as_markdown(_pair_cells(comparison)), ""]
    if comparison.ladder is not None:
        said = [f"- {in_markdown(line)}" for line in ladder_lines(comparison.ladder)]
        lines += [f"## {LADDER_TITLE}", "", as_markdown(ladder_cells(comparison.ladder)), "", *said, ""]
    if comparison.sizes is not None:
        said = [f"- {in_markdown(line)}" for line in size_lines(comparison.sizes)]
        lines += [f"## {SIZES_TITLE}", "", as_markdown(size_cells(comparison.sizes)), "", *said, ""]
    if comparison.marginal_sentences:
        lines += [*(f"- {in_markdown(line)}" for line in comparison.marginal_sentences), ""]
    baselines = [["baseline", "bits per character (test)", "", "how"]]
    for one in comparison.baselines:
        baselines.append([one.name, f"{one.bits_per_char:.4f}", _beaten(comparison, one), one.note])
    lines += ["## Baselines", "", as_markdown(baselines), ""]
    lines += [
        "## With the character n-gram",
        "",
        *(f"- {in_markdown(one.sentence)}" for one in comparison.mixtures),
        "",
    ]
    lines += ["## Not held equal", "", *(f"- {in_markdown(line)}" for line in comparison.not_held_equal), ""]
    formula = comparison.identity.flops_formula
    lines += ["## How the number is made", "", NOTE, "", f"Training FLOPs: {formula}.", ""]
    lines += ["## What was compared", "", *(f"- {in_markdown(line)}" for line in comparison.identity.about), ""]
    return "\n".join(lines)


def _ladder_text(comparison: Comparison, names: Mapping[str, str]) -> list[str]:
    if comparison.ladder is None:
        return []
    said = [_wrapped(f"  - {line}", 4) for line in ladder_lines(comparison.ladder)]
    return [LADDER_TITLE, as_text(ladder_cells(comparison.ladder, names)), *said, ""]


def _sizes_text(comparison: Comparison, names: Mapping[str, str]) -> list[str]:
    if comparison.sizes is None:
        return []
    said = [_wrapped(f"  - {line}", 4) for line in size_lines(comparison.sizes)]
    return [SIZES_TITLE, as_text(size_cells(comparison.sizes, names)), *said, ""]


def _how_sure(comparison: Comparison) -> list[str]:
    """How sure the answer is, under which budget, and what is assumed."""
    noise = [] if comparison.noise is None else [comparison.noise]
    return [*comparison.how_sure, *noise, f"This is {comparison.budget}."]


def _wrapped(line: str, indent: int) -> str:
    """`line` on as many lines of a terminal as it needs, those after the first indented."""
    return wrapped(visible(line), TERMINAL_COLUMNS, indent)


def _beaten(comparison: Comparison, baseline: BaselineLine) -> str:
    """The contestants that need more bits than `baseline`: a useful model is none of them."""
    names = [row.contestant for row in comparison.rows if row.bits_per_char > baseline.bits_per_char]
    if not names:
        return ""
    words = f"fewer bits than {', '.join(names)}"
    if len(names) < len(comparison.rows):
        return words
    if baseline.lead is None:
        return f"{words}; no interval of the lead"
    doubt = "" if baseline.lead.low > 0.0 else ", not decided"
    return f"{words}; lead over the best model {baseline.lead} (95 %{doubt})"


def _pair_cells(comparison: Comparison, names: Mapping[str, str] | None = None) -> list[list[str]]:
    """Header and one line for each pair of contestants, under `names` where they are not the full ones."""
    certainty = comparison.certainty
    documents = f"over {counted(certainty.num_documents, 'document')}"
    blocks = f"over {counted(certainty.num_blocks, 'block')} of {certainty.block_characters:,}"
    cells = [["", "difference", "outcome", "all", documents, blocks, "by seed"]]
    for pair in certainty.pairs:
        one, other = (name if names is None else names[name] for name in (pair.a, pair.b))
        intervals = [_interval(found) for found in (pair.interval, pair.documents, pair.blocks)]
        outcome = _outcome(pair, one, other)
        cells.append([f"  {one} - {other}", f"{pair.difference:+.4f}", outcome, *intervals, _by_seed(pair.by_seed)])
    return cells


def _outcome(pair: Pair, one: str, other: str) -> str:
    return {"a": f"{one} better", "b": f"{other} better", "equal": "equal", "undecided": "undecided"}[pair.outcome]


def _by_seed(differences: Sequence[float]) -> str:
    """The difference under each seed; of many seeds the least and the greatest."""
    if len(differences) < 2:
        return "–"
    if len(differences) > MOST_SEEDS:
        return f"{min(differences):+.4f} to {max(differences):+.4f} ({len(differences)} seeds)"
    return " ".join(f"{value:+.4f}" for value in differences)


def _interval(interval: Interval | None) -> str:
    return "–" if interval is None else f"{interval.low:+.4f} to {interval.high:+.4f}"
