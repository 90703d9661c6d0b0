"""Train and encode one corpus with our BPE and with every peer that can be imported, side by side.

All contestants of a row take turns, so that a machine that slows down slows down for all of them; what counts is
the best of several repetitions, and the median next to it shows the noise. Ratios mean something, seconds only here.
"""

import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch

from bench import peers, texts
from bench.peers import ENCODERS, HF, ONE_TEXT, OURS, PEERS, TIKTOKEN, TINY, TRAINERS, WARM
from bench.texts import BenchText, Line, Prepare, Processes, timed
from compare import cli
from compare.options import whole
from compare.steps import Steps
from data.config import did_you_mean, require
from data.files import write_json, write_text
from data.numbers import Range
from tokenizer import reference
from tokenizer.bpe import BPEKind, BPETokenizer
from tokenizer.bytelevel import BYTE_CHARACTERS
from tokenizer.char import Alphabet, alphabet_of
from tokenizer.train import TokenizerConfig, learn_merges
from tokenizer.vocabulary import merge_strings

VOCAB_SIZES = (4096, 8192, 32_000)  # for training
VOCAB_SIZE = 8192  # for encoding and for the large file
UNSPLIT_VOCAB_SIZE = 2000
RUN_LENGTH = 1_000_000
QUICK_BYTES, QUICK_VOCAB_SIZES = 1_000_000, (4096, 8192)
_TINY_VOCAB_SIZE = 300
_LARGE_BYTES = 50_000_000  # from here on two repetitions have to do: the slow peers take half a minute for one
_TWICE = f"{OURS}, twice as long"


class Bench:
    """Everything measured in one run."""

    def __init__(
        self, corpus: BenchText, large: BenchText | None, folder: Path, *, repeat: int, wanted: Sequence[str] = PEERS
    ) -> None:
        """`large` is the synthetic file, None to do without; `folder` takes what only this run needs."""
        self.corpus, self.large, self.folder, self.repeat = corpus, large, folder, repeat
        self.vocab_sizes: Sequence[int] = VOCAB_SIZES
        self.versions, self.missing = peers.find(wanted)
        self.trainers = [name for name in TRAINERS if name in (OURS, *self.versions)]
        self.lines: list[Line] = []
        self.tiny = folder / "tiny.txt"
        self.warm = folder / "warm.txt"
        write_text(self.tiny, TINY)
        write_text(self.warm, WARM)

    def measure(
        self, row: str, num_bytes: int, calls: Mapping[str, Prepare], processes: Processes | None = None
    ) -> tuple[dict[str, Line], dict[str, Any]]:
        """Measure one row and keep its lines; see `texts.measure`."""
        repeat = min(self.repeat, 2) if num_bytes >= _LARGE_BYTES else self.repeat
        lines, results = texts.measure(row, num_bytes, calls, processes or {}, repeat=repeat)
        self.lines += lines.values()
        return lines, results


def startup(bench: Bench) -> None:
    """A process that trains on a few words: what imports cost; and what compiling costs, once, as in `make setup`."""
    processes = {name: ("train", name, str(bench.tiny), str(_TINY_VOCAB_SIZE)) for name in bench.trainers}
    peers.spawn(*processes[OURS])  # fills the cache if nothing has
    row, num_bytes = "start-up: a process that trains on a few words", len(TINY)
    bench.measure(row, num_bytes, {}, processes)
    with tempfile.TemporaryDirectory(dir=bench.folder) as cache:
        command, environment = [sys.executable, "-m", "scripts.warm"], os.environ | {"NUMBA_CACHE_DIR": cache}
        warm = partial(subprocess.run, command, env=environment, check=True, capture_output=True)
        for what in ("first use of everything, compiles", "the same again"):
            bench.lines.append(Line(row, f"{OURS}, {what}", num_bytes, process_seconds=[timed(warm)[0]]))


def train(bench: Bench) -> None:
    """The corpus with GPT-2's pattern, at three vocabulary sizes."""
    for vocab_size in bench.vocab_sizes:
        lines, results = _train(bench, bench.corpus, vocab_size)
        if HF in results:
            by_line = peers.learned(HF, results[HF])
            as_one_text = peers.learned(HF, peers.train_hf(bench.corpus.path, vocab_size, as_one_text=True))
            for name, result in results.items():
                expected = as_one_text if name in ONE_TEXT else by_line
                lines[name].result = peers.compared(peers.learned(name, result), expected)


def large(bench: Bench) -> None:
    """The synthetic file: new pretokens to the end, and the memory that they take."""
    if bench.large is None:
        print("bench: large: left out, because this run has no synthetic file")
        return
    lines, _ = _train(bench, bench.large, VOCAB_SIZE)
    peaks = {name: line.peak_bytes / bench.large.num_bytes for name, line in lines.items() if line.peak_bytes}
    for name, peak in peaks.items():
        lines[name].result = f"peak {peak:.2f} x the file"


