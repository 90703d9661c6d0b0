"""Train the default model on a GPU for a minute: tokens/s, MFU, and whether a stopped run goes on as it should.

Nothing here needs a GPU but the figures: the tests run all of it on the CPU.
"""

import contextlib
import dataclasses
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from compare import cli
from compare.experiment import load_experiment
from compare.options import Parser, number, whole
from compare.steps import Steps
from data.errors import ConfigError
from data.numbers import Range
from model import checkpoint
from model.gpt import MiniGPT
from model.settings import Budget
from model.train import train
from model.training.interrupt import TrainingInterrupted
from model.training.metrics import read_metrics
from model.training.result import TrainResult

NO_GPU = "torch finds no GPU on this machine, so nothing was checked"
# This project's own files: a megabyte of text that is there without a network and read in a moment.
_FOLDERS = ("data", "tokenizer", "model", "compare", "bench", "scripts", "tests")
_PATHS = ", ".join(["README.md", *(f"{folder}/**/*.py" for folder in _FOLDERS)])
_SETTINGS = (
    f"corpus={{source: text, name: own, paths: [{_PATHS}], fractions: [0.9, 0.05, 0.05]}}",
    "contestants={char: {tokenizer: {kind: char}}}",
)
WARM_SHARE = 0.2
"""Of the time, left out of the rate: compiling, and the first allocations."""
LARGEST_DIFFERENCE = 1e-2
"""Of all weights together, relative to their norm: where even two equal runs differ, a resumed one may by this."""


@dataclasses.dataclass(frozen=True)
class Check:
    """One contestant's runs for the check, below one folder."""

    steps: Steps
    contestant: str
    folder: Path

    def train(self, name: str, budget: Budget, **changes: Any) -> TrainResult:
        """Train the run `name` until `budget` is spent, with the experiment's settings and `changes` to them."""
        first = self.steps.spec(self.contestant, self.steps.experiment.seeds_of(self.contestant)[0])
        config = dataclasses.replace(first.train_config, budget=budget, **changes)
        spec = dataclasses.replace(first, train_config=config, folder=self.folder / name)
        return train(spec, progress=sys.stderr.isatty())


def measure(check: Check, *, device: str, seconds: int) -> dict[str, Any]:
    """Train for `seconds` and take the rate after the warm part: tokens and model FLOPs (FLOPS_FORMULA) a second."""
    result = check.train("speed", Budget("seconds", seconds), device=device, log_every_steps=1, val_every_fraction=1.0)
    records = read_metrics(result.folder / checkpoint.METRICS, mend="make check-gpu")
    warm = [record for record in records if record["seconds"] >= WARM_SHARE * seconds]
    first, last = warm[0], warm[-1]
    elapsed = last["seconds"] - first["seconds"]
    state = checkpoint.load(result.folder / checkpoint.LAST)
    return {
        "steps": result.spent.steps,
        "seconds": result.spent.seconds,
        "first_step_seconds": records[0]["seconds"],
        "tokens_per_second": (last["tokens"] - first["tokens"]) / elapsed,
        "model_tflops": (last["flops"] - first["flops"]) / elapsed / 1e12,
        "tokens_per_step": records[0]["tokens"],
        "parameters": MiniGPT(_config_of(state)).num_parameters(),
        "dtype": state["environment"]["dtype"],
        "device": state["environment"]["device"],
        "torch": state["environment"]["torch"],
        "first_loss_nats": records[0]["loss_nats"],
        "last_loss_nats": last["loss_nats"],
        "val_sample_bits_per_char": result.best_val_sample_bits_per_char,
    }


def _config_of(state: dict[str, Any]) -> Any:
    return checkpoint.restore_model(state, Path(checkpoint.LAST)).config


