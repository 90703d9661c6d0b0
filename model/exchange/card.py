"""The model card: what was measured, on what, and how the folder is loaded."""

from dataclasses import dataclass

from data.show import counted
from model.exchange.loaded import LanguageModel
from model.report_file import Report


@dataclass(frozen=True)
class Figures:
    """What was measured of a run, for the model card."""

    report: Report
    corpus: str
    """The name of the text."""
    interval: tuple[float, float] | None
    """95 % interval of bits per character over the documents of test; None for a single document."""


def model_card(model: LanguageModel, figures: Figures, how_to_load: str) -> str:
    """README.md of an exported folder."""
    report, config = figures.report, model.gpt.config
    test, budget = report.splits.test, report.train.budget
    interval = ""
    if figures.interval is not None:
        low, high = figures.interval
        interval = f" (95 % interval {low:.4f} to {high:.4f} over documents; the noise of training is not in it)"
    rows = [
        ("bits per character", f"{test.bits_per_char:.4f}{interval}"),
        ("bits per byte", f"{test.bits_per_byte:.4f}"),
        ("bits per character, disjoint windows", f"{test.disjoint_bits_per_char:.4f}"),
        ("characters", f"{test.num_chars:,}"),
        ("documents", f"{test.num_documents:,}"),
        ("characters per token", f"{test.chars_per_token:.3f}"),
    ]
    training = [
        ("characters seen", f"{report.seen.characters:,}"),
        ("epochs over train", f"{report.seen.epochs:.2f}"),
        ("optimizer steps", f"{report.seen.steps:,}"),
        ("budget", f"{budget.amount:,} {budget.unit}"),
        ("seed", str(report.train.seed)),
        ("sha256 of the train text", report.train_text_sha256),
        ("sha256 of the test text", test.text_sha256),
    ]
    sizes = (
        f"{counted(config.num_layers, 'layer')} of {config.embedding_dim} channels, {config.num_heads} heads, "
        f"{report.parameters.total:,} parameters, block of {config.block_size} tokens, preset {config.preset}"
    )
    return "\n".join(
        [
            f"# {report.contestant}",
            "",
            f"A small GPT on the text {figures.corpus}, made with chars-or-bpe: {sizes}. Its tokenizer is of kind "
            f"{report.tokenizer.kind} and has {report.tokenizer.vocab_size:,} tokens.",
            "",
            "## Loading",
            "",
            how_to_load,
            "The model reads one newline before a document. No token marks the beginning or the end of a text.",
            "",
            "## Measured on the test text",
            "",
            *_table(rows),
            "",
            f"Every character was scored exactly once, under sliding windows that move on by "
            f"{report.evaluate['stride']} tokens.",
            "",
            "## Training",
            "",
            *_table(training),
            "",
        ]
    )


def _table(rows: list[tuple[str, str]]) -> list[str]:
    return ["| figure | value |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in rows)]
