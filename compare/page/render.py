"""The report's page: one self-contained HTML file, from what `compare.page.data` gathers."""

import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from compare.bits_by.result import KindRow, RangeRow, WhereBitsGo, WordRow
from compare.ladder.answer import LadderAnswer, PairAnswer
from compare.ladder.words import TITLE as BUDGETS_TITLE
from compare.ladder.words import cells as budget_cells
from compare.ladder.words import headline, lines
from compare.page.bars import Group, forest_picture, grouped_bars, ladder, signed
from compare.page.budgets import curves_picture, gap_picture
from compare.page.curves import curve_picture, drawn_levels
from compare.page.signs import REPLACEMENT, one_column, readable, visible
from compare.page.svg import (
    legend_key,
    scatter_counts,
    scatter_picture,
    style_of,
    sweep_lines,
    sweep_picture,
)
from compare.page.values import Figure, Page, Passage
from compare.sizes.ranking import Ranking
from compare.sizes.words import TITLE as SIZES_TITLE
from compare.sizes.words import cells as size_cells
from compare.sizes.words import headline as size_headline
from compare.sizes.words import lines as size_lines
from data.files import read_text, write_text
from data.show import counted, shorten
from data.show import visible as as_shown
from tokenizer.studies.intrinsic import Intrinsic

HTML = "index.html"
_TEMPLATES = Path(__file__).parent / "templates"
_NAME_COLUMNS = 32  # of a contestant in legends and heads of columns; the whole name is their title
_MOST_GAPS = 2  # pictures of pairs over budgets
_STYLES = ("picture.css", "style.css")
_SCRIPTS = ("tokenizer.js", "viewer.js", "reading.js")


def write_page(path: Path, page: Page) -> None:
    """Write the page atomically."""
    write_text(path, render_page(page))


def render_page(page: Page) -> str:
    """The page as HTML. It loads nothing: style, scripts, pictures and vocabularies stand in it.

    Every string from outside passes through `data.show.visible` and is escaped; the page's own policy lets the
    browser run nothing but the one script, and fetch nothing.
    """
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        finalize=_shown,
    )
    style = Markup("\n").join(_verbatim(name) for name in _STYLES)
    script = Markup("\n").join(_verbatim(name) for name in _SCRIPTS)
    environment.filters["upper"] = str.upper
    order = [contestant.name for contestant in page.contestants]
    first, rest = _first_sentence(page.answer)
    return environment.get_template("page.html").render(
        page=page,
        order=order,
        ranked=sorted(page.contestants, key=lambda one: (one.bits_per_char, one.name)),
        first_sentence=first,
        more_sentences=rest,
        bands=any(one.num_seeds > 1 for one in page.contestants),
        zip=zip,
        counted=counted,
        spelled=visible,
        readable=readable,
        signed=signed,
        key=legend_key,
        short=partial(shorten, width=_NAME_COLUMNS),
        curve_pictures=_curve_pictures(page, order),
        levels_above=_levels_above(page),
        budgets=None if page.ladder is None else _budgets(page.ladder, order),
        sizes=None if page.sizes is None else _sizes(page.sizes),
        scatter_picture=partial(scatter_picture, page.documents, order=order),
        scatter_counts=partial(scatter_counts, page.documents),
        sweep_picture=sweep_picture,
        sweep_names=[] if page.sweep is None else list(sweep_lines(page.sweep)),
        forest=forest_picture,
        bars_of_classes=_bars_of_classes(page.where_bits_go, order),
        ladder_picture=_ladder(page) if page.baselines else None,
        levels=_level_names(page.passage.levels),
        passage_cells=_passage_cells(page.passage, order),
        intrinsic_rows=_intrinsic_rows(page.intrinsic) if page.intrinsic else [],
        number_rows=_number_rows(page.intrinsic) if page.intrinsic else [],
        tokenizers=_json_in_html([one.as_json() for one in page.vocabularies]),
        viewer=_json_in_html(asdict(page.viewer)),
        policy=_policy(style, script),
        style=style,
        script=script,
    )


