"""The answer over budgets in words: one sentence for the head of the report, and the lines of its own part."""

from collections.abc import Mapping

from compare.figures import figure
from compare.ladder.answer import (
    FEW_STEPS,
    MOST_EPOCHS,
    LadderAnswer,
    Outlook,
    PairAnswer,
    least_probability,
    number_words,
)
from compare.ladder.forecast import BackTest, Range
from compare.ladder.law import LEAST_POINTS
from compare.ladder.multiplier import Multiplier
from compare.ladder.points import Gap, sign_changes
from data.show import counted

TITLE = "Does the answer hold at another budget?"
_UNITS = {
    "characters": "characters",
    "tokens": "tokens",
    "steps": "optimizer steps",
    "flops": "training FLOPs",
    "seconds": "seconds",
}
_FIGURE_COLUMNS = 12


def headline(answer: LadderAnswer) -> str:
    """One plain sentence: what to expect with more training; empty where there is no pair."""
    if not answer.pairs:
        return ""
    if answer.no_forecast:
        return "Whether the order holds with more training cannot be said: it was measured at too few budgets."
    times = [outlook.times for outlook in answer.pairs[0].outlooks]
    if not times:
        return "Whether the order holds with more training needs more text: this one would be repeated too often."
    chosen = max((one for one in times if one <= 10), default=times[0])
    chosen_ones = [(pair, one) for pair in answer.pairs for one in pair.outlooks if one.times == chosen]
    parts = [_short(pair, outlook) for pair, outlook in chosen_ones if outlook.word != "unsaid"]
    if unsaid := [pair for pair, outlook in chosen_ones if outlook.word == "unsaid"]:
        which = ", or ".join(f"of {pair.a} and {pair.b}" for pair in unsaid)
        parts.append(f"it cannot be said yet which {which} is better")
    return f"With {chosen} times the training, {'; '.join(parts)}."


def _short(pair: PairAnswer, outlook: Outlook) -> str:
    if outlook.word == "stays":
        return f"{pair.better} stays better than {pair.worse}"
    return f"the order turns: {pair.worse} becomes better than {pair.better}"


def lines(answer: LadderAnswer) -> list[str]:
    """What the part of the report says, one line for each fact."""
    return [*findings(answer), *grounds(answer)]


def findings(answer: LadderAnswer) -> list[str]:
    """What was found, and what is expected; changes of the order within the measured budgets come first."""
    found = [line for pair in answer.pairs for line in _changes(pair, answer)]
    for pair in answer.pairs:
        found += [_multiplier(one, answer.unit) for one in pair.multipliers if one.value is not None]
    if answer.no_forecast:
        return [*found, f"No forecast: {answer.no_forecast}."]
    for pair in answer.pairs:
        found += [_outlook(pair, outlook, answer) for outlook in pair.outlooks]
    return found


def grounds(answer: LadderAnswer) -> list[str]:
    """How the forecast was checked, and its limits; nothing without a forecast."""
    return [] if answer.no_forecast else [*_checks(answer), *_limits(answer)]


def _changes(pair: PairAnswer, answer: LadderAnswer) -> list[str]:
    return [
        f"The order of {pair.a} and {pair.b} changes within the measured budgets: {_lead(pair, one, answer)}, "
        f"{_lead(pair, other, answer)}."
        for one, other in sign_changes(pair.gaps)
    ]


def _lead(pair: PairAnswer, gap: Gap, answer: LadderAnswer) -> str:
    better = pair.a if gap.difference < 0 else pair.b
    return f"{better} needs {abs(gap.difference):.3f} fewer at {amount(gap.amount, answer.unit)}"


def amount(value: float, unit: str) -> str:
    """A budget with its unit."""
    form = "{:.3g}" if unit == "flops" else "{:,.0f}"
    return f"{figure(value, form, _FIGURE_COLUMNS)} {_UNITS[unit]}"


