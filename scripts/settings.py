"""Write docs/settings.md: every key of an experiment file, from the dataclasses that the values are checked by."""

from collections.abc import Sequence

from compare import cli
from compare.command_line.settings_page import PATH, settings_page
from compare.options import Parser
from data.files import write_text


def main(argv: Sequence[str] | None = None) -> None:
    """Command `settings`."""
    Parser(description=__doc__).parse_args(argv)
    write_text(PATH, settings_page())
    print(f"wrote {PATH}")


if __name__ == "__main__":
    cli.run(main)
