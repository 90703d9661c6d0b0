"""Everything the page shows: figures from the comparison, the rest from stored losses and texts.

Nothing here draws or formats for the eye beyond shortening names; `render` draws what this module returns.
"""

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from compare.baselines.scores import GUESSES, PRIMED
from compare.characters import RULE, document_char_offsets, document_nats
from compare.figures import figure, seeds_in_words
from compare.outputs.comparison import BaselineLine, Comparison
from compare.page.passage import passage
from compare.page.values import (
    Contestant,
    Curve,
    Documents,
    Figure,
    Page,
    Pairs,
    Provenance,
    Sample,
    Series,
    ViewerStart,
)
from compare.page.vocabularies import embedded_tokenizers
from compare.runs import Entry, Run, all_runs, check_comparable
from compare.table import table_cells
from data.errors import ReportError, command
from data.splits import Split
from model.evaluate import Evaluation
from tokenizer.base import Tokenizer

Float64Array = NDArray[np.float64]

MOST_DOCUMENTS = 1_000  # points of one scatter picture
MOST_PAIRS = 3  # scatter pictures
_NAME_CHARACTERS = 60
_VIEWER_CHARACTERS = 160
_WORD_CHARACTERS = 16
_BUDGET_COLUMNS = 26
_CURVES = (
    ("characters", "characters seen", "millions", 1e6),
    ("flops", "training FLOPs", "10¹²", 1e12),
    ("seconds", "training time", "seconds", 1.0),
)


def page_of(
    comparison: Comparison,
    *,
    entries: Sequence[Entry],
    splits: Mapping[str, Split],
    tokenizers: Mapping[str, Tokenizer],
    samples: Mapping[str, Sequence[Sample]],
) -> Page:
    """The page of a comparison.

    `entries` are the contestants with their runs, one per seed; `samples` what each of them writes.
    Raises ReportError if the runs cannot be compared, or were not scored on the test split given.
    """
    test = splits["test"]
    check_comparable(all_runs(entries))
    evaluations = {entry.name: entry.evaluation("test") for entry in entries}
    for name, evaluation in evaluations.items():
        _check_text(name, evaluation, test)
    typical, details = passage(test, evaluations), comparison.details
    return Page(
        experiment=comparison.experiment,
        answer=comparison.answer,
        how_sure=tuple(comparison.how_sure),
        noise=comparison.noise,
        marginal=tuple(comparison.marginal_sentences),
        compared=_compared(comparison, entries),
        contestants=tuple(_contestant(entry) for entry in entries),
        test_chars=len(test.text),
        test_documents=len(test.document_offsets) - 1,
        table=tuple(map(tuple, table_cells(comparison.rows))),
        not_held_equal=comparison.not_held_equal,
        curves=curves(entries),
        levels=levels(comparison.baselines),
        documents=documents(test, evaluations),
        passage=typical,
        viewer=ViewerStart(opening(typical.text), longest_word(typical.text)),
        vocabularies=embedded_tokenizers(tokenizers),
        samples={name: tuple(samples[name]) for name in samples},
        rule=RULE,
        flops_formula=comparison.identity.flops_formula,
        provenance=_provenance(comparison, entries, splits),
        certainty=comparison.certainty,
        baselines=comparison.baselines,
        where_bits_go=details.where_bits_go,
        intrinsic=details.intrinsic,
        sweep=details.sweep,
        ladder=comparison.ladder,
        sizes=comparison.sizes,
    )


def _compared(comparison: Comparison, entries: Sequence[Entry]) -> Pairs:
    """What the contestants share: text, model, batch, budget and seeds."""
    budgets = {(run.report.train.budget.unit, run.report.train.budget.amount) for run in all_runs(entries)}
    if len(budgets) == 1:
        [(unit, amount)] = budgets
        budget = f"{figure(amount, '{:,}', _BUDGET_COLUMNS)} {unit}"
    else:
        budget = "not the same for all"
    seeds = [run.seed for run in entries[0].runs]
    return (
        ("text", comparison.identity.text_path),
        ("model", comparison.identity.model_shape),
        ("batch", comparison.identity.batch),
        ("budget", budget),
        ("seed" if len(seeds) == 1 else "seeds", seeds_in_words(seeds)),
    )


def levels(baselines: Sequence[BaselineLine]) -> tuple[Figure, ...]:
    """What is drawn as level lines in the curves: the n-gram, and each compressor in the better of its two ways."""
    best: dict[str, Figure] = {}
    for one in baselines:
        program = one.name.removesuffix(PRIMED)
        if one.name in GUESSES:
            continue
        if program not in best or one.bits_per_char < best[program].bits_per_char:
            best[program] = Figure(one.name, one.bits_per_char)
    return tuple(best.values())


