"""A small Hub on this machine: serves dataset repositories over HTTP as `datasets` asks for them.

`huggingface_hub` reads HF_ENDPOINT when it is imported, so whatever talks to this server runs in a process of its
own: see `run_python`.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

REPOSITORY = Path(__file__).resolve().parents[1]
COMMIT = "c0ffee" + "0" * 34
NOTHING_LISTENS = "http://127.0.0.1:9"  # the discard port


def parquet(columns: dict[str, list]) -> bytes:
    """A parquet file of these columns."""
    buffer = BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def readme(configs: dict[str, list[str]]) -> bytes:
    """A dataset card whose configurations have the given splits, each in `<config>/<split>.parquet`."""
    lines = ["---", "configs:"]
    for config, splits in configs.items():
        lines += [f"- config_name: {config}", "  data_files:"]
        lines += [f"  - split: {split}\n    path: {config}/{split}.parquet" for split in splits]
    return "\n".join([*lines, "---", "# A test", ""]).encode()


def dataset_repository(configs: dict[str, dict[str, list]], column: str = "text") -> dict[str, bytes]:
    """Files of a dataset repository from config -> split -> values of its one column."""
    files = {"README.md": readme({config: list(splits) for config, splits in configs.items()})}
    for config, splits in configs.items():
        for split, values in splits.items():
            files[f"{config}/{split}.parquet"] = parquet({column: values})
    return files


class LocalHub:
    """What a running server knows: its repositories, its address, and the requests it has answered."""

    def __init__(self, repositories: dict[str, dict[str, bytes]]) -> None:
        self.repositories = repositories
        self.requests: list[str] = []
        self.endpoint = ""

    def info(self, repository: str) -> dict:
        """`/api/datasets/<id>`: the commit and the list of files."""
        return {
            "id": repository,
            "_id": "0" * 24,
            "sha": COMMIT,
            "private": False,
            "gated": False,
            "disabled": False,
            "tags": [],
            "downloads": 0,
            "likes": 0,
            "siblings": [{"rfilename": name} for name in self.repositories[repository]],
        }

    def entries(self, repository: str, folder: str, recursive: bool) -> list[dict]:
        """`/api/datasets/<id>/tree/<revision>/<folder>`: files and folders in it."""
        prefix = folder + "/" if folder else ""
        found: dict[str, dict] = {}
        for name, content in self.repositories[repository].items():
            if not name.startswith(prefix):
                continue
            head, _, tail = name[len(prefix) :].partition("/")
            if tail:
                path = prefix + head
                found[path] = {"type": "directory", "path": path, "size": 0, "oid": _etag(path.encode())}
            if recursive or not tail:
                found[name] = self.entry(name, content)
        return list(found.values())

    @staticmethod
    def entry(name: str, content: bytes) -> dict:
        """A file as the API describes it."""
        return {"type": "file", "path": name, "size": len(content), "oid": _etag(content)}


def _etag(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()


_API = re.compile(r"/api/datasets/(?P<id>[^/]+/[^/]+)(?:/(?P<action>revision|tree|paths-info)/(?P<rest>.*))?")
_FILE = re.compile(r"/datasets/(?P<id>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<name>.*)")


def _handler(hub: LocalHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.answer()

        def do_HEAD(self) -> None:
            self.answer()

        def do_POST(self) -> None:
            self.answer()

        def answer(self) -> None:
            url = urlsplit(self.path)
            path, query = unquote(url.path), parse_qs(url.query)
            hub.requests.append(f"{self.command} {path}")
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if (match := _FILE.fullmatch(path)) and match["id"] in hub.repositories:
                self.send_file(match["id"], match["name"])
            elif (match := _API.fullmatch(path)) and match["id"] in hub.repositories:
                self.send_api(match, query, body)
            else:
                self.send(404, b"", {"X-Error-Code": "RepoNotFound"})

        def send_api(self, match: re.Match, query: dict, body: bytes) -> None:
            repository, action = match["id"], match["action"]
            if action in (None, "revision"):
                value: object = hub.info(repository)
            elif action == "tree":
                folder = match["rest"].partition("/")[2]
                value = hub.entries(repository, folder, query.get("recursive", ["false"])[0].lower() == "true")
            else:
                names = json.loads(body)["paths"]
                files = hub.repositories[repository]
                value = [hub.entry(name, files[name]) for name in names if name in files]
            self.send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

        def send_file(self, repository: str, name: str) -> None:
            content = hub.repositories[repository].get(name)
            headers = {"X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
            if content is None:
                self.send(404, b"", {**headers, "X-Error-Code": "EntryNotFound"})
                return
            if "500" in name:  # the name of a file that this server fails to give
                self.send(500, b"", headers)
                return
            headers["ETag"] = f'"{_etag(content)}"'
            if span := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
                start, end = int(span[1]), min(int(span[2] or len(content)), len(content) - 1)
                headers["Content-Range"] = f"bytes {start}-{end}/{len(content)}"
                self.send(206, content[start : end + 1], headers)
            else:
                self.send(200, content, headers)

        def send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for key, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Keep the test's output clean; `hub.requests` has the log."""

    return Handler


@contextmanager
def serve(repositories: dict[str, dict[str, bytes]]) -> Iterator[LocalHub]:
    """Run a hub with these repositories (id -> file name -> bytes) until the block ends."""
    hub = LocalHub(repositories)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    server.daemon_threads = True
    hub.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def run_python(
    code: str,
    folder: Path,
    endpoint: str,
    prepared: Callable[[list[str]], list[str]] = list,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Run `code` in `folder` with an empty Hub cache of its own, against the Hub at `endpoint`.

    `prepared` makes the command that is run from the one that is given.
    """
    inherited = {
        key: value for key, value in os.environ.items() if not key.startswith("HF_") and "proxy" not in key.lower()
    }
    settings = {
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(folder / "hf_home"),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "PYTHONPATH": str(REPOSITORY),
        "PYTHONUTF8": "1",
        "USE_TORCH": "0",  # `datasets` would import torch for nothing, which takes seconds
    }
    return subprocess.run(
        prepared([sys.executable, "-c", code]),
        cwd=folder,
        env={**inherited, **settings, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
