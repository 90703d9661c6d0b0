"""The one table, what was not held equal, and the verdict, as data and as text."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from compare.experiment import Experiment
from compare.runs import Run

TIE_SHARE = 0.005  # a smaller share of the bits is a tie: the canonical segmentation bounds BPE only from above

_UNITS = {
    "characters": "characters seen",
    "tokens": "tokens seen",
    "steps": "optimizer steps",
    "flops": "training FLOPs",
    "seconds": "seconds of training",
}


def row_of(run: Run) -> dict[str, Any]:
    """The table's figures for one run; test split, sliding windows unless the name says otherwise."""
    report, test = run.report, run.test
    return {
        "contestant": run.contestant,
        "bits_per_char": test["bits_per_char"],
        "bits_per_byte": test["bits_per_byte"],
        "disjoint_bits_per_char": test["disjoint_bits_per_char"],
        "val_bits_per_char": report["splits"]["val"]["bits_per_char"],
        "word_perplexity": test["word_perplexity"],
        "chars_per_token": test["num_chars"] / test["num_tokens"],
        "vocab_size": report["tokenizer"]["vocab_size"],
        "parameters_embedding": report["parameters"]["embedding"],
        "parameters_rest": report["parameters"]["rest"],
        "block_tokens": report["block"]["tokens"],
        "block_characters": report["block"]["mean_characters"],
        "characters_seen": report["seen"]["characters"],
        "tokens_seen": report["seen"]["tokens"],
        "epochs": report["seen"]["epochs"],
        "flops": report["seen"]["flops"],
        "seconds": report["seen"]["seconds"],
        "tokens_per_second": report["tokens_per_second"],
        "learning_rate": report["train"]["learning_rate"],
        "seed": report["train"]["seed"],
    }


_ROWS = (
    ("bits per character (test)", "bits_per_char", "{:.4f}"),
    ("  disjoint windows", "disjoint_bits_per_char", "{:.4f}"),
    ("  val", "val_bits_per_char", "{:.4f}"),
    ("bits per byte (test)", "bits_per_byte", "{:.4f}"),
    ("word perplexity (test)", "word_perplexity", "{:,.1f}"),
    ("characters per token (test)", "chars_per_token", "{:.3f}"),
    ("vocabulary", "vocab_size", "{:,}"),
    ("parameters: embedding", "parameters_embedding", "{:,}"),
    ("parameters: rest", "parameters_rest", "{:,}"),
    ("block in tokens", "block_tokens", "{:,}"),
    ("block in characters (mean)", "block_characters", "{:,.0f}"),
    ("characters seen", "characters_seen", "{:,}"),
    ("tokens seen", "tokens_seen", "{:,}"),
    ("epochs over train", "epochs", "{:.2f}"),
    ("training FLOPs", "flops", "{:.3e}"),
    ("seconds of training", "seconds", "{:,.1f}"),
    ("tokens per second", "tokens_per_second", "{:,.0f}"),
    ("learning rate (peak)", "learning_rate", "{:g}"),
    ("seed", "seed", "{}"),
)


def table_cells(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Header and lines of the table as strings: one line for each figure, one column for each contestant."""
    cells = [["", *(str(row["contestant"]) for row in rows)]]
    for label, key, form in _ROWS:
        cells.append([label, *("–" if row[key] is None else form.format(row[key]) for row in rows)])
    return cells


def as_text(cells: Sequence[Sequence[str]]) -> str:
    """The table aligned for a terminal."""
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    lines = []
    for line in cells:
        first = line[0].ljust(widths[0])
        lines.append("  ".join([first, *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]))
    return "\n".join(line.rstrip() for line in lines)


def as_markdown(cells: Sequence[Sequence[str]]) -> str:
    """The table in Markdown, figures to the right."""
    rule = ["---", *("---:" for _ in cells[0][1:])]
    return "\n".join("| " + " | ".join(cell.strip() for cell in line) + " |" for line in [cells[0], rule, *cells[1:]])


def not_held_equal(experiment: Experiment, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Sentences about everything that differs between the contestants besides the tokenizer itself."""
    sentences = [
        f"{contestant.name}: {override.key} = {override.own!r} where the others have {override.shared!r}"
        for contestant in experiment.contestants.values()
        for override in contestant.overrides
    ]
    differing = (
        ("parameters_embedding", "embedding parameters", "{:,}"),
        ("block_characters", "context in characters (the block is equal in tokens)", "{:,.0f}"),
        ("tokens_seen", "tokens seen", "{:,}"),
        ("characters_seen", "characters seen (the last step overshoots a budget in characters)", "{:,}"),
        ("flops", "training FLOPs", "{:.2e}"),
        ("seconds", "seconds", "{:,.0f}"),
    )
    for key, label, form in differing:
        if len({row[key] for row in rows}) > 1:
            sentences.append(f"{label}: " + ", ".join(f"{row['contestant']} {form.format(row[key])}" for row in rows))
    return sentences


def verdict(experiment: Experiment, runs: Sequence[Run]) -> str:
    """One sentence: who needs fewer bits per character on test, by how much, under which budget, and how sure."""
    ranked = sorted(runs, key=lambda run: (run.test["bits_per_char"], run.contestant))
    budgets = {(run.report["train"]["budget"]["unit"], run.report["train"]["budget"]["amount"]) for run in runs}
    if len(budgets) == 1:
        unit, amount = budgets.pop()
        equal = f"at equal {_UNITS[unit]} ({amount:,})"
    else:
        equal = "under unequal budgets"
    seeds = {run.report["train"]["seed"] for run in runs}
    test = ranked[0].test
    scale = (
        f"{equal}, on {test['num_chars']:,} test characters in {test['num_documents']:,} documents, "
        f"{len(seeds)} seed{'s' if len(seeds) > 1 else ''}, no interval"
    )
    if len(ranked) == 1:
        return f"{_named(ranked[0])} bits per character {scale}; there is no other contestant to compare with."
    gaps = []
    for better, worse in pairwise(ranked):
        gap = worse.test["bits_per_char"] - better.test["bits_per_char"]
        if gap < TIE_SHARE * worse.test["bits_per_char"]:
            gaps.append(f"{_named(better)} and {_named(worse)} are a tie (under {TIE_SHARE:.1%} apart)")
        else:
            gaps.append(f"{_named(better)} needs {gap:.3f} fewer bits per character than {_named(worse)}")
    return f"{'; '.join(gaps)}, {scale}."


def _named(run: Run) -> str:
    return f"{run.contestant} ({run.test['bits_per_char']:.3f})"
