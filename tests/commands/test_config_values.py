"""Experiment files as people write them: keys once, numbers as meant, ranges, names, roots; and numbers of options."""

import argparse
import doctest
import importlib
import math
import re
import typing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from chain_helpers import experiment_values, write_corpus, write_experiment
from compare import cli, options
from compare.command_line import variables
from compare.command_line.commands import module_of
from compare.experiment import Experiment, load_experiment
from compare.steps import Steps
from data import numbers, yaml_file
from data.config import build
from data.corpus import CorpusConfig
from data.errors import ConfigError, DataError, UserError
from data.numbers import Range, notes, read_number, read_whole
from data.yaml_file import MOST_BYTES, parse_yaml
from model.settings import BatchConfig, Budget, EvaluateConfig, LadderConfig, MiniGPTConfig, TrainConfig
from tokenizer.studies.study import StudyConfig
from tokenizer.train import TokenizerConfig

ROOT = Path(__file__).resolve().parents[2]
SHARED = "corpus: {source: pydocs}\ntrain: {budget: {amount: 100}}\n"
BOMB = "a: &a [1, 1]\n" + "".join(f"{b}: &{b} [{f'*{a}, ' * 99}]\n" for a, b in ("ab", "bc", "cd", "de"))
CONTESTANT = "{tokenizer: {kind: char}}"


def load(tmp_path: Path, text: str, *settings: str) -> Experiment:
    path = tmp_path / "try.yaml"
    path.write_text(text, encoding="utf-8")
    return load_experiment(path, settings)


def refusal(tmp_path: Path, text: str, *settings: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text, *settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def one(name: str = "char", **blocks: str) -> str:
    """An experiment of one contestant; `blocks` are further lines."""
    return SHARED + f"contestants: {{{name}: {CONTESTANT}}}\n" + "".join(f"{k}: {v}\n" for k, v in blocks.items())


def test_doctests() -> None:
    for module in (numbers, yaml_file):
        assert doctest.testmod(module).failed == 0
    assert doctest.testmod(numbers).attempted > 0


# Keys


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        (one() + "train: {}\n", 4, "train"),
        (SHARED + f"contestants:\n  bpe: {CONTESTANT}\n  char: {CONTESTANT}\n  bpe: {CONTESTANT}\n", 6, "bpe"),
        ("train: {learning_rate: 1e-3,\n  learning_rate: 1e-2}\n", 2, "learning_rate"),
        ("train: {budget: {amount: 1, 'amount': 2}}\n", 1, "amount"),
        ("a: [{b: 1}, {c: {d: 1, d: 1}}]\n", 1, "d"),
        ("x: &a {b: 1}\ny: {<<: *a, <<: *a}\n", 2, "<<"),
    ],
)
def test_case_35_a_key_twice_is_refused_at_every_depth(tmp_path: Path, text: str, line: int, key: str) -> None:
    found = refusal(tmp_path, text)
    assert f"try.yaml, line {line}: the key '{key}' is here a second time" in found


@pytest.mark.parametrize("name", ["no", "on", "yes", "off", "0500", "1_000", "1e3", "true", "null", "0x1F", "12"])
def test_case_35_a_name_is_what_is_written(tmp_path: Path, name: str) -> None:
    assert list(load(tmp_path, one(name)).contestants) == [name]
    assert list(load(tmp_path, one(f"'{name}'")).contestants) == [name]


def test_case_35_names_that_yaml_takes_for_one_stay_two(tmp_path: Path) -> None:
    text = SHARED + f"contestants: {{on: {CONTESTANT}, yes: {CONTESTANT}, 1000: {CONTESTANT}, 1_000: {CONTESTANT}}}"
    assert list(load(tmp_path, text).contestants) == ["on", "yes", "1000", "1_000"]


def test_a_key_that_is_a_list_and_one_that_is_missing(tmp_path: Path) -> None:
    assert "line 1: a key is a word, not a list" in refusal(tmp_path, "? [a, b]\n: 1\n")
    assert "line 2: a key is missing" in refusal(tmp_path, "'a': 1\n? \n: 1\n")


