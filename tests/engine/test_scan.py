"""The hand-written scanners cut exactly where the `regex` patterns do."""

import numpy as np
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from factories import examples
from tokenizer.engine import scan as module
from tokenizer.engine.scan import ASK, LETTER, NUMBER, OTHER, PATTERN_NUMBERS, SPACE, character_classes, quick_classes
from tokenizer.pretokenize import SplitPattern, pretokenize
from tokenizer_helpers import LOSSLESS_TEXTS, read_shared

SCANNED: list[SplitPattern] = ["space", "gpt2", "gpt4"]
ALWAYS_ASK = np.full(256, ASK, dtype=np.uint8)  # with it, every pretoken goes through the full scanner
EVERY_CHARACTER = [chr(code) for code in range(0x110000) if not 0xD800 <= code <= 0xDFFF]

# Dense in what the patterns distinguish: letters and both forms of every contraction (with U+017F, the long s),
# digits and numbers that are none of 0-9, all kinds of line ends and spaces, marks, emoji, letters without case.
TELLING = (
    "aZ09_.,!'\u2019\"sSdDmMtTlLvVeErR\u017f\u017f'''   \n\n\r\r\t\x0b\x0c\x1c\x1f\x00\x7f\u0085\u00a0\u2028\u2029"
    "\u3000\u200b"
    "\u0301\u20dd\u00e9\u0130\u0434\u6771\u0661\u00bd\u00b2\u2167\u24c8\ufb06\u212a\U0001f600\U0001f3fd\U0001d7d8\U0010ffff"
)
telling = st.text(st.sampled_from(TELLING), max_size=40)
CONTRACTIONS = ["'s", "'S", "'\u017f", "'ll", "'lL", "'Ve", "'rE", "'l", "'v", "'re'", " '", "''s"]
SPACES = ["  ", " \n", "\r\n", "\n ", "\t", "\u00a0"]
WORDS = ["don", "x", "\u0434", " 1", "1234567", "\u0661\u0662\u0663\u0664", "\u00bd", "!?", " .\r\n\n", "\u0301"]
snippets = st.lists(st.sampled_from([*CONTRACTIONS, *SPACES, *WORDS]), max_size=14).map("".join)
texts = st.one_of(telling, snippets, st.text(max_size=30))


def ends_of(text: str, pattern: SplitPattern, *, full: bool = False) -> list[int]:
    """Where the scanner ends each pretoken, in characters; `full` bypasses the short way for ASCII."""
    raw = np.array(bytearray(text.encode("utf-8")), dtype=np.uint8)
    number = PATTERN_NUMBERS[pattern]
    ends = module.scan(raw, number, ALWAYS_ASK if full else quick_classes(number), character_classes())
    begins = np.cumsum((raw & 0xC0) != 0x80)
    if len(ends):
        assert ends[-1] == len(raw)
        assert ((raw[ends[:-1]] & 0xC0) != 0x80).all(), "cut inside a character"
    found: list[int] = begins[ends - 1].tolist()
    return found


def check_scanner(text: str, pattern: SplitPattern, ways: tuple[bool, ...] = (False, True)) -> None:
    wanted = np.cumsum([len(pretoken) for pretoken in pretokenize(text, pattern)], dtype=np.int64).tolist()
    for full in ways:
        found = ends_of(text, pattern, full=full)
        if found != wanted:
            differing = next((i for i, (a, b) in enumerate(zip(found, wanted, strict=False)) if a != b), -1)
            at = wanted[differing - 1] if differing > 0 else 0
            pytest.fail(f"{pattern}, full={full}: differs at character {at}: {text[max(0, at - 10) : at + 20]!r}")


@pytest.fixture(scope="module", autouse=True)
def _compile_the_kernels() -> None:
    """The first call compiles, which is nobody's example."""
    check_scanner("a", "gpt2")


# ------------------------------------------------------------------------------------------------------- random strings


@pytest.mark.parametrize("pattern", SCANNED)
@examples(200)
@given(text=texts)
def test_equals_the_pattern(pattern: SplitPattern, text: str) -> None:
    check_scanner(text, pattern)


@pytest.mark.parametrize("pattern", SCANNED)
def test_every_short_string_of_what_ascii_distinguishes(pattern: SplitPattern) -> None:
    """All strings of up to four of these; joined behind a line end would hide how each one ends."""
    characters = "as1!' \n"
    strings = [""]
    for _ in range(4):
        strings = [string + character for string in strings for character in characters]
        for string in strings:
            check_scanner(string, pattern)


# ----------------------------------------------------------------------------------------------------- every code point


@pytest.mark.parametrize("pattern", SCANNED)
def test_every_code_point(pattern: SplitPattern) -> None:
    """Once each, between letters; in all contexts in the slow tests."""
    check_scanner("a".join(EVERY_CHARACTER), pattern, ways=(False,))


@pytest.mark.parametrize("pattern", SCANNED)
def test_every_code_point_of_the_scripts_in_all_contexts(pattern: SplitPattern) -> None:
    """Beyond 0x3100 come Han, Hangul and rare scripts: see the slow tests."""
    check_scanner("\n".join(context(c) for c in EVERY_CHARACTER[:0x3100]), pattern)
    for character in EVERY_CHARACTER[:0x300]:
        check_scanner(context(character), pattern)


