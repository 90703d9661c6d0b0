import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from compare.page.render import render_page, write_page
from compare.page.signs import readable, visible
from page_helpers import SPLITS, entries_of, every_tokenizer, full_page, plain_page
from report_helpers import changed


class Outline(HTMLParser):
    """Elements that are open and never closed, ids, references and visible text."""

    VOID = frozenset({"meta", "link", "br", "input"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.text: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        for key, value in attrs:
            if key == "id":
                self.ids.append(value or "")
            if key in ("href", "src", "for"):
                self.references.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.text.append(data)


@pytest.fixture(scope="module")
def html() -> str:
    return render_page(full_page())


@pytest.fixture(scope="module")
def outline(html: str) -> Outline:
    return Outline(html)


def test_elements_are_closed_and_ids_unique(outline: Outline) -> None:
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))


def test_the_page_loads_nothing(html: str, outline: Outline) -> None:
    for reference in outline.references:
        assert reference == "data:," or reference.lstrip("#") in outline.ids, reference
    assert "http://" not in html and "https://" not in html and "@import" not in html and "url(" not in html
    assert not re.search(r"\bfetch\(|XMLHttpRequest|import\(", html)


OPEN = ("answer", "main", "curves", "budgets", "figures", "unequal", "passage")
FOLDED = (
    *(
        "sizes",
        "samples",
        "viewer",
        "sure",
        "baselines",
        "where",
        "documents",
        "sweep",
        "intrinsic",
        "formulas",
        "provenance",
    ),
)


def test_the_answer_is_first_and_details_are_folded(html: str, outline: Outline) -> None:
    found = [name for name in outline.ids if name in OPEN + FOLDED]
    assert found == [*OPEN, *FOLDED]
    assert re.findall(r'<details class="fold" id="(\w+)">', html) == list(FOLDED)


def test_the_first_words_are_the_answer_how_sure_and_what_was_compared(html: str) -> None:
    header = html[html.index("<h1") : html.index("</header>")]
    assert '<h1 id="answer">a is better than &lt;b&gt;.</h1>' in header  # one sentence; the others are smaller
    wanted = ["a is better", "c and a are equal.", "a needs 0.100 fewer", "Training noise is assumed"]
    wanted += ["texts/small &amp; own.txt", "2 layers of width 16", "8 blocks of 16 tokens", "1,000 characters", "1 2"]
    places = [header.index(one) for one in [*wanted, "bits per character</dd>"]]
    assert places == sorted(places)


def test_an_answer_of_one_sentence_has_no_second_paragraph() -> None:
    html = render_page(replace(full_page(), answer="char is the only contestant.", noise=None, how_sure=()))
    assert "char is the only contestant.</h1>" in html
    assert 'class="more"' not in html and "How sure it is" not in html


def test_unequal_budgets_are_not_shown_as_one() -> None:
    entries = entries_of({name: every_tokenizer()[name] for name in ("char", "byte")})
    run = entries[1].runs[0]
    run = replace(run, report=changed(run.report, {"train": {"budget": {"amount": 7}}}))
    entries[1] = replace(entries[1], runs=(run,))
    page = plain_page(entries)
    assert ("budget", "not the same for all") in page.compared and ("seed", "1") in page.compared


def test_sections_without_contents_are_left_out() -> None:
    entries = entries_of({"char": every_tokenizer()["char"]})
    found = Outline(render_page(plain_page(entries)))
    for section in ("budgets", "documents", "sweep", "baselines", "intrinsic", "samples"):
        assert section not in found.ids
    assert {"figures", "curves", "passage", "viewer", "unequal", "formulas", "provenance"} <= set(found.ids)


def test_what_the_reader_needs_is_text(outline: Outline) -> None:
    text = " ".join(" ".join(outline.text).split())
    page = full_page()
    assert page.answer in text  # escaped: it reads as it was
    for cells in page.table[1:]:
        assert cells[0].strip() in text and cells[1] in text
    for wanted in (
        "tokens seen: a 1 & b 2",
        "Training FLOPs per token = 6 * N",
        "by Student’s t, paired",
        "U+2028",
        "cannot be written",
        "uniform",
        "Prompt in bold, temperature 0.8, seed 1",
        "From the beginning of a document, temperature 0.8, seed 2",
        SPLITS["test"].sha256,
        every_tokenizer()["char"].fingerprint(),
    ):
        assert wanted in text, wanted


def test_strings_from_outside_cannot_become_markup(html: str) -> None:
    assert "<b>sat</b>" not in html and "&lt;b&gt;sat&lt;/b&gt;" in html
    assert "alert('&amp;')" not in html
    embedded = re.search(r'<script type="application/json" id="tokenizers">(.*?)</script>', html, re.DOTALL)
    assert embedded is not None
    assert json.loads(embedded.group(1)) == [one.as_json() for one in full_page().vocabularies]


def test_every_picture_says_what_it_shows(html: str) -> None:
    pictures = re.findall(r'<svg viewBox="[^"]*" role="img" aria-label="([^"]*)"', html)
    assert len(pictures) >= 3 + 3 + 2 + 3  # curves, bars, scatters, and one each of forest, sweep, ladder
    for alternative in pictures:
        assert len(alternative) > 40 and re.search(r"\d", alternative), alternative
    assert html.count("<svg") == html.count('role="img"') + html.count('class="key" aria-hidden="true"')


def test_the_same_page_gives_the_same_bytes(tmp_path: Path) -> None:
    write_page(tmp_path / "a.html", full_page())
    write_page(tmp_path / "b.html", full_page())
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert (tmp_path / "a.html").stat().st_size < 3_000_000


def test_templates_are_shipped() -> None:
    import tomllib

    root = Path(__file__).resolve().parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["setuptools"]["package-data"]["compare.page"] == ["templates/*"]


def test_scripts_cannot_end_their_element() -> None:
    for path in (Path(__file__).resolve().parents[2] / "compare" / "page" / "templates").glob("*.js"):
        text = path.read_text(encoding="utf-8").lower()
        assert "</script" not in text and "<!--" not in text
        assert text.count("\n") <= 350


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a b", "a␣b"),
        ("\r\n\t\x00\x7f", "␍↵⇥␀␡"),
        ("\u00a0\u2028\ufeff", "U+00A0U+2028U+FEFF"),
        ("e\u0301", "e◌\u0301"),
        ("日本🙂", "日本🙂"),
    ],
)
def test_stand_ins(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\n\nb", "a{↵}\n{↵}\nb"),
        ("\tx\r", "{⇥}\tx{␍}"),
        ("\u202ea\x00", "{\\u202e}a{\\x00}"),
        ("a b\u3000<i>", "a b\u3000&lt;i&gt;"),
    ],
)
def test_readable_text_keeps_its_lines_and_has_light_signs(text: str, shown: str) -> None:
    assert str(readable(text)) == shown.replace("{", '<span class="sign">').replace("}", "</span>")


PLAIN_WORDS_INSTEAD = (
    *("verb", "room", "ruler", "door", "beside", "continuation of", "none begins", "single block"),
    *("1 characters", "1 documents", "1 tokens", "1 seeds", "1 blocks", "1 layers"),
)


def test_the_page_speaks_plainly(html: str) -> None:
    numbers_of_axes = r">[\d.,]+</text>"
    outline = Outline(re.sub(numbers_of_axes, "></text>", html))
    alternatives = re.findall(r'aria-label="([^"]*)"', html)
    text = " ".join([*outline.text, *alternatives])
    assert [word for word in PLAIN_WORDS_INSTEAD if re.search(rf"(?<![\d,.])\b{word}\b", text)] == []