# Numbers


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        *[(w, 1000) for w in ("1000", "1_000", "1e3", "1.0e3", "1.0E+3", "1000.0", "+1000", "'1,000'", '"1_000"')],
        *[(w, 20_000_000) for w in ("20_000_000", "2e7", "20 000 000", "20'000'000", "'20,000,000'")],
    ],
)
def test_case_35_whole_numbers_in_every_usual_spelling(tmp_path: Path, written: str, expected: int) -> None:
    text = one().replace("amount: 100", f"amount: {written}")
    assert load(tmp_path, text).contestants["char"].train.budget.amount == expected
    setting = f"train.budget.amount={written}"
    assert load(tmp_path, one(), setting).contestants["char"].train.budget.amount == expected


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("010", "write 10"),
        ("0500", "write 500"),
        ("1:30:00", "one number in the unit"),
        ("0x10", "decimal digits"),
        ("0b11", "decimal digits"),
        ("0o17", "decimal digits"),
        ("1.000", "it may mean 1 or 1000"),
        ("20.000.000", "it may mean 20 or 20000000"),
        (".inf", "finite"),
        (".nan", "finite"),
        ("9" * 400, "400 digits"),
        ("1e400", "40 digits"),
        ("1e99999999999", "exponent"),
        ("1.5", "found 1.5"),
        ("2024-01-01", "found '2024-01-01'"),
        ("true", "found True"),
        ("1e17", "in digits"),
        ("٣", "found '٣'"),
    ],
)
def test_case_35_case_48_what_is_no_clear_whole_number_is_refused(tmp_path: Path, written: str, hint: str) -> None:
    found = refusal(tmp_path, one().replace("amount: 100", f"amount: {written}"))
    assert "try.yaml: train.budget.amount: expected a whole number" in found and hint in found
    assert len(found.removeprefix(str(tmp_path))) < 250
    found = refusal(tmp_path, one(), f"train.budget.amount={written}")
    assert found.startswith("--set train.budget.amount=") and hint in found


def test_case_35_a_comma_inside_braces_is_explained(tmp_path: Path) -> None:
    found = refusal(tmp_path, one().replace("amount: 100", "amount: 1,000"))
    assert "line 2: inside { } a comma ends an entry" in found and "20_000_000" in found


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("010", "write 10"),
        ("00.5", "write 0"),
        ("'0,5'", "write a point"),
        ("'1,000'", "write a point"),
        (".inf", "finite"),
        ("-.inf", "finite"),
        (".nan", "finite"),
        ("inf", "finite"),
        ("1e400", "so large"),
        ("9" * 400, "so large"),
        ("1e-400", "so close to 0"),
        ("0." + "0" * 400 + "1", "characters"),
        ("1:30", "one number in the unit"),
        ("fast", "found 'fast'"),
    ],
)
def test_case_35_case_48_what_is_no_clear_number_is_refused(tmp_path: Path, written: str, hint: str) -> None:
    found = refusal(tmp_path, one().replace("budget", f"learning_rate: {written}, budget"))
    assert "train.learning_rate: expected a number" in found and hint in found


@pytest.mark.parametrize("written", ["0.001", "1e-3", "1.0e-3", "1.e-3", ".001", "+1E-03", "'1e-3'", "0.001_0"])
def test_rates_in_every_usual_spelling(tmp_path: Path, written: str) -> None:
    if written == "0.001_0":
        assert "expected a number" in refusal(tmp_path, one().replace("budget", f"learning_rate: {written}, budget"))
        return
    text = one().replace("budget", f"learning_rate: {written}, budget")
    assert load(tmp_path, text).contestants["char"].train.learning_rate == 0.001


@pytest.mark.parametrize("word", ["on", "off", "yes", "no", "true", "false"])
def test_switches_are_read_where_a_switch_is_wanted_only(tmp_path: Path, word: str) -> None:
    experiment = load(tmp_path, one(model=f"{{rope: {word}}}"))
    assert experiment.contestants["char"].model_config(9).rope is (word in ("on", "yes", "true"))
    assert "try.yaml: root: expected a folder" in refusal(tmp_path, one(root=word))
    if word in ("on", "off"):
        text = one().replace("budget", f"compile: {word}, budget")
        assert load(tmp_path, text).contestants["char"].train.compile == word


