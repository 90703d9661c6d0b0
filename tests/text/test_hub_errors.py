"""Files of a dataset that cannot be read, and settings of this machine that cannot work: one sentence each."""

import json
from pathlib import Path

import httpx2
import pytest

from circumstances_helpers import without_roots_rights
from data.errors import DataError
from data.sources.hub_errors import hub_errors
from local_hub import parquet, run_python, serve

ROWS = b"".join(json.dumps({"text": f"row {number}"}).encode() + b"\n" for number in range(5))
LATIN = "café".encode("latin-1")


def repository(**files: bytes) -> dict[str, bytes]:
    """A dataset whose train split is these files; `__` in a keyword is the dot of the name."""
    named = {name.replace("__", "."): content for name, content in files.items()}
    paths = "".join(f"    - {name}\n" for name in named)
    card = f"---\nconfigs:\n- config_name: default\n  data_files:\n  - split: train\n    path:\n{paths}---\n# A test\n"
    return {"README.md": card.encode(), **named}


def with_type(dtype: str) -> dict[str, bytes]:
    """A dataset whose card declares a type for its text."""
    files = repository(a__jsonl=ROWS)
    declared = f"---\ndataset_info:\n  features:\n  - name: text\n    dtype: {dtype}\n".encode()
    return {**files, "README.md": files["README.md"].replace(b"---\n", declared, 1)}


READ = "; set another `config`, `split` or `revision`, or fetch its files yourself, mend them, and use `source: text`"
DATASETS = {
    "a/script": ({"README.md": b"# x\n", "script.py": b"import datasets\n"}, "is a program", "no program is run"),
    "a/jsonl": (repository(a__jsonl=ROWS + b'{"text": "x\n' + ROWS), "cannot be read: JSON parse error", READ),
    "a/columns": (repository(a__jsonl=ROWS, b__jsonl=b'{"other": 1}\n'), "cannot be read: Couldn't cast", READ),
    "a/type": (with_type("int64"), "cannot be read: Failed to parse string: 'row 4' as a scalar of type int64", READ),
    "a/no-type": (with_type("nonsense"), "cannot be read: Feature type 'Nonsense' not found", READ),
    "a/latin-text": (repository(a__txt=LATIN + b"\n"), "its text is not UTF-8: byte 0xe9", READ),
    "a/latin-csv": (repository(a__csv=b"text,n\n" + LATIN + b",1\n"), "its text is not UTF-8: byte 0xe9", READ),
    "a/ragged": (repository(a__csv=b"text,n\na,1\nb,2,3,4\n"), "Expected 2 fields in line 3, saw 4", READ),
    "a/parquet": (repository(a__parquet=parquet({"text": ["x"]})[:-9]), "Parquet magic bytes not found", READ),
    "a/empty": (repository(a__parquet=b""), "cannot be read: Parquet file size is 0 bytes", READ),
    "a/gz": (repository(a__jsonl__gz=b"\x1f\x8b\x08\x00\x00\x00"), "cannot be read: ", READ),
    "a/zip": (repository(a__zip=b"PK\x03\x04 cut"), "cannot be read: ", READ),
    "a/card": ({"README.md": b"---\nconfigs: [\n---\n", "a.jsonl": ROWS}, "cannot be read: while parsing", READ),
    "a/second": (repository(a__jsonl=ROWS, b500__jsonl=ROWS), "cannot reach the Hub for a/second (it answers 500)", ""),
}
LOAD = """
import json, sys
from pathlib import Path
from data.errors import DataError
from data.sources.hub import HubRequest, load_hub
if "a/second" in {names!r}:
    import time
    time.sleep = lambda seconds: None  # its retries take half a minute
said = {}
for name in {names!r}:
    try:
        load_hub(Path(name), HubRequest(name, None, None, "train", "text", 10_000))
    except DataError as error:
        said[name] = str(error)
print(json.dumps(said))
"""


def test_datasets_that_cannot_be_read_are_one_sentence_each_case_45(tmp_path: Path) -> None:
    names = list(DATASETS)
    with serve({name: files for name, (files, *_) in DATASETS.items()}) as server:
        done = run_python(LOAD.replace("{names!r}", repr(names)), tmp_path, server.endpoint)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # what the libraries log would be further lines
    said = json.loads(done.stdout)
    for name, (_, *parts) in DATASETS.items():
        assert name in said[name] and "\n" not in said[name]
        for part in parts:
            assert part in said[name], said[name]
        assert not (tmp_path / name).exists()


