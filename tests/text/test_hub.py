"""The Hub: once over real HTTP against a server on this machine, then never again; and one sentence without it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from huggingface_hub import errors

from data.errors import DataError
from data.files import read_json, sha256_file, write_json
from data.sources import hub
from data.sources.hub import HubRequest, hub_identity, load_hub, resolve_revision
from data.sources.hub_errors import hub_errors
from local_hub import COMMIT, NOTHING_LISTENS, LocalHub, dataset_repository, run_python, serve

ROWS = ["", " = One = \n", "", " Text of one @-@ two . \n", "", " = Two = \n", "", " Zoë 😀 \n"]
VAL_ROWS = ["", " = Three = \n", "", " Text @,@ three . \n"]
TEST_ROWS = ["", " = Four = \n", "", " Bob . \n"]
WIKITEXT = {
    "Salesforce/wikitext": dataset_repository(
        {
            "wikitext-2-raw-v1": {"train": ROWS, "validation": VAL_ROWS, "test": TEST_ROWS},
            "wikitext-2-v1": {"train": ["", " = T = \n"], "validation": ["", " = V = \n"], "test": ["", " = S = \n"]},
        }
    )
}
STORIES = [f"Story {number}.\nOnce\r\n😀 {'x' * number}" for number in range(40)]
TINY = {"someone/tiny-stories": dataset_repository({"default": {"train": STORIES, "validation": ["other"]}})}

PREPARE = """
import json, sys
from pathlib import Path
from data.errors import UserError
from data.layout import Layout
from data.corpus import CorpusConfig, is_up_to_date, prepare
config, layout = CorpusConfig(**{settings!r}), Layout(Path("."))
before = is_up_to_date(config, layout)
try:
    manifest = prepare(config, layout)
except UserError as error:
    print(error, file=sys.stderr)
    sys.exit(2)
