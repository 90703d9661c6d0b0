"""Ours and other people's BPE, each called the way its authors call it and wherever it is fastest.

None of them is needed by this project; `make bench` puts ours next to those that happen to be importable. They are
imported where they are used, and nothing heavy is imported here, because a process that runs one engine must pay
for that engine only.
"""

import base64
import importlib
import importlib.metadata
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.turns import peak_bytes

OURS = "ours"
PEERS = ("gigatoken", "gigabpe", "rustbpe", "tokenizers", "sentencepiece", "bpeasy", "tiktoken", "riptoken")
HF = "tokenizers"
TIKTOKEN, TIKTOKEN_2 = "tiktoken, 1 thread", "tiktoken, 2 threads"
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
TINY = "It's 12 small words, and then some more: one, two, three!\n" * 50
WARM = TINY * 60
"""Long enough that ours loads its engine, which it does not do for small texts; nothing timed may wait for that."""
# What each is given: gigatoken and ours take a file as one text, the others line by line. White space at the ends of
# lines is cut differently in the two ways, so each is compared with HF's merges on what it was given.
ONE_TEXT = (OURS, "gigatoken")

_CHILD = "import sys; from bench.peers import child; child(*sys.argv[1:])"

Learned = list[tuple[bytes, ...]]  # pairs (left, right), or (token,) from those that only give tokens
Encode = Callable[[Sequence[str]], Any]  # documents -> a 1-D torch.long tensor of ids


def find(peers: Sequence[str] = PEERS) -> tuple[dict[str, str], dict[str, str]]:
    """The versions of those of `peers` that can be imported, and for the others the reason why not."""
    versions, missing = {}, {}
    for name in peers:
        try:
            importlib.import_module(name)
            versions[name] = importlib.metadata.version(name)
        except ImportError as error:
            missing[name] = str(error)
    return versions, missing


# Training with GPT-2's pattern: a UTF-8 file and a vocabulary size, 256 of it for the bytes, in; merges out, in
# whatever form the engine has them.


def _train_ours(path: Path, vocab_size: int) -> Any:
    from tokenizer.train import TokenizerConfig, learn_merges

    # The whole text in memory, as `make tokenizer` has it.
    text = path.read_bytes().decode("utf-8")
    # The product's own minimum frequency; were it to end training early, the merges would not equal HF's.
    config = TokenizerConfig("byte_bpe", vocab_size, split_pattern="gpt2", tie_break="lowest_ids", min_pair_frequency=2)
    return learn_merges([text], hf_alphabet(), config, num_merges=vocab_size - 256)


def _train_gigatoken(path: Path, vocab_size: int) -> Any:
    return importlib.import_module("gigatoken").train_bpe(str(path), vocab_size, [])


def _train_gigabpe(path: Path, vocab_size: int) -> Any:
    return importlib.import_module("gigabpe").train_bpe([str(path)], vocab_size, pretokenizer="bytelevel")


def _train_rustbpe(path: Path, vocab_size: int) -> Any:
    tokenizer = importlib.import_module("rustbpe").Tokenizer()
    with path.open(encoding="utf-8", newline="\n") as lines:
        tokenizer.train_from_iterator(lines, vocab_size, pattern=GPT2)
    return tokenizer.get_mergeable_ranks()


def _train_bpeasy(path: Path, vocab_size: int) -> Any:
    with path.open(encoding="utf-8", newline="\n") as lines:  # the others know no longest token
        return importlib.import_module("bpeasy").train_bpe(lines, GPT2, 1 << 20, vocab_size)


def _train_sentencepiece(path: Path, vocab_size: int) -> Any:
    """A model file's bytes: SentencePiece's own BPE with its own way of cutting, and no line left out."""
    with tempfile.TemporaryDirectory() as folder:
        importlib.import_module("sentencepiece").SentencePieceTrainer.train(
            input=str(path),
            model_prefix=f"{folder}/model",
            vocab_size=vocab_size,
            model_type="bpe",
            character_coverage=1.0,
            normalization_rule_name="identity",
            max_sentence_length=1 << 30,
            hard_vocab_limit=False,
            num_threads=os.cpu_count(),
            minloglevel=2,
        )
        return Path(folder, "model.model").read_bytes()