def resume_once(check: Check, *, device: str, steps: int) -> dict[str, Any]:
    """Stop a run of `steps` steps by SIGTERM half-way, resume it, and compare it with two that were not stopped.

    "repeat_difference" is between the weights of the two, "resume_difference" between one and the resumed run, both
    relative to the norm of all weights. Where equal runs are equal bit for bit, as on the CPU, so must the resumed
    one be; where the GPU adds in another order each time, it must stay within LARGEST_DIFFERENCE.
    """
    settings: dict[str, Any] = {"device": device, "log_every_steps": 1, "val_every_fraction": 1.0}
    budget = Budget("steps", steps)
    for name in ("whole", "again"):
        check.train(name, budget, **settings)
    stopped_at = _train_and_stop(check, budget, settings, after=steps // 2)
    check.train("stopped", budget, **settings)
    whole, again, resumed = (_weights(check.folder / name) for name in ("whole", "again", "stopped"))
    repeat, resume = _difference(whole, again), _difference(whole, resumed)
    return {
        "steps": steps,
        "stopped_at": stopped_at,
        "repeat_difference": repeat,
        "resume_difference": resume,
        "is_equal": resume == 0.0 if repeat == 0.0 else resume <= LARGEST_DIFFERENCE,
    }


def _train_and_stop(check: Check, budget: Budget, settings: dict[str, Any], *, after: int) -> int:
    """Train the run "stopped" until SIGTERM comes, once `after` steps were logged; the step it stopped at."""
    folder = check.folder / "stopped"
    is_over = threading.Event()

    def send_when_due() -> None:
        metrics = folder / checkpoint.METRICS
        while not is_over.is_set():
            if metrics.exists() and metrics.read_bytes().count(b"\n") >= after:
                os.kill(os.getpid(), signal.SIGTERM)  # SIGINT may be ignored, in the background
                return
            time.sleep(0.001)

    sender = threading.Thread(target=send_when_due)
    sender.start()
    try:
        with contextlib.suppress(TrainingInterrupted):
            check.train("stopped", budget, **settings)
    finally:
        is_over.set()
        sender.join()
    state = checkpoint.load(folder / checkpoint.LAST)
    if state["finished"]:
        raise RuntimeError(f"the run was over before it could be stopped: {budget.amount} steps are too few")
    return int(state["spent"]["steps"])


def _weights(folder: Path) -> torch.Tensor:
    """All weights of last.pt as one vector."""
    model = checkpoint.load(folder / checkpoint.LAST)["model"]
    return torch.cat([value.double().flatten() for value in model.values()])


def _difference(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one - other).norm() / one.norm())


def as_text(speed: dict[str, Any], resume: dict[str, Any], device_name: str, peak: float | None) -> str:
    """The check for a terminal; `peak` is the device's in TFLOP/s, None if it was not given."""
    if peak is None:
        mfu = "MFU unknown: give the data sheet's peak in this dtype with PEAK_TFLOPS (--peak-tflops)"
    else:
        mfu = f"MFU {speed['model_tflops'] / peak:.2%} of {peak:g} TFLOP/s, the peak given"
    differences = (
        f"weights differ by {resume['resume_difference']:.2e} from an unstopped run, "
        f"two unstopped ones by {resume['repeat_difference']:.2e}"
    )
    verdict = "as it should" if resume["is_equal"] else "NOT as it should"
    allowed = "0" if resume["repeat_difference"] == 0.0 else f"{LARGEST_DIFFERENCE:g}"
    return "\n".join(
        [
            f"{device_name}, torch {speed['torch']}, {speed['dtype']}, {speed['parameters']:,} parameters",
            f"  {speed['steps']:,} steps of {speed['tokens_per_step']:,} tokens in {speed['seconds']:.1f} s; the first "
            f"took {speed['first_step_seconds']:.2f} s",
            f"  {speed['tokens_per_second']:,.0f} tokens/s, {speed['model_tflops']:.3f} TFLOP/s by the formula of the "
            "reports",
            f"  {mfu}",
            f"  loss {speed['first_loss_nats']:.3f} -> {speed['last_loss_nats']:.3f} nats per token, val "
            f"{speed['val_sample_bits_per_char']:.3f} bits per character",
            f"  stopped at step {resume['stopped_at']} of {resume['steps']}, resumed {verdict}:",
            f"  {differences} (allowed: {allowed})",
        ]
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Command `check-gpu`: exit code 2 without a GPU, 1 if a resumed run is not what it should be."""
    parser = Parser(description=__doc__)
    parser.add_argument("--seconds", type=whole(Range(1, 10**6)), default=60, help="of training (%(default)s)")
    parser.add_argument(
        "--resume-steps", type=whole(Range(2, 10**6)), default=400, help="of the run that is stopped (%(default)s)"
    )
    parser.add_argument(
        "--peak-tflops", type=number(Range(0.001, 10**9)), help="the device's peak, from its data sheet, for MFU"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="such as train.batch_size=512")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="`cpu` tries this script itself")
    arguments = parser.parse_args(argv)
    if arguments.device == "cuda" and not torch.cuda.is_available():
        raise ConfigError(NO_GPU)
    with tempfile.TemporaryDirectory() as root:
        settings = [*_SETTINGS, *arguments.set, f"root={json.dumps(root)}"]
        experiment = load_experiment(cli.CONFIGS / f"{cli.DEFAULT_EXPERIMENT}.yaml", settings)
        check = Check(Steps(experiment), next(iter(experiment.contestants)), Path(root) / "check")
        speed = measure(check, device=arguments.device, seconds=arguments.seconds)
        resume = resume_once(check, device=arguments.device, steps=arguments.resume_steps)
    name = torch.cuda.get_device_name() if arguments.device == "cuda" else "CPU"
    print(as_text(speed, resume, name, arguments.peak_tflops))
    if not resume["is_equal"]:
        sys.exit(1)


if __name__ == "__main__":
    cli.run(main)
