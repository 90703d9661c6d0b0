"""Tiny models of transformers with random weights, and a tokenizer for them, written as a user's folder."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tokenizer.bpe import BPETokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS
from tokenizer.interop import to_hf_json

BOS = "<|begin|>"


def need_transformers() -> Any:
    """The library; the test is skipped, visibly, where it is not installed."""
    pytest.importorskip("safetensors")
    return pytest.importorskip("transformers", reason="transformers is not installed (extra `interop`)")


def byte_tokenizer() -> BPETokenizer:
    """257 tokens: the bytes and a token for the beginning."""
    return BPETokenizer(BYTE_CHARACTERS, [], kind="byte_bpe", special_tokens=[BOS])


def write_foreign(folder: Path, kind: str, *, bos: bool = False) -> Any:
    """A random model of `kind` with bytes as tokens, in `folder`; returns the module."""
    transformers = need_transformers()
    torch.manual_seed(1)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    none = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"))
    configs = {
        "gpt2": lambda: transformers.GPT2Config(vocab_size=257, n_embd=16, n_layer=2, n_head=2, n_positions=32, **none),
        "llama": lambda: transformers.LlamaConfig(vocab_size=257, max_position_embeddings=64, **sizes, **none),
        "gpt_neox": lambda: transformers.GPTNeoXConfig(vocab_size=257, max_position_embeddings=24, **sizes, **none),
    }
    module = transformers.AutoModelForCausalLM.from_config(configs[kind]()).eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    folder.mkdir(parents=True, exist_ok=True)
    module.save_pretrained(folder)
    (folder / "tokenizer.json").write_text(json.dumps(to_hf_json(byte_tokenizer())), encoding="utf-8")
    settings: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast"}
    if bos:
        settings["bos_token"] = BOS
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return module