def train_hf(path: Path, vocab_size: int, *, as_one_text: bool = False) -> Any:
    """HF tokenizers on a file, line by line as it reads files; as one text it has only one thread to use."""
    hf = importlib.import_module(HF)
    byte_level = hf.pre_tokenizers.ByteLevel
    tokenizer = hf.Tokenizer(hf.models.BPE())
    tokenizer.pre_tokenizer = byte_level(add_prefix_space=False, use_regex=True)
    trainer = hf.trainers.BpeTrainer(vocab_size=vocab_size, initial_alphabet=byte_level.alphabet(), show_progress=False)
    if as_one_text:
        tokenizer.train_from_iterator([path.read_bytes().decode("utf-8")], trainer)
    else:
        tokenizer.train([str(path)], trainer)
    return tokenizer


TRAINERS: dict[str, Callable[..., Any]] = {
    OURS: _train_ours,
    "gigatoken": _train_gigatoken,
    "gigabpe": _train_gigabpe,
    "rustbpe": _train_rustbpe,
    "sentencepiece": _train_sentencepiece,
    "bpeasy": _train_bpeasy,
    HF: train_hf,
}


def vocab_size_for(engine: str, vocab_size: int, num_distinct_bytes: int) -> int:
    """What to ask `engine` for, so that all learn equally many merges: gigabpe counts only the bytes that occur."""
    return vocab_size - 256 + num_distinct_bytes if engine == "gigabpe" else vocab_size


def hf_alphabet() -> list[str]:
    """The 256 bytes in the order in which HF tokenizers numbers them: by their printable characters."""
    from tokenizer.bytelevel import BYTE_CHARACTERS

    return sorted(BYTE_CHARACTERS)


def learned(engine: str, trained: Any) -> Learned:
    """What was learned, in order, as bytes; nothing from SentencePiece, whose merges nothing here could equal."""
    from tokenizer.bytelevel import BYTE_OF_CHARACTER
    from tokenizer.vocabulary import merge_strings

    def spelled(pairs: Sequence[Sequence[str]]) -> Learned:
        return [tuple(bytes(map(BYTE_OF_CHARACTER.__getitem__, half)) for half in pair) for pair in pairs]

    if engine == OURS:
        return spelled(merge_strings(hf_alphabet(), trained))
    if engine == "gigatoken":
        return list(trained[1])
    if engine == "gigabpe":
        return spelled(trained[1])
    if engine == HF:
        return spelled(json.loads(trained.to_str())["model"]["merges"])
    if engine == "sentencepiece":
        return []
    rank_of = {bytes(token): rank for token, rank in (trained.items() if engine == "bpeasy" else trained)}
    return [(token,) for token in sorted(rank_of, key=rank_of.__getitem__)[256:]]


def compared(found: Learned, expected: Learned) -> str:
    """In how many ranks the two agree: in the pair, or in the token where one of them knows no pairs."""
    if not found:
        return "cuts in its own way"
    pairs = zip(found, expected, strict=False)
    equal = sum(a == b if len(a) == len(b) else b"".join(a) == b"".join(b) for a, b in pairs)
    return f"{equal:,} of {len(expected):,} merges"


# Encoding: the folder of one vocabulary in, a new encoder that has seen no text yet out.


def encoders(versions: Sequence[str]) -> list[str]:
    """The names under which encoders are asked for: ours, and those of the importable peers."""
    return [name for name in ENCODERS if name.partition(",")[0] in (OURS, *versions)]


def write_vocabulary(folder: Path, trained: Any, corpus: Path, vocab_size: int, versions: Sequence[str]) -> None:
    """Write our trained merges as each engine wants to read them; SentencePiece gets a model of its own."""
    from data.files import atomic_write, write_text
    from tokenizer.bpe import BPETokenizer
    from tokenizer.vocabulary import merge_strings

    alphabet = hf_alphabet()
    ours = BPETokenizer(alphabet, merge_strings(alphabet, trained), kind="byte_bpe", split_pattern="gpt2")
    ours.save(folder / "ours.json")
    ranks = [f"{base64.b64encode(token).decode()} {rank}\n" for rank, token in enumerate(ours.token_bytes)]
    write_text(folder / "ranks.tiktoken", "".join(ranks))
    if "sentencepiece" in versions:
        with atomic_write(folder / "sentencepiece.model") as file:
            file.write(_train_sentencepiece(corpus, vocab_size))