def opening(text: str) -> str:
    """The beginning of a passage that the token viewer starts with: about 160 characters, cut at white space.

    A text without white space is cut between any two characters.
    """
    stripped = text.lstrip("\n")
    if len(stripped) <= _VIEWER_CHARACTERS:
        return stripped
    cut = max(
        (match.end() for match in re.finditer(r"\S(?=\s)", stripped[: _VIEWER_CHARACTERS + 1])),
        default=_VIEWER_CHARACTERS,
    )
    return stripped[: cut if cut > _VIEWER_CHARACTERS // 2 else _VIEWER_CHARACTERS]


def longest_word(text: str) -> str:
    """The first of the longest words of `text`, with the space before it; at most 16 characters of it."""
    words = re.findall(r" ?\S+", text)
    return str(max(words, key=lambda word: min(len(word), _WORD_CHARACTERS), default=text))[:_WORD_CHARACTERS]


def _check_text(name: str, evaluation: Evaluation, test: Split) -> None:
    if evaluation.text_sha256 != test.sha256:
        raise ReportError(
            f"{name} was scored on a test text with sha256 {evaluation.text_sha256[:12]}…, but the test split is "
            f"{test.sha256[:12]}…; run {command('make all')} to score it again"
        )
    if not np.array_equal(document_char_offsets(evaluation), test.document_offsets):
        raise ReportError(
            f"{name}'s documents do not begin where those of the test split do; run {command('make all')}"
        )


def _contestant(entry: Entry) -> Contestant:
    bits = float(np.mean([run.test.bits_per_char for run in entry.runs]))
    return Contestant(entry.name, bits, num_seeds=len(entry.runs))


def curves(entries: Sequence[Entry]) -> tuple[Curve, ...]:
    """Bits per character on the val sample against characters, FLOPs and seconds: mean and range over the seeds."""
    pictures = []
    for quantity, label, unit, size in _CURVES:
        series = []
        for entry in entries:
            points = [_val_points(run, quantity, size) for run in entry.runs]
            points = [(x, y) for x, y in points if len(x)]
            if points:
                series.append(_band(entry.name, points))
        pictures.append(Curve(quantity, label, unit, tuple(series)))
    return tuple(pictures)


def _val_points(run: Run, quantity: str, size: float) -> tuple[Float64Array, Float64Array]:
    records = [record for record in run.metrics if "val_sample_bits_per_char" in record]
    x = np.array([record[quantity] for record in records], np.float64) / size
    return x, np.array([record["val_sample_bits_per_char"] for record in records], np.float64)


def _band(name: str, points: Sequence[tuple[Float64Array, Float64Array]]) -> Series:
    """The seeds on the first one's abscissae (straight lines between points), where all of them have values."""
    start, end = max(x[0] for x, _ in points), min(x[-1] for x, _ in points)
    first = points[0][0]
    grid = np.unique(np.clip(first, start, end)) if start <= end else first
    values = np.array([np.interp(grid, x, y) for x, y in points])  # (seeds, points)
    return Series(
        name,
        num_seeds=len(points),
        x=_rounded(grid),
        mean=_rounded(values.mean(axis=0)),
        low=_rounded(values.min(axis=0)),
        high=_rounded(values.max(axis=0)),
    )


def _rounded(values: Float64Array, digits: int = 6) -> tuple[float, ...]:
    return tuple(float(f"{value:.{digits}g}") for value in values.tolist())


def documents(test: Split, evaluations: Mapping[str, Evaluation]) -> Documents:
    """Bits per character of each test document under every contestant, and which pairs are drawn.

    Of more than MOST_DOCUMENTS documents the longest are kept. Every contestant is set against the best one, at most
    MOST_PAIRS pictures.
    """
    num_chars = np.diff(test.document_offsets)
    shown = np.flatnonzero(num_chars > 0)
    if len(shown) > MOST_DOCUMENTS:
        shown = np.sort(shown[np.argsort(-num_chars[shown], kind="stable")[:MOST_DOCUMENTS]])
    texts = test.documents()
    ranked = sorted(evaluations, key=lambda name: (evaluations[name].bits_per_char, name))
    bits = {name: document_nats(evaluations[name])[shown] / math.log(2) / num_chars[shown] for name in evaluations}
    return Documents(
        num_documents=len(num_chars),
        num_shown=len(shown),
        names=tuple(document_name(texts[index]) for index in shown.tolist()),
        num_chars=tuple(num_chars[shown].tolist()),
        bits_per_char={name: _rounded(values, 4) for name, values in bits.items()},
        pairs=tuple((other, ranked[0]) for other in ranked[1 : MOST_PAIRS + 1]),
    )


def document_name(text: str) -> str:
    """A document's first line that is not blank, shortened; how the page speaks of it."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "(blank document)")
    return line if len(line) <= _NAME_CHARACTERS else line[: _NAME_CHARACTERS - 1].rstrip() + "…"


def _provenance(
    comparison: Comparison, entries: Sequence[Entry], splits: Mapping[str, Split]
) -> tuple[Provenance, ...]:
    """What the page was made from, by hash."""
    corpus = comparison.details.corpus
    source = [("source", str(corpus["source"])), ("revision", str(corpus.get("revision") or "none"))]
    source.append(("cleaning", str(corpus["cleaning"]["name"])))
    counts = {key: value for key, value in corpus["cleaning"].items() if key != "name" and value}
    source += [(key.replace("_", " "), str(value)) for key, value in counts.items()]
    source += [(f"{key} (making the text)", str(value)) for key, value in corpus["versions"].items()]
    texts = tuple((name, split.sha256) for name, split in splits.items())
    groups = [Provenance("Corpus", tuple(source)), Provenance("Texts, sha256", texts)]
    for entry in entries:
        lines = [("tokenizer fingerprint", entry.runs[0].report.tokenizer.fingerprint)]
        for run in entry.runs:
            seed = f", seed {run.seed}"
            lines += [
                (f"report.json{seed}", run.report_sha256),
                (f"checkpoint{seed}", run.report.checkpoint_sha256),
                (f"test losses{seed}", run.test.nats_sha256),
            ]
        groups.append(Provenance(f"Contestant {entry.name}", tuple(lines)))
    environment = entries[0].runs[0].report.stored["environment"]
    lines = [(key.replace("_", " "), str(value)) for key, value in environment.items()]
    return (*groups, Provenance("Training environment", tuple(lines)))
