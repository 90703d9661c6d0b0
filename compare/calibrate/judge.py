"""Is the metric right? Text of known entropy goes through the real chain, and every figure is compared with the truth.

For each source: files are written, an experiment over them is run exactly as any other, and a table says

- the true rate, and the bits that the source itself needs for the test text;
- what models of known score get from the same scoring pass (an oracle; a uniform one for each contestant's tokens):
  they must hit that score, so that even a small fault of the metric shows;
- what the trained contestants get: not below the source beyond the 95 % interval (nobody can know more about the text
  than the source that drew it, so such a figure is a fault of measurement), and at most 2 % above it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from compare.calibrate.exact_models import OracleModel, UniformModel
from compare.calibrate.known_sources import KnownSource, grammar_source, markov_source
from compare.certainty.intervals import Interval, over_text
from compare.characters import Float64Array, Int64Array, document_nats
from compare.experiment import load_experiment
from compare.runs import Run, read_run
from compare.steps import Steps
from data.errors import CheckpointError, DataError
from data.files import write_text
from model.evaluate import evaluate_split
from model.settings import EvaluateConfig

MOST_ABOVE = 0.02
"""A trained contestant may lie this share above the source's own bits, and those so far from the rate."""
EXACT = 1e-5
"""Relative tolerance for what must be exact: losses are float32, their sum float64."""
SPLIT_SEEDS = {"train": 1, "val": 2, "test": 3}


@dataclass(frozen=True)
class Plan:
    """How one source is calibrated."""

    source: KnownSource
    num_chars: Mapping[str, int]
    """Least number of characters drawn for each split."""
    contestants: Mapping[str, Mapping[str, Any]]
    """As in an experiment file."""
    model: Mapping[str, Any]
    """The model block of the experiment."""
    train: Mapping[str, Any]
    """The train block of the experiment."""


def full_plans() -> list[Plan]:
    """What `make calibrate` runs: a few minutes on two slow cores.

    Contestants are trained to the end here, not compared, so each gets the optimizer steps and the block it needs:
    by characters a sentence of the grammar is some forty tokens, by BPE about ten.
    """
    train = {"batch_size": 16, "weight_decay": 0.0, "val_characters": 20_000}
    model = {"embedding_dim": 64, "num_heads": 2, "dropout": 0.0}
    num_chars = {"train": 1_500_000, "val": 20_000, "test": 100_000}
    short = {"model": {"block_size": 32}, "train": {"budget": {"amount": 1_500}}}
    words = {"split_pattern": "gpt2"}
    return [
        Plan(
            markov_source(),
            num_chars,
            {
                "char": {"tokenizer": {"kind": "char"}},
                "char_bpe": {"tokenizer": {"kind": "char_bpe", "vocab_size": 64}},
                "byte_bpe": {"tokenizer": {"kind": "byte_bpe", "vocab_size": 288}},
            },
            {**model, "block_size": 32, "num_layers": 1},
            {**train, "learning_rate": 2e-3, "budget": {"unit": "steps", "amount": 2_500}},
        ),
        Plan(
            grammar_source(),
            num_chars,
            {
                "char": {"tokenizer": {"kind": "char"}},
                "char_bpe": {"tokenizer": {"kind": "char_bpe", "vocab_size": 120, **words}, **short},
                "byte_bpe": {"tokenizer": {"kind": "byte_bpe", "vocab_size": 360, **words}, **short},
            },
            {**model, "block_size": 64, "num_layers": 2},
            {**train, "learning_rate": 3e-3, "budget": {"unit": "steps", "amount": 3_500}},
        ),
    ]


@dataclass(frozen=True)
class Exact:
    """A figure that is known beforehand."""

    name: str
    bits_per_char: float
    """As measured."""
    expected: float
    """As it must be."""


@dataclass(frozen=True)
class Trained:
    """A trained contestant's figure on the test text."""

    name: str
    bits_per_char: float
    """As its report says."""
    num_chars: int
    """Characters that were scored."""
    interval: Interval
    """95 % interval of its bits per character minus the source's, paired by document."""


