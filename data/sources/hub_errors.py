"""What the Hub's client and `datasets` raise, in one sentence: the network, this machine's settings, or the dataset."""

import errno
import json
import logging
import os
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from data.errors import DataError, UserError, cause_of

_TOO_MANY_REQUESTS, _SERVER_ERROR = 429, 500
_NO_NUMBER = ("invalid literal for int", "could not convert string to float")
_FROM_DATASETS = ("BuilderConfig", "Config name", "Bad split")
_READERS = {"datasets", "fsspec", "pyarrow", "pandas", "yaml", "gzip", "zlib", "bz2", "lzma", "zipfile"}
"""Packages that read a dataset's files: an error of theirs tells of the files."""
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_CACHES = ("HF_TOKEN_PATH", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_DATASETS_CACHE", "HF_HOME", "XDG_CACHE_HOME")
_MAX_SHOWN = 300


def import_datasets() -> ModuleType:
    """`datasets`, which takes seconds to import, without its log: what it logs before it raises is in our sentence."""
    import datasets

    logging.getLogger("datasets").setLevel(logging.CRITICAL)
    return datasets  # type: ignore[no-any-return]


@contextmanager
def hub_errors(dataset: str, instead: str) -> Iterator[None]:
    """Turn the many exceptions of the Hub's client and of `datasets` into one DataError. Others, bugs, pass.

    The sentence tells a Hub that cannot be reached, or that has or gives no such dataset, from a setting of this
    machine (proxy, token, cache folder) and from files that cannot be read. `instead` is how to go on without it.
    """
    try:
        import huggingface_hub.constants  # noqa: F401 - reads the environment, and refuses what is no number

        logging.getLogger("huggingface_hub").setLevel(logging.CRITICAL)
        yield
    except UserError:
        raise
    except Exception as error:
        explained = (
            _setting_error(error, instead) or _answer_error(error, dataset, instead) or _data_error(error, dataset)
        )
        if explained is None:
            raise
        raise explained from error


def _setting_error(error: Exception, instead: str) -> DataError | None:
    """The sentence if a setting of this machine is the cause: a number, proxy, token, certificate, cache folder."""
    import httpx2  # the HTTP library of huggingface_hub

    text = str(error)
    if isinstance(error, ValueError) and text.startswith(_NO_NUMBER):
        for name, value in os.environ.items():
            if name.startswith("HF_") and repr(value) in text:
                return DataError(f"{name} is {value!r}, which is no number that fits; correct it, or unset it")
    is_socks = isinstance(error, ImportError) and "SOCKS proxy" in text
    if is_socks or text.startswith("Unknown scheme for proxy") or isinstance(error, httpx2.InvalidURL):
        return _address_error(text.partition(". Make")[0], is_socks)
    if isinstance(error, httpx2.UnsupportedProtocol):
        return DataError(
            f"HF_ENDPOINT is {os.environ.get('HF_ENDPOINT', '')!r}, which is no address that begins with https://; "
            "correct it, or unset it"
        )
    is_header = isinstance(error, UnicodeEncodeError) and error.object.startswith("Bearer ")
    if is_header or isinstance(error, httpx2.LocalProtocolError):
        return DataError(f"{_token_place()} holds a character that no token has; set the right token, or remove it")
    if isinstance(error, OSError):
        return _file_error(error, instead)
    return None


def _address_error(said: str, is_socks: bool) -> DataError:
    named = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy") and value}
    named = {name: value for name, value in named.items() if name.lower() != "no_proxy"}
    odd = {name: value for name, value in named.items() if not value.startswith(("http://", "https://"))}
    if is_socks:
        odd = {name: value for name, value in odd.items() if value.startswith("socks5")} or odd
    shown = ", ".join(f"{name} ({_without_password(value)})" for name, value in (odd or named).items())
    if not shown:
        shown = f"HF_ENDPOINT ({os.environ.get('HF_ENDPOINT', '')})"
    advice = "`pip install socksio`, or name a proxy with http://" if is_socks else "name a proxy with http://"
    return DataError(f"the address in {shown} cannot be used ({said}); {advice}, or unset it")


def _without_password(address: str) -> str:
    head, at, host = address.rpartition("@")
    return f"{head.partition('://')[0]}://…@{host}" if at else address


def _token_place() -> str:
    from huggingface_hub import constants

    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        if os.environ.get(name):
            return name
    return str(constants.HF_TOKEN_PATH)


def _file_error(error: OSError, instead: str) -> DataError | None:
    """The sentence for a refusal of this machine's file system; None for what the network or the Hub says."""
    given = [f"{name}={os.environ[name]}" for name in _CERTIFICATES if os.environ.get(name)]
    is_about_certificates = isinstance(error, ssl.SSLError) or (error.errno == errno.ENOENT and error.filename is None)
    if is_about_certificates and given:
        return DataError(f"the certificates of {', '.join(given)} cannot be read ({error}); correct it, or unset it")
    refused = next((inner for inner in _chain(error) if _is_about_caches(inner)), None)
    if not isinstance(refused, OSError):
        return None
    path = Path(os.fsdecode(refused.filename))
    names = [name for name in _CACHES if os.environ.get(name) and _is_related(path, Path(os.environ[name]))]
    where = f" ({names[0]}={os.environ[names[0]]})" if names else ""
    cause = cause_of(refused).partition(";")[0]
    advice = f"set {names[0] if names else 'HF_HOME'} to a folder that you can write, or {instead}"
    return DataError(f"cannot use {path}, where the Hub's files are kept{where}: {cause}; {advice}")


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and all that led to it."""
    inner: BaseException | None = error
    while inner is not None:
        yield inner
        inner = inner.__cause__ or inner.__context__


def _is_about_caches(error: BaseException) -> bool:
    if not (isinstance(error, OSError) and error.errno is not None and error.filename is not None):
        return False
    path = Path(os.fsdecode(error.filename))
    return any(_is_related(path, folder) for folder in _cache_folders())


def _cache_folders() -> list[Path]:
    from huggingface_hub import constants

    found = [constants.HF_HOME, constants.HF_HUB_CACHE, constants.HF_TOKEN_PATH]
    datasets: Any = sys.modules.get("datasets")
    if datasets is not None:
        found.append(datasets.config.HF_DATASETS_CACHE)
    return [Path(folder) for folder in found]


def _is_related(path: Path, folder: Path) -> bool:
    return path.is_relative_to(folder) or folder.is_relative_to(path)


def _answer_error(error: Exception, dataset: str, instead: str) -> DataError | None:
    """The sentence for what the network or the Hub answers."""
    import httpx2
    from huggingface_hub import errors

    if isinstance(error, errors.RepositoryNotFoundError | errors.RevisionNotFoundError):
        return DataError(f"the Hub has no {dataset} at this revision, or it is private; check id and revision")
    if isinstance(error, errors.HfHubHTTPError):
        status = error.response.status_code
        if status == _TOO_MANY_REQUESTS or status >= _SERVER_ERROR:
            return _unreachable(dataset, f"it answers {status}", instead)
        return DataError(f"the Hub refuses {dataset} with status {status}; log in or choose another, or {instead}")
    # ConnectionError includes the Hub's offline mode; LocalEntryNotFoundError: not reached and not cached
    if isinstance(error, ConnectionError | TimeoutError | httpx2.TransportError | errors.LocalEntryNotFoundError):
        return _unreachable(dataset, type(error).__name__, instead)
    if isinstance(error, json.JSONDecodeError):
        return _unreachable(dataset, "what answers is not the Hub", instead)
    return None


def _unreachable(dataset: str, cause: str, instead: str) -> DataError:
    return DataError(f"cannot reach the Hub for {dataset} ({cause}); {instead}")


def _data_error(error: Exception, dataset: str) -> DataError | None:
    """The sentence for files of the dataset that are not there, or that their readers refuse."""
    said = _one_line(error)
    if isinstance(error, FileNotFoundError) and error.errno is None:  # DatasetNotFoundError, DataFilesNotFoundError
        return DataError(f"{dataset} on the Hub: {said}; check id, config and revision")
    if isinstance(error, ValueError) and str(error).startswith(_FROM_DATASETS):
        return DataError(f"{dataset} on the Hub: {said}")
    if isinstance(error, RuntimeError) and "scripts are no longer supported" in said:
        return DataError(
            f"{dataset} on the Hub is a program ({said}), and no program is run; choose a dataset of parquet, JSON, "
            "CSV or text files, such as a converted `revision` of it"
        )
    if isinstance(error, MemoryError) or not _is_of_a_reader(error):
        return None
    if isinstance(error, UnicodeDecodeError):
        byte = error.object[error.start]
        said = f"its text is not UTF-8: byte 0x{byte:02x} ({error.reason})"
    return DataError(
        f"{dataset} on the Hub cannot be read: {said.rstrip('.;')}; set another `config`, `split` or `revision`, or "
        "fetch its files yourself, mend them, and use `source: text`"
    )


def _is_of_a_reader(error: Exception) -> bool:
    """Whether a package that reads files has an exception of its own for this, or raised it deep in its own code."""
    if any(kind.__module__.partition(".")[0] in _READERS for kind in type(error).__mro__):
        return True
    if not isinstance(error, ValueError | EOFError):
        return False
    frame = error.__traceback__
    called = set()
    while frame is not None:
        called.add(str(frame.tb_frame.f_globals.get("__name__", "")).partition(".")[0])
        frame = frame.tb_next
    return bool(called & _READERS)


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"
