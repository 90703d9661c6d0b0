"""Write a contestant's tokenizer in the format of another tool, proven with that tool's own library.

The ids are compared on the whole test split and on texts that are easily cut otherwise, before anything is written.
"""

from collections.abc import Sequence
from pathlib import Path

from compare import cli
from compare.text_steps import TextSteps
from data.errors import ConfigError
from data.show import say
from tokenizer.export.formats import FORMATS
from tokenizer.export.prove import export


def main(argv: Sequence[str] | None = None) -> None:
    """Command `export`. What the contestant needs is made first."""
    parser = cli.parser(__doc__)
    parser.add_argument("--contestant", default="bpe", help="whose tokenizer (%(default)s)")
    parser.add_argument("--format", choices=list(FORMATS), required=True, help="the tool that is to read it")
    parser.add_argument("--out", required=True, help="the folder that gets the files")
    arguments = parser.parse_args(argv)
    steps = TextSteps(cli.experiment_of(arguments))
    name = steps.experiment.contestant(arguments.contestant).name
    if not arguments.out.strip() or "\0" in arguments.out:
        raise ConfigError("--out is empty, or can be no folder's name; name a folder")
    tokenizer, test = steps.tokenizer(name), steps.data()["test"]
    paths = export(tokenizer, arguments.format, test.documents(), Path(arguments.out))
    written = ", ".join(str(path) for path in paths)
    say(f"export {name}: wrote {written}; its library gives the same ids for the {len(test.text):,} characters of test")


if __name__ == "__main__":
    cli.run(main)