@dataclass(frozen=True)
class Calibration:
    """The judgement on one source."""

    title: str
    rows: list[dict[str, Any]]
    """One for each line of the table; JSON-ready."""
    is_straight: bool


def judge(
    *,
    rate: float,
    source: Trained,
    exact: Sequence[Exact],
    trained: Sequence[Trained],
) -> tuple[list[dict[str, Any]], bool]:
    """The table's rows and whether the metric is right; bits per character throughout.

    `source` is the source's own figure, with the interval of its own bits minus `rate`. A row holds `name`,
    `bits_per_char`, `difference` (from what the figure is held against), `low` and `high` (its interval, or None),
    `verdict` and `is_straight`.
    """
    rows = [_row("true rate", rate, None, None, "")]
    drawn = source.bits_per_char
    far = not abs(drawn / rate - 1.0) <= MOST_ABOVE  # so that a NaN is far
    fault = f"WRONG: over {MOST_ABOVE:.0%} from the rate" if far else None
    rows.append(_row(source.name, drawn, drawn - rate, source.interval, fault or "typical of the rate", fault))
    for one in exact:
        is_exact = math.isclose(one.bits_per_char, one.expected, rel_tol=EXACT)
        fault = None if is_exact else f"WRONG: must be {one.expected:.5f}"
        rows.append(_row(one.name, one.bits_per_char, one.bits_per_char - one.expected, None, fault or "exact", fault))
    for contestant in trained:
        fault = _fault_of(contestant, source)
        difference = contestant.bits_per_char - drawn
        verdict = fault or f"right, {difference / drawn:+.2%}"
        rows.append(_row(contestant.name, contestant.bits_per_char, difference, contestant.interval, verdict, fault))
    return rows, all(row["is_straight"] for row in rows)


def _fault_of(contestant: Trained, source: Trained) -> str | None:
    """What is wrong with a trained contestant's figure, or None; a NaN is wrong."""
    share = contestant.bits_per_char / source.bits_per_char - 1.0
    if contestant.num_chars != source.num_chars:
        return f"WRONG: {contestant.num_chars - source.num_chars:+,} characters"
    if contestant.interval.high < 0.0:
        return f"WRONG: below source, {share:+.2%}"
    if not share <= MOST_ABOVE:
        return f"WRONG: over {MOST_ABOVE:.0%} above, {share:+.2%}"
    return None


def _row(
    name: str, bits: float, difference: float | None, interval: Interval | None, verdict: str, fault: str | None = None
) -> dict[str, Any]:
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return {
        "name": name,
        "bits_per_char": bits,
        "difference": difference,
        "low": low,
        "high": high,
        "verdict": verdict,
        "is_straight": fault is None,
    }


def as_text(calibration: Calibration) -> str:
    """The table for a terminal, under 100 columns."""
    lines = [calibration.title, f"  {'':<22}{'bits/char':>10}  {'minus the truth (95 % interval)':<33}verdict"]
    for row in calibration.rows:
        off = "" if row["difference"] is None else f"{row['difference']:+z.5f}"
        if row["low"] is not None:
            off += f" ({row['low']:+z.4f} to {row['high']:+z.4f})"
        lines.append(f"  {row['name']:<22}{row['bits_per_char']:>10.5f}  {off:<33}{row['verdict']}".rstrip())
    return "\n".join(lines) + "\n"


def calibrate(plan: Plan, root: Path, *, echo: Callable[[str], None] = print) -> Calibration:
    """Run the chain on what `plan.source` draws and judge the metric; everything is written below `root`.

    Like every step it does what is not up to date only. Raises ScoringError if the chain's own exact counts fail.
    """
    source = plan.source
    documents = {split: source.draw(plan.num_chars[split], seed) for split, seed in SPLIT_SEEDS.items()}
    steps = Steps(load_experiment(write_experiment(plan, documents, root)), echo=echo)
    test = documents["test"]
    if steps.data()["test"].documents() != test:
        raise DataError(f"the chain's test text is not what source {source.name} drew: a step before changed it")
    runs = [read_run(_trained_anew_if_need_be(steps, name).parent) for name in plan.contestants]

    lengths = np.array([len(document) for document in test], np.int64)
    num_chars, own, rate = int(lengths.sum()), source.document_bits(test), source.entropy_rate()
    rows, is_straight = judge(
        rate=rate,
        source=Trained(
            "the source's own bits",
            float(own.sum()) / num_chars,
            num_chars,
            _interval(own, np.asarray(rate * lengths, np.float64), lengths),
        ),
        exact=_exact_figures(plan, steps, own, lengths),
        trained=[_trained(run, own, lengths) for run in runs],
    )
    title = (
        f"{source.name}: {len(source.alphabet)} symbols, test text of {num_chars:,} characters in "
        f"{len(test):,} documents"
    )
    return Calibration(title, rows, is_straight)