@pytest.mark.parametrize("written", ["all", "null", "~", "", "ALL"])
def test_case_52_all_for_null(tmp_path: Path, written: str) -> None:
    tokenizer = f"{{kind: char_bpe, vocab_size: 99, training_characters: {written}}}"
    text = one().replace("{kind: char}", tokenizer)
    assert load(tmp_path, text).contestants["char"].tokenizer.training_characters is None
    settings = (f"contestants.char.tokenizer.training_characters={written}",)
    assert load(tmp_path, text, *settings).contestants["char"].tokenizer.training_characters is None


# Shape of the file


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("# nothing\n", "is empty"),
        ("- a\n- b\n", "found a list"),
        ("just text\n", "found 'just text'"),
        ("a: 1\n---\nb: 2\n", "line 2: a second document"),
        ("train:\n\tseed: 1\n", "line 2, column 1: a tab"),
        ("a: [1,\nb: }\n", "not valid YAML: line 2"),
        ("a: !!python/object/apply:os.system [ls]\n", "line 1: the tag !!python/object/apply:os.system"),
        ("a: !!int '5'\n", "line 1: the tag !!int"),
        ("a: \x00\n", "line 1: the control character U+0000"),
        ('a: "\\ud800"\n', "line 1: '\\ud800' holds a lone surrogate"),
        ("a: *b\n", "undefined alias"),
        ("a: &a [*a]\n", "line 1: an alias is inside what it stands for"),
        ("a: " + "[" * 5000 + "\n", "more than 50 levels"),
        (BOMB, "aliases make more"),
        (" " * (MOST_BYTES + 1), "an experiment file has at most"),
    ],
)
def test_case_35_a_file_of_the_wrong_shape_is_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    assert message in refusal(tmp_path, text)


def test_files_that_cannot_be_read_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"a: caf\xe9\n")
    with pytest.raises(DataError, match=r"latin\.yaml is not valid UTF-8: byte 0xe9 at offset 6"):
        load_experiment(tmp_path / "latin.yaml")
    (tmp_path / "gone.yaml").symlink_to(tmp_path / "nowhere")
    for path, message in {
        tmp_path: "is a folder; name an experiment file",
        tmp_path / "gone.yaml": "is a link to .*nowhere, which does not exist",
        tmp_path / "none.yaml": "cannot read .*none",
        tmp_path / ("x" * 300): "cannot read",
    }.items():
        with pytest.raises(ConfigError, match=message):
            load_experiment(path)


def test_anchors_and_merges_still_work() -> None:
    text = "a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\nc: {<<: *a, x: 9}\nd: {<<: [*a, *b]}\ne: *a\n'<<': 1\n"
    values = parse_yaml(text, "e.yaml")
    assert values["c"] == {"x": 9, "y": 2} and values["d"] == {"x": 1, "y": 2, "z": 4}
    assert values["e"] == {"x": 1, "y": 2} and values["<<"] == 1


def test_a_setting_of_one_alias_leaves_the_others(tmp_path: Path) -> None:
    text = SHARED + f"contestants: {{a: &a {CONTESTANT}, b: *a}}\n"
    experiment = load(tmp_path, text, "contestants.a.tokenizer={kind: byte}")
    assert (experiment.contestants["a"].tokenizer.kind, experiment.contestants["b"].tokenizer.kind) == ("byte", "char")


# Settings of the command line


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("train.batchsize=3", "did you mean 'batch_size'"),
        ("trian.seed=3", "unknown key 'trian'; did you mean 'train'"),
        ("train.batch_size=many", "train.batch_size: expected a whole number"),
        ("contestants.chr.train.seed=1", "no contestant 'chr'; did you mean 'char'"),
        ("contestants.char.tokenizer.kind=word", "contestants.char.tokenizer.kind: 'word' is not one of"),
        ("model.num_heads=3", "embedding_dim 128 is not divisible by num_heads 3"),
        ("root=", "root: expected a folder"),
        ("root=a #b", "is a comment to YAML"),
        ("train.seed=[1", "not valid YAML"),
        ("train.seed.x=1", "expected a whole number"),
        ("train", "expected key=value"),
        ("train.=1", "expected key=value"),
        ("seeds=[1, 1]", "must be distinct"),
    ],
)
def test_case_35_a_wrong_setting_is_named_and_not_the_file(tmp_path: Path, setting: str, message: str) -> None:
    found = refusal(tmp_path, one(), "train.log_every_steps=5", setting)
    assert found.startswith(f"--set {setting}") and message in found and "try.yaml" not in found


