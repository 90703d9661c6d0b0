"""bench-train: the stand-in is GPT-2, turns are counted, failures are named, the tables fit a terminal."""

import pytest
import torch

from bench import train_step
from bench.nanogpt import PlainGPT2
from bench.step_table import BOUND, DEMO_SHAPES, Line, Shape, best_peer, fixed_costs, table
from bench.train_step import batch, contestants, measure
from model.gpt import MiniGPT
from model.settings import MiniGPTConfig
from model.training.gradient import ParallelGradient

SHAPE = Shape(64, 0.0, 8, 2)


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    for name, value in {"EMBEDDING_DIM": 16, "NUM_HEADS": 2, "NUM_LAYERS": 2}.items():
        monkeypatch.setattr(train_step, name, value)


def test_the_stand_in_computes_what_our_gpt2_computes():
    torch.manual_seed(0)
    sizes = {"block_size": 8, "embedding_dim": 16, "num_heads": 2, "num_layers": 2, "dropout": 0.0}
    ours, plain = MiniGPT(MiniGPTConfig(SHAPE.vocab_size, **sizes)), PlainGPT2(train_step.config_of(SHAPE))
    assert sum(p.numel() for p in plain.parameters()) == ours.num_parameters()
    order = ["attention_norm", "attention.qkv", "attention.projection", "mlp_norm", "mlp.widen", "mlp.projection"]
    state = {"tokens.weight": ours.token_embedding.weight, "positions.weight": ours.position_embedding.weight,
             "norm.weight": ours.final_norm.weight, "norm.bias": ours.final_norm.bias}  # fmt: skip
    for number, block in enumerate(ours.blocks):
        for name, where in zip(("norm1", "qkv", "out", "norm2", "up", "down"), order, strict=True):
            for kind in ("weight", "bias"):
                state[f"layers.{number}.{name}.{kind}"] = block.get_parameter(f"{where}.{kind}")
    plain.load_state_dict({name: value.detach() for name, value in state.items()})
    inputs, targets = batch(SHAPE)
    torch.testing.assert_close(plain(inputs, targets)[1], ours.loss(inputs, targets))


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_every_contestant_without_compile_takes_a_step(dropout):
    shape = Shape(64, dropout, 8, 2)
    makers = {"ours": train_step.ours, "peer": train_step.peer, "bare_products": train_step.bare_products}
    entries = contestants("", 1, compiled=False, bfloat16=True)
    assert set(entries) == {f"{who}, {preset}" for who in ("ours", BOUND) for preset in ("gpt2", "modern")}
    for maker, arguments in entries.values():
        makers[maker](shape, *arguments)()
    assert len(contestants("folder", 1, compiled=True, bfloat16=True)) == 8
    assert list(contestants("folder", 1, compiled=False, bfloat16=False))[4:] == ["nanoGPT, float32 eager"]


@pytest.mark.parametrize("preset", ["gpt2", "modern"])
def test_a_step_of_ours_learns(monkeypatch, preset):
    """The same batch again and again is learned by heart."""
    torch.manual_seed(0)
    losses = []
    backward = ParallelGradient.backward

    def spy(*given):
        losses.append(backward(*given))
        return losses[-1]

    monkeypatch.setattr(ParallelGradient, "backward", spy)

    step = train_step.ours(SHAPE, preset, 1)
    for _ in range(20):
        step()
    assert losses[-1] < losses[0] - 0.01


def test_nanogpts_own_folder_is_imported(tmp_path):
    (tmp_path / "model.py").write_text(
        "import torch\n"
        "class GPTConfig:\n    def __init__(self, **given): self.given = given\n"
        "class GPT(torch.nn.Module):\n"
        "    def __init__(self, config):\n"
        "        super().__init__()\n        self.w = torch.nn.Parameter(torch.ones(1))\n"
        "    def configure_optimizers(self, *given): return torch.optim.SGD(self.parameters(), lr=given[1])\n"
        "    def forward(self, ids, targets): return None, self.w.sum()\n"
    )
    train_step.peer(SHAPE, str(tmp_path), torch.float32, False)()


@pytest.mark.slow
def test_turns_are_taken_in_processes_and_a_failing_one_is_named():
    entries = {"ours, gpt2": ("ours", ("gpt2", 1)), "broken": ("peer", ("/nowhere", torch.float32, False))}
    good, broken = measure(SHAPE, entries, repeat=2, num_threads=1, patience=120)
    assert len(good.tokens_per_second) == 2 and good.peak_bytes > 1e7 and not good.failed
    assert broken.failed == "its process ended" and broken.tokens_per_second == []
    assert "broken: its process ended" in table([good, broken])


def test_the_table_is_aligned_and_sets_ratios_against_the_best_peer_and_the_bound():
    name = Shape(4096, 0.1).name
    lines = [
        Line(name, "ours, gpt2", [900.0, 1200.0], 2_000_000),
        Line(name, f"{BOUND}, gpt2", [2400.0], 1_000_000),
        Line(name, "nanoGPT, float32 eager", [600.0, 500.0, 550.0], 3_000_000),
        Line(name, "nanoGPT, bfloat16 compile", [], 0, "no answer in 180 s"),
    ]
    assert best_peer(lines) is lines[2]
    rows = table(lines).splitlines()
    assert rows[1].split() == ["ours,", "gpt2", "1,200", "1,050", "2.00", "50%", "2"]
    assert "no answer in 180 s" in rows[4]
    assert max(map(len, rows)) < 100
    assert best_peer(lines[:2]) is None
    assert table(lines[:1]).splitlines()[1].split()[-3:] == ["-", "-", "2"]


def test_the_fixed_cost_is_what_a_straight_line_says_of_no_windows():
    def lines(name, fixed, each):
        return [
            Line(shape.name, name, [shape.batch_size * 64 / (1e-3 * (fixed + each * shape.batch_size))])
            for shape in DEMO_SHAPES
        ]

    rows = fixed_costs([*lines("ours, gpt2", 26.0, 5.0), *lines("nanoGPT, x", 1.0, 1.0)]).splitlines()
    assert len(rows) == 3
    assert rows[1].split()[-4:] == ["46.0", "66.0", "106.0", "26.0"]


def test_demo_shapes_and_the_presets_own_products_are_measured():
    assert {(s.vocab_size, s.block_size, s.batch_size) for s in DEMO_SHAPES} >= {
        (vocab, 64, windows) for vocab in (149, 4096) for windows in (8, 16)
    }
    lines = [
        Line("a", "ours, modern", [50.0]),
        Line("a", f"{BOUND}, gpt2", [200.0]),
        Line("a", f"{BOUND}, modern", [100.0]),
    ]
    assert table(lines).splitlines()[1].split()[-2] == "50%"
