"""Write a contestant's model or tokenizer for other programs, proven equal to the original before it is there.

FORMAT transformers, safetensors or onnx writes the trained model with its tokenizer into a new folder. The others
write the tokenizer alone: its ids are compared on the whole test split and on texts that are easily cut otherwise.
"""

from collections.abc import Sequence

from compare import cli
from compare.finished.written_out import MODEL_FORMATS, export_tokenizer, export_trained_model
from compare.options import folder, whole
from data.config import require
from data.numbers import SEED
from tokenizer.export.formats import FORMATS


def main(argv: Sequence[str] | None = None) -> None:
    """Command `export`. What the contestant needs is made first."""
    parser = cli.parser(__doc__)
    parser.add_argument("--contestant", default="bpe", help="whose model or tokenizer (%(default)s)")
    parser.add_argument(
        "--format",
        default="transformers",
        choices=(*MODEL_FORMATS, *FORMATS),
        help="transformers: for AutoModelForCausalLM and AutoTokenizer; safetensors: the model under our own names; "
        "onnx: a graph for onnxruntime; "
        "the others: the tokenizer for that tool (%(default)s)",
    )
    parser.add_argument("--out", type=folder, metavar="FOLDER", help="the folder to write; a new one for a model")
    parser.add_argument("--run-seed", type=whole(SEED), help="the run to take, where there are several; the first")
    given = parser.parse_args(argv)
    require(given.out is not None, "--out FOLDER is missing: the folder that is to be written")
    experiment = cli.experiment_of(given)
    if given.format in FORMATS:
        export_tokenizer(experiment, given.contestant, given.format, given.out)
    else:
        export_trained_model(experiment, given.contestant, given.format, given.out, run_seed=given.run_seed)


if __name__ == "__main__":
    cli.run(main)