@pytest.mark.parametrize(
    ("setting", "parts"),
    [
        pytest.param(
            {"ALL_PROXY": "socks5://me:secret@127.0.0.1:1"},
            ["ALL_PROXY (socks5://…@127.0.0.1:1)", "pip install socksio"],
            id="case_46-socks5",
        ),
        pytest.param(
            {"HTTP_PROXY": "socks://127.0.0.1:1"}, ["HTTP_PROXY (socks://127.0.0.1:1)", "http://"], id="case_46-socks"
        ),
        pytest.param({"HTTP_PROXY": "http://127.0.0.1:abc"}, ["HTTP_PROXY", "Invalid port: 'abc'"], id="case_46-port"),
        pytest.param({"HTTP_PROXY": "http://127.0.0.1:1"}, ["cannot reach the Hub", "ConnectError"], id="case_46-gone"),
        pytest.param({"HF_HOME": "{folder}/file/x"}, ["HF_HOME={folder}/file/x", "Not a directory"], id="case_46-file"),
        pytest.param(
            {"HF_HOME": "{folder}/closed/x"}, ["HF_HOME={folder}/closed/x", "Permission denied"], id="case_46-closed"
        ),
        pytest.param(
            {"HF_HOME": "{folder}/read-only"},
            ["HF_HOME={folder}/read-only", "Permission denied"],
            id="case_46-read-only",
        ),
        pytest.param({"HF_HOME": "/proc/nothing/x"}, ["HF_HOME=/proc/nothing/x", "No such file"], id="case_46-missing"),
        pytest.param(
            {"HF_DATASETS_CACHE": "{folder}/read-only/c"}, ["set HF_DATASETS_CACHE to"], id="case_46-datasets"
        ),
        pytest.param({"HF_TOKEN": "hf_sécret"}, ["HF_TOKEN holds a character that no token has"], id="case_46-token"),
        pytest.param(
            {"HF_TOKEN_PATH": "{folder}/token"}, ["{folder}/token holds a character"], id="case_46-token-file"
        ),
        pytest.param({"HF_HUB_DOWNLOAD_TIMEOUT": "abc"}, ["HF_HUB_DOWNLOAD_TIMEOUT is 'abc'"], id="case_46-timeout"),
        pytest.param({"HF_HUB_ETAG_TIMEOUT": "1.5"}, ["HF_HUB_ETAG_TIMEOUT is '1.5'"], id="case_46-etag"),
        pytest.param(
            {"SSL_CERT_FILE": "/nonexistent/ca.pem"}, ["SSL_CERT_FILE=/nonexistent/ca.pem"], id="case_46-certificates"
        ),
        pytest.param({"HF_ENDPOINT": "the hub"}, ["HF_ENDPOINT is 'the hub'"], id="case_46-endpoint"),
    ],
)
def test_a_setting_that_cannot_work_is_named(tmp_path: Path, setting: dict[str, str], parts: list[str]) -> None:
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "token").write_text("hf_sécret", encoding="utf-8")
    (tmp_path / "closed").mkdir(mode=0o000)
    (tmp_path / "read-only").mkdir(mode=0o555)
    setting = {name: value.replace("{folder}", str(tmp_path)) for name, value in setting.items()}
    (tmp_path / "work").mkdir()
    with serve({"a/good": repository(a__jsonl=ROWS)}) as server:
        code = LOAD.replace("{names!r}", "['a/good']")
        done = run_python(code, tmp_path / "work", server.endpoint, without_roots_rights, **setting)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    said = json.loads(done.stdout)["a/good"]
    assert "\n" not in said and "secret" not in said and "sécret" not in said
    for part in parts:
        assert part.replace("{folder}", str(tmp_path)) in said, said


@pytest.mark.parametrize(
    "error",
    [
        TypeError("x"),
        KeyError("x"),
        AssertionError("x"),
        ImportError("no module x"),
        OSError("x"),
        RuntimeError("x"),
        UnicodeEncodeError("ascii", "é", 0, 1, "x"),
        EOFError("x"),
        MemoryError("x"),
    ],
)
def test_bugs_pass_case_45(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, hub_errors("a/b", "do this"):
        raise error
    assert caught.value is error


def test_an_address_error_without_a_proxy_names_the_endpoint_case_46(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://x:y")
    with pytest.raises(DataError, match=r"the address in HF_ENDPOINT \(http://x:y\)"), hub_errors("a/b", "do this"):
        raise httpx2.InvalidURL("Invalid port: 'y'")
