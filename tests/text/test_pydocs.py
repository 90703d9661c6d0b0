"""The offline corpus: long docstrings, once each, in a fixed order, from parsed and never imported sources."""

import itertools
import platform
import sys
from pathlib import Path

import pytest

from data.errors import DataError
from data.sources import pydocs
from data.sources.pydocs import (
    MINIMUM_CHARACTERS,
    SourceFile,
    collect_docstrings,
    environment_files,
    load_pydocs,
    package_files,
    pydocs_identity,
    read_docstrings,
)

LONG = "What it does, said at length. " * 9 + "The end."


def write(folder: Path, name: str, source: str) -> SourceFile:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(source.encode("utf-8", "surrogatepass"))
    return SourceFile(name.removesuffix(".py").replace("/", "."), path)


def texts(file: SourceFile) -> list[str]:
    docstrings = read_docstrings(file)
    assert docstrings is not None
    return [docstring.text for docstring in docstrings]


def test_all_kinds_of_definitions_wherever_they_stand(tmp_path: Path) -> None:
    source = f'''"""Module. {LONG}"""
class A:
    """Class. {LONG}"""
    def method(self):
        """Method. {LONG}"""
        def inner():
            """Inner. {LONG}"""
if True:
    async def coroutine():
        """Coroutine. {LONG}"""
else:
    try:
        pass
    except ValueError:
        def handler():
            """Handler. {LONG}"""
    finally:
        with open("x"):
            def last():
                """Last. {LONG}"""
match 3:
    case 3:
        def case():
            """Case. {LONG}"""
'''
    found = read_docstrings(write(tmp_path, "m.py", source))
    assert found is not None
    assert [docstring.text.split(".")[0] for docstring in found] == [
        *("Module", "Class", "Method", "Inner", "Coroutine", "Handler", "Last", "Case"),
    ]
    assert [docstring.line for docstring in found] == [1, 2, 4, 6, 9, 15, 19, 23]
    assert {docstring.module for docstring in found} == {"m"}


def test_length_is_counted_after_the_indentation_is_gone(tmp_path: Path) -> None:
    def body(length: int) -> str:
        return f'def f():\n    """{"x" * (length - 2)}\n        y\n    """\n'

    assert MINIMUM_CHARACTERS == 200
    assert texts(write(tmp_path, "long.py", body(200))) == ["x" * 198 + "\ny"]
    assert texts(write(tmp_path, "short.py", body(199))) == []


def test_strings_that_are_no_docstrings_stay_out(tmp_path: Path) -> None:
    source = (
        f'x = 1\n"""{LONG}"""\ndef f():\n    y = """{LONG}"""\n    """{LONG}"""\ndef g():\n    f"""{LONG}{{x}}"""\n'
    )
    assert texts(write(tmp_path, "m.py", source)) == []


