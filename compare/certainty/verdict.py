"""The verdict in words: first the answer in plain sentences, then how sure it is, pair by pair."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from compare.certainty.decision import Outcome
from compare.certainty.intervals import ASSUMED_SEED_SD
from compare.certainty.pairs import Certainty, Pair
from data.show import counted

VERSION = 2
_MANY_TO_TWO = 10
"""So many documents beside two seeds, or seeds beside two documents, make the intervals cover 93 to 97 %."""
"""Of verdict.json; it goes up when a key changes its meaning or goes."""


def answer(certainty: Certainty, stronger: Sequence[str] = ()) -> str:
    """The answer in one to four short sentences, for the top of a page.

    `stronger` names the n-grams and compressors that need fewer bits than every contestant beyond doubt.
    """
    base = certainty.baseline
    groups: dict[str, list[str]] = {"better": [], "equal": [], "worse": [], "undecided": []}
    for pair in certainty.pairs_with_baseline:
        groups[seen_from(pair, base)].append(pair.b if pair.a == base else pair.a)
    sentences = [_too_little(stronger)] if stronger else []
    if groups["better"]:
        sentences.append(f"{_listed(groups['better'])} {_is(groups['better'])} better than {base}.")
    if groups["equal"]:
        sentences.append(f"{_listed([*groups['equal'], base])} are equal.")
    if groups["worse"]:
        sentences.append(f"{_listed(groups['worse'])} {_is(groups['worse'])} worse than {base}.")
    if groups["undecided"]:
        sentences.append(f"Not decided between {base} and {_listed(groups['undecided'], 'or')}.")
    if not certainty.pairs:
        sentences.append(f"{base} is the only contestant.")
    return " ".join(sentences)


def how_sure(certainty: Certainty) -> list[str]:
    """One sentence for each pair with the baseline: the difference, its interval, and what it rests on."""
    if not certainty.pairs:
        only = certainty.contestants[0]
        return [f"{only.name} needs {only.mean:.3f} bits per character; there is nobody to compare it with."]
    return [pair_sentence(pair, certainty) for pair in certainty.pairs_with_baseline]


def pair_sentence(pair: Pair, certainty: Certainty) -> str:
    """The outcome of one pair with interval and evidence."""
    gap, rests = abs(pair.difference), evidence(pair, certainty)
    if pair.outcome in ("a", "b"):
        return f"{pair.better} needs {gap:.3f} fewer bits per character than {pair.worse} ({rests})."
    if pair.outcome == "equal":
        return (
            f"{pair.a} and {pair.b} are equal: they differ by {gap:.3f} bits per character, and no more than "
            f"{pair.margin:.3f} is likely ({rests})."
        )
    return (
        f"{pair.better} needs {gap:.3f} fewer bits per character than {pair.worse}, which is not decided ({rests}): "
        f"{pair.reason}."
    )


def evidence(pair: Pair, certainty: Certainty) -> str:
    """The interval of the lead, and how many documents and seeds it rests on."""
    seeds = "one seed, training noise assumed" if len(pair.by_seed) == 1 else counted(len(pair.by_seed), "seed")
    if pair.lead_interval is None:
        return f"no interval, {seeds}"
    if pair.documents is not None:
        over = counted(certainty.num_documents, "document")
    else:
        over = f"{counted(certainty.num_blocks, 'block')} of {certainty.block_characters:,} characters of one document"
    return f"95 % interval {pair.lead_interval}, over {over} and {seeds}"


def noise_sentence(certainty: Certainty) -> str | None:
    """What to know of the intervals: that training noise is assumed, or that so little text and so few seeds make
    them cover more than 95 % (`python -m bench.coverage`); None where neither is so.
    """
    if len(certainty.seeds) > 1:
        documents = certainty.num_documents > 1
        units = certainty.num_documents if documents else certainty.num_blocks
        if min(len(certainty.seeds), units) != 2 or max(len(certainty.seeds), units) >= _MANY_TO_TWO:
            return None
        return (
            f"The 95 % intervals are somewhat too wide: with {len(certainty.seeds)} seeds and "
            f"{units} {'documents' if documents else 'blocks'} they can cover 98 %."
        )
    return (
        f"Training noise is assumed, because there is one seed: a standard deviation of {ASSUMED_SEED_SD} bits per "
        "character for each contestant (measured with three seeds at 1e12 FLOPs with 3 layers of 96). With "
        "`seeds: [1, 2, 3]` it is measured."
    )


def as_json(
    certainty: Certainty,
    *,
    test_chars: int,
    budget: str,
    stronger: Sequence[str] = (),
    ladder: Mapping[str, Any] | None = None,
    sizes: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """verdict.json: the verdict for programs.

    - `version`: of this form; it goes up when a key changes its meaning or goes
    - `answer`: the answer in sentences; `budget`: what was held equal, in words
    - `baseline`: the contestant that the others are compared with
    - `stronger_than_all_models`: n-grams and compressors that need fewer bits per character than every contestant, by
      a lead whose whole 95 % interval is above zero
    - `test_characters`, `documents`, `seeds`: what it rests on
    - `training_noise`: `measured` over the seeds, or `assumed` where there is one
    - `contestants`: by name `bits_per_char` (mean over the seeds), `by_seed` (in the order of `seeds`), `sd` (null for
      one seed)
    - `pairs`: every pair `a`, `b`: `difference` (a minus b, bits per character: negative where a is better),
      `interval` (95 %, over text and training noise: `low`, `high`; null where the test text is too short for one),
      `margin` (differences up to it are none), `outcome` (`a_better`, `b_better`, `equal`, `undecided`) and `reason`
      (why it is undecided, and what would decide it; else empty)
    - `ladder`: what is expected of larger budgets, as `compare.ladder.stored.verdict_as_json` says; null without one
    - `sizes`: whether it holds at other sizes of model, as `compare.sizes.stored.sizes_for_verdict` says; only where
      the experiment has `sizes`
    """
    return {
        "version": VERSION,
        "answer": answer(certainty, stronger),
        "baseline": certainty.baseline,
        "stronger_than_all_models": list(stronger),
        "budget": budget,
        "test_characters": test_chars,
        "documents": certainty.num_documents,
        "seeds": list(certainty.seeds),
        "training_noise": "measured" if len(certainty.seeds) > 1 else "assumed",
        "contestants": {
            one.name: {"bits_per_char": one.mean, "by_seed": list(one.bits_per_char), "sd": one.sd}
            for one in certainty.contestants
        },
        "pairs": [_pair_json(pair) for pair in certainty.pairs],
        "ladder": ladder,
        **({} if sizes is None else {"sizes": sizes}),
    }


def _pair_json(pair: Pair) -> dict[str, Any]:
    names: Mapping[Outcome, str] = {"a": "a_better", "b": "b_better", "equal": "equal", "undecided": "undecided"}
    return {
        "a": pair.a,
        "b": pair.b,
        "difference": pair.difference,
        "interval": None if pair.interval is None else asdict(pair.interval),
        "margin": pair.margin,
        "outcome": names[pair.outcome],
        "reason": pair.reason,
    }


def seen_from(pair: Pair, base: str) -> str:
    """What the other one of the pair is, seen from `base`: `better`, `worse`, `equal` or `undecided`."""
    if pair.outcome in ("equal", "undecided"):
        return pair.outcome
    winner = pair.a if pair.outcome == "a" else pair.b
    return "worse" if winner == base else "better"


def _too_little(stronger: Sequence[str]) -> str:
    needs = "needs" if len(stronger) == 1 else "need"
    return f"Too little training to say: {_listed(stronger)} {needs} fewer bits than every model."


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _listed(names: Sequence[str], word: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"