print(json.dumps([before, manifest, "datasets" in sys.modules]))
"""


def run_prepare(folder: Path, endpoint: str, **settings: Any) -> tuple[bool, dict[str, Any], bool]:
    """Prepare the corpus in a fresh process: (was up to date, manifest, whether `datasets` was imported)."""
    done = run_python(PREPARE.replace("{settings!r}", repr(settings)), folder, endpoint)
    assert done.returncode == 0, done.stderr
    up_to_date, manifest, imported = json.loads(done.stdout)
    return up_to_date, manifest, imported


def refused(folder: Path, endpoint: str, **settings: Any) -> str:
    """The one line on stderr with which preparing the corpus is refused."""
    done = run_python(PREPARE.replace("{settings!r}", repr(settings)), folder, endpoint)
    assert done.returncode == 2, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_wikitext_over_http_then_with_the_server_gone(tmp_path: Path) -> None:
    settings = {"source": "wikitext2", "revision": COMMIT}
    with serve(WIKITEXT) as server:
        up_to_date, manifest, _ = run_prepare(tmp_path, server.endpoint, **settings)
        assert any("train.parquet" in request for request in server.requests)
        assert not any("wikitext-2-v1" in request and "GET" in request for request in server.requests)
    assert not up_to_date and manifest["revision"] == COMMIT
    published = " \n = One = \n \n Text of one @-@ two . \n \n = Two = \n \n Zoë 😀 \n"
    assert (tmp_path / "data/raw/wikitext2/wiki.train.raw").read_text(encoding="utf-8") == published
    assert (tmp_path / "data/processed/wikitext2_train_clean.txt").read_bytes() == published.encode()
    assert manifest["splits"]["train"]["documents"] == 2

    up_to_date, again, imported = run_prepare(tmp_path, server.endpoint, **settings)  # nothing listens there now
    assert up_to_date and again == manifest and not imported
    up_to_date, cleaned, imported = run_prepare(tmp_path, server.endpoint, **settings, cleaning="wikitext")
    assert not up_to_date and not imported and cleaned["revision"] == COMMIT
    assert cleaned["cleaning"]["wikitext_joins_undone"] == 2


def test_wikitext_tokens_over_http(tmp_path: Path) -> None:
    with serve(WIKITEXT) as server:
        _, manifest, _ = run_prepare(tmp_path, server.endpoint, source="wikitext2-tokens", revision="main")
    assert manifest["revision"] == COMMIT and next(iter(manifest["identity"]["files"])) == "wiki.train.tokens"
    assert (tmp_path / "data/processed/wikitext2-tokens_test_clean.txt").read_text() == " \n = S = \n"


def test_download_at_the_default_revision_must_be_the_published_text(tmp_path: Path) -> None:
    with serve(WIKITEXT) as server:
        message = refused_with_progress(tmp_path, server)
    assert "gives a wiki.train.raw with sha256" in message and "published file has 6707892fa378…" in message
    assert not (tmp_path / "data").exists()


def refused_with_progress(folder: Path, server: LocalHub) -> str:
    done = run_python(
        PREPARE.replace("{settings!r}", repr({"source": "wikitext2"})),
        folder,
        server.endpoint,
        HF_DATASETS_DISABLE_PROGRESS_BARS="1",
    )
    assert done.returncode == 2, done.stderr
    return done.stderr.splitlines()[-1]


def test_stories_are_streamed_up_to_the_cap_then_kept(tmp_path: Path) -> None:
    cap = sum(map(len, STORIES[:30])) + 5
    settings = {
        "source": "hub",
        "dataset": "someone/tiny-stories",
        "max_characters": cap,
        "fractions": (0.6, 0.2, 0.2),
    }
    with serve(TINY) as server:
        _, manifest, imported = run_prepare(tmp_path, server.endpoint, **settings)
    assert imported and manifest["revision"] == COMMIT
    assert sum(split["documents"] for split in manifest["splits"].values()) == 30
    assert manifest["cleaning"]["crlf_converted"] == 30 == manifest["cleaning"]["final_newlines_added"]
    kept = (tmp_path / "data/raw/tiny-stories/documents.jsonl").read_bytes()
    assert [json.loads(line)["text"] for line in kept.splitlines()] == STORIES[:30]
    texts = [(tmp_path / f"data/processed/tiny-stories_{split}_clean.txt").read_text() for split in manifest["splits"]]
    assert sum(map(len, texts)) == sum(map(len, STORIES[:30]))  # one \r less and one \n more in each

    up_to_date, again, imported = run_prepare(tmp_path, NOTHING_LISTENS, **settings)
    assert up_to_date and again == manifest and not imported
    for path in (tmp_path / "data/processed").iterdir():
        path.unlink()
    up_to_date, again, imported = run_prepare(tmp_path, NOTHING_LISTENS, **settings)
    assert not up_to_date and again == manifest and not imported


REFUSED = """
import json
from pathlib import Path
from data.errors import DataError
from data.layout import Layout
from data.corpus import CorpusConfig, prepare
messages = {}
for name, settings in {cases!r}.items():
    try:
        prepare(CorpusConfig(source="hub", **settings), Layout(Path(name)))
    except DataError as error:
        messages[name] = str(error)
