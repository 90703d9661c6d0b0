"""model/export.py: the folder that transformers loads computes what the model computes."""

import json
import subprocess
import sys

import pytest
import torch

import model as package
import tokenizer
from chain_helpers import experiment_values, write_corpus, write_experiment
from compare.experiment import load_experiment
from compare.steps import Steps
from data.errors import ConfigError, TokenizerError
from interop_helpers import need_transformers
from model import export as export_module
from model.exchange.card import Figures
from model.exchange.huggingface import convert
from model.export import export_model
from model.gpt import MiniGPT
from model.report_file import read_report
from model.settings import SWITCHES
from model_helpers import tiny_model
from scripts import export, score

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the library
NAMES = ["char", "bpe", "byte_bpe", "modern", "byte"]
COMBINATIONS = [
    {},
    {"relu_squared": True},
    *({"rope": True} | {name: True} for name in SWITCHES),
    dict.fromkeys(SWITCHES, True),
    {"preset": "modern"},
]


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    need_transformers()
    folder = tmp_path_factory.mktemp("export")
    values = experiment_values(folder / "run", write_corpus(folder / "texts", extra=" é 中\t"))
    values["contestants"] |= {
        "byte_bpe": {"tokenizer": {"kind": "byte_bpe", "vocab_size": 300, "split_pattern": "gpt2"}},
        "modern": {"tokenizer": {"kind": "char_bpe", "vocab_size": 60}, "model": {"preset": "modern"}},
        "byte": {"tokenizer": {"kind": "byte"}},
    }
    config = write_experiment(folder / "words.yaml", values)
    made = Steps(load_experiment(config), echo=lambda _line: None)
    for name in NAMES:
        made.train(name)
    return made


def exported(steps, name, out, format_name="transformers"):
    folder = steps.experiment.run_folder(name, 1)
    figures = Figures(read_report(folder / "report.json", mend="make"), "words", (1.0, 2.0))
    return export_model(package.load(folder), figures, steps.data()["test"].documents(), out, format_name)