def context(c: str) -> str:
    return f"a{c}{c} {c}'{c}1{c}s'{c}{c}{c}{c}  {c}\n{c}! {c}.{c}"


@pytest.mark.slow
@pytest.mark.parametrize("pattern", SCANNED)
def test_every_code_point_in_all_contexts(pattern: SplitPattern) -> None:
    check_scanner("\n".join(context(c) for c in EVERY_CHARACTER), pattern)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", SCANNED)
def test_every_code_point_at_both_ends_of_a_text(pattern: SplitPattern) -> None:
    for character in EVERY_CHARACTER:
        check_scanner(f"{character}a'{character}", pattern, ways=(False,))


# ---------------------------------------------------------------------------------------------------------- fixed texts


@pytest.mark.parametrize("pattern", SCANNED)
@pytest.mark.parametrize("text", LOSSLESS_TEXTS.values(), ids=LOSSLESS_TEXTS.keys())
def test_texts_that_others_lose(text: str, pattern: SplitPattern) -> None:
    check_scanner(text, pattern)


@pytest.mark.parametrize("pattern", SCANNED)
@pytest.mark.parametrize(
    "text",
    [
        "8045311447",
        "1",
        "12",
        "123",
        "1234",
        "\u00bd\u0661\u2167\u00b2",
        "DON'T",
        "DON'T don't Don'T",
        "'s",
        "'",
        "''",
        "'l",
        "'L",
        "'ll",
        "'lv",
        "we'LL've'RE'r",
        "'\u017f",
        "x'\u017f'\u017fs",
        "'\u0161 '\u013f",  # like the long s in the first or in the last of its two bytes only
        "it\u2019s",
        "a\u0434\u6771z",
        "end ",
        "end  ",
        "end \n ",
        "end\n",
        "end\r\n\r\n",
        "end\u00a0\u00a0",
        "end\u2028",
        " ",
        "   ",
        "\n",
        "\r",
        " \u3000",
        "\u3000 ",
        "a \u00a0b",
        "a\u00a0 b",
        " \u0301",
        " 's",
        "!'s",
        "!!\r\n\r\n x",
        "\t\tx",
        "\r\n\tx",
        "x\n\n\n   y",
        "\x1c\x1d\x1e\x1fx",
    ],
)
def test_by_hand(text: str, pattern: SplitPattern) -> None:
    check_scanner(text, pattern)


@pytest.mark.parametrize("pattern", SCANNED)
def test_the_empty_text_has_no_pretoken(pattern: SplitPattern) -> None:
    assert ends_of("", pattern) == []


@pytest.mark.parametrize("pattern", SCANNED)
def test_a_border_of_two_pretokens_may_begin_a_text(pattern: SplitPattern) -> None:
    """Nothing looks to the left, so every rest of a text is cut as before."""
    text = "We'LL say: 12345 \u00bd's  \r\n\n \t'x' caf\u00e9\u0301 \u00a0 end  "
    pretokens = pretokenize(text, pattern)
    for index in range(len(pretokens)):
        rest = "".join(pretokens[index:])
        assert ends_of(rest, pattern) == np.cumsum([len(pretoken) for pretoken in pretokens[index:]]).tolist()


@pytest.mark.parametrize("pattern", SCANNED)
def test_wikitext(pattern: SplitPattern) -> None:
    check_scanner(read_shared("wikitext2/wiki.test.raw"), pattern)


# -------------------------------------------------------------------------------------------------------------- classes


def test_classes_are_those_of_regex() -> None:
    classes = character_classes()
    assert classes.shape == (0x110000,)
    sample = [*range(0x600), *range(0x2000, 0x3100), *np.random.default_rng(1).integers(0, 0x110000, 20_000).tolist()]
    names = ((LETTER, regex.compile(r"\p{L}")), (NUMBER, regex.compile(r"\p{N}")), (SPACE, regex.compile(r"\s")))
    for code in sample:
        wanted = [name for name, pattern in names if pattern.fullmatch(chr(code))] or [OTHER]
        assert wanted == [classes[code]], f"U+{code:04X}"


def test_classes_by_hand() -> None:
    classes = character_classes()
    wanted = {LETTER: "aZ\u00e9\u0434\u6771\u017f", NUMBER: "09\u0661\u00bd\u2167", OTHER: "_'\u0301\u200b\ud800\x00"}
    wanted[OTHER] += "\x1c\x1f"  # white space to str.isspace and re, not to regex
    wanted[SPACE] = " \t\r\n\x0b\x0c\x85\u00a0\u2028\u3000"
    for value, characters in wanted.items():
        assert {int(classes[ord(character)]) for character in characters} == {value}


@pytest.mark.parametrize("pattern", SCANNED)
def test_quick_classes_are_sure_of_ascii_only(pattern: SplitPattern) -> None:
    quick = quick_classes(PATTERN_NUMBERS[pattern])
    assert quick.shape == (256,)
    assert (quick[0x80:] == ASK).all()
    assert quick[ord(" ")] == SPACE
    assert (quick[ord("'")] == ASK) == (pattern != "space")
    assert (quick[ord("1")] == ASK) == (pattern == "gpt4")