def test_a_mistake_of_the_file_is_not_blamed_on_a_setting(tmp_path: Path) -> None:
    found = refusal(tmp_path, one(model="{blocksize: 3}"), "train.seed=4")
    assert found.startswith(str(tmp_path / "try.yaml: model: unknown key"))


def test_settings_that_fit_only_together_are_taken(tmp_path: Path) -> None:
    experiment = load(tmp_path, one(), "model.num_heads=6", "model.embedding_dim=96")
    assert experiment.contestants["char"].model_config(9).num_heads == 6


# Root and names


@pytest.mark.parametrize("root", ["", "~", "null", "''", "'  '", "[a]", "{a: b}", "no", "true", "3", "1.5"])
def test_case_38_a_root_that_is_no_folder_is_refused(tmp_path: Path, root: str) -> None:
    assert "try.yaml: root: expected a folder" in refusal(tmp_path, one(root=root))


@pytest.mark.parametrize(
    ("root", "message"),
    [
        (f"a/{'x' * 256}/b", "at most 255 bytes"),
        ('"a\\0b"', "U+0000"),
        ('"a\\nb"', "U+000A"),
        ("~nobody-of-this-name/x", "write ./~nobody-of-this-name/x"),
    ],
)
def test_case_38_a_root_that_no_system_takes_is_refused(tmp_path: Path, root: str, message: str) -> None:
    assert message in refusal(tmp_path, one(root=root))


def test_case_38_the_home_folder_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert load(tmp_path, one(root="~/x")).layout.root == Path("/home/me/x")
    assert load(tmp_path, one(root="'~'")).layout.root == Path("/home/me")
    assert load(tmp_path, one(root="a b/~c")).layout.root == Path("a b/~c")
    assert load(tmp_path, one(root="'no'")).layout.root == Path("no")


@pytest.mark.parametrize("name", ["a" * 61, "é" * 91, "字" * 61, "a b", "a/b", "..", "-a", "con", "NUL", "a.b", "''"])
def test_contestants_names_become_folders(tmp_path: Path, name: str) -> None:
    assert "try.yaml: contestants: " in refusal(tmp_path, one(name))


def test_long_and_foreign_names_within_the_bound(tmp_path: Path) -> None:
    for name in ("a" * 60, "字" * 60, "char-2_b"):
        assert list(load(tmp_path, one(name)).contestants) == [name]


@pytest.mark.parametrize("pair", [("bpe", "BPE"), ("STRASSE", "straße"), ("a1", "a１")])
def test_names_that_are_one_folder_on_some_systems_are_refused(tmp_path: Path, pair: tuple[str, str]) -> None:
    text = SHARED + f"contestants: {{{pair[0]}: {CONTESTANT}, {pair[1]}: {CONTESTANT}}}"
    assert f"{pair[0]} and {pair[1]} would share a folder" in refusal(tmp_path, text)


@pytest.mark.parametrize(
    "contestants", ["[char, bpe]", "char", "", "3", "{char: }", "{char: char}", "{char: {tokenizer: char}}"]
)
def test_case_52_contestants_of_the_wrong_form_are_told_the_right_one(tmp_path: Path, contestants: str) -> None:
    found = refusal(tmp_path, SHARED + f"contestants: {contestants}\nseeds: [1]\n")
    assert "{kind: char}" in found and "contestants" in found


@pytest.mark.parametrize("block", ["model", "train", "evaluate"])
@pytest.mark.parametrize("value", ["0", "false", "[]", "''", "text"])
def test_a_block_that_is_no_mapping_is_refused_though_it_is_empty(tmp_path: Path, block: str, value: str) -> None:
    contestant = f"contestants: {{char: {{tokenizer: {{kind: char}}, {block}: {value}}}}}\n"
    assert f"contestants.char.{block}: expected a mapping" in refusal(tmp_path, SHARED + contestant)
    shared = "corpus: {source: pydocs}\n" + ("" if block == "train" else "train: {}\n") + f"{block}: {value}\n"
    assert f"{block}: expected a mapping" in refusal(tmp_path, shared + f"contestants: {{char: {CONTESTANT}}}\n")