print(json.dumps(messages))
"""


def test_what_the_hub_does_not_have_is_one_sentence(tmp_path: Path) -> None:
    tiny = {"dataset": "someone/tiny-stories"}
    cases = {
        "dataset": ({"dataset": "someone/else"}, "the Hub has no someone/else at this revision"),
        "no config": ({"dataset": "Salesforce/wikitext"}, "Config name is missing"),
        "config": ({**tiny, "config": "large"}, "BuilderConfig 'large' not found"),
        "column": ({**tiny, "text_column": "story"}, "no column 'story'; its columns are text; set text_column"),
        "split": ({**tiny, "split": "dev"}, "Bad split: dev"),
        "cap": ({**tiny, "max_characters": 3}, "no text within max_characters = 3"),
    }
    code = REFUSED.replace("{cases!r}", repr({name: settings for name, (settings, _) in cases.items()}))
    with serve({**TINY, **WIKITEXT}) as server:
        done = run_python(code, tmp_path, server.endpoint)  # one process for all: importing `datasets` is slow
    assert done.returncode == 0, done.stderr
    messages = json.loads(done.stdout)
    for name, (_, part) in cases.items():
        assert part in messages[name] and "\n" not in messages[name]
        assert not (tmp_path / name).exists()


@pytest.mark.parametrize("offline", [False, True])
def test_no_network_and_no_files_is_one_sentence(tmp_path: Path, offline: bool) -> None:
    environment = {"HF_HUB_OFFLINE": "1"} if offline else {}
    settings = {"source": "wikitext2"}
    done = run_python(PREPARE.replace("{settings!r}", repr(settings)), tmp_path, NOTHING_LISTENS, **environment)
    assert done.returncode == 2 and done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("cannot reach the Hub for Salesforce/wikitext (")
    where = Path("data/raw/wikitext2")
    assert f"put wiki.train.raw, wiki.valid.raw, wiki.test.raw into {where}, or run `make demo`" in lines[0]


def test_no_network_for_a_hub_dataset(tmp_path: Path) -> None:
    message = refused(tmp_path, NOTHING_LISTENS, source="hub", dataset="someone/tiny-stories")
    assert "cannot reach the Hub" in message and "`source: text`" in message and "`make demo`" in message


# From here on without any process or server of its own.

REQUEST = HubRequest("a/b", None, None, "train", "text", 1000)


@contextmanager
def no_translation(dataset: str, instead: str) -> Iterator[None]:
    yield


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Rows that `datasets.load_dataset` streams; the commit is always `abc`."""
    import datasets

    found: list[dict[str, Any]] = [{"text": "one"}, {"text": "two\r\n"}, {"text": None}, {"text": "\u2028\x85"}]
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: iter(found))
    monkeypatch.setattr(hub, "resolve_revision", lambda *_: "abc")
    return found