def test_nothing_is_executed(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    source = f'"""{LONG}"""\nopen({str(marker)!r}, "w")\nraise SystemExit\n'
    assert texts(write(tmp_path, "m.py", source)) == [LONG]
    assert not marker.exists()


def test_invalid_escapes_do_not_warn(tmp_path: Path) -> None:
    assert texts(write(tmp_path, "m.py", f'"""A \\d. {LONG}"""\n')) == [f"A \\d. {LONG}"]


def test_declared_encoding_is_obeyed(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_bytes(f'# -*- coding: latin-1 -*-\n"""Zoë. {LONG}"""\n'.encode("latin-1"))
    assert texts(SourceFile("m", path))[0].startswith("Zoë.")


@pytest.mark.parametrize("source", ["print 'two'\n", "def f(:\n", "x = 1\x00\n", "# -*- coding: nonsense -*-\n"])
def test_unparsable_file_is_reported_not_hidden(tmp_path: Path, source: str) -> None:
    bad = write(tmp_path, "bad.py", source)
    assert read_docstrings(bad) is None
    docstrings, unparsed = collect_docstrings([bad, write(tmp_path, "good.py", f'"""{LONG}"""')])
    assert unparsed == ["bad"] and [docstring.module for docstring in docstrings] == ["good"]


def test_unreadable_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read .*gone\.py: No such file"):
        read_docstrings(SourceFile("gone", tmp_path / "gone.py"))


def test_order_is_module_then_line_and_the_first_of_equals_stays(tmp_path: Path) -> None:
    late = write(tmp_path, "zeta.py", f'"""{LONG}"""\ndef f():\n    """F. {LONG}"""\n')
    early = write(tmp_path, "alpha.py", f'def g():\n    """{LONG}"""\ndef h():\n    """H. {LONG}"""\n')
    docstrings, _ = collect_docstrings([late, early])
    assert [(docstring.module, docstring.line) for docstring in docstrings] == [("alpha", 1), ("alpha", 3), ("zeta", 2)]
    assert collect_docstrings([early, late])[0] == docstrings


def test_package_files_name_modules_and_skip_tests(tmp_path: Path) -> None:
    for name in ("__init__.py", "b.py", "a/__init__.py", "a/c.py", "tests/test_x.py", "a/test/y.py", "notes.txt"):
        write(tmp_path / "pack", name, "x = 1\n")
    write(tmp_path / "pack", "testing/kept.py", "x = 1\n")
    assert [file.module for file in package_files(tmp_path / "pack")] == [
        *("pack", "pack.a", "pack.a.c", "pack.b", "pack.testing.kept"),
    ]
    assert package_files(tmp_path / "none") == []


def test_folder_called_tests_above_the_package_does_not_matter(tmp_path: Path) -> None:
    write(tmp_path / "tests" / "pack", "a.py", "x = 1\n")
    assert [file.module for file in package_files(tmp_path / "tests" / "pack")] == ["pack.a"]


def test_environment_holds_the_three_sources_and_nothing_else() -> None:
    files = environment_files()
    modules = [file.module for file in files]
    assert {"json.decoder", "ast", "numpy", "numpy.linalg", "torch", "torch.nn.modules.linear"} <= set(modules)
    assert len(set(modules)) == len(modules) > 2000
    tops = {module.split(".")[0] for module in modules}
    assert tops <= set(sys.stdlib_module_names) | {"numpy", "torch"}
    assert not any({"test", "tests"} & set(module.split(".")[:-1]) for module in modules)
    assert all(file.path.is_file() for file in files[:50])


def test_identity_names_the_versions() -> None:
    import numpy

    identity = pydocs_identity()
    assert identity["python"] == platform.python_version() and identity["numpy"] == numpy.__version__
    assert identity["torch"].startswith("2.") and identity["sources"] == ["standard library", "numpy", "torch"]


def test_python_without_library_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pydocs.sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path)})
    with pytest.raises(DataError, match=r"no library sources in .*; use a full Python installation"):
        environment_files()


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pydocs.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DataError, match="numpy is not installed in this environment; run `make setup`"):
        environment_files()


def test_lone_surrogates_are_left_out_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = write(tmp_path, "good.py", f'"""Good. {LONG}"""\n')
    bad = write(tmp_path, "bad.py", f'"""Bad \\ud800. {LONG}"""\n')
    broken = write(tmp_path, "broken.py", "print 1\n")
    monkeypatch.setattr(pydocs, "environment_files", lambda: [good, bad, broken])
    corpus = load_pydocs()
    assert [(document.name, document.split) for document in corpus.documents] == [("good:1", None)]
    assert corpus.provenance == {"unparsed_files": ["broken"], "docstrings_with_lone_surrogates": 1}
    assert corpus.identity == pydocs_identity()


def test_several_processes_give_what_one_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [write(tmp_path, f"m{number}.py", f'"""{number}. {LONG}"""\n') for number in range(6)]
    files.append(write(tmp_path, "broken.py", "print 1\n"))
    alone = collect_docstrings(files)
    monkeypatch.setattr(pydocs, "_FILES_WORTH_A_POOL", 2)
    monkeypatch.setattr(pydocs.os, "cpu_count", lambda: 2)
    assert collect_docstrings(files) == alone
    assert len(alone[0]) == 6 and alone[1] == ["broken"]


def test_progress_goes_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    collect_docstrings([write(tmp_path, "m.py", f'"""{LONG}"""\n')])
    captured = capsys.readouterr()
    assert captured.out == "" and "reading docstrings" in captured.err


@pytest.mark.slow
def test_the_real_corpus_is_about_eight_megabytes() -> None:
    corpus = load_pydocs()
    found = [document.text for document in corpus.documents]
    assert 6_000_000 < sum(map(len, found)) < 11_000_000
    assert len(set(found)) == len(found) and min(map(len, found)) >= MINIMUM_CHARACTERS
    order = [(module, int(line)) for module, line in (document.name.rsplit(":", 1) for document in corpus.documents)]
    assert all(left <= right for left, right in itertools.pairwise(order))
    assert any("numpy." in document.name for document in corpus.documents)