def _first_sentence(answer: str) -> tuple[str, str]:
    """The first sentence, which the page sets large, and all others."""
    first, stop, rest = answer.partition(". ")
    return (f"{first}.", rest) if stop else (answer, "")


def _curve_pictures(page: Page, order: Sequence[str]) -> list[tuple[str, Markup]]:
    """(what the curves are drawn against, the picture) for each quantity that has a point."""
    drawn = [(curve.label, curve_picture(curve, order, page.levels)) for curve in page.curves]
    return [(label, drawing) for label, drawing in drawn if drawing is not None]


@dataclass(frozen=True)
class Budgets:
    """What the part on other budgets shows."""

    title: str
    curves: Markup
    gaps: list[tuple[PairAnswer, Markup]]
    table: list[list[str]]
    headline: str
    lines: list[str]
    has_forecast: bool


def _budgets(answer: LadderAnswer, order: Sequence[str]) -> Budgets:
    return Budgets(
        title=BUDGETS_TITLE,
        curves=curves_picture(answer, order),
        gaps=[(pair, gap_picture(answer, pair, order)) for pair in answer.pairs[:_MOST_GAPS]],
        table=budget_cells(answer),
        headline=headline(answer),
        lines=lines(answer),
        has_forecast=any(pair.outlooks for pair in answer.pairs),
    )


@dataclass(frozen=True)
class Sizes:
    """What the part on other sizes shows."""

    title: str
    table: list[list[str]]
    headline: str
    lines: list[str]


def _sizes(ranking: Ranking) -> Sizes:
    return Sizes(SIZES_TITLE, size_cells(ranking), size_headline(ranking), size_lines(ranking))


def _levels_above(page: Page) -> str:
    """The level lines that are above all curves and are not drawn, with their figures."""
    if not page.curves[0].series:
        return ""
    _, above = drawn_levels(page.curves[0], page.levels)
    return ", ".join(f"{one.name} {one.bits_per_char:.2f}" for one in above)


def _shown(value: object) -> object:
    """What a place in the template becomes: a string without hidden characters; our own markup as it is."""
    return as_shown(value, keep="\n\t") if isinstance(value, str) and not isinstance(value, Markup) else value


