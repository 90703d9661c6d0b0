"""One contestant with its runs: the mean over seeds, and what makes runs incomparable."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compare.runs import Entry, Run, all_runs, check_comparable
from data.errors import ReportError
from model.evaluate import Evaluation
from report_helpers import report_of


def evaluation(
    nats: list[float],
    *,
    lengths: list[int] | None = None,
    documents: list[int] | None = None,
    disjoint: float = 9.0,
) -> Evaluation:
    chars = np.array(lengths or [1] * len(nats), np.int32)
    return Evaluation(
        nats=np.array(nats, np.float32),
        token_num_chars=chars,
        token_num_bytes=chars,
        document_offsets=np.array(documents or [0, len(nats)], np.int64),
        disjoint_total_nats=disjoint,
        text_sha256="t" * 64,
        tokenizer_fingerprint="f" * 64,
        stride=2,
        block_size=4,
    )


def run_of(name: str, test: Evaluation, *, seed: int = 1, fingerprint: str = "f" * 64, text: str = "t" * 64) -> Run:
    splits = {split: {"text_sha256": text} for split in ("val", "test")}
    report = report_of({"tokenizer": {"fingerprint": fingerprint}, "train": {"seed": seed}, "splits": splits})
    val = evaluation([1.0, 2.0])
    folder = Path("checkpoints") / name / f"seed_{seed}"
    return Run(name, folder, report, "r" * 64, {"val": val, "test": test}, metrics=[])


def test_one_seed_is_passed_on_unchanged() -> None:
    only = evaluation([0.1, 0.2, 0.3])
    assert Entry("bpe", (run_of("bpe", only),)).evaluation("test") is only


def test_several_seeds_are_averaged_token_by_token() -> None:
    runs = (
        run_of("bpe", evaluation([1.0, 2.0, 3.0], disjoint=7.0), seed=1),
        run_of("bpe", evaluation([2.0, 2.0, 6.0], disjoint=10.0), seed=2),
        run_of("bpe", evaluation([6.0, 5.0, 0.0], disjoint=13.0), seed=5),
    )
    mean = Entry("bpe", runs).evaluation("test")
    assert mean.nats.tolist() == [3.0, 3.0, 3.0]
    assert mean.nats.dtype == np.float32
    assert mean.disjoint_total_nats == 10.0
    assert mean.bits_per_char == pytest.approx(np.mean([run.evaluations["test"].bits_per_char for run in runs]))
    assert (mean.num_chars, mean.block_size, mean.text_sha256) == (3, 4, "t" * 64)
    assert [run.seed for run in runs] == [1, 2, 5]
    assert runs[0].evaluations["test"].nats.tolist() == [1.0, 2.0, 3.0]  # the parts stay what they were


@pytest.mark.parametrize("scale", [1e-6, 1.0, 20.0])
def test_the_mean_of_many_tokens_loses_less_than_1e_7_of_the_total(scale: float) -> None:
    rng = np.random.default_rng(3)
    seeds = [(rng.gamma(0.4, scale, 200_000)).astype(np.float32) for _ in range(3)]
    runs = tuple(run_of("bpe", replace(evaluation([0.0]), nats=nats), seed=i) for i, nats in enumerate(seeds))
    exact = sum(float(nats.sum(dtype=np.float64)) for nats in seeds) / 3
    assert abs(Entry("bpe", runs).evaluation("test").total_nats - exact) < 1e-7 * exact


def test_the_mean_cannot_lose_more_even_where_all_tokens_round_the_same_way() -> None:
    one, two = np.float32(1.0), np.nextafter(np.float32(1.0), np.float32(2.0))  # their mean lies between two floats
    runs = tuple(
        run_of("bpe", replace(evaluation([0.0]), nats=np.full(1000, value)), seed=i)
        for i, value in enumerate((one, two))
    )
    exact = 1000 * (float(one) + float(two)) / 2
    error = abs(Entry("bpe", runs).evaluation("test").total_nats - exact) / exact
    assert 1e-8 < error < 1e-7


def test_all_runs_keep_contestants_together() -> None:
    runs = [run_of(name, evaluation([1.0]), seed=seed) for name in ("char", "bpe") for seed in (2, 1)]
    entries = [Entry("char", tuple(runs[:2])), Entry("bpe", tuple(runs[2:]))]
    assert all_runs(entries) == runs


def test_runs_of_one_text_are_comparable_whatever_their_tokens() -> None:
    char = evaluation([1.0] * 6, documents=[0, 2, 6])
    bpe = evaluation([1.0] * 3, lengths=[2, 3, 1], documents=[0, 1, 3])
    check_comparable([run_of("char", char), run_of("char", char, seed=2), run_of("bpe", bpe, fingerprint="e" * 64)])


def test_another_text_in_a_later_seed_is_refused() -> None:
    runs = [run_of("bpe", evaluation([1.0]), seed=seed) for seed in (1, 2)]
    other = run_of("bpe", evaluation([1.0]), seed=3, text="u" * 64)
    with pytest.raises(ReportError, match=r"scored on different val texts .*seed_1.*: t{12}….*seed_3.*: u{12}…"):
        check_comparable([*runs, other])


def test_other_documents_of_the_same_text_are_refused() -> None:
    char = run_of("char", evaluation([1.0] * 6, documents=[0, 2, 6]))
    bpe = run_of("bpe", evaluation([1.0] * 3, lengths=[2, 3, 1], documents=[0, 2, 3]))
    with pytest.raises(ReportError, match=r"the same test text cut into other documents \(2 and 2 of them\)"):
        check_comparable([char, bpe])


def test_another_tokenizer_in_a_later_seed_is_refused() -> None:
    runs = [run_of("bpe", evaluation([1.0])), run_of("bpe", evaluation([1.0]), seed=2, fingerprint="e" * 64)]
    with pytest.raises(ReportError, match=r"two runs of bpe have different tokenizers .*`make train-bpe FORCE=1`"):
        check_comparable(runs)
