"""The ranking at other sizes as JSON, in comparison.json, in verdict.json and for the page, and back."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from compare.certainty.stored import certainty_as_json, certainty_from_json
from compare.sizes.ranking import AtLevel, Ranking
from compare.sizes.words import headline, lines


def ranking_as_json(ranking: Ranking) -> dict[str, Any]:
    """`sizes` of comparison.json, where an experiment has them: every level, and what is said of it in words."""
    return {
        "levels": [
            {
                "size": one.size,
                "is_whole": one.is_whole,
                "layers": list(one.layers),
                "channels": list(one.channels),
                "parameters": list(one.parameters),
                "statistics": certainty_as_json(one.certainty),
            }
            for one in ranking.levels
        ],
        "pairs": [list(pair) for pair in ranking.pairs],
        "headline": headline(ranking),
        "lines": lines(ranking),
    }


def ranking_from_json(value: Mapping[str, Any]) -> Ranking:
    """What `ranking_as_json` was given; for a file whose seal has been checked."""
    levels = tuple(
        AtLevel(
            size=one["size"],
            is_whole=one["is_whole"],
            layers=tuple(one["layers"]),
            channels=tuple(one["channels"]),
            parameters=tuple(one["parameters"]),
            certainty=certainty_from_json(one["statistics"]),
        )
        for one in value["levels"]
    )
    return Ranking(levels, tuple((a, b) for a, b in value["pairs"]))


def sizes_for_verdict(ranking: Ranking) -> dict[str, Any]:
    """`sizes` of verdict.json, which is there where the experiment has other sizes.

    - `answer`: whether the ranking holds at the other sizes, in sentences
    - `levels`: for each `size` (in times the model block) and `budget` (`quarter` or `whole`) the `contestants`, by
      name `bits_per_char` and `parameters_besides_embedding`
    - `pairs`: for each pair of the verdict, other `size` and `budget`: `a`, `b`, `word` (`holds`, `turns`: the other
      one is better there, `changes`: they are equal at one of the two sizes only, or `cannot_be_said`), `difference`
      (a minus b, at that size) and its 95 % `interval` (null where the test text is too short for one)
    """
    return {
        "answer": headline(ranking),
        "levels": [
            {
                "size": one.size,
                "budget": _budget(one.is_whole),
                "contestants": {
                    spread.name: {"bits_per_char": spread.mean, "parameters_besides_embedding": parameters}
                    for spread, parameters in zip(one.certainty.contestants, one.parameters, strict=True)
                },
            }
            for one in ranking.levels
        ],
        "pairs": [
            {
                "a": one.a,
                "b": one.b,
                "size": one.size,
                "budget": _budget(one.is_whole),
                "word": "cannot_be_said" if one.word == "unsaid" else one.word,
                "difference": one.there.difference,
                "interval": None if one.there.interval is None else asdict(one.there.interval),
            }
            for is_whole in (False, True)
            for one in ranking.words(is_whole=is_whole)
        ],
    }


def _budget(is_whole: bool) -> str:
    return "whole" if is_whole else "quarter"
