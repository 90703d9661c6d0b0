"""The answer over budgets as JSON, in comparison.json and for the page, and back."""

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from types import NoneType
from typing import Any, cast, get_args, get_origin, get_type_hints

from compare.ladder.answer import LadderAnswer
from compare.ladder.words import headline, lines


def answer_as_json(answer: LadderAnswer) -> dict[str, Any]:
    """`ladder` of comparison.json: every field of `LadderAnswer`, and what is said of it in words."""
    value: dict[str, Any] = _listed(asdict(answer))
    for one in value["curves"]:
        for point in one["curve"]["points"]:
            del point["texts"]  # the losses are in the runs' own files
    return value | {"headline": headline(answer), "lines": lines(answer)}


def _listed(value: Any) -> Any:
    """`value` with lists in place of tuples, as JSON has them."""
    if isinstance(value, Mapping):
        return {key: _listed(one) for key, one in value.items()}
    return [_listed(one) for one in value] if isinstance(value, tuple | list) else value


def answer_from_json(value: Mapping[str, Any]) -> LadderAnswer:
    """What `answer_as_json` was given; for a file whose seal has been checked."""
    return cast(LadderAnswer, _built(LadderAnswer, value))


def verdict_as_json(answer: LadderAnswer) -> dict[str, Any]:
    """`ladder` of verdict.json.

    - `answer`: what to expect with more training, in one sentence
    - `unit`, `budgets`: the budgets that were measured, ascending
    - `no_forecast`: why there is no forecast at all; else empty
    - `pairs`: for each pair of the verdict `a`, `b`, `better_at_whole` (fewer bits at the whole budget, decided or not)
      and `forecast`, a list with an object for each larger budget: `times` (the whole budget), `word` (`stays` or
      `turns`: the order at the whole budget; or `cannot_be_said`), `probability_a_better`, `difference` (a minus b,
      median) and its `interval_90` (`low`, `high`), `reason` (why it cannot be said; else empty), `decided_by_times`
      (a ladder up to so many times the whole budget would probably decide; null where none is known, or none needed)
    """
    return {
        "answer": headline(answer),
        "unit": answer.unit,
        "budgets": list(answer.amounts),
        "no_forecast": answer.no_forecast,
        "pairs": [
            {
                "a": pair.a,
                "b": pair.b,
                "better_at_whole": pair.better,
                "forecast": [
                    {
                        "times": one.times,
                        "word": {"stays": "stays", "turns": "turns", "unsaid": "cannot_be_said"}[one.word],
                        "probability_a_better": one.expected.first_better,
                        "difference": one.expected.gap.middle,
                        "interval_90": {"low": one.expected.gap.low, "high": one.expected.gap.high},
                        "reason": one.reason,
                        "decided_by_times": one.decided_by,
                    }
                    for one in pair.outlooks
                ],
            }
            for pair in answer.pairs
        ],
    }


def _built(hint: Any, value: Any) -> Any:
    """`value` as the annotation `hint` has it: dataclasses from objects, tuples from lists."""
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        kept = {one.name: _built(hints[one.name], value[one.name]) for one in fields(hint) if one.name in value}
        return cast(type, hint)(**kept)
    if get_origin(hint) is tuple:
        return tuple(_built(get_args(hint)[0], one) for one in value)
    inner = [one for one in get_args(hint) if one is not NoneType]
    if value is not None and len(inner) == 1 and NoneType in get_args(hint):
        return _built(inner[0], value)
    return value
