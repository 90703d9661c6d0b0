"""How many threads a run takes: what its settings say, what it had before, or what a measurement of a second finds.

More threads are not always faster: cores may be shared with other programs, and a small step has little to share out.
The number decides the order of sums and so the last bits of every figure. So it is measured once for a machine and a
shape and kept in a file in the user's cache folder, and every later run of that shape reads it there. The number of
tokens in the vocabulary is no part of the shape: all contestants of an experiment are to have the same threads.
"""

import dataclasses
import hashlib
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import torch
from numba.misc.appdirs import AppDirs

from data.errors import DataError
from data.files import read_json, write_json
from model.gpt import MiniGPT
from model.run_spec import RunSpec
from model.settings import MiniGPTConfig, TrainConfig
from model.training.device import choose_device, choose_dtype
from model.training.gradient import ParallelGradient
from model.training.optimizer import Optimizers
from model.training.processes import Processes
from model.training.progress import say

SECONDS = 1.0
"""What a measurement takes, about."""
_LONG_STEP = 0.3  # seconds: so long a step gains by every thread, and measuring it would take long as well
_VOCABULARY = 256
_FORMAT = 1


def threads_of(spec: RunSpec, state: dict[str, Any] | None, processes: Processes) -> int | None:
    """The threads of the run `spec`, which goes on from `state` if there is one; None leaves torch's choice.

    In this order: the setting, the number that `state` records, on a CPU the measured one. Several processes have what
    they are given, because they would disturb each other's measurement.
    """
    config = spec.train_config
    if config.num_threads is not None:
        return config.num_threads
    device = choose_device(config.device)
    if state is not None:
        before = state["environment"]
        is_alike = before.get("num_processes", 1) == processes.count and before.get("device") == device.type
        recorded: int | None = before.get("num_threads") if is_alike else None
        return recorded
    is_measured = processes.count == 1 and device.type == "cpu" and torch.get_num_threads() > 1
    if not is_measured or choose_dtype(config.dtype, device) != torch.float32:
        return None
    return kept_or_measured(spec, torch.get_num_threads(), kept_in())


def kept_in() -> Path:
    """The file of all measured numbers."""
    return Path(AppDirs("chars-or-bpe", appauthor=False).user_cache_dir) / "threads.json"  # type: ignore[no-untyped-call]


def kept_or_measured(spec: RunSpec, most: int, path: Path) -> int:
    """The number from 1 to `most` that `path` keeps for the shape of `spec`; else the fastest, which is kept there."""
    kept = _kept(path)
    key = key_of(spec.model_config, spec.train_config, most)
    found = kept.get(key)
    if type(found) is int and 1 <= found <= most:
        return found
    seconds = measured(spec.model_config, spec.train_config, most)
    best = min(seconds, key=lambda number: seconds[number])
    times = ", ".join(f"{number}: {1e3 * value:.1f}" for number, value in seconds.items())
    try:
        write_json(path, kept | {key: best})
        where = f"kept in {path}"
    except DataError as error:
        where = f"not kept, so set train.num_threads to have the same again: {error}"
    say(f"{spec.label}: {best} of {most} threads, by ms a step ({times}); {where}")
    return best


def _kept(path: Path) -> dict[str, Any]:
    """What `path` keeps; nothing where it is missing or damaged, so that it is measured and written anew."""
    if not path.exists():
        return {}
    try:
        found = read_json(path)
    except DataError:
        return {}
    return found if isinstance(found, dict) else {}


def key_of(model: MiniGPTConfig, train: TrainConfig, most: int) -> str:
    """What a measured number holds for: machine, torch, greatest number, sizes and switches, windows, optimizer."""
    sizes = dataclasses.asdict(model) | {"vocab_size": _VOCABULARY}
    machine = (platform.node(), platform.machine(), os.cpu_count(), str(torch.__version__))
    whole = (_FORMAT, machine, most, sizes, train.batch_size, train.optimizer)
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:16]


def candidates(most: int) -> list[int]:
    """Numbers of threads worth a try: all, and their halves down to one."""
    found = [most]
    while found[-1] > 1:
        found.append(found[-1] // 2)
    return found


def measured(model: MiniGPTConfig, train: TrainConfig, most: int) -> dict[int, float]:
    """Number of threads -> seconds of a training step, the best of several in turns; the greatest number comes first.

    A step that is long with all threads has these alone. The state of torch's generator and its threads stay.
    """
    tries: dict[int, ParallelGradient] = {}
    before = torch.get_num_threads()
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            net = MiniGPT(dataclasses.replace(model, vocab_size=_VOCABULARY)).train()
            optimizers = Optimizers(net, train)
            ids = torch.randint(_VOCABULARY, (train.batch_size, model.block_size))
            best: dict[int, float] = {}
            for number in candidates(most):
                tries[number] = ParallelGradient(net, num_threads=number)
                _seconds(tries[number], optimizers, ids)  # makes buffers
                best[number] = _seconds(tries[number], optimizers, ids)
                if best[number] > _LONG_STEP:
                    return best
            end = time.perf_counter() + SECONDS
            while time.perf_counter() < end:
                for number, gradient in tries.items():
                    best[number] = min(best[number], _seconds(gradient, optimizers, ids))
            return best
    finally:
        torch.set_num_threads(before)
        for gradient in tries.values():
            gradient.pool.shutdown()


def _seconds(gradient: ParallelGradient, optimizers: Optimizers, ids: torch.Tensor) -> float:
    """Seconds of one step."""
    torch.set_num_threads(gradient.num_shares)
    started = time.perf_counter()
    gradient.backward(ids, ids)
    gradient.clip(1.0)
    optimizers.step(1e-4, gradient.gradient, gradient.run, gradient.num_shares)
    return time.perf_counter() - started
