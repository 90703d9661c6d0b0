"""The command `sample`: prompts from files and the standard input, several samples, JSON, speed on stderr."""

import io
import json
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from chain_helpers import CHAIN
from data.errors import ConfigError, DataError
from model.generation.draw import Sampling
from scripts import sample

Sample = Callable[..., tuple[str, str]]


@pytest.fixture
def config(finished_chain: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The experiment that is finished, in its folder; sampling only reads it."""
    monkeypatch.chdir(finished_chain)
    return CHAIN


@pytest.fixture
def run(config: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Sample:
    def run(*options: str, stdin: bytes = b"") -> tuple[str, str]:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(stdin)))
        capsys.readouterr()
        sample.main(["--config", config, "--contestant", "bpe", *options])
        captured = capsys.readouterr()
        return captured.out, captured.err

    return run


def test_a_prompt_from_an_option_a_file_and_the_standard_input_is_one_prompt(run: Sample, tmp_path: Path) -> None:
    path = tmp_path / "prompt.txt"
    path.write_bytes(b"the of\r\nto\r\n")
    given, _ = run("--prompt", "the of\nto\n", "--tokens", "12")
    from_file, _ = run("--prompt-file", str(path), "--tokens", "12")
    from_stdin, _ = run("--prompt-file", "-", "--tokens", "12", stdin=b"the of\nto\n\n")
    assert given == from_stdin and given.startswith("the of\nto\n")
    assert from_file.startswith("the of\nto") and from_file == run("--prompt", "the of\nto", "--tokens", "12")[0]


def test_prompts_one_a_line_and_samples_with_seeds_of_their_own(run: Sample) -> None:
    out, _ = run("--prompts", "-", "--samples", "2", "--tokens", "9", "--seed", "4", stdin=b"the\n\nof\n")
    heads = re.findall(r"^--- prompt (\d), sample (\d), seed (\d) ---$", out, re.MULTILINE)
    assert heads == [(p, s, d) for p in "123" for s, d in (("1", "4"), ("2", "5"))]
    texts = re.split(r"^---.*---\n", out, flags=re.MULTILINE)[1:]
    assert texts[1] == run("--prompt", "the", "--tokens", "9", "--seed", "5")[0]
    assert texts[4] == run("--prompt", "of", "--tokens", "9", "--seed", "4")[0]


def test_json_has_one_object_a_line_with_log_probabilities(run: Sample) -> None:
    out, _ = run("--prompt", "the", "--samples", "3", "--tokens", "15", "--top-p", "0.9", "--json", "--stop", "w")
    found = [json.loads(line) for line in out.splitlines()]
    assert [one["seed"] for one in found] == [1, 2, 3]
    for one in found:
        assert one["prompt"] == "the" and one["top_p"] == 0.9 and "w" not in one["text"]
        assert "".join(character for character, _ in one["characters"]) == one["text"]
        if one["stopped_by"] is None:
            assert len(one["tokens"]) == 15
            total = math.fsum(value for _, value in one["tokens"])
            assert math.fsum(value for _, value in one["characters"]) == pytest.approx(total)


def test_a_single_sample_stops_and_the_speed_goes_to_stderr(run: Sample) -> None:
    out, said = run("--prompt", "the", "--tokens", "300", "--stop", "is")
    assert "is" not in out.removeprefix("the")
    assert re.search(r"^\d+ tokens in \d+\.\d\d s: [\d,]+ tokens/s$", said, re.MULTILINE)
    assert int(said.split(" tokens in")[0].split("\n")[-1]) < 300
    assert "tokens/s" not in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--prompt", "a", "--prompts", "-"], "--prompt and --prompts were given together"),
        (["--stop", ""], "stop string is empty"),
        (["--top-p", "0"], "at least"),
        (["--samples", "0"], "at least 1"),
    ],
)
def test_mistakes_are_one_sentence(run: Sample, options: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        run(*options)


def test_what_is_no_text_is_refused(run: Sample, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"the standard input is not valid UTF-8: byte 0xff at offset 4"):
        run("--prompts", "-", stdin=b"the \xff")
    with pytest.raises(DataError, match=r"none\.txt"):
        run("--prompt-file", str(tmp_path / "none.txt"))


def test_the_defaults_are_those_of_the_help(run: Sample) -> None:
    assert Sampling(1).top_p is None and run("--tokens", "0")[0] == "\n"
