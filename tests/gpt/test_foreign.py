"""model/exchange/foreign.py: other people's models under our scoring rules, and folders that are refused."""

import json
import math

import numpy as np
import pytest
import torch

from data.errors import CheckpointError, ConfigError, DataError, TokenizerError
from interop_helpers import need_transformers, write_foreign
from model.exchange.foreign import load_foreign, score_documents

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the library
ARCHITECTURES = ["gpt2", "llama", "gpt_neox"]
DOCUMENTS = ["The tower is old.\n", "é" * 45 + " and a long document that needs several windows of its own.\n", "x"]


def nats_by_hand(module, context, ids, block_size, stride):
    """The losses of `ids` after `context`, one window at a time: each scores what the one before did not reach."""
    sequence, total, reached, start = [*context, *ids], 0.0, len(context) - 1, 0
    while reached < len(sequence) - 1:
        window = sequence[start : start + block_size]
        with torch.no_grad():
            logits = module(input_ids=torch.tensor([window])).logits[0].log_softmax(-1)
        for position in range(len(window)):
            target = start + position + 1
            if reached < target < len(sequence):
                total -= float(logits[position, sequence[target]])
        reached = max(reached, min(start + len(window), len(sequence) - 1))
        start += stride
    return total


@pytest.mark.parametrize("kind", ARCHITECTURES)
@pytest.mark.parametrize("bos", [False, True])
def test_bits_are_those_of_windows_laid_by_hand(tmp_path, kind, bos):
    module = write_foreign(tmp_path, kind, bos=bos)
    model = load_foreign(tmp_path, block_size=16)
    context = [256] if bos else [10]
    assert list(model.context) == context and ("newline" in model.context_in_words) is not bos
    score = score_documents(model, DOCUMENTS)
    wanted = [nats_by_hand(module, context, list(text.encode()), 16, 8) for text in DOCUMENTS]
    np.testing.assert_allclose(score.nats, wanted, rtol=1e-5)
    assert score.num_chars.tolist() == [len(text) for text in DOCUMENTS]
    assert score.num_tokens == sum(len(text.encode()) for text in DOCUMENTS) and score.stride == 8


@pytest.mark.parametrize(("kind", "longest"), [("gpt2", 32), ("llama", 64), ("gpt_neox", 24)])
def test_the_window_is_the_models_longest_unless_one_is_given(tmp_path, kind, longest):
    write_foreign(tmp_path, kind)
    assert load_foreign(tmp_path).block_size == longest
    with pytest.raises(ConfigError, match=f"at most {longest} tokens"):
        load_foreign(tmp_path, block_size=longest + 1)


def test_weights_that_are_missing_are_not_made_up(tmp_path):
    need_transformers()
    from safetensors.torch import load_file, save_file

    write_foreign(tmp_path, "llama")
    path = tmp_path / "model.safetensors"
    weights = load_file(path)
    padding = {f"unused.{n}": torch.zeros(10_000) for n in range(3)}  # so that its size does not give it away
    save_file({k: v for k, v in weights.items() if "layers.1.mlp" not in k} | padding, path, metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=r"lack 3 weights of LlamaForCausalLM, such as model\.layers\.1\.mlp"):
        load_foreign(tmp_path)


@pytest.mark.parametrize("damage", ["cut", "header", "config", "no json", "tokenizer", "huge"])
def test_damaged_folders_are_one_sentence(tmp_path, damage):
    write_foreign(tmp_path, "gpt2")
    weights, config = tmp_path / "model.safetensors", tmp_path / "config.json"
    if damage == "cut":
        weights.write_bytes(weights.read_bytes()[:-5000])
    elif damage == "header":
        weights.write_bytes((10 * 2**30).to_bytes(8, "little") + weights.read_bytes()[8:])
    elif damage == "config":
        config.write_text(json.dumps({"model_type": "none such"}))
    elif damage == "no json":
        config.write_text("{")
    elif damage == "tokenizer":
        (tmp_path / "tokenizer.json").write_text("{}")
    else:
        config.write_text(json.dumps(json.loads(config.read_text()) | {"vocab_size": 10**9}))
    with pytest.raises((CheckpointError, TokenizerError)) as caught:
        load_foreign(tmp_path)
    assert str(tmp_path) in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) < 600


def test_pickled_weights_and_code_of_the_folder_are_not_run(tmp_path):
    write_foreign(tmp_path, "gpt2")
    weights = tmp_path / "model.safetensors"
    weights.rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"pickled weights \(\*\.bin\) are not read"):
        load_foreign(tmp_path)
    (tmp_path / "pytorch_model.bin").rename(weights)
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {"model_type": "mine", "auto_map": {"AutoConfig": "evil.C", "AutoModelForCausalLM": "evil.M"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(CheckpointError, match="transformers cannot load the configuration"):
        load_foreign(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_a_text_that_does_not_survive_is_refused_with_the_place(tmp_path):
    write_foreign(tmp_path, "gpt2")
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"normalizer": {"type": "Lowercase"}}))
    with pytest.raises(TokenizerError, match=r"document 2 .* character 4 is 'Old', and comes back as 'old'"):
        score_documents(load_foreign(tmp_path), ["as is\n", "the Old"])


def test_ids_beyond_the_model_are_refused(tmp_path):
    write_foreign(tmp_path, "gpt2")
    path = tmp_path / "tokenizer.json"
    contents = json.loads(path.read_text())
    contents["model"]["vocab"]["Ā"] = 300  # the zero byte
    path.write_text(json.dumps(contents))
    with pytest.raises(TokenizerError, match="gives id 300, but its model has 257 tokens"):
        score_documents(load_foreign(tmp_path), ["a\0b"])


def test_what_cannot_be_scored_is_said(tmp_path):
    with pytest.raises(CheckpointError, match="is no folder"):
        load_foreign(tmp_path / "none")
    with pytest.raises(CheckpointError, match="lacks"):
        load_foreign(tmp_path)
    write_foreign(tmp_path, "gpt2")
    model = load_foreign(tmp_path)
    with pytest.raises(DataError, match="no character"):
        score_documents(model, ["", ""])
    with pytest.raises(ConfigError, match="stride 33 is not from 1 to the block of 32"):
        score_documents(model, ["a"], stride=33)
    assert math.isfinite(score_documents(model, ["a"], stride=32).nats[0])
