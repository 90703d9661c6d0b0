"""Characters without a shape: shown as their code on the page, in a terminal and in messages; input cleaned of them."""

import base64
import hashlib
import io
import re
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from compare import cli
from compare.page.render import render_page
from compare.page.signs import visible as spelled
from compare.page.svg import element
from compare.page.values import ViewerStart
from compare.table import as_markdown, as_text
from data.errors import CheckpointError, ConfigError, DataError
from data.files import read_json
from data.show import code_of, is_hidden, say, visible
from gpt2_helpers import write_gpt2_files
from model import checkpoint
from model.generate import clean_prompt, generate
from model.gpt import MiniGPT
from model_helpers import tiny_model
from page_helpers import full_page
from tokenizer.char import CharTokenizer
from tokenizer.interop import load_gpt2
from tokenizer.loading import load_tokenizer
from tokenizer.studies.trace_text import visible as traced

HIDDEN = [
    *map(chr, range(0x202A, 0x202F)),
    *map(chr, range(0x2066, 0x206A)),
    *("\u200e", "\u200f", "\u061c", "\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u2028", "\u2029"),
    *("\x00", "\x07", "\x08", "\x1b", "\x7f", "\x80", "\x9b", "\x9f", "\u115f", "\u3164", "\uffa0", "\ufe0f", "\u034f"),
    *("\ud800", "\udcff", "\ue000", "\U000e0041", "\U000e0100"),
]


@pytest.mark.parametrize("character", HIDDEN, ids=code_of)
def test_case_54_it_is_shown_as_its_code_everywhere(character: str) -> None:
    assert is_hidden(character)
    assert visible(f"a{character}b") == f"a{code_of(character)}b"
    for shown in (spelled(character), traced(character), as_text([["", f"n{character}"]]), as_markdown([[character]])):
        assert character not in shown
    assert character not in str(element("text", f"a{character}", aria_label=character))


@pytest.mark.parametrize("text", ["plain words", "naïve e\u0301", "日本語", "🙂", "a\u00a0b\u3000c", "<b>&"])
def test_case_54_what_has_a_shape_stays(text: str) -> None:
    assert visible(text) == text


def test_case_54_line_ends_are_kept_only_where_they_are_wanted() -> None:
    assert visible("a\nb\tc\r") == "a\\nb\\tc\\r"
    assert visible("a\nb\tc\r", keep="\n\t") == "a\nb\tc\\r"


def test_case_54_no_raw_control_stands_on_the_page() -> None:
    nasty = "".join(HIDDEN)
    page = full_page()
    [sample, *others] = page.samples["char"]
    [(label, value), *shared] = page.compared
    [(first, name, *names), *lines] = page.table
    [group, *groups] = page.provenance
    page = replace(
        page,
        samples={"char": (replace(sample, text=f"text {nasty} end", prompt=f"prompt {nasty}"), *others)},
        experiment=f"name{nasty}",
        answer=page.answer + nasty,
        how_sure=(*page.how_sure, nasty),
        noise=nasty,
        compared=((label, value + nasty), *shared),
        viewer=replace(page.viewer, text=nasty),
        not_held_equal=(nasty,),
        table=((first, name + nasty, *names), *lines),
        documents=replace(page.documents, names=(nasty, *page.documents.names[1:])),
        provenance=(replace(group, lines=(*group.lines, ("path", f"/tmp/{nasty}"))), *groups),
    )
    html = render_page(page)
    assert [code_of(c) for c in set(html) if is_hidden(c) and c != "\n"] == []
    assert html.count("\\u202e") >= 6 and 'text <span class="sign">\\u202a' in html


def test_case_54_nothing_from_outside_becomes_markup() -> None:
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    page = full_page()
    [group, *groups] = page.provenance
    page = replace(
        page,
        samples={"char": (replace(page.samples["char"][0], text=evil, prompt=evil),)},
        experiment=evil,
        answer=evil,
        noise=evil,
        how_sure=(evil,),
        compared=((evil, evil), *page.compared[1:]),
        viewer=ViewerStart(evil, evil),
        not_held_equal=(evil,),
        table=((evil,), *page.table[1:]),
        documents=replace(page.documents, names=(evil, *page.documents.names[1:])),
        vocabularies=(replace(page.vocabularies[0], name=evil), *page.vocabularies[1:]),
        provenance=(replace(group, lines=(*group.lines, (evil, evil))), *groups),
    )
    html = render_page(page)
    assert html.count("<script") == html.count("</script>") == 3
    assert "<img" not in html


def test_case_54_the_page_permits_its_own_script_and_style_only() -> None:
    html = render_page(full_page())
    [policy] = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', html)
    policy = policy.replace("&#39;", "'").replace("&#34;", '"')
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert directives["default-src"] == directives["base-uri"] == directives["form-action"] == "'none'"
    for tag in ("script", "style"):
        [content] = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode("ascii")
        assert directives[f"{tag}-src"] == f"'sha256-{digest}'"
    assert "unsafe" not in policy and "http" not in policy
    assert not re.search(r"<[^>]*\s(?:style|on\w+)=", html.split("<script>")[0])  # the policy would block these