def _trained_anew_if_need_be(steps: Steps, name: str) -> Path:
    """The report of contestant `name`; a run of another plan, or a damaged one, is of no use here and is replaced."""
    try:
        return steps.train(name)
    except CheckpointError as error:
        steps.echo(f"  {str(error).partition(';')[0]}: training again")
        return steps.train(name, restart=True)


def write_experiment(plan: Plan, documents: Mapping[str, Sequence[str]], root: Path) -> Path:
    """Write the splits and the experiment over them below `root`; returns the experiment file.

    A file holds one document on each line: the newline cuts it into documents and the chain gives each one its own
    back. The alarm for figures too good to be true is off, because here the truth is known. Documents may repeat across
    splits: each is an independent draw from the source, and short ones come more than once.
    """
    name = plan.source.name
    files = {split: root / name / "texts" / f"{split}.txt" for split in documents}
    for split, path in files.items():
        write_text(path, "".join(documents[split]))
    values = {
        "corpus": {
            "source": "text",
            "name": name,
            "separator": "\n",
            "allow_repeated_documents": True,
            **{split: str(path) for split, path in files.items()},
        },
        "contestants": {contestant: dict(own) for contestant, own in plan.contestants.items()},
        "model": dict(plan.model),
        "train": dict(plan.train),
        "evaluate": {"alarm_below_bits_per_char": 0.0},
        "root": str(root / name),
    }
    path = root / f"{name}.yaml"
    write_text(path, yaml.safe_dump(values, allow_unicode=True, sort_keys=False))
    return path


def _interval(bits: Float64Array, others: Float64Array, num_chars: Int64Array) -> Interval:
    estimate = over_text(bits, others, num_chars)
    if estimate is None:
        raise DataError(f"{len(num_chars)} test document has no interval; draw at least two, from a longer test text")
    return estimate.interval


def _trained(run: Run, own: Float64Array, lengths: Int64Array) -> Trained:
    evaluation = run.evaluations["test"]
    bits = document_nats(evaluation) / math.log(2)
    return Trained(run.contestant, run.test.bits_per_char, evaluation.num_chars, _interval(bits, own, lengths))


def _exact_figures(plan: Plan, steps: Steps, own: Float64Array, lengths: Int64Array) -> list[Exact]:
    """The oracle (by single characters) and the uniform model (by each contestant's tokens) through the real scoring.

    What is expected is computed from the drawn documents, not from what the scoring counted.
    """
    num_chars = int(lengths.sum())
    config = EvaluateConfig(alarm_below_bits_per_char=0.0)
    figures = []
    for name, contestant in steps.experiment.contestants.items():
        tokenizer, split = steps.tokenizer(name), steps.encode(name)["test"]
        block_size = contestant.model_for(tokenizer, steps.encode(name)["train"]).block_size
        uniform = evaluate_split(UniformModel(tokenizer.vocab_size, block_size=block_size), split, tokenizer, config)
        expected = math.log2(tokenizer.vocab_size) * len(split.ids) / num_chars
        figures.append(Exact(f"uniform over {name}", uniform.bits_per_char, expected))
        if tokenizer.kind == "char":
            oracle = OracleModel(plan.source, tokenizer, block_size=int(lengths.max()) + 1)
            knows = evaluate_split(oracle, split, tokenizer, config)
            figures.insert(0, Exact(f"oracle over {name}", knows.bits_per_char, float(own.sum()) / num_chars))
    return figures
