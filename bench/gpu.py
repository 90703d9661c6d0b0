"""Train the default model on a GPU for a minute: tokens/s, MFU, and whether a stopped run goes on as it should."""

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from bench.gpu_check import Check, as_text, measure, peak_tflops, resume_once
from compare import cli
from compare.experiment import load_experiment
from compare.options import Parser, number, whole
from compare.steps import Steps
from data.errors import ConfigError
from data.numbers import Range

NO_GPU = "torch finds no GPU on this machine, so nothing was checked"
# This project's own files: a megabyte of text that is there without a network and read in a moment.
_FOLDERS = ("data", "tokenizer", "model", "compare", "scripts", "tests")
_PATHS = ", ".join(["README.md", *(f"{folder}/*.py" for folder in _FOLDERS)])
_SETTINGS = (
    f"corpus={{source: text, name: own, paths: [{_PATHS}], fractions: [0.9, 0.05, 0.05]}}",
    "contestants={char: {tokenizer: {kind: char}}}",
)


def main(argv: Sequence[str] | None = None) -> None:
    """Verb `check-gpu`: exit code 2 without a GPU, 1 if a resumed run is not what it should be."""
    parser = Parser(description=__doc__)
    parser.add_argument("--seconds", type=whole(Range(1, 10**6)), default=60, help="of training (%(default)s)")
    parser.add_argument(
        "--resume-steps", type=whole(Range(2, 10**6)), default=400, help="of the run that is stopped (%(default)s)"
    )
    parser.add_argument(
        "--peak-tflops", type=number(Range(0.001, 10**9)), help="the device's peak, for a GPU that the table lacks"
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
    known = peak_tflops(name) if speed["dtype"] == "bfloat16" else None
    source = "given" if arguments.peak_tflops is not None else "dense bfloat16, NVIDIA's data sheet"
    print(as_text(speed, resume, name, known if arguments.peak_tflops is None else arguments.peak_tflops, source))
    if not resume["is_equal"]:
        sys.exit(1)


if __name__ == "__main__":
    cli.run(main)
