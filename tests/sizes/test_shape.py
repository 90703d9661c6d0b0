"""The rule for the model of another size, and which sizes may be asked for."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chain_helpers import experiment_values, write_experiment
from compare.experiment import Experiment, load_experiment
from compare.sizes.shape import TOLERANCE, Shape, shape_of_size
from data.errors import ConfigError
from data.layout import Layout
from model.gpt import MiniGPT
from model.settings import MiniGPTConfig


@pytest.mark.parametrize(
    ("original", "heads", "size", "wanted"),
    [
        (Shape(4, 128), 4, 0.4, Shape(3, 96)),  # L C^2 of 26,214 is wanted, 27,648 has the very ratio
        (Shape(3, 96), 4, 2.5, Shape(4, 128)),
        (Shape(3, 96), 4, 0.4, Shape(3, 64)),
        (Shape(2, 32), 2, 2.5, Shape(2, 48)),
        (Shape(12, 768), 12, 1, Shape(12, 768)),
    ],
)
def test_known_shapes(original: Shape, heads: int, size: float, wanted: Shape) -> None:
    assert shape_of_size(original, heads, size) == wanted


def candidates(original: Shape, step: int, size: float) -> list[Shape]:
    """Every shape near enough, found by trying all."""
    goal = original.weight * size
    most = math.isqrt(int(goal * 2)) + 1
    found = [Shape(layers, channels) for channels in range(step, most + 1, step) for layers in range(1, 200)]
    return [one for one in found if abs(one.weight / goal - 1.0) <= TOLERANCE]


@given(
    layers=st.integers(1, 12),
    heads=st.integers(1, 4),
    head_size=st.sampled_from([8, 16, 24, 32]),
    size=st.sampled_from([0.1, 0.4, 0.5, 0.75, 1.5, 2.5, 4.0]),
)
def test_a_shape_is_near_its_goal_and_no_other_is_nearer_to_the_ratio(
    layers: int, heads: int, head_size: int, size: float
) -> None:
    original = Shape(layers, heads * head_size)
    try:
        found = shape_of_size(original, heads, size)
    except ConfigError:
        assume(False)
    assert abs(found.weight / (original.weight * size) - 1.0) <= TOLERANCE
    assert found.embedding_dim % (2 * heads) == 0 and found.num_layers >= 1
    step = next(step for step in (8, 4, 2) if found.embedding_dim % (step * heads) == 0)
    off = abs(math.log(found.width / original.width))
    for other in candidates(original, step * heads, size):
        assert off <= abs(math.log(other.width / original.width)) + 1e-9
    assert off <= math.log(4.0) + 1e-9


def test_the_weights_of_the_blocks_follow_the_size() -> None:
    config = MiniGPTConfig(vocab_size=100, embedding_dim=128, num_heads=4, num_layers=4)

    def outside(shape: Shape) -> int:
        resized = dataclasses.replace(config, num_layers=shape.num_layers, embedding_dim=shape.embedding_dim)
        model = MiniGPT(resized)
        return model.num_parameters() - model.num_embedding_parameters()

    original = Shape(4, 128)
    for size in (0.4, 2.5):
        assert outside(shape_of_size(original, 4, size)) / outside(original) == pytest.approx(size, rel=0.16)


def test_a_model_too_small_for_a_size_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no model with 2 heads has 0.1 times the weights of 1 layers of 16"):
        shape_of_size(Shape(1, 16), 2, 0.1)


def experiment(folder: Path, settings: list[str], **changes: Any) -> Experiment:
    block = {"source": "text", "name": "words", "paths": ["texts"]}
    values: dict[str, Any] = experiment_values(folder / "run", block) | changes  # type: ignore[arg-type]
    values["model"] = {**values["model"], "num_layers": 2, "embedding_dim": 32}
    return load_experiment(write_experiment(folder / "small.yaml", values), settings)


def test_one_is_the_model_block_and_need_not_be_named(tmp_path: Path) -> None:
    for written in ("[0.4, 1, 2.5]", "[0.4, 2.5]", "[2.5, 0.4, 1.0]"):
        assert sorted(experiment(tmp_path, [f"sizes={written}"]).sizes) == [0.4, 2.5]
    assert experiment(tmp_path, []).sizes == () == experiment(tmp_path, ["sizes=null"]).sizes


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["sizes=[0]"], "sizes: every size must be at least 0.01, found 0"),
        (["sizes=[-0.4, 1]"], "sizes: every size must be at least 0.01, found -0.4"),
        (["sizes=[1000]"], "sizes: every size must be at most 100, found 1000"),
        (["sizes=[0.4, 1, 0.4]"], "sizes: must be distinct, found 0.4, 1, 0.4"),
        (["sizes=[1, 1.0, 2]"], "sizes: must be distinct, found 1, 1, 2"),
        (["sizes=[]"], "sizes: the list is empty"),
        (["sizes=[1]"], "sizes: 1 is the size of the model block; name another one"),
        (["sizes=[0.2, 0.4, 2, 3, 4, 5]"], "sizes: at most 5 besides 1, found 6"),
        (["sizes=0.4"], "sizes: expected a list, found 0.4"),
        (["sizes=[small]"], r"sizes\[0\]: expected a number"),
        (["sizes=[1.05]"], "contestant bpe: sizes: 1 and 1.05 give the same model; take one of them"),
        (["sizes=[0.01]"], "contestant bpe: sizes: no model with 2 heads has 0.01 times"),
        (["sizes=[0.4]", "ladder={rungs: 2}"], "so ladder.rungs must be at least 3"),
        (["sizes=[0.4]", "train.budget={unit: steps, amount: 3}"], "a quarter of the budget of 3 steps is too little"),
        (
            ["sizes=[0.4]", "train.warmup_amount=1500"],
            "a quarter of the budget of 6,000 characters is too little for train.warmup_amount 1,500",
        ),
    ],
)
def test_what_cannot_be_sizes_is_refused(tmp_path: Path, settings: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        experiment(tmp_path, settings)


def test_a_contestant_with_a_model_of_its_own_has_shapes_of_its_own(tmp_path: Path) -> None:
    found = experiment(tmp_path, ["sizes=[2.5]", "contestants.bpe.model.num_layers=4"])
    assert found.contestant("char").shape_at(2.5) == Shape(2, 48)
    assert found.contestant("bpe").shape_at(2.5) == shape_of_size(Shape(4, 32), 2, 2.5) != Shape(2, 48)


def test_folders_of_sizes_lie_below_the_contestants() -> None:
    layout = Layout(Path("runs"))
    for name in ("bpe", "size_2", "seed_1"):
        assert layout.checkpoints(name, None, 1.0) == Path("runs/checkpoints") / name
        for seed in (None, 1):
            folder = layout.checkpoints(name, seed, 2.5)
            assert folder.relative_to("runs/checkpoints").parts[:2] == (name, "size_2.5")
            for part in (folder, folder / "trunk", folder / "rungs" / "1500"):
                assert Layout.contestant_of(part) == name, part
        plain = layout.checkpoints(name, 1)
        assert Layout.contestant_of(plain) == Layout.contestant_of(plain / "rungs" / "9") == name