def test_case_54_messages_and_lines_of_steps_are_visible(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise ConfigError("cannot read a\x1b[31m\u202eb\udcff/c.txt")

    monkeypatch.setattr(sys, "argv", ["compare"])
    with pytest.raises(SystemExit) as ended:
        cli.run(fail)
    assert ended.value.code == 2
    assert capsys.readouterr().err == "cannot read a\\x1b[31m\\u202eb\\udcff/c.txt\n"
    say("wrote a\x1b[2Jb\nand more")
    assert capsys.readouterr().out == "wrote a\\x1b[2Jb\nand more\n"


# --- the prompt ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "cleaned"),
    [("a\r\nb", "a\nb"), ("a\rb", "a\nb"), ("\ufeffab", "ab"), ("a\ufeffb", "a\ufeffb"), ("", ""), ("a b", "a b")],
)
def test_case_57_a_prompt_is_cleaned_as_text_is(typed: str, cleaned: str) -> None:
    assert clean_prompt(typed) == cleaned


def test_case_57_a_prompt_with_cr_is_continued() -> None:
    torch.manual_seed(1)
    tokenizer = CharTokenizer(list("\nab"))
    model = MiniGPT(tiny_model(3))
    with_cr, without = ("".join(generate(model, tokenizer, p, num_tokens=9, seed=3)) for p in ("a\r\nb\r", "a\nb\n"))
    assert with_cr == without and len(with_cr) == 9


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("ab\udcff", "the prompt is not valid UTF-8: byte 0xff at character 2"),
        ("\ud83d", "the prompt holds the lone surrogate U\\+D83D at character 0"),
    ],
)
def test_case_57_a_prompt_that_is_not_utf8_is_named(prompt: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        clean_prompt(prompt)


# --- files that editors re-saved, files that may not be read ------------------------------------------------------


@pytest.mark.parametrize("first", ["", "#version: 0.2\n", "#version: 0.2 - Trained by `huggingface/tokenizers`\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_case_57_merges_with_crlf_and_marks_are_the_same_merges(tmp_path: Path, first: str, mark: str) -> None:
    encoder, merges = write_gpt2_files(tmp_path)
    expected = load_gpt2(encoder, merges)
    text = merges.read_text(encoding="utf-8")
    merges.write_bytes((mark + (first + text).replace("\n", "\r\n")).encode("utf-8"))
    encoder.write_bytes("\ufeff".encode() + encoder.read_bytes())
    found = load_gpt2(encoder, merges)
    assert (found.merges, found.tokens, found.fingerprint()) == (
        expected.merges,
        expected.tokens,
        expected.fingerprint(),
    )


def test_case_57_a_tokenizer_file_saved_by_an_editor_is_the_same_tokenizer(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    CharTokenizer(list("\nab")).save(path)
    expected = load_tokenizer(path).fingerprint()
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert load_tokenizer(path).fingerprint() == expected


def refuse(*_arguments: Any, **_options: Any) -> Any:
    raise PermissionError(13, "Permission denied")


def test_case_57_an_unreadable_checkpoint_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "best.pt").write_bytes(b"whatever")
    monkeypatch.setattr(zipfile, "ZipFile", refuse)  # file modes do not bind root
    with pytest.raises(CheckpointError, match=r"^cannot read .*best\.pt: Permission denied") as caught:
        checkpoint.load(tmp_path / "best.pt")
    assert "damaged" not in str(caught.value) and "delete" not in str(caught.value)


def test_case_57_an_unreadable_tokenizer_is_not_called_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.json"
    CharTokenizer(list("\nab")).save(path)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(DataError, match=r"cannot read .*t\.json: Permission denied"):
        load_tokenizer(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("NaN", "NaN is no number"),
        ('{"a": [-Infinity]}', "-Infinity is no number"),
        ("1" * 5000, "is not valid JSON"),
        ("[" * 100_000, "nested too deep"),
    ],
    ids=["nan", "inf", "digits", "deep"],
)
def test_case_49_json_that_python_alone_would_take_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=re.escape(said)):
        read_json(tmp_path / "x.json")


# --- what a model writes, on a terminal and in a pipe -------------------------------------------------------------


@pytest.mark.parametrize(("is_terminal", "shown"), [(True, "a\\x1b[31m\nb\n"), (False, "a\x1b[31m\nb\n")])
def test_case_54_a_sample_is_escaped_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, shown: str
) -> None:
    from compare.finished import samples
    from scripts import sample

    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return is_terminal

    class Known:
        def __getattr__(self, _name: str) -> Any:
            return Known()

        def __call__(self, *_arguments: Any, **_options: Any) -> Any:
            return Known()

        def __truediv__(self, _other: Any) -> Path:
            return Path(__file__)

        def __getitem__(self, _key: Any) -> Any:
            return 1

    screen = Screen()
    monkeypatch.setattr(sample, "Steps", Known())
    monkeypatch.setattr(cli, "experiment_of", lambda _arguments: None)
    monkeypatch.setattr(samples, "load_tokenizer", lambda _path: Known())
    monkeypatch.setattr(checkpoint, "load_model", lambda *_arguments: (None, None))
    monkeypatch.setattr(samples, "pieces_of", lambda *_arguments, **_options: iter(["\x1b[31m", "\nb"]))
    monkeypatch.setattr(sys, "argv", ["sample", "--prompt", "a"])
    monkeypatch.setattr(sys, "stdout", screen)
    sample.main()
    assert screen.getvalue() == shown
