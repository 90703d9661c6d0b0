"""What the models write: prompts from the text as it is, and texts that a seed makes again."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from chain_helpers import experiment_values, write_corpus, write_experiment
from compare.experiment import load_experiment
from compare.page.samples import prompts_of, samples_of
from compare.page.values import Sample
from compare.runs import Entry, read_run
from compare.steps import Steps
from data.errors import CheckpointError
from tokenizer.base import Tokenizer
from tokenizer.char import CharTokenizer
from tokenizer_helpers import make_split

SEEDS = {"bpe": (1, 2), "char": (1,)}


def prompt_of(*documents: str) -> str:
    """The prompt next to the newline."""
    newline, beginning = prompts_of(make_split("test", list(documents)))
    assert newline == "\n"
    return beginning


@pytest.mark.parametrize(
    ("document", "beginning"),
    [
        ("one two\n", "one two"),
        ("  \n one two\n", "one two"),
        ("= Title =\n \n Text of it\n", "= Title =\n \n Text of it"),  # as it stands in the text
        ("a" * 40 + " b\n", "a" * 40),
        ("a" * 41 + " b\n", "a" * 40),  # no word ends within reach
        ("x " + "a" * 38 + " b\n", "x " + "a" * 38),
        ("x " + "a" * 39 + " b\n", "x"),  # the second word would end behind the fortieth character
        ("x" + " " * 60 + "y\n", "x"),
        ("中文 \U0001f600\u2003end\n", "中文 \U0001f600\u2003end"),
    ],
)
def test_the_prompt_is_the_beginning_of_the_text_up_to_the_end_of_a_word(document: str, beginning: str) -> None:
    assert prompt_of(document) == beginning
    assert prompt_of("\n", " \n", document, "another\n") == beginning  # blank documents are passed over


def test_a_prompt_has_only_characters_of_its_text() -> None:
    document = "one\ntwo\nthree\n"  # without a space, so the alphabet has none
    assert CharTokenizer(sorted(set(document))).encode(prompt_of(document))


def test_a_text_without_words_has_the_newline_only() -> None:
    assert prompts_of(make_split("test", ["\n", " \n"])) == ["\n"]
    assert prompts_of(make_split("test", [])) == ["\n"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Steps:
    """A chain whose contestants learn for a few steps only."""
    folder = tmp_path_factory.mktemp("samples")
    values = experiment_values(folder / "run", write_corpus(folder / "texts", num_words=600))
    path = write_experiment(folder / "words.yaml", values)
    settings = ("train.budget={unit: steps, amount: 3}", "seeds=[1,2]")
    return Steps(load_experiment(path, settings), echo=lambda _line: None)


@pytest.fixture(scope="module")
def entries(trained: Steps) -> dict[str, Entry]:
    """bpe with two seeds, char with one."""
    runs = {name: [read_run(trained.train(name, seed=seed).parent) for seed in seeds] for name, seeds in SEEDS.items()}
    return {name: Entry(name, tuple(found)) for name, found in runs.items()}


def drawn(steps: Steps, entry: Entry, tokenizer: Tokenizer | None = None) -> list[Sample]:
    tokenizer = tokenizer or steps.tokenizer(entry.name)
    return samples_of(entry, tokenizer, steps.layout.tokenizer(entry.name), ["\n", "the of"])


@pytest.mark.parametrize("name", ["char", "bpe"])
def test_every_prompt_is_continued_greedily_and_drawn(trained: Steps, entries: dict[str, Entry], name: str) -> None:
    samples = drawn(trained, entries[name])
    assert [(one.prompt, one.temperature, one.seed) for one in samples] == [
        ("\n", 0.0, 1),
        ("the of", 0.0, 1),
        ("\n", 0.8, 1),
        ("the of", 0.8, 1),
    ]
    test = entries[name].runs[0].test
    num_tokens = round(300 * test.num_tokens / test.num_chars)
    longest = int(trained.tokenizer(name).token_num_chars.max())
    for one in samples:
        assert num_tokens <= len(one.text) <= num_tokens * longest
    if name == "char":
        assert {len(one.text) for one in samples} == {300}
    assert samples[2].text != samples[0].text


def test_the_first_seed_writes_and_always_the_same(trained: Steps, entries: dict[str, Entry]) -> None:
    runs = entries["bpe"].runs
    both, first, second = (drawn(trained, Entry("bpe", some)) for some in (runs, runs[:1], runs[1:]))
    assert both == first
    assert [one.text for one in both] != [one.text for one in second]


def test_another_tokenizer_than_the_models_is_refused(trained: Steps, entries: dict[str, Entry]) -> None:
    with pytest.raises(CheckpointError):
        drawn(trained, entries["bpe"], trained.tokenizer("char"))


def test_without_the_checkpoint_there_is_no_sample(trained: Steps, entries: dict[str, Entry], tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=re.escape(str(tmp_path / "best.pt"))):
        drawn(trained, Entry("char", (replace(entries["char"].runs[0], folder=tmp_path),)))
