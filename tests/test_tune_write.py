"""Learning rates written into an experiment file: what changes, what stays, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from compare.experiment import load_experiment
from compare.tune_write import edited, write_rates
from data.errors import ConfigError

CONFIGS = sorted((Path(__file__).resolve().parents[1] / "configs").glob("*.yaml"))
HEAD = "# What this is.\ncorpus: {source: pydocs}  # text\n"
TAIL = "model: {block_size: 16}\ntrain:\n  learning_rate: 1.0e-3  # shared\n  batch_size: 4\nroot: runs/x\n"


def write(folder: Path, contestants: str, tail: str = TAIL) -> Path:
    path = folder / "x.yaml"
    path.write_text(f"{HEAD}contestants:\n{contestants}{tail}", encoding="utf-8")
    return path


def rates_of(path: Path) -> dict[str, float]:
    return {name: c.train.learning_rate for name, c in load_experiment(path).contestants.items()}


FLOW = "  char: {tokenizer: {kind: char}}  # letters\n  bpe: {tokenizer: {kind: char_bpe, vocab_size: 90}}\n"
BLOCK = "  char:\n    # its alphabet\n    tokenizer: {kind: char}\n\n  bpe:\n    tokenizer:\n      kind: byte\n"


@pytest.mark.parametrize(
    ("contestants", "expected"),
    [
        (FLOW, FLOW.replace("90}}", "90}, train: {learning_rate: 0.004}}")),
        (FLOW.replace("90}}", "90}, }"), FLOW.replace("90}}", "90}, train: {learning_rate: 0.004} }")),
        (
            FLOW.replace("90}}", "90}, train: {}}"),
            FLOW.replace("90}}", "90}, train: {learning_rate: 0.004}}"),
        ),
        (
            FLOW.replace("90}}", "90}, train: {learning_rate: 2e-3, beta1: 0.8}}"),
            FLOW.replace("90}}", "90}, train: {learning_rate: 0.004, beta1: 0.8}}"),
        ),
        (
            FLOW.replace("90}}", "90},\n    train: {beta1: 0.8}}"),
            FLOW.replace("90}}", "90},\n    train: {beta1: 0.8, learning_rate: 0.004}}"),
        ),
        (BLOCK, BLOCK.replace("    tokenizer:\n", "    train: {learning_rate: 0.004}\n    tokenizer:\n")),
        (
            BLOCK + "    train:\n      # slow\n      beta1: 0.8\n",
            BLOCK + "    train:\n      # slow\n      learning_rate: 0.004\n      beta1: 0.8\n",
        ),
        (
            BLOCK + "    train:\n      learning_rate: '2e-3'  # by hand\n",
            BLOCK + "    train:\n      learning_rate: 0.004  # by hand\n",
        ),
        (
            FLOW.replace("bpe:", '"bpe":'),
            FLOW.replace("bpe:", '"bpe":').replace("90}}", "90}, train: {learning_rate: 0.004}}"),
        ),
    ],
)  # fmt: skip
def test_only_the_rate_changes_and_comments_and_layout_stay(tmp_path: Path, contestants: str, expected: str) -> None:
    path = write(tmp_path, contestants)
    assert write_rates(path, {"bpe": 0.004, "char": 1e-3}) == ["bpe"]
    assert path.read_text(encoding="utf-8") == f"{HEAD}contestants:\n{expected}{TAIL}"
    assert rates_of(path) == {"char": 1e-3, "bpe": 0.004}


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_line_ends_and_characters_beyond_ascii_stay(tmp_path: Path, line_end: str) -> None:
    path = write(tmp_path, FLOW.replace("letters", "Buchstaben, 文字 😀"))
    path.write_bytes(path.read_bytes().replace(b"\n", line_end.encode()))
    before = path.read_bytes()
    write_rates(path, {"char": 0.004})
    assert path.read_bytes() == before.replace(b"{kind: char}}", b"{kind: char}, train: {learning_rate: 0.004}}")
    path = write(tmp_path, BLOCK)
    path.write_bytes(path.read_bytes().replace(b"\n", line_end.encode()))
    num_lines = path.read_bytes().count(line_end.encode())
    write_rates(path, {"char": 0.004})
    assert path.read_bytes().count(line_end.encode()) == path.read_bytes().count(b"\n") == num_lines + 1


def test_what_is_so_already_is_left_alone(tmp_path: Path) -> None:
    path = write(tmp_path, FLOW)
    before = path.stat().st_mtime_ns
    assert write_rates(path, {"char": 1e-3, "bpe": 0.001}) == []
    assert path.stat().st_mtime_ns == before


def test_a_rate_that_went_back_to_the_shared_one_replaces_the_old_override(tmp_path: Path) -> None:
    path = write(tmp_path, FLOW.replace("90}}", "90}, train: {learning_rate: 2e-3}}"))
    assert write_rates(path, {"bpe": 1e-3}) == ["bpe"]
    assert rates_of(path) == {"char": 1e-3, "bpe": 1e-3}


@pytest.mark.parametrize("rate", [1e-5, 1.5e-7, 2e-4, 0.1, 1.0, 1e22])
def test_every_rate_is_spelled_as_yaml_reads_a_number(tmp_path: Path, rate: float) -> None:
    path = write(tmp_path, FLOW)
    write_rates(path, {"bpe": rate})
    stored = yaml.safe_load(path.read_text(encoding="utf-8"))["contestants"]["bpe"]["train"]["learning_rate"]
    assert isinstance(stored, float) and stored == rate


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_shipped_experiment_can_be_edited(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    values = yaml.safe_load(text)
    wanted = {name: 0.01 + number / 1000 for number, name in enumerate(values["contestants"])}
    new = edited(text, wanted, path)
    after = yaml.safe_load(new)
    for name, rate in wanted.items():
        assert after["contestants"][name]["train"].pop("learning_rate") == rate
        if not values["contestants"][name].get("train"):
            del after["contestants"][name]["train"]
    assert after == values
    assert [line for line in new.split("\n") if "#" in line] == [line for line in text.split("\n") if "#" in line]
    assert new.count("\n") == text.count("\n")


CHAR = "  char: {tokenizer: {kind: char}}\n"
UNSAFE = {
    "the contestant is an alias": "  char: &one {tokenizer: {kind: char}}\n  bpe: *one\n",
    "others merge the contestant": "  bpe: &one {tokenizer: {kind: char}}\n  char: {<<: *one}\n",
    "the block is merged": CHAR + "  bpe:\n    <<: {train: {beta1: 0.8}}\n    tokenizer: {kind: char}\n",
    "the train block is shared": CHAR.replace("}}", "}, train: &t {beta1: 0.8}}")
    + "  bpe: {tokenizer: {kind: char}, train: *t}\n",
    "the number is shared": CHAR.replace("}}", "}, train: {learning_rate: &r 2e-3}}")
    + "  bpe: {tokenizer: {kind: char}, train: {learning_rate: *r}}\n",
    "the train block is empty": CHAR + "  bpe:\n    tokenizer: {kind: char}\n    train:\n",
    "the last words are a comment": CHAR + "  bpe: {tokenizer: {kind: char}  # letters\n    }\n",
}


@pytest.mark.parametrize("contestants", UNSAFE.values(), ids=UNSAFE.keys())
def test_what_cannot_be_edited_safely_is_refused_with_what_to_put_where(tmp_path: Path, contestants: str) -> None:
    path = write(tmp_path, contestants)
    load_experiment(path)  # it is a good file
    before = path.read_bytes()
    with pytest.raises(ConfigError) as caught:
        write_rates(path, {"bpe": 0.004})
    message = str(caught.value)
    assert str(path) in message and "nothing was changed" in message and "\n" not in message
    assert "contestants.bpe.train.learning_rate: 0.004" in message
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["x.yaml"]


def test_an_edit_is_proven_by_reading_the_file_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, FLOW)

    def clumsy(text: str, _name: str, _rate: float) -> str:
        return text.replace("batch_size: 4", "batch_size: 8").replace("90}}", "90}, train: {learning_rate: 0.004}}")

    monkeypatch.setattr("compare.tune_write._edit", clumsy)
    with pytest.raises(ConfigError, match="cannot be edited safely"):
        edited(path.read_text(encoding="utf-8"), {"bpe": 0.004}, path)


def test_an_unknown_shape_is_refused() -> None:
    for text in ("contestants: [bpe]\n", "contestants:\n  bpe: text\n"):
        values: Any = {"bpe": 0.1}
        with pytest.raises(ConfigError, match="cannot be edited safely"):
            edited(text, values, Path("x.yaml"))