def _multiplier(found: Multiplier, unit: str) -> str:
    """The multiplier in words, of a contestant that reaches the other's figure."""
    start, unit = f"{found.contestant} reaches {found.reference}'s final score with", _UNITS[unit]
    assert found.value is not None
    if found.value <= found.smallest:
        return f"{start} the smallest measured budget already, {found.smallest:.2g} times the {unit}."
    if found.high is None:
        return f"{start} {found.value:.2f} times the {unit} (95 % interval from {found.low:.2f} to beyond this budget)."
    return f"{start} {found.value:.2f} times the {unit} (95 % interval {found.low:.2f} to {found.high:.2f})."


def _outlook(pair: PairAnswer, outlook: Outlook, answer: LadderAnswer) -> str:
    expected, first = outlook.expected, outlook.expected.first_better
    likely, probability = (pair.a, first) if first >= 0.5 else (pair.b, 1.0 - first)
    gap = f"{pair.a} - {pair.b} {range_words(expected.gap, signed=True)}"
    start = f"At {outlook.times} times the budget"
    if outlook.word != "unsaid":
        holds = (
            f"{pair.better} stays better than {pair.worse}"
            if outlook.word == "stays"
            else f"the order turns, {pair.worse} becomes better than {pair.better}"
        )
        return f"{start} {holds} (probability {_percent(probability)}; {gap}, 90 % interval)."
    decide = _what_decides(pair, outlook, answer)
    return (
        f"{start} it cannot be said from this budget which of {pair.a} and {pair.b} is better: {outlook.reason} "
        f"({likely} with probability {_percent(probability)}; {gap}, 90 % interval); {decide}."
    )


def _what_decides(pair: PairAnswer, outlook: Outlook, answer: LadderAnswer) -> str:
    if outlook.decided_by is not None:
        budget = amount(outlook.decided_by * answer.amounts[-1], answer.unit)
        return f"a ladder up to about {outlook.decided_by:g} times this budget ({budget}) would probably decide"
    if abs(outlook.expected.gap.middle) < pair.margin:
        return f"the expected gap is below {pair.margin:.3f}, the smallest that counts: more budget may not decide"
    budget = amount(outlook.times * answer.amounts[-1], answer.unit)
    return f"only a ladder up to {outlook.times} times this budget ({budget}) would measure it"


def _percent(probability: float) -> str:
    """In percent, never quite 0 or 100: a forecast is not certain."""
    return "over 99 %" if probability > 0.99 else f"{100 * probability:.0f} %"


def range_words(found: Range, *, signed: bool = False) -> str:
    """Such as `2.101 (2.085 to 2.117)`."""
    form = "{:+.3f}" if signed else "{:.3f}"
    low, middle, high = (form.format(value) for value in (found.low, found.middle, found.high))
    return f"{middle} ({low} to {high})"


def _checks(answer: LadderAnswer) -> list[str]:
    """The back-tests, or that there were too few points for one."""
    tests = [test for pair in answer.pairs for test in pair.back_tests]
    tests = [test for one in answer.curves for test in one.back_tests] + tests
    if not tests:
        return [f"The forecast was not checked: of the budgets up to a half, fewer than {LEAST_POINTS} are left."]
    said = [_check(test, answer.unit) for test in tests]
    if len({test.amount for test in tests}) == 1:
        said.append(_no_check_from_a_quarter(answer))
    return [*said, *(line for pair in answer.pairs for line in _widened(pair))]


def _no_check_from_a_quarter(answer: LadderAnswer) -> str:
    """Of five budgets three are left there, through which a law of three numbers goes almost always."""
    left = [one for one in answer.amounts if one not in answer.left_out and 4 * one <= answer.amounts[-1]]
    return (
        f"No check from a quarter of the budget: {number_words(len(left))} not enough for a law of three numbers; "
        f"{counted(LEAST_POINTS - len(left), 'more rung')} would allow it."
    )