@pytest.mark.parametrize("switches", COMBINATIONS, ids=str)
def test_every_combination_with_a_layout_gives_the_same_logits(switches):
    transformers = need_transformers()
    torch.manual_seed(2)
    model = MiniGPT(tiny_model(11, **switches)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    converted = convert(model)
    made = getattr(transformers, converted.architecture)
    theirs = made(made.config_class(**converted.config)).eval()
    assert theirs.load_state_dict(converted.weights, strict=False).unexpected_keys == []
    ids = torch.randint(11, (3, 8), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        ours = model(ids)
        torch.testing.assert_close(theirs(input_ids=ids).logits, ours, atol=1e-5, rtol=1e-5)
    assert ours.std() > 0.1


@pytest.mark.parametrize("name", ["qk_norm", "rms_norm"])
def test_what_no_layout_holds_is_refused_with_the_way_on(name):
    with pytest.raises(ConfigError, match=f"{name} with learned positions; export with FORMAT=safetensors"):
        convert(MiniGPT(tiny_model(11, **{name: True})))


@pytest.mark.parametrize("name", NAMES)
def test_the_folder_is_loaded_by_the_auto_classes_and_agrees(steps, tmp_path, name):
    transformers = need_transformers()
    result = exported(steps, name, tmp_path / "out")
    assert result.architecture == ("PersimmonForCausalLM" if name == "modern" else "GPT2LMHeadModel")
    assert result.is_widened is (name == "modern")
    files = {path.name for path in (tmp_path / "out").iterdir()}
    wanted = {"model.safetensors", "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"}
    assert wanted | {"README.md"} == files
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out", local_files_only=True).eval()
    tokens = transformers.AutoTokenizer.from_pretrained(tmp_path / "out", local_files_only=True)
    ours = package.load(steps.experiment.run_folder(name, 1))
    for document in steps.data()["test"].documents():
        ids = tokens(document)["input_ids"]
        assert ids == ours.encode(document) and tokens.decode(ids) == document
    window = torch.tensor([ids[:16]])
    with torch.no_grad():
        torch.testing.assert_close(theirs(input_ids=window).logits, ours.gpt(window), atol=1e-4, rtol=0)
    greedy = theirs.generate(window[:, :4], max_new_tokens=8, do_sample=False)[0].tolist()
    assert tokens.decode(greedy[4:]) == ours.generate(tokens.decode(greedy[:4]), num_tokens=8, temperature=0)


def test_the_model_card_holds_the_measured_figures(steps, tmp_path):
    exported(steps, "modern", tmp_path / "out")
    card = (tmp_path / "out/README.md").read_text(encoding="utf-8")
    report = json.loads((steps.experiment.run_folder("modern", 1) / "report.json").read_text())
    assert f"{report['splits']['test']['bits_per_char']:.4f} (95 % interval 1.0000 to 2.0000" in card
    assert report["splits"]["test"]["text_sha256"] in card and "kept twice" in card
    assert "60 tokens" in card and "preset modern" in card


@pytest.mark.parametrize("name", ["bpe", "modern"])
def test_the_plain_folder_computes_its_logits_without_this_project(steps, tmp_path, name):
    exported(steps, name, tmp_path / "out", "safetensors")
    ours = package.load(steps.experiment.run_folder(name, 1))
    ids = ours.encode(steps.data()["test"].documents()[0])[:16]
    code = (
        "import logits, torch, json; weights, config = logits.load('.'); "
        f"print(json.dumps(logits.logits(weights, config, torch.tensor([{ids}])).tolist()))"
    )
    environment = {"PYTHONPATH": str(tmp_path / "out"), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path / "out", env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    with torch.no_grad():
        torch.testing.assert_close(
            torch.tensor(json.loads(done.stdout)), ours.gpt(torch.tensor([ids])), atol=1e-4, rtol=0
        )
    assert ours.tokenizer.fingerprint() == tokenizer.load(tmp_path / "out/tokenizer.json").fingerprint()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bpe", "modern"])
def test_the_graph_is_run_before_it_is_there(steps, tmp_path, name):
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    done = exported(steps, name, tmp_path / "graph", "onnx")
    assert done.largest_difference < 1e-4
    session = runtime.InferenceSession(str(tmp_path / "graph/model.onnx"))
    for shape in ((1, 1), (3, 5)):
        [logits] = session.run(None, {"input_ids": torch.ones(shape, dtype=torch.long).numpy()})
        assert logits.shape[:2] == shape


def test_a_folder_that_holds_something_is_left_alone(steps, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine.txt").write_text("x")
    with pytest.raises(ConfigError, match="holds something already"):
        exported(steps, "bpe", tmp_path / "out")
    with pytest.raises(ConfigError, match="transformers, safetensors, onnx, found 'gguf'"):
        exported(steps, "bpe", tmp_path / "new", "gguf")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_wrong_copy_is_never_left_behind(steps, tmp_path, monkeypatch):
    real = export_module.convert

    def wrong(gpt):
        converted = real(gpt)
        converted.weights["transformer.h.0.mlp.c_fc.weight"] += 0.5
        return converted

    monkeypatch.setattr(export_module, "convert", wrong)
    with pytest.raises(RuntimeError, match="differs from the model"):
        exported(steps, "bpe", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    files_of = export_module.files_of

    def replaced(*given):
        contents = json.loads(files_of(*given)["tokenizer.json"])
        contents["normalizer"] = {"type": "Replace", "pattern": {"String": "h"}, "content": "o"}
        return {"tokenizer.json": json.dumps(contents).encode()}

    monkeypatch.setattr(export_module, "files_of", replaced)
    with pytest.raises(TokenizerError, match=r"document 1 of test: after .* nothing was written"):
        exported(steps, "bpe", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_the_commands_export_and_score_agree_on_one_model(steps, tmp_path, capsys):
    config, out = str(steps.experiment.path), str(tmp_path / "out")
    export.main(["--config", config, "--contestant", "modern", "--out", out])
    assert "ids equal on all of test (2 documents)" in capsys.readouterr().out
    score.main(["--config", config, "--model", out, "--json"])
    found = json.loads(capsys.readouterr().out)
    ours = found["contestants"]["modern"]
    assert found["bits_per_char"] == pytest.approx(ours["bits_per_char"], abs=1e-4)
    assert found["interval"] == pytest.approx(ours["interval"], abs=1e-4)
    assert found["differences"]["modern"]["bits_per_char"] == pytest.approx(0, abs=1e-4)
    assert set(found["contestants"]) == set(NAMES) and found["context"] == "one newline"
    score.main(["--config", config, "--model", out])
    printed = capsys.readouterr().out
    assert f"bits per character: {found['bits_per_char']:.4f} (95 % interval over documents " in printed
    assert "  modern: " in printed and "difference +0.0000" in printed.replace("-0.0000", "+0.0000")


def test_a_users_own_text_is_scored_as_documents(steps, tmp_path, capsys):
    out = tmp_path / "out"
    exported(steps, "byte", out)
    (tmp_path / "a.txt").write_bytes(b"the of and\r\nto")
    (tmp_path / "b.txt").write_text("of the\n", encoding="utf-8")
    config = str(steps.experiment.path)
    score.main(["--config", config, "--model", str(out), "--text", str(tmp_path / "*.txt"), "--json"])
    found = json.loads(capsys.readouterr().out)
    wanted = package.load(steps.experiment.run_folder("byte", 1)).bits_per_char(["the of and\nto\n", "of the\n"])
    assert found["bits_per_char"] == pytest.approx(wanted, abs=1e-4)
    assert (found["num_documents"], found["num_chars"], found["contestants"]) == (2, 21, {})
    score.main(["--config", config, "--model", str(out), "--text", str(tmp_path / "b.txt")])
    assert "(no interval: one document)" in capsys.readouterr().out


@pytest.mark.parametrize(("command", "missing"), [(export, "--out FOLDER"), (score, "--model FOLDER")])
def test_what_is_missing_is_said_before_anything_is_done(command, missing):
    with pytest.raises(ConfigError, match=f"{missing} is missing"):
        command.main(["--config", "demo"])
