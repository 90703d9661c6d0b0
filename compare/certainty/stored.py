"""The certainty of a comparison as JSON, in comparison.json and for the page, and back."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from compare.certainty.decision import Outcome
from compare.certainty.intervals import Interval
from compare.certainty.pairs import EQUAL_SHARE, Certainty, Pair, Spread

_OUTCOMES: dict[str, Outcome] = {"a": "a", "b": "b", "equal": "equal", "undecided": "undecided"}


def certainty_as_json(certainty: Certainty) -> dict[str, Any]:
    """`statistics` of comparison.json: the contestants over their seeds, and every pair with its intervals."""
    return {
        "num_documents": certainty.num_documents,
        "num_blocks": certainty.num_blocks,
        "block_characters": certainty.block_characters,
        "equal_share": EQUAL_SHARE,
        "seeds": list(certainty.seeds),
        "baseline": certainty.baseline,
        "contestants": {
            one.name: {
                "seeds": list(one.seeds),
                "bits_per_char": list(one.bits_per_char),
                "mean": one.mean,
                "sd": one.sd,
            }
            for one in certainty.contestants
        },
        "pairs": [_pair_as_json(pair) for pair in certainty.pairs],
    }


def _pair_as_json(pair: Pair) -> dict[str, Any]:
    intervals = {"documents": pair.documents, "blocks": pair.blocks, "interval": pair.interval}
    return {
        "a": pair.a,
        "b": pair.b,
        "difference": pair.difference,
        "by_seed": list(pair.by_seed),
        "by_seed_sd": pair.by_seed_sd,
        **{name: None if one is None else asdict(one) for name, one in intervals.items()},
        "margin": pair.margin,
        "outcome": pair.outcome,
        "reason": pair.reason,
    }


def certainty_from_json(value: Mapping[str, Any]) -> Certainty:
    """What `certainty_as_json` was given; for a file whose seal has been checked."""
    return Certainty(
        num_documents=value["num_documents"],
        num_blocks=value["num_blocks"],
        seeds=tuple(value["seeds"]),
        contestants=tuple(
            Spread(name, tuple(one["seeds"]), tuple(one["bits_per_char"])) for name, one in value["contestants"].items()
        ),
        pairs=tuple(_pair_from_json(pair) for pair in value["pairs"]),
        baseline=value["baseline"],
        block_characters=value["block_characters"],
    )


def _pair_from_json(value: Mapping[str, Any]) -> Pair:
    def interval(name: str) -> Interval | None:
        return None if value[name] is None else Interval(**value[name])

    return Pair(
        a=value["a"],
        b=value["b"],
        by_seed=tuple(value["by_seed"]),
        documents=interval("documents"),
        blocks=interval("blocks"),
        interval=interval("interval"),
        margin=value["margin"],
        outcome=_OUTCOMES[value["outcome"]],
        reason=value["reason"],
    )
