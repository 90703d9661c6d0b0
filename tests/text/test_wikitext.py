"""WikiText-2: the text equals the published files, articles are documents, and files win over the network."""

import doctest
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from data.clean import minimal
from data.corpus import CorpusConfig, is_up_to_date, prepare
from data.errors import DataError
from data.files import read_json, sha256_file, sha256_text, write_json
from data.layout import SPLITS, Layout
from data.sources import wikitext
from data.sources.wikitext import (
    CONFIGS,
    PUBLISHED_SHA256,
    REVISION,
    download_wikitext,
    load_wikitext,
    rejoin_rows,
    split_articles,
    wikitext_identity,
)
from data.splits import load_split

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "wikitext2"
ARTICLE = " = {title} = \n \n Text of {title} . \n \n = = Part = = \n \n More . \n \n"
TEXTS = {
    "train": " \n" + ARTICLE.format(title="One") + ARTICLE.format(title="Two"),
    "valid": " \n" + ARTICLE.format(title="Three"),
    "test": " \n" + ARTICLE.format(title="Four"),
}


def shared(name: str) -> str:
    if not (SHARED / name).exists():
        pytest.skip(f"the shared {name} is not on this machine")
    return (SHARED / name).read_bytes().decode("utf-8")


def place(folder: Path, suffix: str = "raw", texts: dict[str, str] = TEXTS) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for split, text in texts.items():
        (folder / f"wiki.{split}.{suffix}").write_bytes(text.encode("utf-8"))
    return folder


