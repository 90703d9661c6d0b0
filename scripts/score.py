"""Score a model that others trained: bits per character of a causal language model of transformers in a local folder.

The rules are those of the comparison: every document is read after one token or newline, windows slide by half a block,
and every character counts once. Nothing is fetched, and no code of the folder is run.
"""

import json
import sys
from collections.abc import Sequence

from compare import cli
from compare.command_line.streams import is_stdout_utf8
from compare.finished.foreign_score import as_text, score_model
from compare.options import folder, whole
from compare.steps import Steps
from data.config import require
from data.numbers import Range


def main(argv: Sequence[str] | None = None) -> None:
    """Command `score`: the figure, its interval, and where the text is the experiment's own, its finished runs."""
    parser = cli.parser(__doc__)
    parser.add_argument("--model", type=folder, metavar="FOLDER", help="config.json, *.safetensors and a tokenizer")
    parser.add_argument(
        "--text",
        action="append",
        default=[],
        metavar="PATH",
        help="a file, folder or pattern instead of test; each file is a document",
    )
    parser.add_argument(
        "--block", type=whole(Range(1, 10**6)), help="tokens of a window; by default the model's longest, at most 1,024"
    )
    parser.add_argument("--stride", type=whole(Range(1, 10**6)), help="tokens between windows; half a block")
    parser.add_argument("--json", action="store_true", help="the same as data")
    arguments = parser.parse_args(argv)
    require(arguments.model is not None, "--model FOLDER is missing: the folder of the model that is to be scored")
    steps = Steps(cli.experiment_of(arguments), echo=lambda line: print(line, file=sys.stderr))
    found = score_model(steps, arguments.model, arguments.text, block=arguments.block, stride=arguments.stride)
    if arguments.json:
        print(json.dumps(found, indent=2, ensure_ascii=not is_stdout_utf8(), allow_nan=False))
    else:
        print(as_text(found))


if __name__ == "__main__":
    cli.run(main)
