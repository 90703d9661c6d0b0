"""Up to date means all inputs: whatever is changed, a step runs again or is refused with the command that mends it.

One tiny finished chain is made once. A case changes one setting or one file, asks for the comparison, and looks at what
came of it; the expensive steps are replaced by flags, so that nothing is trained. Every field of every configuration
must be in the tables below: a new field that is no input of anything fails here.
"""

import dataclasses
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from chain_helpers import CHAIN, WORDS
from compare import cli
from compare import steps as steps_module
from compare.experiment import Contestant, Experiment, load_experiment
from compare.steps import Steps
from data import corpus as sources
from data.corpus import CorpusConfig
from data.errors import UserError
from data.files import read_json, write_json
from data.layout import SPLITS, Layout
from data.splits import write_splits
from model import checkpoint
from model.settings import Budget, EvaluateConfig, MiniGPTConfig, TrainConfig
from scripts import compare as compare_script
from scripts import train as train_script
from tokenizer.train import TokenizerConfig

# Tiny models gain nothing from threads, and lose much where the cores are shared.
torch.set_num_threads(1)
CONFIG = CHAIN


@pytest.fixture(scope="module")
def shared_copy(finished_chain: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[Path, bytes]]:
    folder = tmp_path_factory.mktemp("copies") / "chain"
    shutil.copytree(finished_chain, folder)
    return folder, {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def chain(shared_copy: tuple[Path, dict[Path, bytes]], monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The finished chain as the working folder, as it was; a case may change whatever it likes."""
    folder, contents = shared_copy
    monkeypatch.chdir(folder)
    yield folder
    for path in folder.rglob("*"):
        if path.is_file() and path not in contents:
            path.unlink()
    for path, raw in contents.items():
        if not path.exists() or path.read_bytes() != raw:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(raw)


class Flag(Exception):  # noqa: N818 - it stands for a step that would run, not for an error
    """An expensive step was about to run."""


@pytest.fixture
def nothing_expensive(monkeypatch: pytest.MonkeyPatch) -> None:
    def flag(name: str) -> Callable[..., None]:
        def raised(*_arguments: Any, **_named: Any) -> None:
            raise Flag(name)

        return raised

    monkeypatch.setattr(steps_module, "evaluate_contestant", flag("scored"))
    monkeypatch.setattr(steps_module, "write_comparison", flag("compared"))
    monkeypatch.setattr("model.train.Run", flag("trained"))


def outcome(*settings: str, config: str = CONFIG) -> str:
    """What comes of asking for the comparison: nothing, the step that runs, or the message of the refusal."""
    try:
        steps = Steps(load_experiment(Path(config), settings), echo=lambda _line: None)
        steps.compare()
    except Flag as flag:
        return str(flag)
    except UserError as error:
        return str(error)
    return "made" if steps.num_done else "up to date"


def commands_of(message: str) -> list[str]:
    return re.findall(r"`make ([^`]+)`", message)


# --- every setting ------------------------------------------------------------------------------------------------

REFUSED, SCORED, COMPARED, TRAINED = "refused", "scored", "compared", "trained"
TOKENIZER_CHANGES = {
    "kind": None,  # below, because another kind needs another size
    "vocab_size": "50",
    "training_characters": "300",
    "min_pair_frequency": "40",
    "split_pattern": "gpt2",
    "tie_break": "lowest_ids",
    "special_tokens": "['<end>']",
    **dict.fromkeys(("placement", "document_separator")),  # need special tokens; tests/bpe shows that identity has them
    **dict.fromkeys(("path", "name", "pattern", "vocab", "merges")),  # of other kinds; tests/foreign changes the files
}
MODEL_CHANGES = {
    "vocab_size": None,  # comes from the tokenizer, whose changes are cases of their own
    "block_size": "8",
    "embedding_dim": "32",
    "num_heads": "4",
    "num_layers": "2",
    "expansion_factor": "2",
    "dropout": "0.2",
    "preset": "modern",
    **dict.fromkeys(("rope", "qk_norm", "relu_squared", "rms_norm", "zero_init"), "true"),
}
TRAIN_CHANGES = {
    "budget": None,  # its own table
    "batch_size": "4",
    "batch": None,  # given for one contestant below: a file that has both keys is refused
    "learning_rate": "1e-3",
    "muon_rate": "2.0",
    "table_rate": "2.0",
    "optimizer": "muon",
    "schedule": "linear",
    "warmdown_fraction": "0.5",
    "order": "epochs",
    "ema_decay": "0.9",
    "min_learning_rate_ratio": "0.2",
    "warmup_fraction": "0.1",
    "warmup_amount": "100",
    "weight_decay": "0.2",
    "beta1": "0.8",
    "beta2": "0.95",
    "gradient_clip": "0.5",
    "seed": "2",
    "val_every_fraction": "0.2",
    "val_characters": "400",
    "selection": "last",
    "log_every_steps": "5",
    "checkpoint_every_seconds": None,  # how often it is saved changes nothing that is saved
    "num_threads": "2",
    "device": "cuda",
    "dtype": None,  # depends on the machine; a test of its own
    "compile": "'on'",
}
BUDGET_CHANGES = {"unit": "tokens", "amount": "1600"}
EVALUATE_CHANGES = {"batch_size": "32", "stride": "4", "alarm_below_bits_per_char": "0.25"}
CONTESTANT_CHANGES: dict[str, tuple[str, str] | None] = {
    "name": None,  # test_the_contestants_and_their_order_matter
    "tokenizer": None,  # TOKENIZER_CHANGES
    "model": ("contestants.bpe.model.dropout=0.2", REFUSED),
    "train": ("contestants.bpe.train.learning_rate=1e-3", REFUSED),
    "evaluate": ("contestants.bpe.evaluate.stride=4", SCORED),
    "overrides": ("contestants.bpe.model.dropout=0.1", COMPARED),  # equal to the shared value, but said in the report
    "context": ("contestants.bpe.context=characters", REFUSED),
}
EXPERIMENT_CHANGES: dict[str, tuple[str, str] | None] = {
    "name": None,  # test_the_name_of_the_experiment_matters
    "path": None,  # its stem is the name
    "corpus": None,  # CORPUS_CHANGES
    "contestants": None,  # test_the_contestants_and_their_order_matter
    "layout": ("root=elsewhere", TRAINED),
    "seeds": ("seeds=[1]", TRAINED),
    "normalized_by": None,  # needs a tokenizer from a file; tests/foreign/test_normalized.py
    "baseline": ("baseline=bpe", COMPARED),
    "ladder": ("ladder={rungs: 2}", REFUSED),
    "sizes": ("sizes=[4]", TRAINED),
    **dict.fromkeys(("size", "is_quarter")),  # not of a file: which of the trainings that `sizes` asks for
}
SETTINGS = [
    ("contestants.bpe.tokenizer={kind: byte_bpe, vocab_size: 300}", REFUSED),
    *((f"contestants.bpe.tokenizer.{key}={value}", REFUSED) for key, value in TOKENIZER_CHANGES.items() if value),
    *((f"model.{key}={value}", REFUSED) for key, value in MODEL_CHANGES.items() if value),
    *((f"train.{key}={value}", REFUSED) for key, value in TRAIN_CHANGES.items() if value),
    ("contestants.bpe.train.batch={amount: 99}", REFUSED),
    *((f"train.budget.{key}={value}", REFUSED) for key, value in BUDGET_CHANGES.items()),
    *((f"evaluate.{key}={value}", SCORED) for key, value in EVALUATE_CHANGES.items()),
    *(case for case in (*CONTESTANT_CHANGES.values(), *EXPERIMENT_CHANGES.values()) if case),
]


@pytest.mark.parametrize(
    ("configuration", "table"),
    [
        (TokenizerConfig, TOKENIZER_CHANGES),
        (MiniGPTConfig, MODEL_CHANGES),
        (TrainConfig, TRAIN_CHANGES),
        (Budget, BUDGET_CHANGES),
        (EvaluateConfig, EVALUATE_CHANGES),
        (Contestant, CONTESTANT_CHANGES),
        (Experiment, EXPERIMENT_CHANGES),
    ],
)
def test_every_field_stands_in_a_table(configuration: Any, table: dict[str, Any]) -> None:
    assert [field.name for field in dataclasses.fields(configuration)] == list(table)


@pytest.mark.usefixtures("chain", "nothing_expensive")
def test_without_a_change_nothing_is_done() -> None:
    assert outcome() == "up to date"
    assert outcome("train.checkpoint_every_seconds=1") == "compared"  # nothing is trained again; the settings are shown


@pytest.mark.usefixtures("chain", "nothing_expensive")
@pytest.mark.parametrize(("setting", "wanted"), SETTINGS)
def test_every_setting_matters(setting: str, wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Steps, "check", lambda _steps: None)  # which refuses a device that is not here
    found = outcome(setting)
    if wanted != REFUSED:
        assert found == wanted
        return
    names = "train-bpe" if setting.startswith("contestants.bpe") else "train-bpe train-char"
    assert commands_of(found) == [f"make {names} FORCE=1".removeprefix("make ")], found


@pytest.mark.usefixtures("chain", "nothing_expensive")
def test_a_stated_type_of_products_must_be_the_one_that_was_used() -> None:
    used = checkpoint.load(Path("run/checkpoints/char/last.pt"))["environment"]["dtype"]
    other = {"float32": "bfloat16", "bfloat16": "float32"}[used]
    assert outcome(f"train.dtype={used}") == "compared"
    assert f"train.dtype {used}, but it is now {other}" in outcome(f"train.dtype={other}")


@pytest.mark.usefixtures("chain", "nothing_expensive")
def test_the_name_of_the_experiment_matters(chain: Path) -> None:
    shutil.copy(chain / CONFIG, chain / "other.yaml")
    assert outcome(config="other.yaml") == COMPARED


@pytest.mark.usefixtures("nothing_expensive")
def test_the_contestants_and_their_order_matter(chain: Path) -> None:
    values = yaml.safe_load((chain / CONFIG).read_text())
    bpe, char = values["contestants"]["bpe"], values["contestants"]["char"]
    for contestants, wanted in (
        ({"char": char, "bpe": bpe}, COMPARED),
        ({"bpe": bpe}, COMPARED),
        ({"bpe": bpe, "char": char, "third": char}, TRAINED),
    ):
        text = json.dumps(values | {"contestants": contestants})  # JSON is YAML, and keeps the order
        (chain / CONFIG).write_text(text)
        assert outcome() == wanted, contestants


# --- the corpus ---------------------------------------------------------------------------------------------------

CORPUS_CHANGES: dict[str, tuple[dict[str, Any], Any]] = {  # field -> a configuration, and another value of the field
    "source": ({"source": "wikitext2"}, "wikitext2-tokens"),
    "cleaning": ({"source": "pydocs"}, "wikitext"),
    "name": ({"source": "pydocs"}, "other"),
    "paths": ({"source": "text", "paths": ("a",)}, ("a", "b")),
    **{split: ({"source": "text", **{s: s for s in SPLITS}}, "other") for split in SPLITS},
    "separator": ({"source": "text", "paths": ("a",)}, "\n"),
    "fractions": ({"source": "text", "paths": ("a",)}, (0.8, 0.1, 0.1)),
    "dataset": ({"source": "hub", "dataset": "a/same", "name": "same"}, "b/same"),
    "config": ({"source": "hub", "dataset": "a/b"}, "raw"),
    "revision": ({"source": "hub", "dataset": "a/b"}, "main"),
    "split": ({"source": "hub", "dataset": "a/b"}, "validation"),
    "text_column": ({"source": "hub", "dataset": "a/b"}, "content"),
    "max_characters": ({"source": "hub", "dataset": "a/b"}, 5),
    "group_shared": ({"source": "pydocs"}, False),
    "allow_repeated_documents": ({"source": "text", "paths": ("a",)}, True),
}


def prepared(config: CorpusConfig, layout: Layout) -> None:
    about = {"format": sources.MANIFEST_FORMAT, "config": sources._plain(config), "identity": {"of": "the source"}}
    write_splits(layout, config.corpus_name, {split: [f"{split}\n"] for split in SPLITS}, about)


@pytest.fixture
def known_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_identity", lambda _config, _layout: {"of": "the source"})


@pytest.mark.usefixtures("known_identity")
def test_every_field_of_the_corpus_matters(tmp_path: Path) -> None:
    fields = {field.name for field in dataclasses.fields(CorpusConfig)}
    assert fields <= set(CORPUS_CHANGES), f"state a change of {sorted(fields - set(CORPUS_CHANGES))}"
    for field in fields:
        given, other = CORPUS_CHANGES[field]
        config, layout = CorpusConfig(**given), Layout(tmp_path / field)
        prepared(config, layout)
        assert sources.is_up_to_date(config, layout), field
        assert not sources.is_up_to_date(dataclasses.replace(config, **{field: other}), layout), field


@pytest.mark.usefixtures("known_identity")
def test_source_and_code_of_the_corpus_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, layout = CorpusConfig(source="pydocs"), Layout(tmp_path)
    prepared(config, layout)
    with monkeypatch.context() as patch:
        patch.setattr(sources, "MANIFEST_FORMAT", sources.MANIFEST_FORMAT + 1)
        assert not sources.is_up_to_date(config, layout)
    with monkeypatch.context() as patch:
        patch.setattr(sources, "_identity", lambda _config, _layout: {"of": "another source"})
        assert not sources.is_up_to_date(config, layout)
    manifest = read_json(layout.corpus_manifest)
    manifest["pydocs"]["splits"]["test"]["characters"] += 1  # an edited figure
    write_json(layout.corpus_manifest, manifest)
    assert not sources.is_up_to_date(config, layout)


@pytest.mark.usefixtures("nothing_expensive")
@pytest.mark.parametrize("split", SPLITS)
def test_an_edited_text_is_never_missed(chain: Path, split: str) -> None:
    path = chain / "texts" / f"{split}.txt"
    path.write_text(path.read_text().replace(WORDS[0], WORDS[1], 1))
    found = outcome()
    if split == "test":
        assert found == SCORED  # test is no part of a run: the trained models are scored on the new one
    else:
        assert commands_of(found) == ["train-bpe train-char FORCE=1"], found


@pytest.mark.usefixtures("nothing_expensive")
@pytest.mark.parametrize("split", SPLITS)
def test_other_documents_of_the_same_text_are_never_missed(chain: Path, split: str) -> None:
    path = chain / "texts" / f"{split}.txt"
    before = (chain / f"run/data/processed/words_{split}_clean.txt").read_bytes()
    path.write_text(path.read_text().replace("\x1e", ""))
    found = outcome()
    assert (chain / f"run/data/processed/words_{split}_clean.txt").read_bytes() == before
    if split == "test":
        assert found == SCORED
    else:
        assert f"{split} data cut into other documents" in found
        assert commands_of(found) == ["train-bpe train-char FORCE=1"], found


# --- the versions of the code -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("chain", "nothing_expensive")
@pytest.mark.parametrize(
    ("constant", "wanted"),
    [
        ("tokenizer.train.TRAINER_VERSION", "compared"),  # the same tokenizer, trained again
        ("tokenizer.encode_splits.ENCODER_VERSION", "made"),  # the same ids, encoded again
        ("model.checkpoint.TRAINING_VERSION", REFUSED),
        ("model.report.SCORER_VERSION", SCORED),
        ("compare.report.VERSION", COMPARED),
    ],
)
def test_every_version_of_the_code_matters(constant: str, wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constant, 99)
    found = outcome()
    if wanted == REFUSED:
        assert commands_of(found) == ["train-bpe train-char FORCE=1"], found
    else:
        assert found == wanted


# --- every file ---------------------------------------------------------------------------------------------------

UNREAD = {"config.json", "baselines.json", "ngram_nats.npz"}
"""Written for the reader; kept figures, asked for only by a new comparison."""


def every_file(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "run").rglob("*") if path.is_file() and path.name not in UNREAD)


def damages_of(path: Path) -> dict[str, bytes | None]:
    """Name of a damage -> what the file then holds; None: it is gone."""
    raw = path.read_bytes()
    middle = len(raw) // 2
    flipped = raw[:middle] + bytes([raw[middle] ^ 1]) + raw[middle + 1 :]
    shapes = {"{}": b"{}", "[]": b"[]"} if path.suffix == ".json" else {}
    return {"gone": None, "emptied": b"", "edited": flipped, **shapes}


def run_named(command: str) -> None:
    """Carry out a command that a message names, which makes something again without FORCE."""
    steps = Steps(load_experiment(Path(CONFIG)), echo=lambda _line: None)
    name_of_command = command.split()[0]
    if name_of_command == "data":
        steps.data()
    elif name_of_command == "tokenizer":
        for name in steps.experiment.contestants:
            steps.tokenizer(name, own_settings={})
    else:
        raise AssertionError(f"what does `make {command}` do?")
    assert steps.num_done, f"`make {command}` is named as the way on, but says up to date"


@pytest.mark.usefixtures("nothing_expensive")
@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param(("gone", "edited"), id="gone or edited"),
        pytest.param(("emptied", "{}", "[]"), id="of another shape", marks=pytest.mark.slow),
    ],
)
def test_every_damaged_file_is_noticed_and_can_be_mended(chain: Path, kinds: tuple[str, ...]) -> None:
    contents = {path: path.read_bytes() for path in chain.rglob("*") if path.is_file()}
    assert len(every_file(chain)) > 30
    for path in every_file(chain):
        for damage, raw in damages_of(path).items():
            if damage not in kinds:
                continue
            if raw is None:
                path.unlink()
            else:
                path.write_bytes(raw)
            found, where = outcome(), f"{path.relative_to(chain)} {damage}"
            assert found != "up to date", where
            if found not in ("made", SCORED, COMPARED, TRAINED):
                commands = commands_of(found)
                assert len(commands) == 1 and "\n" not in found, f"{where}: {found}"
                if not commands[0].endswith("FORCE=1"):
                    run_named(commands[0])
                    assert outcome() in ("up to date", "made", COMPARED), where
                else:
                    assert commands[0] == f"train-{path.parent.name} FORCE=1", f"{where}: {found}"
            for file, kept in contents.items():
                if not file.exists() or file.read_bytes() != kept:
                    file.write_bytes(kept)
    assert outcome() == "up to date"


@pytest.mark.usefixtures("nothing_expensive")
def test_a_tokenizer_of_another_training_is_not_taken(chain: Path) -> None:
    path = chain / "run/tokenizer/bpe_tokenizer.json"
    settings = ["contestants.bpe.tokenizer.vocab_size=50"]
    Steps(load_experiment(Path(CONFIG), settings), echo=lambda _line: None).tokenizer("bpe")
    assert read_json(path)["vocab_size"] == 50
    assert outcome() in (COMPARED, "made")
    assert read_json(path)["vocab_size"] == 60


# --- artefacts of before ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("nothing_expensive")
def test_encoded_splits_without_borders_are_encoded_again_to_the_same_ids(chain: Path) -> None:
    path = chain / "run/data/encoded/manifest.json"
    manifest = read_json(path)
    for key in ("inputs", "content_sha256"):
        del manifest[key]
    for split in manifest["splits"].values():
        del split["borders_sha256"]
    write_json(path, manifest)
    before = (chain / "run/data/encoded/val_ids.pt").read_bytes()
    assert outcome() == "made"
    assert (chain / "run/data/encoded/val_ids.pt").read_bytes() == before


def without_borders(folder: Path) -> None:
    """The checkpoints in `folder` as an earlier version wrote them."""
    for name in (checkpoint.LAST, checkpoint.BEST):
        state = torch.load(folder / name, weights_only=True)
        for key in ("training_version", "metrics_sha256"):
            state.pop(key, None)
        for data in state["data"].values():
            del data["borders_sha256"]
        torch.save(state, folder / name)


@pytest.mark.usefixtures("nothing_expensive")
def test_a_checkpoint_without_borders_is_not_taken_for_equal(chain: Path) -> None:
    without_borders(chain / "run/checkpoints/char")
    found = outcome()
    assert "does not record where the documents of train began" in found
    assert commands_of(found) == ["train-char FORCE=1"]


# --- the command that a message names really mends it -------------------------------------------------------------


def run_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], main: Any, *arguments: str) -> str:
    """Run a command as a user does; "" if all went well, else what it says."""
    monkeypatch.setattr(sys, "argv", ["command", "--config", CONFIG, *arguments])
    try:
        cli.run(main)
    except SystemExit:
        return capsys.readouterr().err.strip()
    capsys.readouterr()
    return ""


def mended_in_one_go(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], settings: tuple[str, ...] = ()
) -> None:
    given = [word for setting in settings for word in ("--set", setting)]
    said = run_command(monkeypatch, capsys, compare_script.main, *given)
    (command,) = commands_of(said)
    targets, force, experiment, *rest = re.findall(r"train-[\w -]*?(?= FORCE)|FORCE=1|EXPERIMENT=\S+|SET=.*", command)
    assert (force, experiment) == ("FORCE=1", f"EXPERIMENT={CONFIG}")
    assert rest == ([f"SET={' '.join(settings)}"] if settings else [])
    for target in targets.split():
        name = target.removeprefix("train-")
        assert run_command(monkeypatch, capsys, train_script.main, "--contestant", name, "--force", *given) == ""
    assert run_command(monkeypatch, capsys, compare_script.main, *given) == ""
    assert outcome(*settings) == "up to date"


def test_other_documents_case_32(
    chain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same text in other documents: refused, mended by the named command, and then what a fresh root gives."""
    for split in SPLITS:
        path = chain / "texts" / f"{split}.txt"
        path.write_text(path.read_text().replace("\x1e", ""))
    whole_files = "corpus.separator=null"  # a separator that never occurs would be refused
    mended_in_one_go(monkeypatch, capsys, (whole_files,))
    mended = {name: read_json(chain / f"run/checkpoints/{name}/report.json")["splits"] for name in ("bpe", "char")}
    fresh = Steps(load_experiment(Path(CONFIG), [whole_files, f"root={tmp_path}"]), echo=lambda _line: None)
    for name in ("bpe", "char"):
        own = read_json(fresh.train(name))["splits"]
        for split in ("val", "test"):
            assert mended[name][split]["total_nats"] == own[split]["total_nats"]
            assert mended[name][split]["num_documents"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["train.learning_rate=1e-3", "contestants.bpe.train.seed=5", "train.num_threads=2"])
@pytest.mark.usefixtures("chain")
def test_settings_are_mended_in_one_go(
    setting: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mended_in_one_go(monkeypatch, capsys, (setting,))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["last.pt", "best.pt", "metrics.jsonl", "tokenizer.json"])
def test_damaged_runs_are_mended_in_one_go(
    chain: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = chain / "run/checkpoints/char" / name
    path.write_bytes(path.read_bytes()[:-7])
    mended_in_one_go(monkeypatch, capsys)
