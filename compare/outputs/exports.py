"""The table for other programs, table.csv and table.tex."""

import csv
import io
from collections.abc import Sequence

from compare.outputs.further_lines import Line
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


def table_csv(rows: Sequence[Row], further: Sequence[Line] = ()) -> str:
    """The table as CSV (RFC 4180, line ends LF): one line for each figure in full, one column for each contestant.

    `further` are lines of other budgets and sizes, which come last.
    """
    names = [row.contestant for row in rows]
    more = [[line.label, *(line.values.get(name) for name in names)] for line in further if line.is_for_programs]
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(
        ["" if value is None else value for value in line] for line in [*table_values(rows), *more]
    )
    return written.getvalue()


def table_latex(rows: Sequence[Row], further: Sequence[Line] = ()) -> str:
    """The table as a LaTeX tabular, figures as they are printed; it needs no package. `further` as in `table_csv`."""
    header, *lines = [[in_latex(cell.strip()) for cell in line] for line in table_cells(rows)]
    body = [r"\hline", _line(header), r"\hline", *(_line(line) for line in lines), r"\hline"]
    more = [[line.label, *(line.words.get(row.contestant, "") for row in rows)] for line in further if line.words]
    if more:
        body += [*(_line([in_latex(cell) for cell in line]) for line in more), r"\hline"]
    return "\n".join([rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}", *body, r"\end{tabular}", ""])


def in_latex(text: str) -> str:
    r"""`text` as LaTeX shows it literally.

    >>> in_latex("byte_bpe 50 %")
    'byte\\_bpe 50 \\%'
    """
    return "".join(_LATEX.get(character, character) for character in visible(text))


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
