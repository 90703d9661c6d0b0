"""Mutated inputs: whatever a file, a command line or the environment holds, a command ends with 0 or 2, soon."""

import json
import os
import random
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chain_helpers import CHAIN
from fault_chain import COMMANDS, Ended, Workshop, run_command, run_main

MAX_SECONDS, MAX_BYTES = 10, 2**30
ODD: list[Any] = [None, True, -1, 0, 2**63, 10**400, 1e308, -0.0, "", "\x00", "x" * 5_000, "é", "../x", [], {}, [[]]]
"""Values in place of others."""
PIECES = [
    "\x00",
    "\ufeff",
    "[",
    "{",
    "}",
    ": ",
    "- ",
    "&a ",
    "*a",
    "!!python/object:os.system ",
    "<<: ",
    "1e9",
    "~",
    "'",
]
"""Text in the midst of other text."""
WORDS = ["--help", "--set", "train.seed=2", "--set=", "x=1", "--config", "", "-", "--", "-1", "1e999", "nan"]
WORDS += ["é\udcff", "--tokens", "--temperature", "0", "--top-k", "bpe", "--contestant", "char", "--prompt", "\x1b[31m"]
VARIABLES = [
    "CONTESTANT",
    "PROMPT",
    "TOKENS",
    "TEMPERATURE",
    "TOP_K",
    "TOP_P",
    "STOP",
    "SEED",
    "SAMPLES",
    "SET",
    "JSON",
]
CIRCUMSTANCES = ["WORLD_SIZE", "RANK", "LOCAL_RANK", "TZ", "LC_ALL", "COLUMNS", "TIKTOKEN_CACHE_DIR", "HF_HOME"]


class TooSlow(BaseException):
    """The command was still at work after the allowed seconds."""


