"""model/checkpoint.py: what is stored, damaged files, identity."""

import dataclasses
import os
import shutil
import tracemalloc
import zipfile

import pytest
import torch

from data.errors import CheckpointError, DataError
from model import checkpoint
from model.run_spec import RunSpec
from model.training import same_run
from model_helpers import ALPHABET, ENGLISH, ByteTable, CharTable, encoded_splits, tiny_model, tiny_train, train_tiny

TOKENS = CharTable(ALPHABET)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A finished run: its folder is <root>/run."""
    root = tmp_path_factory.mktemp("trained")
    splits = encoded_splits(root, TOKENS, ENGLISH, ENGLISH[:3], ENGLISH[:2])
    train_tiny(
        contestant="char",
        tokenizer=TOKENS,
        tokenizer_path=root / "tokenizer.json",
        splits=splits,
        model_config=tiny_model(TOKENS.vocab_size),
        train_config=tiny_train(4),
        folder=root / "run",
        progress=False,
    )
    return root


@pytest.fixture
def root(trained, tmp_path):
    """A copy of the finished run that a test may spoil."""
    shutil.copytree(trained, tmp_path / "copy")
    return tmp_path / "copy"


def plain(value):
    if isinstance(value, dict):
        return all(plain(key) and plain(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(plain(item) for item in value)
    return value is None or isinstance(value, torch.Tensor) or type(value) in (bool, int, float, str)


@pytest.mark.parametrize("name", ["last.pt", "best.pt"])
def test_checkpoints_hold_tensors_and_plain_values_only(trained, name):
    state = torch.load(trained / "run" / name, weights_only=True)
    assert plain(state)
    assert state["tokenizer_fingerprint"] == TOKENS.fingerprint()
    assert state["vocab_size"] == TOKENS.vocab_size
    assert state["train_config"]["budget"] == {"unit": "steps", "amount": 4}
    assert set(state["data"]) == {"train", "val"}


def test_last_holds_what_resuming_needs_and_best_does_not(trained):
    last = checkpoint.load(trained / "run" / "last.pt")
    best = checkpoint.load(trained / "run" / "best.pt")
    resuming = {"optimizer", "metrics_lines", "rng_cpu", "rng_cuda"}
    assert resuming <= set(last)
    assert not resuming & set(best)
    assert last["finished"] and last["spent"]["steps"] == 4


def test_a_slice_is_stored_without_the_whole_storage(tmp_path):
    whole = torch.zeros(1_000_000)
    checkpoint.save(tmp_path / "slice.pt", {"part": whole[:10], "column": whole.view(1000, 1000)[:5, 3]})
    assert (tmp_path / "slice.pt").stat().st_size < 5_000
    stored = torch.load(tmp_path / "slice.pt", weights_only=True)
    assert stored["column"].is_contiguous() and stored["column"].untyped_storage().nbytes() == 20


def test_other_values_are_refused_by_name(tmp_path):
    with pytest.raises(TypeError, match=r"state\['a'\]\[1\] is a PosixPath|state\['a'\]\[1\] is a WindowsPath"):
        checkpoint.save(tmp_path / "x.pt", {"a": [1, tmp_path]})
    assert not (tmp_path / "x.pt").exists()


def test_a_failed_save_keeps_the_former_file(tmp_path, monkeypatch):
    path = tmp_path / "last.pt"
    checkpoint.save(path, {"step": 1})
    before = path.read_bytes()

    def full_disk(*_args, **_kwargs):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(torch, "save", full_disk)
    with pytest.raises(DataError, match=r"cannot write .*last.pt: No space left on device"):
        checkpoint.save(path, {"step": 2})
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["last.pt"]


def test_a_missing_file_says_what_to_do(tmp_path):
    with pytest.raises(CheckpointError, match=r"last.pt does not exist; train"):
        checkpoint.load(tmp_path / "last.pt")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_truncated_file_is_refused(root, share):
    path = root / "run" / "last.pt"
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(CheckpointError, match=r"last.pt is damaged") as caught:
        checkpoint.load(path)
    assert "\n" not in str(caught.value)


def test_a_flipped_bit_in_a_weight_is_refused(root):
    path = root / "run" / "best.pt"
    weights = checkpoint.load(path)["model"]["blocks.1.mlp.widen.weight"]
    content = bytearray(path.read_bytes())
    content[content.find(weights.numpy().tobytes()) + 100] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"damaged and cannot be read \(bad checksum of "):
        checkpoint.load(path)


@pytest.mark.parametrize(
    "content", [b"not a checkpoint", b"PK\x03\x04" + b"\0" * 100, b"\x80\x02cos\nsystem\n(S'true'\ntR."]
)
def test_a_file_of_another_kind_is_refused(tmp_path, content):
    path = tmp_path / "last.pt"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="damaged"):
        checkpoint.load(path)


def test_a_compressed_checkpoint_is_refused_before_it_is_unpacked(tmp_path):
    path = tmp_path / "last.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(50_000_000))
    assert path.stat().st_size < 100_000
    tracemalloc.start()
    with pytest.raises(CheckpointError, match=r"last\.pt is damaged.*archive/data\.pkl is compressed"):
        checkpoint.load(path)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def test_a_file_of_another_shape_is_refused(tmp_path):
    path = tmp_path / "last.pt"
    torch.save([1, 2], path)
    with pytest.raises(CheckpointError, match="not a checkpoint of format 2"):
        checkpoint.load(path)
    torch.save({"format": 99}, path)
    with pytest.raises(CheckpointError, match="found 99"):
        checkpoint.load(path)
    torch.save({"format": checkpoint.FORMAT, "model": {}}, path)
    with pytest.raises(CheckpointError, match="lacks contestant"):
        checkpoint.load(path)


def test_the_model_comes_back_with_its_weights(trained):
    model, state = checkpoint.load_model(trained / "run", "best", TOKENS, trained / "tokenizer.json")
    assert not model.training
    assert model.config == tiny_model(TOKENS.vocab_size)
    assert all(torch.equal(value, state["model"][name]) for name, value in model.state_dict().items())


def test_another_tokenizer_of_equal_size_is_refused(trained, tmp_path):
    other = CharTable(ALPHABET[::-1])
    assert other.vocab_size == TOKENS.vocab_size
    other.save(tmp_path / "other.json")
    with pytest.raises(CheckpointError) as caught:
        checkpoint.load_model(trained / "run", "best", other, tmp_path / "other.json")
    message = str(caught.value)
    assert TOKENS.fingerprint()[:12] in message and other.fingerprint()[:12] in message
    assert str(trained / "run" / "best.pt") in message and str(tmp_path / "other.json") in message
    assert "FORCE=1" in message and "\n" not in message


def test_another_tokenizer_of_other_size_is_refused(trained, tmp_path):
    with pytest.raises(CheckpointError, match="256 tokens"):
        checkpoint.load_model(trained / "run", "last", ByteTable(), tmp_path / "bytes.json")


def test_a_changed_or_missing_copy_of_the_tokenizer_is_refused(root):
    copy = root / "run" / "tokenizer.json"
    CharTable(ALPHABET[::-1]).save(copy)
    with pytest.raises(CheckpointError, match=r"run/tokenizer.json is not the tokenizer file"):
        checkpoint.load_model(root / "run", "best", TOKENS, root / "tokenizer.json")
    copy.unlink()
    with pytest.raises(CheckpointError, match="sha256 nothing"):
        checkpoint.load_model(root / "run", "best", TOKENS, root / "tokenizer.json")


def test_weights_that_do_not_fit_their_own_configuration_are_refused(root):
    path = root / "run" / "best.pt"
    state = checkpoint.load(path)
    state["model_config"]["num_layers"] = 3
    checkpoint.save(path, state)
    with pytest.raises(CheckpointError, match="do not fit its own model_config"):
        checkpoint.load_model(root / "run", "best", TOKENS, root / "tokenizer.json")


def test_best_and_last_of_different_runs_are_refused(trained):
    last = checkpoint.load(trained / "run" / "last.pt")
    best = checkpoint.load(trained / "run" / "best.pt")
    same_run.verify_same_run(best, last, trained / "run")
    with pytest.raises(CheckpointError, match=r"not of the same run \(best differs\)"):
        same_run.verify_same_run(best, {**last, "best": {"step": 1, "val_sample_bits_per_char": 9.0}}, trained)
    other = {**last, "train_config": last["train_config"] | {"seed": 2}}
    with pytest.raises(CheckpointError, match=r"\(train_config differs\)"):
        same_run.verify_same_run(best, other, trained)


def test_other_data_is_refused_with_both_hashes_and_files(trained):
    from tokenizer.encode_splits import load_encoded

    path = trained / "tokenizer.json"
    splits = load_encoded(trained / "encoded", TOKENS, tokenizer_path=path, make="make encode")
    state = checkpoint.load(trained / "run" / "last.pt")

    def identity(found):
        sizes = tiny_model(TOKENS.vocab_size)
        return checkpoint.identity_of(RunSpec("char", TOKENS, path, found, sizes, tiny_train(4), trained / "run"))

    same_run.verify_run(state, trained / "run" / "last.pt", identity(splits))
    changed = splits | {"train": dataclasses.replace(splits["train"], text_sha256="f" * 64)}
    with pytest.raises(CheckpointError) as caught:
        same_run.verify_run(state, trained / "run" / "last.pt", identity(changed))
    message = str(caught.value)
    assert splits["train"].text_sha256[:12] in message and "ffffffffffff" in message
    assert str(splits["train"].path) in message and "last.pt" in message
