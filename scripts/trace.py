"""Make BPE training visible: every round's candidates, the winner and why, and the sequences afterwards."""

import json
import sys
from collections.abc import Sequence

from compare import cli
from compare.command_line.streams import is_stdout_utf8
from compare.options import Parser, whole
from data.numbers import COUNT, Range
from tokenizer.pretokenize import SPLIT_PATTERNS
from tokenizer.reference import TIE_BREAKS
from tokenizer.studies.trace import as_data, trace_training
from tokenizer.studies.trace_text import as_text
from tokenizer.train import BPE_KINDS, TokenizerConfig

DEFAULT_TEXT = "aaa|aba"
_SEPARATOR = "|"


def main(argv: Sequence[str] | None = None) -> None:
    """Command `trace`. The text is taken as typed: no line end is added to a document, unlike in a corpus.

    One that begins with `-` stands behind `--`.
    """
    parser = Parser(description=__doc__)
    parser.add_argument("text", nargs="?", default=DEFAULT_TEXT, help="documents, parted by | (default: %(default)s)")
    parser.add_argument("--kind", choices=BPE_KINDS, default="byte_bpe", help="characters or bytes (%(default)s)")
    parser.add_argument("--split-pattern", choices=SPLIT_PATTERNS, default="none")
    parser.add_argument("--tie-break", choices=TIE_BREAKS, help="who wins a tie; by default the kind's own rule")
    parser.add_argument("--merges", type=whole(Range(0, 10**6)), default=10, help="rounds at most (%(default)s)")
    parser.add_argument(
        "--min-pair-frequency", type=whole(COUNT), default=1, help="stop below this count (%(default)s)"
    )
    parser.add_argument(
        "--top", type=whole(Range(1, 10**6)), default=10, help="candidates to print for each round (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="the same as data, with all candidates")
    arguments = parser.parse_args(argv)
    config = TokenizerConfig(arguments.kind, vocab_size=1, tie_break=arguments.tie_break)  # knows the kind's own rule
    trace = trace_training(
        arguments.text.split(_SEPARATOR),
        kind=arguments.kind,
        split_pattern=arguments.split_pattern,
        tie_break=config.resolved_tie_break,
        num_merges=arguments.merges,
        min_pair_frequency=arguments.min_pair_frequency,
    )
    if arguments.json:
        is_escaped = sys.stdout.isatty() or not is_stdout_utf8()
        print(json.dumps(as_data(trace), ensure_ascii=is_escaped, indent=2))
    else:
        print(as_text(trace, top=arguments.top))


if __name__ == "__main__":
    cli.run(main)
