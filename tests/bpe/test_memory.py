"""Memory of the proof and the ids of one large text, measured in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

_CHILD = """
import json, resource, sys
import numpy as np
from data.files import sha256_text
from data.splits import Split
from tokenizer.bpe import BPETokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS
from tokenizer.encode_splits import encode_split
from tokenizer.engine import encoder

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

num_bytes, group = map(int, sys.argv[1:])
encoder._GROUP_CHARACTERS = group
tokenizer = BPETokenizer(BYTE_CHARACTERS, [("t", "h"), ("th", "e")], kind="byte_bpe", split_pattern="gpt2")

def split_of(text, num_documents):
    offsets = np.linspace(0, len(text), num_documents + 1).astype(np.int64)
    return Split("train", text, offsets, sha256_text(text))

words = " ".join(f"the{number} other" for number in range(2000)) + chr(10)
encode_split(split_of(words * 2, 3), tokenizer)  # loads the kernels
before = peak()
ids, _ = encode_split(split_of(words * (num_bytes // len(words)), 64), tokenizer)
print(json.dumps([peak() - before, len(ids)]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("num_bytes", [64_000_000, 1_000_000_000])
def test_encoding_takes_less_than_twice_the_memory_of_the_ids(num_bytes: int) -> None:
    command = [sys.executable, "-c", _CHILD, str(num_bytes), str(num_bytes // 16)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    more, num_ids = json.loads(done.stdout.splitlines()[-1])
    assert more < 2 * 8 * num_ids