def _check(test: BackTest, unit: str) -> str:
    signed = " - " in test.what
    seen = f"{test.seen:+.3f}" if signed else f"{test.seen:.3f}"
    verdict = "inside" if test.widening == 1.0 else "outside"
    predicted = range_words(test.predicted, signed=signed)
    start = f"Check from budgets up to {amount(test.amount, unit)}"
    return f"{start}: {test.what} predicted {predicted}, seen {seen}: {verdict} the 90 % interval."


def _widened(pair: PairAnswer) -> list[str]:
    if pair.widening == 1.0:
        return []
    return [
        f"The check of {pair.a} - {pair.b} missed its interval, so the forecast's intervals are "
        f"{pair.widening:.1f} times as wide as the laws say."
    ]


def _limits(answer: LadderAnswer) -> list[str]:
    found = [
        "The forecast is the law E + A t^-a for each contestant. An order is forecast only with a probability of "
        f"at least {least_probability(10):g} ({least_probability(100):g} at 100 times the budget)."
    ]
    if answer.left_out:
        budgets = ", ".join(amount(one, answer.unit) for one in answer.left_out)
        found.append(f"Left out of the laws, because the check is better without these few steps: {budgets}.")
    few = [
        amount(point.amount, answer.unit)
        for number, point in enumerate(answer.curves[0].curve.points)
        if point.amount not in answer.left_out
        and min(one.curve.points[number].steps for one in answer.curves) < FEW_STEPS
    ]
    if few:
        found.append(
            f"Kept in the laws although they have fewer than {FEW_STEPS} steps, because the check is not better "
            f"without them or cannot be made: {', '.join(few)}."
        )
    epochs = f"The whole budget is {answer.epochs:.2f} epochs over train, 10 times it {10 * answer.epochs:.1f}"
    if answer.stopped_at is None:
        found.append(f"{epochs}.")
    else:
        found.append(
            f"{epochs}. There is no forecast of {answer.stopped_at} times and more: train would be seen more than "
            f"{MOST_EPOCHS} times, which no smaller budget shows; give more text."
        )
    floors = [f"{one.curve.contestant} {range_words(one.floor)}" for one in answer.curves if one.floor is not None]
    found.append(f"Floors E, which belong to this size of model: {', '.join(floors)}.")
    if len(answer.curves[0].curve.whole.by_seed) == 1:
        found.append("With one seed the noise of a point is assumed, as above.")
    return found


def cells(answer: LadderAnswer, names: Mapping[str, str] | None = None) -> list[list[str]]:
    """A table: a line for each budget, measured and then forecast, a column for each contestant and each pair."""
    called = names or {one.curve.contestant: one.curve.contestant for one in answer.curves}
    pairs = [f"{called[pair.a]} - {called[pair.b]}" for pair in answer.pairs]
    found = [[f"budget ({_UNITS[answer.unit]})", *(called[one.curve.contestant] for one in answer.curves), *pairs]]
    for number, budget in enumerate(answer.amounts):
        bits = [f"{one.curve.points[number].mean:.4f}" for one in answer.curves]
        found.append([f"  {_plain(budget, answer.unit)}", *bits, *(_gap(pair.gaps[number]) for pair in answer.pairs)])
    for number, outlook in enumerate(answer.pairs[0].outlooks if answer.pairs else ()):
        gaps = [range_words(pair.outlooks[number].expected.gap, signed=True) for pair in answer.pairs]
        label = f"  {_plain(outlook.times * answer.amounts[-1], answer.unit)} (forecast)"
        found.append([label, *("" for _ in answer.curves), *gaps])
    return found


def _plain(value: float, unit: str) -> str:
    return amount(value, unit).removesuffix(f" {_UNITS[unit]}")


def _gap(gap: Gap) -> str:
    if gap.interval is None:
        return f"{gap.difference:+.3f}"
    return range_words(Range(gap.interval.low, gap.difference, gap.interval.high), signed=True)
