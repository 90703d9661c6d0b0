"""The table for other programs, table.csv and table.tex."""

import csv
import io
from collections.abc import Sequence

from compare.table import Row, table_cells, table_values
from data.show import visible

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "–": "--",
    "…": r"\ldots{}",
}


def table_csv(rows: Sequence[Row]) -> str:
    """The table as CSV (RFC 4180, line ends LF): one line for each figure in full, one column for each contestant."""
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(
        ["" if value is None else value for value in line] for line in table_values(rows)
    )
    return written.getvalue()


def table_latex(rows: Sequence[Row]) -> str:
    """The table as a LaTeX tabular, figures as they are printed; it needs no package."""
    header, *lines = [[in_latex(cell.strip()) for cell in line] for line in table_cells(rows)]
    body = [r"\hline", _line(header), r"\hline", *(_line(line) for line in lines), r"\hline"]
    return "\n".join([rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}", *body, r"\end{tabular}", ""])


def in_latex(text: str) -> str:
    r"""`text` as LaTeX shows it literally.

    >>> in_latex("byte_bpe 50 %")
    'byte\\_bpe 50 \\%'
    """
    return "".join(_LATEX.get(character, character) for character in visible(text))


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
