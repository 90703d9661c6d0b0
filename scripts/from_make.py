"""From variables of Make to the options of a command: `python -m scripts.from_make NAME`, called by the Makefile."""

import os
import sys

from compare import cli
from compare.command_line.commands import module_of
from compare.command_line.variables import arguments_of, check_experiments, program_of, run_program
from scripts.main import run_command


def main() -> None:
    """Run the command that the Makefile names, with what the user gave to Make."""
    name = sys.argv[1]
    check_experiments(name, os.environ)
    arguments = arguments_of(name, os.environ)
    program = program_of(name, os.environ)
    module = module_of(name)
    if program is None:
        run_command(name, arguments, called=module)
        return
    sys.argv = [module, *arguments]  # an error's message names the experiment that stands there
    run_program(program, name, arguments)


if __name__ == "__main__":
    cli.run(main)