def test_rows_come_back_from_the_copy_as_they_were(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    corpus = load_hub(tmp_path, REQUEST)
    assert [document.text for document in corpus.documents] == ["one", "two\r\n", "", "\u2028\x85"]
    assert corpus.revision == "abc" and corpus.provenance["num_rows_read"] == 4
    rows.clear()
    assert load_hub(tmp_path, REQUEST) == corpus
    assert hub_identity(tmp_path, REQUEST) == corpus.identity


@pytest.mark.parametrize(("cap", "wanted"), [(3, 1), (7, 1), (8, 3), (9, 3), (10, 4), (1000, 4)])
def test_cap_takes_whole_documents(tmp_path: Path, rows: list[dict[str, Any]], cap: int, wanted: int) -> None:
    request = HubRequest("a/b", None, None, "train", "text", cap)
    assert len(load_hub(tmp_path, request).documents) == wanted


def test_another_request_is_fetched_anew(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    load_hub(tmp_path, REQUEST)
    other = HubRequest("a/b", "large", None, "train", "text", 1000)
    assert hub_identity(tmp_path, other) is None
    rows[:] = [{"text": "large"}]
    assert load_hub(tmp_path, other).documents[0].text == "large"


def test_edited_copy_is_refused(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    identity = load_hub(tmp_path, REQUEST).identity
    path = tmp_path / "documents.jsonl"
    path.write_bytes(path.read_bytes().replace(b"one", b"ONE"))
    assert hub_identity(tmp_path, REQUEST) != identity
    with pytest.raises(DataError) as caught:
        load_hub(tmp_path, REQUEST)
    for part in (str(path), str(tmp_path / "download.json"), sha256_file(path)[:12], "remove", "`source: text`"):
        assert part in str(caught.value)


def test_interrupted_download_is_fetched_again(
    tmp_path: Path, rows: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(hub, "write_json", interrupted)
        with pytest.raises(KeyboardInterrupt):
            load_hub(tmp_path, REQUEST)
    assert hub_identity(tmp_path, REQUEST) is None
    assert len(load_hub(tmp_path, REQUEST).documents) == 4


def test_damaged_record_is_refused(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    load_hub(tmp_path, REQUEST)
    record = read_json(tmp_path / "download.json")
    del record["sha256"]
    write_json(tmp_path / "download.json", record)
    with pytest.raises(DataError, match="is not the record of a download; remove"):
        load_hub(tmp_path, REQUEST)


def test_lone_surrogate_in_a_row_is_refused(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    rows.append({"text": "ab\udc00"})
    with pytest.raises(DataError, match=r"^a/b, row 4 holds the lone surrogate U\+DC00 at character 2"):
        load_hub(tmp_path, REQUEST)
    assert list(tmp_path.iterdir()) == []


def test_column_of_another_type_is_refused(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    rows.append({"text": 3})
    with pytest.raises(DataError, match="a/b, row 4: column 'text' holds int, not text; set text_column"):
        load_hub(tmp_path, REQUEST)


def test_connection_that_breaks_in_the_middle_is_no_disk_error(
    tmp_path: Path, rows: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    def breaking() -> Iterator[dict[str, Any]]:
        yield rows[0]
        raise ConnectionError("Server Disconnected")

    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: breaking())
    with pytest.raises(DataError, match=r"^cannot reach the Hub for a/b \(ConnectionError\); use local files"):
        load_hub(tmp_path, REQUEST)
    assert list(tmp_path.iterdir()) == []


def http_error(kind: type[errors.HfHubHTTPError], status: int) -> errors.HfHubHTTPError:
    return kind("x", response=httpx2.Response(status, request=httpx2.Request("GET", "http://hub")))


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (httpx2.ConnectError("x"), r"^cannot reach the Hub for a/b \(ConnectError\); do this$"),
        (httpx2.ReadTimeout("x"), r"^cannot reach the Hub for a/b \(ReadTimeout\); do this$"),
        (httpx2.ProxyError("x"), r"^cannot reach the Hub for a/b \(ProxyError\); do this$"),
        (errors.OfflineModeIsEnabled("x"), r"\(OfflineModeIsEnabled\); do this$"),
        (errors.LocalEntryNotFoundError("x"), r"\(LocalEntryNotFoundError\); do this$"),
        (http_error(errors.HfHubHTTPError, 503), r"\(it answers 503\); do this$"),
        (http_error(errors.HfHubHTTPError, 429), r"\(it answers 429\); do this$"),
        (http_error(errors.HfHubHTTPError, 403), r"^the Hub refuses a/b with status 403; .* do this$"),
        (http_error(errors.RepositoryNotFoundError, 404), r"^the Hub has no a/b at this revision"),
        (http_error(errors.GatedRepoError, 403), r"^the Hub has no a/b|refuses a/b"),
        (http_error(errors.RevisionNotFoundError, 404), r"^the Hub has no a/b at this revision"),
        (json.JSONDecodeError("x", "<html>", 0), r"\(what answers is not the Hub\); do this$"),
        (FileNotFoundError("no\ndata  files"), r"^a/b on the Hub: no data files; check id, config and revision$"),
        (ValueError("BuilderConfig 'x' not found.\n"), r"^a/b on the Hub: BuilderConfig 'x' not found\.$"),
    ],
)
def test_errors_of_the_hub_become_one_sentence(error: Exception, message: str) -> None:
    with pytest.raises(DataError, match=message), hub_errors("a/b", "do this"):
        raise error


@pytest.mark.parametrize("error", [ValueError("a bug"), KeyError("x"), PermissionError("x"), DataError("ours")])
def test_other_errors_pass(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, hub_errors("a/b", "do this"):
        raise error
    assert caught.value is error


def test_commit_that_the_hub_does_not_name(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    class Nameless:
        def dataset_info(self, *_: object, **__: object) -> Any:
            return type("Info", (), {"sha": None})

    monkeypatch.setattr(huggingface_hub, "HfApi", Nameless)
    with pytest.raises(DataError, match="the Hub names no commit for a/b at main; do this"):
        resolve_revision("a/b", None, "do this")
