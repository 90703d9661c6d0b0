"""`from tokenizer import load` and `from model import load`: what a notebook uses, and that importing them is light."""

import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

import model
import tokenizer
from chain_helpers import experiment_values, write_corpus, write_experiment
from compare.experiment import load_experiment
from compare.steps import Steps
from data.errors import CheckpointError, ConfigError, DataError, TokenizerError
from model.evaluate import read_nats

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Steps:
    folder = tmp_path_factory.mktemp("python")
    values = experiment_values(folder / "run", write_corpus(folder / "texts"))
    values["contestants"]["byte_bpe"] = {"tokenizer": {"kind": "byte_bpe", "vocab_size": 300}}  # type: ignore[index]
    values["seeds"] = [1, 2]
    made = Steps(load_experiment(write_experiment(folder / "words.yaml", values)), echo=lambda _line: None)
    for name in made.experiment.contestants:
        made.train(name)
    return made


@pytest.mark.parametrize("name", ["char", "bpe", "byte_bpe"])
def test_a_tokenizer_is_loaded_by_a_path_or_a_string(steps: Steps, name: str) -> None:
    path = steps.layout.tokenizer(name)
    one, other = tokenizer.load(path), tokenizer.load(str(path))
    assert one.fingerprint() == other.fingerprint()
    assert len(one) == one.vocab_size  # type: ignore[arg-type]
    texts = ["the of", "", "to the"]
    batch = one.encode_batch(texts)  # type: ignore[attr-defined]
    assert batch == [one.encode(text) for text in texts]
    assert [one.decode(ids) for ids in batch] == texts
    assert re.fullmatch(rf"<tokenizer {one.kind}, {one.vocab_size} tokens, [0-9a-f]{{12}}…>", repr(one))


def test_what_is_no_tokenizer_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises((TokenizerError, DataError), match=r"none\.json"):
        tokenizer.load(str(tmp_path / "none.json"))


@pytest.mark.parametrize("name", ["char", "bpe", "byte_bpe"])
def test_a_run_gives_its_own_figure_again(steps: Steps, name: str) -> None:
    folder = steps.experiment.run_folder(name, 1)
    loaded = model.load(str(folder))
    stored = read_nats(folder / "test_nats.npz")
    documents = steps.data()["test"].documents()
    assert loaded.bits_per_char(documents) == pytest.approx(stored.bits_per_char, abs=1e-6)
    score = loaded.score(documents)
    assert (score.num_chars, score.stride, score.block_size) == (stored.num_chars, stored.stride, stored.block_size)
    # A text alone is one document: its bits are those of all its tokens, after one newline.
    alone = loaded.score(documents[0])
    assert alone.num_chars == len(documents[0])
    assert alone.bits_per_char == pytest.approx(alone.total_nats / math.log(2) / len(documents[0]))


def test_a_run_writes_encodes_and_says_what_it_is(steps: Steps) -> None:
    folder = steps.experiment.run_folder("bpe", 1)
    loaded = model.load(folder)
    assert loaded.generate("the", num_tokens=20, seed=3) == "".join(loaded.stream("the", num_tokens=20, seed=3))
    first, second = loaded.samples("the", 2, num_tokens=20, seed=3)
    assert first.text == loaded.generate("the", num_tokens=20, seed=3) != second.text
    assert loaded.generate("the", num_tokens=50, temperature=0, stop=["of"]).find("of") == -1
    assert loaded.decode(loaded.encode("the of")) == "the of" and loaded.encode_batch(["the"]) == [loaded.encode("the")]
    assert len(loaded) == loaded.tokenizer.vocab_size == loaded.gpt.config.vocab_size
    parameters = f"{loaded.gpt.num_parameters():,}"
    assert repr(loaded) == (
        f"<model bpe: gpt2, {parameters} parameters, block of 16 tokens, char_bpe with {len(loaded)} tokens, "
        f"from {folder}>"
    )


def test_mistakes_are_users_errors(steps: Steps, tmp_path: Path) -> None:
    loaded = model.load(steps.experiment.run_folder("bpe", 1))
    for text in ("", [], ["", ""]):
        with pytest.raises(DataError, match="no character to score"):
            loaded.bits_per_char(text)
    with pytest.raises(TokenizerError, match="'Ω'"):
        loaded.bits_per_char("Ω")
    with pytest.raises(ConfigError, match="top_p must be"):
        loaded.generate("the", top_p=2)
    with pytest.raises(CheckpointError, match="holds no finished run"):
        model.load(tmp_path)
    with pytest.raises(CheckpointError, match="it has runs in seed_1, seed_2"):
        steps.train("bpe", seed=2)
        model.load(steps.layout.root / "checkpoints/bpe")


@pytest.mark.parametrize(
    ("package", "heavy"), [("tokenizer", ["numpy", "numba", "torch"]), ("model", ["torch", "numpy"])]
)
def test_importing_a_package_is_light(package: str, heavy: list[str]) -> None:
    code = f"import sys, {package}; print([name for name in {heavy} if name in sys.modules], {package}.load)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[] <function load")


def test_load_stays_a_function_whatever_was_imported_before() -> None:
    code = (
        "import tokenizer.loading, model.exchange.loaded, compare.steps, tokenizer, model; "
        "print(tokenizer.load, model.load)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.count("<function load") == 2