def perform_fuzz(workshop: Workshop, seed: int, number: int) -> str | None:
    """One mutated input of the entry point that `number` falls to; returns what is wrong."""
    rng = random.Random(f"{seed} {number}")
    doors: list[Callable[[Workshop, random.Random], Ended]] = [
        *(_config, _tokenizer, _manifest, _metrics, _checkpoint, _result, _foreign, _words, _environment)
    ]
    door = doors[number % len(doors)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    signal.signal(signal.SIGALRM, _too_slow)
    signal.alarm(MAX_SECONDS)
    try:
        ended = door(workshop, rng)
    except TooSlow:
        return f"{door.__name__}: over {MAX_SECONDS} s"
    finally:
        signal.alarm(0)
        workshop.put_back()
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    if grown > MAX_BYTES:
        return f"{door.__name__}: {grown:,} bytes"
    if ended.code not in (0, 2):
        return f"{door.__name__}: exit code {ended.code}: {ended.err[-1500:]}"
    return None


def _too_slow(_number: int, _frame: object) -> None:
    raise TooSlow


def mutated(raw: bytes, rng: random.Random) -> bytes:
    """`raw` with one to four changes: bits, pieces left out, doubled or put in."""
    for _ in range(rng.randint(1, 4)):
        at, length = rng.randrange(len(raw) + 1), rng.choice((1, 1, 3, 20))
        way = rng.randrange(4)
        if way == 0 and at < len(raw):
            raw = raw[:at] + bytes([raw[at] ^ 1 << rng.randrange(8)]) + raw[at + 1 :]
        elif way == 1:
            raw = raw[:at] + raw[at + length :]
        elif way == 2:
            raw = raw[:at] + raw[at : at + length] + raw[at:]
        else:
            raw = raw[:at] + rng.choice(PIECES).encode() + raw[at:]
    return raw


def edited(value: Any, rng: random.Random) -> Any:
    """A JSON value with one value somewhere in it replaced, left out or doubled."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {name: item for name, item in value.items() if name != key}
        return value | {key: edited(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = rng.randrange(len(value))
        changed = rng.choice(([], [value[at]] * 2, [edited(value[at], rng)]))
        return [*value[:at], *changed, *value[at + 1 :]]
    return rng.choice(ODD)


def _change_json(path: Path, rng: random.Random) -> None:
    """Bytes changed, or a value. A seal that the file has no longer fits: it finds accidents, not forgeries."""
    if rng.random() < 0.3:
        path.write_bytes(mutated(path.read_bytes(), rng))
        return
    value = edited(json.loads(path.read_text(encoding="utf-8")), rng)
    path.write_text(json.dumps(value), encoding="utf-8")


def _config(workshop: Workshop, rng: random.Random) -> Ended:
    path = workshop.path(CHAIN)
    text = "".join(line for line in path.read_text(encoding="utf-8").splitlines(True) if not line.startswith("root:"))
    path.write_bytes(b"root: run\n" + mutated(text.encode(), rng))
    return run_command(workshop.folder, "plan")


def _tokenizer(workshop: Workshop, rng: random.Random) -> Ended:
    name = rng.choice(("run/checkpoints/bpe/tokenizer.json", "run/tokenizer/bpe_tokenizer.json"))
    _change_json(workshop.path(name), rng)
    return run_command(workshop.folder, rng.choice(("sample", "encode")))


def _manifest(workshop: Workshop, rng: random.Random) -> Ended:
    name = rng.choice(("run/data/processed/manifest.json", "run/data/encoded_bpe/manifest.json"))
    _change_json(workshop.path(name), rng)
    return run_command(workshop.folder, "encode")


def _metrics(workshop: Workshop, rng: random.Random) -> Ended:
    path = workshop.path("run/checkpoints/bpe/metrics.jsonl")
    path.write_bytes(mutated(path.read_bytes(), rng))
    return run_command(workshop.folder, "compare")


def _checkpoint(workshop: Workshop, rng: random.Random) -> Ended:
    path = workshop.path(f"run/checkpoints/bpe/{rng.choice(('best', 'last'))}.pt")
    path.write_bytes(mutated(path.read_bytes(), rng))
    return run_command(workshop.folder, rng.choice(("sample", "export")))


def _result(workshop: Workshop, rng: random.Random) -> Ended:
    name = rng.choice(("report", "reports/tune", "reports/sweep", "reports/marginal", "reports/baselines"))
    path = "run/checkpoints/bpe/report.json" if name == "report" else f"run/{name}.json"
    _change_json(workshop.path(path), rng)
    return run_command(workshop.folder, "compare")


def _foreign(workshop: Workshop, rng: random.Random) -> Ended:
    tokenizer = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "decoder": {"type": "ByteLevel"},
        "post_processor": None,
        "model": {"type": "BPE", "vocab": {letter: i for i, letter in enumerate("abcĠĊ")}, "merges": [["a", "b"]]},
    }
    tokenizer["model"]["vocab"]["ab"] = 5  # type: ignore[index]
    path = workshop.path("foreign.json")
    path.write_text(json.dumps(tokenizer), encoding="utf-8")
    _change_json(path, rng)
    setting = "contestants={f: {tokenizer: {kind: hf, path: foreign.json}}, char: {tokenizer: {kind: char}}}"
    return run_command(workshop.folder, "tokenizer", "--set", setting)


def _words(workshop: Workshop, rng: random.Random) -> Ended:
    command = rng.choice(("sample", "data", "compare", "trace", "marginal", "encode"))
    words = [*COMMANDS.get(command, ()), *rng.choices(WORDS, k=rng.randint(1, 4))]
    rng.shuffle(words)
    return run_main(workshop.folder, f"scripts.{command}", ["--config", CHAIN, *words])


def _environment(workshop: Workshop, rng: random.Random) -> Ended:
    values = [*(word for word in WORDS if "\x00" not in word), "1", "$(x)", "`x`", "'", '"', "a b"]
    kept = dict(os.environ)
    os.environ.update({"EXPERIMENT": CHAIN, "CONTESTANT": "bpe", "TOKENS": "3"})
    for name in rng.sample(VARIABLES + CIRCUMSTANCES, 3):
        os.environ[name] = rng.choice(values)
    try:
        return run_main(workshop.folder, "scripts.from_make", ["sample"])
    finally:
        os.environ.clear()
        os.environ.update(kept)
        sys.stdout.flush()
