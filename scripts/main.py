"""Every command under one name: `chars-or-bpe COMMAND …`, or `python -m scripts.main COMMAND …`. Make calls it, too."""

import importlib
import sys
from collections.abc import Sequence

from compare import cli
from compare.command_line.commands import module_of, overview, resolved
from compare.options import PROGRAM


def run_command(command: str, arguments: Sequence[str], *, called: str) -> None:
    """Run `command` with `arguments`; `called` is how messages say that it was called."""
    sys.argv = [called, *arguments]  # an error's message names the experiment that stands there
    importlib.import_module(module_of(command)).main(list(arguments))


def main() -> None:
    """Run the command that the first argument names; without one, or with --help, list the commands."""
    words = sys.argv[1:]
    if not words or words[0] in ("-h", "--help", "help"):
        print(overview())
        return
    command, arguments = resolved(words)
    run_command(command, arguments, called=f"{PROGRAM} {command}")


def entry() -> None:
    """The console entry `chars-or-bpe`."""
    cli.run(main)


if __name__ == "__main__":
    entry()