def _ours(folder: Path) -> Encode:
    import torch

    from tokenizer.bpe import BPETokenizer

    tokenizer = BPETokenizer.from_file(folder / "ours.json")
    return lambda documents: torch.from_numpy(tokenizer.encode_documents(documents)[0])


def _gigatoken(folder: Path) -> Encode:
    import numpy as np
    import torch

    awkward = importlib.import_module("awkward")
    tokenizer = importlib.import_module("gigatoken").Tokenizer.from_tiktoken(folder / "ranks.tiktoken", "gpt2")

    def encode(documents: Sequence[str]) -> Any:
        rows = tokenizer.encode_batch(documents)
        return torch.from_numpy(awkward.to_numpy(awkward.flatten(rows)).astype(np.int64))

    return encode


def _tiktoken(folder: Path, num_threads: int) -> Encode:
    with (folder / "ranks.tiktoken").open("rb") as lines:
        ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}
    encoding = importlib.import_module("tiktoken").Encoding(
        "bench", pat_str=GPT2, mergeable_ranks=ranks, special_tokens={}
    )
    return lambda documents: _tensor(encoding.encode_ordinary_batch(documents, num_threads=num_threads))


def _riptoken(folder: Path) -> Encode:
    riptoken = importlib.import_module("riptoken")
    core = riptoken.CoreBPE(riptoken.load_tiktoken_bpe(folder / "ranks.tiktoken"), {}, GPT2)
    return lambda documents: _tensor(core.encode_ordinary_batch(documents))


def _hf(folder: Path) -> Encode:
    hf = importlib.import_module(HF)
    ours = json.loads((folder / "ours.json").read_bytes())
    merges = [tuple(pair) for pair in ours["merges"]]
    tokens = ours["base_tokens"] + ["".join(pair) for pair in merges]
    tokenizer = hf.Tokenizer(hf.models.BPE(vocab={token: index for index, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = hf.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    return lambda documents: _tensor([row.ids for row in tokenizer.encode_batch_fast(documents)])


def _sentencepiece(folder: Path) -> Encode:
    model = str(folder / "sentencepiece.model")
    processor = importlib.import_module("sentencepiece").SentencePieceProcessor(model_file=model)
    return lambda documents: _tensor(processor.encode(documents, num_threads=os.cpu_count()))


ENCODERS: dict[str, Callable[[Path], Encode]] = {
    OURS: _ours,
    "gigatoken": _gigatoken,
    TIKTOKEN_2: lambda folder: _tiktoken(folder, 2),
    TIKTOKEN: lambda folder: _tiktoken(folder, 1),
    "riptoken": _riptoken,
    HF: _hf,
    "sentencepiece": _sentencepiece,
}


def _tensor(rows: Sequence[Sequence[int]]) -> Any:
    """The quickest way found from lists of ids to one tensor."""
    import numpy as np
    import torch

    return torch.from_numpy(np.fromiter(itertools.chain.from_iterable(rows), dtype=np.int64))


# A process of its own.


def spawn(*arguments: str) -> tuple[float, int]:
    """Seconds that a process took for `child(*arguments)`, from its start to its end, and its peak memory in bytes.

    Raises RuntimeError with what the process wrote if it failed.
    """
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", _CHILD, *arguments], capture_output=True, text=True)
    seconds = time.perf_counter() - started
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: exit code {done.returncode}; {done.stderr.strip()}")
    return seconds, int(done.stdout.split()[-1])


def child(task: str, engine: str, *arguments: str) -> None:
    """Train (file, vocabulary size) or encode (folder of a vocabulary, JSON list of documents) once, from nothing.

    The last thing printed is the peak of this process' memory in bytes.
    """
    if task == "train":
        path, vocab_size = arguments
        TRAINERS[engine](Path(path), int(vocab_size))
    else:
        folder, documents = map(Path, arguments)
        ENCODERS[engine](folder)(json.loads(documents.read_bytes()))
    print(f"\n{peak_bytes()}")
