"""model/batches.py: windows inside the data, a pure function of (seed, step)."""

from types import SimpleNamespace

import pytest
import torch

from data.errors import DataError
from model.batches import EpochWindows, RandomWindows, windows_of
from model_helpers import CharTable, encoded_splits

B = 8  # block size


def windows(tmp_path, num_tokens, batch_size=64, seed=1):
    text = "abcdefghij" * 3
    splits = encoded_splits(tmp_path, CharTable("abcdefghij\n"), [text[: num_tokens - 1] + "\n"], ["a\n"])
    return RandomWindows(splits["train"], block_size=B, batch_size=batch_size, seed=seed)


@pytest.mark.parametrize("num_tokens", [B - 1, B])
def test_a_split_without_a_whole_window_is_refused(tmp_path, num_tokens):
    with pytest.raises(DataError) as caught:
        windows(tmp_path, num_tokens)
    message = str(caught.value)
    assert "'train'" in message and f"{num_tokens} tokens" in message and "at least 9" in message
    assert f"model.block_size to {num_tokens - 1}" in message


@pytest.mark.parametrize("num_tokens", [B + 1, B + 2, B + 3])
def test_every_start_occurs_and_none_leaves_the_data(tmp_path, num_tokens):
    drawn = windows(tmp_path, num_tokens)
    starts = torch.cat([drawn.starts(step) for step in range(5)])
    assert set(starts.tolist()) == set(range(num_tokens - B))
    inputs, targets = drawn.batch(0)
    assert inputs.shape == targets.shape == (64, B)


def test_targets_are_the_inputs_moved_on_by_one(tmp_path):
    drawn = windows(tmp_path, 25)
    inputs, targets = drawn.batch(3)
    for row, start in enumerate(drawn.starts(3).tolist()):
        assert torch.equal(inputs[row], drawn.ids[start : start + B])
        assert torch.equal(targets[row], drawn.ids[start + 1 : start + B + 1])


def test_a_step_does_not_depend_on_what_was_drawn_before(tmp_path):
    first, second = windows(tmp_path, 25), windows(tmp_path, 25)
    for step in range(5):
        first.batch(step)
    torch.rand(3)
    assert torch.equal(first.batch(7)[0], second.batch(7)[0])


def test_seeds_and_steps_give_different_windows(tmp_path):
    one, two = windows(tmp_path, 25, seed=1), windows(tmp_path, 25, seed=2)
    assert not torch.equal(one.starts(0), two.starts(0))
    assert not torch.equal(one.starts(0), one.starts(1))
    assert not torch.equal(one.starts(2), two.starts(1))


def test_starts_are_uniform(tmp_path):
    drawn = windows(tmp_path, 18, batch_size=10_000)
    counts = torch.bincount(drawn.starts(0), minlength=10)
    assert len(counts) == 10
    assert counts.min() > 850 and counts.max() < 1150


def test_drawing_leaves_torchs_generator_alone(tmp_path):
    drawn = windows(tmp_path, 18)
    before = torch.get_rng_state()
    drawn.batch(0)
    assert torch.equal(before, torch.get_rng_state())


# Epochs


def epochs(tmp_path, num_tokens, batch_size, seed=1):
    split = windows(tmp_path, num_tokens)
    return EpochWindows(encoded_split(split, num_tokens), block_size=B, batch_size=batch_size, seed=seed)


def encoded_split(drawn, num_tokens):
    """What EpochWindows reads of a split: its ids."""
    return SimpleNamespace(ids=drawn.ids[:num_tokens], name="train", path="train_ids.pt")


@pytest.mark.parametrize(
    ("num_tokens", "num_windows"),
    [(B + 1, 2), (2 * B - 1, 2), (2 * B, 2), (2 * B + 1, 3), (3 * B, 3), (3 * B + 5, 4), (30, 4)],
)
def test_every_token_is_a_target_in_every_epoch(tmp_path, num_tokens, num_windows):
    drawn = epochs(tmp_path, num_tokens, batch_size=1)
    drawn.ids = torch.arange(num_tokens)  # a token is its position
    assert drawn.per_epoch == num_windows
    for epoch in range(20):
        batches = [drawn.batch(epoch * num_windows + k) for k in range(num_windows)]
        counts = torch.bincount(torch.cat([targets.flatten() for _, targets in batches]), minlength=num_tokens)
        assert counts.min() == 1 and counts.max() <= 2
        assert int((counts == 2).sum()) == num_windows * B - num_tokens < B
        for inputs, targets in batches:
            assert torch.equal(targets, (inputs + 1) % num_tokens)  # the beginning follows the end


def test_epochs_differ_in_order_and_in_where_they_begin(tmp_path):
    drawn = epochs(tmp_path, 30, batch_size=1)
    rounds = [tuple(int(drawn.starts(e * drawn.per_epoch + k)) for k in range(drawn.per_epoch)) for e in range(12)]
    assert len(set(rounds)) > 6
    assert len({min(starts) for starts in rounds}) > 3


@pytest.mark.parametrize("batch_size", [1, 2, 5, 9])  # 4 windows an epoch: inside, across, and over several ends
def test_batches_go_on_over_the_end_of_an_epoch(tmp_path, batch_size):
    single, drawn = epochs(tmp_path, 30, batch_size=1), epochs(tmp_path, 30, batch_size=batch_size)
    for step in range(6):
        wanted = [int(single.starts(step * batch_size + k)) for k in range(batch_size)]
        assert drawn.starts(step).tolist() == wanted


def test_a_step_of_an_epoch_does_not_depend_on_what_was_drawn_before(tmp_path):
    first, second = epochs(tmp_path, 30, batch_size=2), epochs(tmp_path, 30, batch_size=2)
    for step in range(5):
        first.batch(step)
    inputs, targets = second.batch(7)
    assert torch.equal(first.batch(7)[0], inputs) and torch.equal(inputs[:, 1:], targets[:, :-1])
    assert not torch.equal(epochs(tmp_path, 30, batch_size=20, seed=2).starts(0), epochs(tmp_path, 30, 20).starts(0))


def test_the_order_is_chosen_by_name(tmp_path):
    split = encoded_split(windows(tmp_path, 30), 30)
    kinds = {
        order: type(windows_of(order, split, block_size=B, batch_size=1, seed=1)) for order in ("random", "epochs")
    }
    assert kinds == {"random": RandomWindows, "epochs": EpochWindows}
    with pytest.raises(DataError, match="8 tokens"):
        windows_of("epochs", encoded_split(windows(tmp_path, 30), 8), block_size=B, batch_size=1, seed=1)