def test_case_51_experiments_by_name_file_and_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    configs = tmp_path / "configs"
    configs.mkdir()
    (tmp_path / "base").mkdir()  # a root of the experiment's name beside it
    for name in ("base", "mine-v1.2", "a [b]", "with space"):
        (configs / f"{name}.yaml").write_text(one())
        assert cli.config_path(name) == cli.config_path(f"{name}.yaml") == Path("configs", f"{name}.yaml")
        assert cli.config_path(f"configs/{name}.yaml") == Path("configs", f"{name}.yaml")
    (tmp_path / "here.yaml").write_text(one())
    assert cli.config_path("here.yaml") == Path("here.yaml")
    for named, message in {
        "bse": "did you mean 'base'",
        "bse.yaml": "did you mean 'base'",
        "mine-v1": "did you mean 'mine-v1.2'",
        "": "found nothing",
        "x" * 300: "does not exist; known experiments: a [b], base",
    }.items():
        with pytest.raises(ConfigError, match=re.escape(message)):
            cli.config_path(named)


# Ranges of everything

CONFIGS: dict[type, dict[str, Any]] = {
    BatchConfig: {},
    Budget: {},
    TrainConfig: {},
    MiniGPTConfig: {"vocab_size": 50},
    EvaluateConfig: {},
    LadderConfig: {},
    TokenizerConfig: {"kind": "char_bpe", "vocab_size": 300},
    CorpusConfig: {"source": "hub", "dataset": "a/b"},
    StudyConfig: {},
}
STRANGE = [
    -1,
    0,
    2**63,
    2**64,
    2**128,
    10**400,
    -(10**400),
    10**5000,
    1e-300,
    -1e-300,
    1e308,
    math.inf,
    -math.inf,
    math.nan,
]

TYPED = [repr(value) for value in STRANGE if value != 10**5000]


def number_fields(cls: type) -> dict[str, type]:
    """Field -> int or float, of the fields of `cls` that are numbers."""
    found = {}
    for name, hint in typing.get_type_hints(cls).items():
        kinds = [kind for kind in (hint, *typing.get_args(hint)) if kind in (int, float)]
        if kinds and typing.get_origin(hint) is not tuple:
            found[name] = kinds[0]
    return found


@pytest.mark.parametrize("cls", CONFIGS, ids=lambda cls: cls.__name__)
def test_case_48_every_number_states_its_range(cls: type) -> None:
    assert number_fields(cls).keys() == notes(cls, Range).keys() and number_fields(cls)


@pytest.mark.parametrize("cls", CONFIGS, ids=lambda cls: cls.__name__)
def test_case_48_a_strange_number_is_a_config_error_or_lies_in_the_range(cls: type) -> None:
    for name, kind in number_fields(cls).items():
        limits = notes(cls, Range)[name]
        for value in [*STRANGE, *map(str, STRANGE[:6]), "1" * 400, "1e400", ".inf", "-.inf", ".nan", True, [], {}]:
            try:
                made = build(cls, {**CONFIGS[cls], name: value}, "e.yaml")
            except ConfigError as error:
                assert name in str(error) and len(str(error)) < 300, error
                continue
            found = getattr(made, name)
            assert type(found) is kind and limits.least <= found <= limits.most, (name, value)
        for value in STRANGE:  # and without the file
            if not (math.isfinite(value) if isinstance(value, float) else True) or abs(value) > limits.most:
                with pytest.raises(ConfigError):
                    replace(cls(**CONFIGS[cls]), **{name: value})


def test_the_list_of_configurations_is_whole() -> None:
    found = set()
    for package in ("data", "tokenizer", "model", "compare"):
        for path in (ROOT / package).rglob("*.py"):
            found |= set(re.findall(r"^class (\w*(?:Config|Budget))\b", path.read_text(encoding="utf-8"), re.MULTILINE))
    assert found == {cls.__name__ for cls in CONFIGS}


def parsers() -> dict[str, argparse.ArgumentParser]:
    """The parser of every command, as its main makes it."""
    found: dict[str, argparse.ArgumentParser] = {}

    class StoppedError(Exception):
        pass

    names = {*variables.VALUES, *variables.EXPERIMENTS, *variables.SWITCHES, "calibrate"}
    for command in sorted(names):
        module = importlib.import_module(module_of(command))

        def stop(self: options.Parser, *_args: Any, stem: str = command, **_more: Any) -> None:
            found[stem] = self
            raise StoppedError

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(options.Parser, "parse_args", stop)
            with pytest.raises(StoppedError):
                module.main([])
    return found


