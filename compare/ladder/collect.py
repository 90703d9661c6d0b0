"""From finished runs to the answer over budgets."""

import math
from collections.abc import Mapping, Sequence

from compare.certainty.intervals import over_text, t_quantile
from compare.certainty.pairs import Certainty, Units, document_units, summarize
from compare.ladder.answer import LadderAnswer, Measured, answer_of
from compare.ladder.points import Curve, Gap, Point, Texts
from compare.runs import Entry, Rung


def ladder_answer(entries: Sequence[Entry], certainty: Certainty, margins: Mapping[str, float]) -> LadderAnswer | None:
    """The answer over the budgets of `entries`, on test; None without a ladder, or where their budgets differ.

    `certainty` is that of the whole budget, and `margins` are the shares that it was made with.
    """
    if why_no_answer(entries) is not None or not entries[0].rungs:
        return None
    levels = [_certainty_at(entries, number, certainty, margins) for number in range(len(entries[0].rungs) - 1)]
    texts = {entry.name: [_units(rung) for rung in entry.rungs] for entry in entries}
    pairs = [(pair.a, pair.b) for pair in certainty.pairs_with_baseline]
    return answer_of(
        Measured(
            unit=entries[0].runs[0].report.train.budget.unit,
            curves=tuple(_curve(entry, texts[entry.name]) for entry in entries),
            gaps={pair: _gaps(pair, [*levels, certainty], entries[0].rungs) for pair in pairs},
            margins={pair: certainty.pair(*pair).margin for pair in pairs},
            text_variances={pair: _text_variance(*(texts[name][-1] for name in pair)) for pair in pairs},
        )
    )


def why_no_answer(entries: Sequence[Entry]) -> str | None:
    """Why contestants that were trained with a ladder have no answer over budgets; None where that is not so."""
    if not any(entry.rungs for entry in entries):
        return None
    amounts = {tuple(rung.amount for rung in entry.rungs) for entry in entries}
    units = {entry.runs[0].report.train.budget.unit for entry in entries}
    if len(amounts) == len(units) == 1:
        return None
    return "the contestants were trained up to other budgets, so nothing is said of larger ones"


def _certainty_at(entries: Sequence[Entry], number: int, whole: Certainty, margins: Mapping[str, float]) -> Certainty:
    """The certainty of rung `number`, made as that of the whole budget is."""
    return summarize(
        {entry.name: [run.evaluations["test"] for run in entry.rungs[number].runs] for entry in entries},
        whole.seeds,
        baseline=whole.baseline,
        margins=margins,
        block_characters=whole.block_characters,
    )


def _units(rung: Rung) -> Units:
    return document_units([run.evaluations["test"] for run in rung.runs])


def _curve(entry: Entry, texts: Sequence[Units]) -> Curve:
    points = []
    for rung, units in zip(entry.rungs, texts, strict=True):
        reports = [run.report for run in rung.runs]
        points.append(
            Point(
                amount=rung.amount,
                by_seed=tuple(run.evaluations["test"].bits_per_char for run in rung.runs),
                steps=sum(report.seen.steps for report in reports) / len(reports),
                epochs=sum(report.seen.epochs for report in reports) / len(reports),
                texts=Texts(units.bits, units.num_chars),
            )
        )
    return Curve(entry.name, tuple(points))


def _gaps(pair: tuple[str, str], levels: Sequence[Certainty], rungs: Sequence[Rung]) -> tuple[Gap, ...]:
    found = [level.pair(*pair) for level in levels]
    return tuple(Gap(rung.amount, one.difference, one.interval) for rung, one in zip(rungs, found, strict=True))


def _text_variance(one: Units, other: Units) -> float:
    """Of the gap over documents, greater by what Student's t has over the normal distribution; 0 of one document."""
    over = over_text(one.bits.mean(axis=0), other.bits.mean(axis=0), one.num_chars)
    return 0.0 if over is None else over.variance * (over.quantile / t_quantile(math.inf)) ** 2