def rows_of(text: str) -> list[str]:
    """The Hub's rows: one line each, a blank line as the empty string."""
    return ["" if line == " \n" else line for line in text.splitlines(keepends=True)]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A Hub that answers from memory. The real protocol is exercised in test_hub.py."""
    import datasets

    state = SimpleNamespace(texts=dict(TEXTS), calls=[])

    def load_dataset(name: str, config: str, *, revision: str) -> dict[str, Any]:
        state.calls.append((name, config, revision))
        files = {"train": "train", "validation": "valid", "test": "test"}
        return {split: {"text": rows_of(state.texts[file])} for split, file in files.items()}

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    monkeypatch.setattr(wikitext, "resolve_revision", lambda dataset, revision, instead: f"commit-of-{revision}")
    return state


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object) -> str:
        raise AssertionError("the network was asked for")

    monkeypatch.setattr(wikitext, "resolve_revision", unreachable)


def test_example_in_the_module_holds() -> None:
    results = doctest.testmod(wikitext)
    assert results.attempted and not results.failed


@pytest.mark.parametrize(
    ("name", "num_articles"), [("wiki.test.raw", 60), ("wiki.test.tokens", 60), ("wiki.valid.tokens", 60)]
)
def test_articles_of_the_published_files(name: str, num_articles: int) -> None:
    """WikiText-2 has 600 / 60 / 60 articles; two formulas in the test split only look like titles."""
    text = shared(name)
    articles = split_articles(text)
    assert "".join(articles) == text
    assert len(articles) == num_articles
    assert articles[0].startswith(" \n = ") and all(article.startswith(" = ") for article in articles[1:])
    if name == "wiki.test.raw":
        assert articles[0].startswith(" \n = Robert Boulter = \n")
        inside = next(article for article in articles if article.startswith(" = Constant k filter = "))
        assert "\n = 1 rad / s and a nominal impedance k = \n" in inside
        assert "\n = 1 henry and capacitance C = \n" in inside


@pytest.mark.parametrize("name", ["wiki.test.raw", "wiki.test.tokens", "wiki.valid.tokens"])
def test_rows_of_the_hub_give_the_published_bytes(name: str) -> None:
    text = shared(name)
    rows = [row + "\n" if row != " " else "" for row in text.split("\n")[:-1]]
    assert sha256_text(rejoin_rows(rows, "here")) == PUBLISHED_SHA256[name]
    if name == "wiki.test.raw":
        assert len(text.encode()) - len("".join(rows).encode()) == 2934


@pytest.mark.parametrize("row", ["two\nlines\n", "no end", "a\n\n", "\nb"])
def test_row_that_is_not_one_line_is_refused(row: str) -> None:
    with pytest.raises(DataError, match=r"^there, row 1 is not one line of WikiText: "):
        rejoin_rows([" fine \n", row], "there")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", [""]),
        (" no title \n", [" no title \n"]),
        (" = A = \n \n x \n", [" = A = \n \n x \n"]),
        (" \n = A = \n \n x \n \n = B = \n \n y \n", [" \n = A = \n \n x \n \n", " = B = \n \n y \n"]),
        (" before \n \n = A = \n \n x \n", [" before \n \n = A = \n \n x \n"]),
        (" = A = \n \n x \n = 1 = \n y \n", [" = A = \n \n x \n = 1 = \n y \n"]),
        (" = A = \n \n = = S = = \n \n = = = T = = = \n \n", [" = A = \n \n = = S = = \n \n = = = T = = = \n \n"]),
        (" = A = \n \n x \n \n = B = ", [" = A = \n \n x \n \n", " = B = "]),
        (" = A = B = \n \n x \n \n = C = \n \n", [" = A = B = \n \n x \n \n", " = C = \n \n"]),
        ("\r\n = A = \r\n \r\n x \r\n \r\n = B = \r\n \r\n", ["\r\n = A = \r\n \r\n x \r\n \r\n", " = B = \r\n \r\n"]),
        (" = A = \n \n x\u2028 = no = \u2028 \n", [" = A = \n \n x\u2028 = no = \u2028 \n"]),
        (" =  = \n \n x \n", [" =  = \n \n x \n"]),
    ],
)
def test_split_articles(text: str, wanted: list[str]) -> None:
    assert split_articles(text) == wanted


def test_local_files_are_used_without_any_network(tmp_path: Path, no_hub: None) -> None:
    corpus = load_wikitext("wikitext2", place(tmp_path), None)
    assert [(document.split, document.text.split(" = ")[1]) for document in corpus.documents] == [
        *(("train", "One"), ("train", "Two"), ("val", "Three"), ("test", "Four")),
    ]
    assert corpus.revision is None
    assert corpus.provenance["origin"] == "local files"
    assert corpus.provenance["published"] == {f"wiki.{name}.raw": False for name in TEXTS}
    assert corpus.identity == wikitext_identity("wikitext2", tmp_path, None)


def test_each_source_reads_its_own_files(tmp_path: Path, no_hub: None) -> None:
    place(tmp_path, "tokens", {name: text.replace("Text", "<unk>") for name, text in TEXTS.items()})
    place(tmp_path, "raw")
    raw = load_wikitext("wikitext2", tmp_path, None)
    assert "Text" in raw.documents[0].text and "wiki.train.raw" in raw.identity["files"]
    tokens = load_wikitext("wikitext2-tokens", tmp_path, None)
    assert "<unk>" in tokens.documents[0].text and "wiki.train.tokens" in tokens.identity["files"]


@pytest.mark.parametrize("folder", ["wikitext2", "mine"])
def test_case_41_preprocessed_files_are_not_taken_for_raw(tmp_path: Path, no_hub: None, folder: str) -> None:
    place(tmp_path / folder, "tokens", dict.fromkeys(TEXTS, " = A = \n \n <unk> \n"))  # 5 of 18 characters
    for ask in (load_wikitext, wikitext_identity):
        with pytest.raises(DataError) as caught:
            ask("wikitext2", tmp_path / folder, None)
        message = str(caught.value)
        assert (
            "holds wiki.train.tokens and wiki.valid.tokens and wiki.test.tokens, pre-processed text (27.8%" in message
        )
        assert "cannot be compared; set `source: wikitext2-tokens`" in message
        place_of_tokens = {"wikitext2": "wikitext2-tokens", "mine": "mine"}[folder]
        assert (
            f"which reads wiki.train.tokens, wiki.valid.tokens, wiki.test.tokens in {tmp_path / place_of_tokens},"
            in message
        )


def test_case_41_preprocessed_text_under_a_raw_name(tmp_path: Path, no_hub: None) -> None:
    place(tmp_path, texts={**TEXTS, "valid": TEXTS["valid"].replace("Text of", "<unk> of")})
    with pytest.raises(DataError, match=r"wiki\.valid\.raw is pre-processed text, not raw: \d+\.\d% of its characters"):
        load_wikitext("wikitext2", tmp_path, None)
    long = TEXTS["valid"] + " word" * 1000 + "\n"
    place(tmp_path, texts={**TEXTS, "valid": long + "<unk>\n"})  # a text that mentions it once is no other text
    corpus = load_wikitext("wikitext2", tmp_path, None)
    assert corpus.provenance["unknown_word_share"]["wiki.valid.raw"] == pytest.approx(5 / (len(long) + 6))


def test_case_41_published_pre_processed_file_under_a_raw_name(tmp_path: Path, no_hub: None) -> None:
    place(tmp_path, texts={**TEXTS, "test": shared("wiki.test.tokens")})
    with pytest.raises(DataError, match=r"wiki\.test\.raw is pre-processed text, not raw: 6\.1% of its characters"):
        load_wikitext("wikitext2", tmp_path, None)


def test_case_41_raw_text_in_the_place_of_the_pre_processed(
    tmp_path: Path, no_hub: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PUBLISHED_SHA256, "wiki.test.raw", sha256_text(TEXTS["test"]))
    with pytest.raises(DataError, match=r"wiki\.test\.tokens is the published wiki\.test\.raw, raw text"):
        load_wikitext("wikitext2-tokens", place(tmp_path, "tokens"), None)
    place(tmp_path / "raw")
    with pytest.raises(DataError, match="raw text, and source wikitext2-tokens is pre-processed text; set"):
        load_wikitext("wikitext2-tokens", tmp_path / "raw", None)


def test_case_41_raw_and_pre_processed_files_mixed(tmp_path: Path, no_hub: None) -> None:
    place(tmp_path)
    (tmp_path / "wiki.test.raw").rename(tmp_path / "wiki.test.tokens")
    with pytest.raises(DataError, match=r"lacks wiki\.test\.raw next to .*\(wiki\.test\.tokens is another text and no"):
        load_wikitext("wikitext2", tmp_path, None)


def test_unknown_published_hash_is_said_as_unknown(tmp_path: Path, no_hub: None) -> None:
    corpus = load_wikitext("wikitext2-tokens", place(tmp_path, "tokens"), None)
    assert corpus.provenance["published"] == {
        "wiki.train.tokens": None,
        "wiki.valid.tokens": False,
        "wiki.test.tokens": False,
    }


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_case_31_articles_are_the_same_whatever_the_line_ends(line_end: str, mark: str) -> None:
    text = ARTICLE.format(title="One") + ARTICLE.format(title="Two") + ARTICLE.format(title="Three")
    articles = split_articles(mark + text.replace("\n", line_end))
    assert [minimal(article) for article in articles] == [
        ARTICLE.format(title=name) for name in ("One", "Two", "Three")
    ]


def test_some_files_missing_is_an_error_not_a_download(tmp_path: Path, no_hub: None) -> None:
    place(tmp_path)
    (tmp_path / "wiki.valid.raw").unlink()
    with pytest.raises(DataError, match=r"lacks wiki\.valid\.raw next to the other WikiText files; put them there, or"):
        load_wikitext("wikitext2", tmp_path, None)
    (tmp_path / "wiki.test.raw").unlink()
    with pytest.raises(DataError, match=r"lacks wiki\.valid\.raw and wiki\.test\.raw next to"):
        wikitext_identity("wikitext2", tmp_path, None)


def test_empty_file_is_named(tmp_path: Path, no_hub: None) -> None:
    with pytest.raises(DataError, match=r"wiki\.valid\.raw is empty; put the val text there"):
        load_wikitext("wikitext2", place(tmp_path, texts={**TEXTS, "valid": ""}), None)


def test_published_file_is_recognized(tmp_path: Path, no_hub: None) -> None:
    text = shared("wiki.test.raw")
    corpus = load_wikitext("wikitext2", place(tmp_path, texts={**TEXTS, "test": text}), None)
    assert corpus.provenance["published"] == {"wiki.train.raw": False, "wiki.valid.raw": False, "wiki.test.raw": True}


def test_test_split_cut_by_articles_into_three_files(tmp_path: Path, no_hub: None) -> None:
    """Evidence 2 of the chain: three local files, not the published ones, run through."""
    articles = split_articles(shared("wiki.test.raw"))
    texts = {"train": articles[:46], "valid": articles[46:52], "test": articles[52:]}
    layout = Layout(tmp_path)
    place(layout.raw("wikitext2"), texts={name: "".join(found) for name, found in texts.items()})
    manifest = prepare(CorpusConfig(source="wikitext2"), layout)
    assert [manifest["splits"][split]["documents"] for split in SPLITS] == [46, 6, 8]
    assert sum(manifest["splits"][split]["characters"] for split in SPLITS) == 1_288_556
    assert load_split(layout, "wikitext2", "test").documents() == texts["test"]
    assert manifest["splits"]["val"]["characters_absent_from_train"]


def test_minimal_cleaning_leaves_the_published_bytes(tmp_path: Path, no_hub: None) -> None:
    layout = Layout(tmp_path)
    place(layout.raw("wikitext2"), texts={**TEXTS, "test": shared("wiki.test.raw")})
    splits = prepare(CorpusConfig(source="wikitext2"), layout)["splits"]
    assert splits["test"]["sha256"] == PUBLISHED_SHA256["wiki.test.raw"]
    assert splits["test"]["words"] + shared("wiki.test.raw").count("\n") == 245_569  # words and ends of lines
    assert splits["test"]["distinct_characters"] == 259


def test_download_is_kept_under_the_published_names(tmp_path: Path, hub: SimpleNamespace) -> None:
    folder = tmp_path / "raw"
    corpus = load_wikitext("wikitext2", folder, "a-branch")
    assert hub.calls == [("Salesforce/wikitext", "wikitext-2-raw-v1", "commit-of-a-branch")]
    assert {path.name for path in folder.iterdir()} == {*(f"wiki.{name}.raw" for name in TEXTS), "download.json"}
    for name, text in TEXTS.items():
        assert (folder / f"wiki.{name}.raw").read_bytes() == text.encode()
    assert corpus.revision == "commit-of-a-branch" and corpus.provenance["origin"] == "the Hub"
    again = load_wikitext("wikitext2", folder, "a-branch")
    assert again == corpus and len(hub.calls) == 1


def test_tokens_are_another_config_and_other_files(tmp_path: Path, hub: SimpleNamespace) -> None:
    load_wikitext("wikitext2-tokens", tmp_path, "a-branch")
    assert hub.calls[0][1] == "wikitext-2-v1"
    assert (tmp_path / "wiki.train.tokens").exists() and not (tmp_path / "wiki.train.raw").exists()


def test_download_that_is_not_the_published_text_is_refused(tmp_path: Path, hub: SimpleNamespace) -> None:
    with pytest.raises(DataError, match=r"wiki\.train\.raw with sha256 .* but the published file has 6707892fa378…"):
        load_wikitext("wikitext2", tmp_path / "raw", None)
    assert hub.calls == [("Salesforce/wikitext", "wikitext-2-raw-v1", f"commit-of-{REVISION}")]
    assert not (tmp_path / "raw").exists()


def test_one_changed_character_in_a_download_is_seen(
    tmp_path: Path, hub: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        wikitext, "PUBLISHED_SHA256", {f"wiki.{name}.raw": sha256_text(text) for name, text in TEXTS.items()}
    )
    download_wikitext("wikitext2", tmp_path / "good", REVISION)
    hub.texts["test"] = hub.texts["test"].replace("Four", "Fore")
    with pytest.raises(DataError, match=r"gives a wiki\.test\.raw with sha256"):
        download_wikitext("wikitext2", tmp_path / "bad", REVISION)
    assert not (tmp_path / "bad").exists()


def test_another_revision_in_the_config_is_fetched_anew(tmp_path: Path, hub: SimpleNamespace) -> None:
    load_wikitext("wikitext2", tmp_path, "old")
    assert wikitext_identity("wikitext2", tmp_path, "old") is not None
    assert wikitext_identity("wikitext2", tmp_path, "commit-of-old") is not None
    assert wikitext_identity("wikitext2", tmp_path, "new") is None
    hub.texts["train"] = TEXTS["train"].replace("One", "Uno")
    corpus = load_wikitext("wikitext2", tmp_path, "new")
    assert corpus.revision == "commit-of-new" and "Uno" in corpus.documents[0].text


def test_edited_download_is_the_users_own_text(tmp_path: Path, hub: SimpleNamespace) -> None:
    load_wikitext("wikitext2", tmp_path, "old")
    before = wikitext_identity("wikitext2", tmp_path, "old")
    (tmp_path / "wiki.train.raw").write_text(TEXTS["train"].replace("One", "Mine"), encoding="utf-8")
    assert wikitext_identity("wikitext2", tmp_path, "old") != before
    corpus = load_wikitext("wikitext2", tmp_path, "old")
    assert corpus.revision is None and corpus.provenance["origin"] == "local files"
    assert "Mine" in corpus.documents[0].text and len(hub.calls) == 1


def test_damaged_record_of_a_download_is_refused(tmp_path: Path, hub: SimpleNamespace) -> None:
    load_wikitext("wikitext2", tmp_path, "old")
    write_json(tmp_path / "download.json", {"revision": "x"})
    with pytest.raises(DataError, match=r"download\.json is not the record of a download; remove .* to fetch it again"):
        load_wikitext("wikitext2", tmp_path, "old")


def test_chain_is_up_to_date_by_content(tmp_path: Path, hub: SimpleNamespace) -> None:
    layout, config = Layout(tmp_path), CorpusConfig(source="wikitext2", revision="a-branch")
    assert not is_up_to_date(config, layout)
    manifest = prepare(config, layout)
    assert manifest["revision"] == "commit-of-a-branch"
    assert manifest["identity"]["files"]["wiki.train.raw"] == sha256_file(layout.raw("wikitext2") / "wiki.train.raw")
    assert is_up_to_date(config, layout)
    other = TEXTS["train"].replace("Text of", "Other words on")
    (layout.raw("wikitext2") / "wiki.test.raw").write_bytes(other.encode())
    assert not is_up_to_date(config, layout)
    prepare(config, layout)
    assert is_up_to_date(config, layout) and len(hub.calls) == 1
    assert load_split(layout, "wikitext2", "test").text == other


def test_wikitext_cleaning_keeps_headings_as_lines(tmp_path: Path, no_hub: None) -> None:
    layout = Layout(tmp_path)
    place(layout.raw("wikitext2"))
    manifest = prepare(CorpusConfig(source="wikitext2", cleaning="wikitext"), layout)
    test = load_split(layout, "wikitext2", "test")
    assert test.text == "\n= Four =\n\nText of Four .\n\n= = Part = =\n\nMore .\n\n"
    assert manifest["cleaning"]["name"] == "wikitext" and manifest["cleaning"]["line_edge_spaces_removed"] == 4 * 12 + 3
    offsets = load_split(layout, "wikitext2", "train").document_offsets.tolist()
    assert len(offsets) == 3 and all(left < right for left, right in pairwise(offsets))


def test_constants_are_the_issues() -> None:
    assert REVISION == "b08601e04326c79dfdd32d625aee71d232d685c3"
    assert CONFIGS == {"wikitext2": "wikitext-2-raw-v1", "wikitext2-tokens": "wikitext-2-v1"}
    for name in PUBLISHED_SHA256:
        if (SHARED / name).exists():
            assert sha256_file(SHARED / name) == PUBLISHED_SHA256[name]


def test_record_names_what_was_fetched(tmp_path: Path, hub: SimpleNamespace) -> None:
    download_wikitext("wikitext2", tmp_path, "tag")
    record = read_json(tmp_path / "download.json")
    assert (record["dataset"], record["config"]) == ("Salesforce/wikitext", "wikitext-2-raw-v1")
    assert (record["requested"], record["revision"]) == ("tag", "commit-of-tag")
    assert record["files"]["wiki.test.raw"] == sha256_text(TEXTS["test"])