def _policy(style: str, script: str) -> str:
    """The Content-Security-Policy: this style and this script by their hashes, the empty icon, and nothing else."""
    style_hash, script_hash = (
        base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii") for text in (style, script)
    )
    return (
        f"default-src 'none'; script-src 'sha256-{script_hash}'; style-src 'sha256-{style_hash}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _verbatim(name: str) -> Markup:
    """A style sheet or script of ours, as it is: inside its element HTML has no escapes."""
    return Markup(read_text(_TEMPLATES / name))


def _json_in_html(value: Any) -> Markup:
    """JSON that cannot end the script element it stands in, whatever strings it holds."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))


def _passage_cells(passage: Passage, order: Sequence[str]) -> Markup:
    """The passage as cells of rows of spans. Only the first row is read out: the others repeat its text."""
    styles = [style_of(order.index(name)) for name in passage.contestants]
    parts = []
    for cell in passage.cells:
        parts.append('<span class="cell">')
        for number, (style, spans) in enumerate(zip(styles, cell.rows, strict=True)):
            hidden = "" if number == 0 else ' aria-hidden="true"'
            parts.append(f'<span class="row {style}"{hidden}>')
            for text, bits, level, is_begin in spans:
                begin = " t" if is_begin else ""
                shown = escape("".join(map(one_column, text)))
                codes = " ".join(
                    f"U+{ord(character):04X}" for character in text if one_column(character) == REPLACEMENT
                )
                said = f"{bits:.2f} bits ({codes})" if codes else f"{bits:.2f} bits"
                parts.append(f'<i class="b{level}{begin}" title="{said}">{shown}</i>')
            parts.append("</span>")
        parts.append("</span><br>" if cell.ends_line else "</span>")
    return Markup("".join(parts))


def _level_names(levels: Sequence[float]) -> list[str]:
    bounds = [f"{level:g}" for level in levels]
    between = [f"{low}–{high}" for low, high in pairwise(bounds)]
    return [f"below {bounds[0]}", *between, f"{bounds[-1]} bits and more"]


@dataclass(frozen=True)
class BarPicture:
    """A picture of classes of characters, with what the classes mean."""

    title: str
    drawing: Markup | str
    caption: str


def _bars_of_classes(where: WhereBitsGo, order: Sequence[str]) -> list[BarPicture]:
    """The three pictures of where the bits go."""
    kinds = [
        _group(row, row.name, f"{100 * row.num_chars / where.num_chars:.1f} % of characters") for row in where.kinds
    ]
    positions = [_group(row, _range(row.first, row.last), "") for row in where.positions]
    frequencies = [_group(row, row.name, counted(row.num_words, "word")) for row in where.word_frequency]
    described = "; ".join(f"{row.name}: {row.description}" for row in where.kinds)
    pictures = [
        BarPicture(
            "By kind of character",
            grouped_bars(kinds, order, about="Bits per character by kind of character"),
            f"{described}." if described else "",
        ),
        BarPicture(
            "By position in the document",
            grouped_bars(positions, order, about="Bits per character by characters before"),
            "How many characters of the document come before the character that is scored.",
        ),
    ]
    words = BarPicture("By frequency of the word", "", f"{where.word_note}.")
    if frequencies:
        words = BarPicture(
            words.title,
            grouped_bars(frequencies, order, about="Bits per character by the word's frequency in train"),
            "How often the word occurs in train, spelled the same. A word is a run of letters.",
        )
    return [*pictures, words]


def _group(row: KindRow | RangeRow | WordRow, label: str, aside: str) -> Group:
    notes = {name: f"{100 * share:.0f} % cut" for name, share in row.cut_share.items() if share and share >= 0.005}
    return Group(label, aside, row.bits_per_char, notes)


def _range(first: int, last: int | None) -> str:
    if last is None:
        return f"{first:,} and more"
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"


def _ladder(page: Page) -> Markup:
    baselines = [Figure(one.name, one.bits_per_char) for one in page.baselines]
    rows = sorted([*page.contestants, *baselines], key=lambda row: (row.bits_per_char, row.name))
    return ladder(rows, [contestant.name for contestant in page.contestants])


_INTRINSIC: tuple[tuple[str, Callable[[Intrinsic], float | None], str], ...] = (
    ("characters per token", lambda one: one.chars_per_token, "{:.3f}"),
    ("bytes per token", lambda one: one.bytes_per_token, "{:.3f}"),
    ("tokens per word", lambda one: one.tokens_per_word, "{:.3f}"),
    ("vocabulary", lambda one: one.vocab_size, "{:,}"),
    ("of it used", lambda one: one.vocab_used, "{:,}"),
    ("Rényi efficiency (alpha 2.5, over the whole vocabulary)", lambda one: one.renyi_efficiency, "{:.3f}"),
    ("share of parameters in the embedding", lambda one: one.embedding_share, "{:.3f}"),
    ("characters in 128 tokens", lambda one: one.chars_in_128_tokens, "{:,.0f}"),
)


def _intrinsic_rows(intrinsic: Mapping[str, Intrinsic]) -> list[tuple[str, list[str]]]:
    rows = [(label, [_cell(value(one), form) for one in intrinsic.values()]) for label, value, form in _INTRINSIC]
    glued = [f"{one.glued_tokens.num:,} ({100 * one.glued_tokens.share:.1f} %)" for one in intrinsic.values()]
    return [*rows, ("tokens that glue a letter to punctuation (share of the text)", glued)]


def _cell(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)


def _number_rows(intrinsic: Mapping[str, Intrinsic]) -> list[tuple[str, list[tuple[str, ...] | None]]]:
    texts = [number.text for number in next(iter(intrinsic.values())).numbers]
    return [(text, [one.numbers[index].tokens for one in intrinsic.values()]) for index, text in enumerate(texts)]