def _train(bench: Bench, text: BenchText, vocab_size: int) -> tuple[dict[str, Line], dict[str, Any]]:
    def prepare(name: str) -> Callable[[], Any]:
        TRAINERS[name](bench.warm, _TINY_VOCAB_SIZE)  # imports, and loads compiled kernels
        return partial(TRAINERS[name], text.path, sizes[name])

    sizes = {name: peers.vocab_size_for(name, vocab_size, text.num_distinct_bytes) for name in bench.trainers}
    return bench.measure(
        f"train {text.name}, gpt2 pattern, {vocab_size:,} tokens",
        text.num_bytes,
        {name: partial(prepare, name) for name in bench.trainers},
        {name: ("train", name, str(text.path), str(sizes[name])) for name in bench.trainers},
    )


def unsplit(bench: Bench) -> None:
    """Characters and no split pattern, trained and encoded; next to it the naive loop, from its first rounds."""
    corpus, base = bench.corpus, alphabet_of([bench.corpus.text])
    what = f"{corpus.name}, characters, no split pattern, {UNSPLIT_VOCAB_SIZE:,} tokens"
    config = TokenizerConfig("char_bpe", UNSPLIT_VOCAB_SIZE)
    learn = partial(learn_merges, base_tokens=base, config=config, num_merges=UNSPLIT_VOCAB_SIZE - len(base))
    learn([corpus.text[:200_000]])  # loads the kernels
    lines, results = bench.measure(f"train {what}", corpus.num_bytes, {OURS: lambda: partial(learn, [corpus.text])})
    ours, training = lines[OURS], results[OURS]
    naive = partial(
        reference.train,
        [Alphabet(base).ids(corpus.text).tolist()],
        [token.encode("utf-8") for token in base],
        num_merges=3,
        min_pair_frequency=config.min_pair_frequency,
        tie_break=config.resolved_tie_break,
    )
    seconds, few = timed(naive)
    num_rounds = len(few.merges)
    ours.result = f"first {num_rounds} merges as the naive loop: {_yes(few.merges == training.merges[:num_rounds])}"
    # A naive round costs in proportion to the symbols there are at its start.
    symbols = list(accumulate((-merge.replacements for merge in training.merges), initial=len(corpus.text)))[:-1]
    extrapolated = seconds * sum(symbols) / sum(symbols[:num_rounds])
    bench.lines.append(Line(ours.row, "naive loop, extrapolated", corpus.num_bytes, [extrapolated]))

    merges = merge_strings(base, training)
    BPETokenizer(base, merges).encode_documents([corpus.text[:20_000]])  # loads the kernels
    calls = {OURS: lambda: partial(BPETokenizer(base, merges).encode_documents, corpus.documents())}
    lines, results = bench.measure(f"encode {what}, cold", corpus.num_bytes, calls)
    ours = lines[OURS]
    ours.result = f"lossless: {_yes(BPETokenizer(base, merges).decode(results[OURS][0].tolist()) == corpus.text)}"


def _yes(condition: bool) -> str:
    return "yes" if condition else "NO"


def encode(bench: Bench) -> None:
    """The corpus as documents and as one text, by encoders that have not seen it, to one tensor of long."""
    folder, corpus, versions = bench.folder / "vocabulary", bench.corpus, list(bench.versions)
    trained = TRAINERS[OURS](corpus.path, VOCAB_SIZE)
    peers.write_vocabulary(folder, trained, corpus.path, VOCAB_SIZE, versions)
    names = peers.encoders(versions)
    _encode(bench, folder, "documents", names, corpus.documents)
    one_text = [name for name in names if name in (*ONE_TEXT, TIKTOKEN)]
    _encode(bench, folder, "one text", one_text, lambda: ["".join(corpus.documents())])


def _encode(bench: Bench, folder: Path, form: str, names: Sequence[str], texts: Callable[[], list[str]]) -> None:
    def prepare(name: str) -> Callable[[], Any]:
        ENCODERS[name](folder)([WARM])  # imports, and loads compiled kernels
        return partial(ENCODERS[name](folder), texts())

    stored = folder / f"{form}.json"
    write_json(stored, texts())
    lines, results = bench.measure(
        f"encode {bench.corpus.name} as {form}, gpt2 pattern, {VOCAB_SIZE:,} tokens, cold, to a tensor",
        bench.corpus.num_bytes,
        {name: partial(prepare, name) for name in names},
        {name: ("encode", name, str(folder), str(stored)) for name in names},
    )
    equal = {name: torch.equal(ids, results[TIKTOKEN]) for name, ids in results.items()} if TIKTOKEN in results else {}
    for name, same in equal.items():
        lines[name].result = "a vocabulary of its own" if name == "sentencepiece" else f"ids equal: {_yes(same)}"