def test_case_48_every_option_that_is_a_number_has_a_range(capsys: pytest.CaptureFixture[str]) -> None:
    checked = 0
    for command, parser in parsers().items():
        for action in parser._actions:
            assert action.type not in (int, float), f"{command} {action.option_strings}"
            limits = getattr(action.type, "limits", None)
            if limits is None:
                continue
            checked += 1
            option = action.option_strings[0]
            for value in [
                *map(repr, STRANGE[:7]),
                *map(repr, STRANGE[8:]),
                "9" * 5000,
                "1e400",
                "--",
                "",
                "two",
                "1:30",
                "010",
            ]:
                try:
                    found = getattr(parser.parse_args([option, value]), action.dest)
                except ConfigError as refused:
                    err = str(refused)
                    assert option in err and "\n" not in err and len(err) < 400
                    continue
                assert limits.least <= found <= limits.most or (limits.or_zero and found == 0), (command, option, value)
    assert checked > 25


@pytest.mark.parametrize("text", ["-hello", "--", "--config", "-1", "", "a b", "--seed=3"])
def test_case_52_a_prompt_may_look_like_an_option(text: str) -> None:
    parser = cli.parser("x")
    parser.add_argument("--prompt")
    parser.add_argument("--seed", type=options.whole(numbers.SEED), default=1)
    for arguments in (["--prompt", text], [f"--prompt={text}"]):
        found = parser.parse_args([*arguments, "--config", "c"])
        assert (found.prompt, found.config, found.seed) == (text, "c", 1)


@pytest.mark.parametrize("written", ["1,000", "1_000", "1e3", "1000"])
def test_case_52_training_characters_in_every_usual_spelling(written: str) -> None:
    assert parsers()["tokenizer"].parse_args(["--training-characters", written]).training_characters == 1000


def test_the_largest_seed_and_the_extreme_rates_train(tmp_path: Path) -> None:
    values = experiment_values(tmp_path / "run", write_corpus(tmp_path / "texts"))
    for seed, rate in ((2**63 - 1, 1e-12), (0, 1e-3)):
        settings = [
            f"train.seed={seed}",
            f"train.learning_rate={rate}",
            "train.budget.amount=300",
            f"root={tmp_path}/{seed}",
        ]
        experiment = load_experiment(write_experiment(tmp_path / "words.yaml", values), settings)
        assert Steps(experiment, echo=lambda _line: None).train("char").exists()


# What no contestant may fail at after another was trained


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"tokenizer": {"kind": "char_bpe", "vocab_size": 3}}, "contestant late: .*vocab_size"),
        ({"tokenizer": {"kind": "byte_bpe", "vocab_size": 200}}, "contestant late: .*25[67]"),
        ({"tokenizer": {"kind": "char"}, "model": {"block_size": 60_000}}, "contestant late: .*block_size 60000 needs"),
        ({"tokenizer": {"kind": "char"}, "model": {"num_heads": 3}}, "contestants.late.model: embedding_dim 16 is not"),
        ({"tokenizer": {"kind": "char"}, "evaluate": {"stride": 17}}, "contestants.late: stride 17 is greater"),
        (
            {"tokenizer": {"kind": "char_bpe", "vocab_size": 60}, "context": "characters", "evaluate": {"stride": 14}},
            "contestant late: stride 14 is greater",
        ),
    ],
)
def test_case_58_what_does_not_fit_is_refused_before_the_first_is_trained(
    tmp_path: Path, own: dict[str, Any], message: str
) -> None:
    values = experiment_values(tmp_path / "run", write_corpus(tmp_path / "texts"))
    values["contestants"] = {"char": {"tokenizer": {"kind": "char"}}, "late": own}
    path = tmp_path / "words.yaml"
    path.write_text(yaml.safe_dump(values, sort_keys=False))
    with pytest.raises(UserError, match=message):
        Steps(load_experiment(path), echo=lambda _line: None).entries()
    assert not (tmp_path / "run/checkpoints").exists()


def test_readers_of_numbers_agree_with_python_where_there_is_one_meaning() -> None:
    for value in (0, 7, -3, 10**12):
        assert (
            read_whole(str(value)) == value and read_whole(f"{value:,}") == value and read_whole(f"{value:_}") == value
        )
    for number in (0.1, 1e-9, 3.25, -2.5e10):
        assert read_number(repr(number)) == number