def runs(bench: Bench) -> None:
    """One character a million times, and two million times: the time may grow hardly more than the text."""
    _run(bench, "no split pattern", TokenizerConfig("char_bpe", UNSPLIT_VOCAB_SIZE), ["a"])
    gpt2 = TokenizerConfig("byte_bpe", UNSPLIT_VOCAB_SIZE, split_pattern="gpt2")
    _run(bench, "gpt2 pattern", gpt2, BYTE_CHARACTERS)


def _run(bench: Bench, what: str, config: TokenizerConfig, base: Sequence[str]) -> None:
    learn = partial(learn_merges, base_tokens=base, config=config, num_merges=UNSPLIT_VOCAB_SIZE - len(base))
    once, twice = ["a" * RUN_LENGTH], ["a" * (2 * RUN_LENGTH)]
    merges = merge_strings(base, learn(once))
    kind: BPEKind = "char_bpe" if config.kind == "char_bpe" else "byte_bpe"

    def encoder() -> Callable[[Sequence[str]], Any]:
        return BPETokenizer(base, merges, kind=kind, split_pattern=config.split_pattern).encode_documents

    learn(["a" * len(WARM)])  # loads the kernels
    encoder()(["a" * len(WARM)])
    tasks: dict[str, Callable[[], Callable[..., Any]]] = {"train": lambda: learn, "encode": encoder}
    for task, prepare in tasks.items():
        row = f'{task} "a" * {RUN_LENGTH:,}, {what}'
        calls = {
            OURS: lambda prepare=prepare: partial(prepare(), once),
            _TWICE: lambda prepare=prepare: partial(prepare(), twice),
        }
        lines, _ = bench.measure(row, RUN_LENGTH, calls)
        lines[_TWICE].num_bytes *= 2
        lines[_TWICE].result = f"{lines[_TWICE].best / lines[OURS].best:.2f} times the time of {RUN_LENGTH:,}"


ROWS = {part.__name__: part for part in (startup, train, large, unsplit, encode, runs)}


def report(bench: Bench) -> dict[str, Any]:
    """Everything that was measured, for the JSON file."""
    return {
        "corpus": bench.corpus.facts(),
        "large": bench.large and bench.large.facts(),
        "repeat": bench.repeat,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "peers": bench.versions,
        "not_importable": bench.missing,
        "lines": [asdict(line) for line in bench.lines],
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Command `bench`; by default on the corpus of the experiment demo."""
    parser = cli.parser(__doc__)
    parser.set_defaults(config="demo")
    parser.add_argument("--quick", action="store_true", help="one repetition on 1 MB, no synthetic file: does it run?")
    parser.add_argument("--rows", default=",".join(ROWS), help=f"parts to measure, of {', '.join(ROWS)}")
    parser.add_argument("--peers", help="only these, such as gigatoken,gigabpe; all that can be imported by default")
    parser.add_argument("--repeat", type=whole(Range(1, 1000)), default=5, help="repetitions, of which the best counts")
    parser.add_argument(
        "--synthetic",
        type=whole(Range(0, 100_000)),
        default=100,
        metavar="MB",
        help="size of the drawn text; 0: without",
    )
    arguments = parser.parse_args(argv)
    rows = arguments.rows.split(",")
    for row in rows:
        require(row in ROWS, f"--rows: no part {row!r}{did_you_mean(row, list(ROWS))}")
    wanted = arguments.peers.split(",") if arguments.peers else list(PEERS)
    for peer in wanted:
        require(peer in PEERS, f"--peers: no peer {peer!r}{did_you_mean(peer, list(PEERS))}")
    experiment = cli.experiment_of(arguments)
    splits = Steps(experiment).data()
    folder_of_texts = experiment.layout.reports / "bench"
    most_bytes = QUICK_BYTES if arguments.quick else None
    name = experiment.corpus.corpus_name
    corpus = texts.one_file(name, list(splits.values()), folder_of_texts, most_bytes=most_bytes)
    wants_large = "large" in rows and arguments.synthetic and not arguments.quick
    drawn = texts.synthetic_file(corpus, arguments.synthetic, folder_of_texts) if wants_large else None
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(corpus, drawn, Path(folder), repeat=arguments.repeat, wanted=wanted)
        if arguments.quick:
            bench.repeat, bench.vocab_sizes = 1, QUICK_VOCAB_SIZES
        for text in filter(None, (corpus, drawn)):
            print(f"{text.path}: {text.num_bytes:,} bytes, sha256 {text.sha256}")
        print(f"peers: {', '.join(f'{name} {version}' for name, version in bench.versions.items()) or 'none'}")
        if bench.missing:
            print(f"not importable, so not measured: {', '.join(bench.missing)}")
        for row in rows:
            print(f"measuring: {row}", flush=True)
            ROWS[row](bench)
    path = experiment.layout.reports / "bench_tokenizer.json"
    write_json(path, report(bench))
    print(f"\n{texts.as_table(bench.lines)}\n\nwrote {path}")


if __name__ == "__main__":
    cli.run(main)
