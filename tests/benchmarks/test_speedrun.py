"""bench/race.py: one measure for all, nanoGPT's schedule, times to the target, what is not reached."""

import doctest
import json
import math
import sys

import pytest
import torch

from bench import nanogpt, race, turns
from bench import speedrun as speedrun_command
from bench.race import Result, Task, as_json, contestants, ids_of, our_steps, table, val_loss
from data.errors import ConfigError, DataError
from model.gpt import MiniGPT
from model.settings import MiniGPTConfig
from model_helpers import ENGLISH

TEXT = "".join(ENGLISH) * 3
TASK = Task(TEXT, TEXT[:300], target=2.9, num_threads=1, slice_seconds=0.01)
SMALL = {"block_size": 8, "embedding_dim": 16, "num_heads": 2, "num_layers": 1, "dropout": 0.0}


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(race, "SIZES", SMALL)
    monkeypatch.setattr(nanogpt, "SETTINGS", nanogpt.SETTINGS | {"steps": 40, "warmup_steps": 4})
    for settings in race.OURS.values():
        monkeypatch.setitem(settings, "steps", 40)


class Pipe:
    """Both ends of a pipe in one process: requests come from a list, answers go to another."""

    def __init__(self, num_turns):
        self.turns, self.answers = [True] * num_turns + [None], []

    def recv(self):
        return self.turns.pop(0)

    def send(self, value):
        self.answers.append(value)


@pytest.mark.parametrize(("maker", "argument"), [("ours", "modern"), ("ours", "gpt2"), ("nanogpt", "")])
def test_every_contestant_learns_in_slices_until_its_steps_are_spent(maker, argument):
    pipe = Pipe(200)
    threads = torch.get_num_threads()
    try:
        race.serve(pipe, maker, argument, TASK, 1)
    finally:
        torch.set_num_threads(threads)
    assert pipe.answers[0] == "ready"
    seconds, steps, losses, done = zip(*pipe.answers[1:], strict=True)
    assert list(seconds) == sorted(seconds) and list(steps) == sorted(steps)
    assert steps[-1] == 40 and done[-1] and not done[0]
    assert losses[-1] < losses[0] < math.log(len(set(TEXT))) + 0.5
    assert losses[-1] < 3.4


@pytest.mark.parametrize("length", [5, 9, 8 * 70 + 1, 8 * 278 + 6])  # less than a window, whole ones, and a rest
def test_the_figure_is_the_mean_loss_of_every_character_but_the_first(length):
    torch.manual_seed(0)
    model = MiniGPT(MiniGPTConfig(7, **SMALL)).eval()
    ids = torch.randint(7, (length,))
    total, seen = 0.0, []
    with torch.no_grad():
        for begin in range(0, length - 1, 8):
            window, targets = ids[begin : min(begin + 8, length - 1)], ids[begin + 1 : begin + 9]
            total += torch.nn.functional.cross_entropy(model(window[None])[0], targets, reduction="sum").item()

    def loss(inputs, targets):
        assert inputs.is_contiguous() and targets.is_contiguous()  # nanoGPT views its targets as flat
        seen.append(targets.numel())
        return model.loss(inputs, targets)

    assert val_loss(loss, ids, 8) == pytest.approx(total / (length - 1), rel=1e-5)
    assert sum(seen) == length - 1


def test_both_are_measured_on_the_same_characters():
    task = Task("abcabcabd" * 20, "abcd" * 20, 1.0, 1)
    train, val, size = ids_of(task)
    assert size == 4 and train[:4].tolist() == [0, 1, 2, 0] and val[:4].tolist() == [0, 1, 2, 3]
    seen = []
    run_val = race.val_loss

    def spied(loss, ids, block_size):
        seen.append((len(ids), block_size))
        return run_val(loss, ids, block_size)

    race.val_loss, before = spied, race.val_loss
    try:
        for steps, evaluate in (our_steps(task, 1, "gpt2"), race.nanogpt_steps(task, 1, "")):
            next(steps)
            evaluate()
    finally:
        race.val_loss = before
    assert seen == [(80, 8)] * 2


def test_the_peer_follows_nanogpts_schedule(monkeypatch):
    rates = []
    original = torch.optim.AdamW.step

    def spied(self, *given, **named):
        rates.append(self.param_groups[0]["lr"])
        assert [group["weight_decay"] for group in self.param_groups] == [0.1, 0.0]
        assert self.param_groups[0]["betas"] == (0.9, 0.99)
        return original(self, *given, **named)

    monkeypatch.setattr(torch.optim.AdamW, "step", spied)
    steps, _ = race.nanogpt_steps(TASK, 1, "")
    assert sum(1 for _ in steps) == 40
    assert rates[:4] == pytest.approx([1e-3 * share / 5 for share in (1, 2, 3, 4)])
    assert rates[4] == pytest.approx(1e-3) and max(rates) == rates[4]
    assert rates[22] == pytest.approx(5.5e-4)
    assert 1e-4 < rates[-1] < 1.1e-4


def test_seeds_differ_and_repeat():
    def loss_after(seed):
        steps, evaluate = our_steps(TASK, seed, "gpt2")
        for _ in range(3):
            next(steps)
        return evaluate()

    assert loss_after(1) == loss_after(1) != loss_after(2)


def test_names_and_settings():
    assert list(contestants("")) == ["ours, modern", "ours, gpt2", "nanoGPT's settings"]
    assert list(contestants("folder"))[-1] == "nanoGPT"
    assert contestants("folder")["nanoGPT"][:2] == ("nanogpt", "folder")
    assert "optimizer muon" in contestants("")["ours, modern"][2]
    assert "batch_size 12" in contestants("")["nanoGPT's settings"][2]
    assert doctest.testmod(race).attempted > 0


class Scripted:
    """A contestant's pipe with answers that are known before."""

    def __init__(self, answers):
        self.answers = iter(answers)

    def send(self, _turn):
        pass

    def poll(self, _patience):
        return True

    def recv(self):
        return next(self.answers)


def raced(answers, limit=math.inf):
    result = Result("x", "")
    race._race(Task("", "", 1.5, 1), turns.Turns({"x": Scripted(answers)}, {}), {"x": result}, limit)
    return result


def test_time_is_that_of_the_first_evaluation_at_the_target():
    result = raced([(1.0, 10, 1.9, False), (2.0, 20, 1.5, False)])
    assert (result.seconds, result.spent, result.steps, result.best) == ([2.0], [2.0], [20], [1.5])


def test_a_target_not_reached_is_none_with_what_was_spent():
    result = raced([(1.0, 10, 1.7, False), (2.0, 15, 1.8, True)])
    assert (result.seconds, result.spent, result.steps, result.best) == ([None], [2.0], [15], [1.7])
    assert raced([(1.0, 10, 1.7, False), (2.0, 20, 1.6, False)], limit=2.0).seconds == [None]


def test_the_table_shows_shares_of_nanogpts_median_and_marks_bounds():
    ours = Result("ours, modern", "", [4.0, 6.0, 5.0], [4.0, 6.0, 5.0], [1.8] * 3, [100, 120, 110])
    slow = Result("ours, gpt2", "", [None, 20.0, None], [30.0, 20.0, 30.0], [1.9, 1.87, 1.9], [900, 600, 900])
    theirs = Result("nanoGPT's settings", "", [40.0, 60.0, 50.0], [40.0, 60.0, 50.0], [1.88] * 3, [2000] * 3)
    rows = [line.split("  ") for line in table(TASK, [ours, slow, theirs]).splitlines()]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert cells[1] == ["ours, modern", "3 of 3", "4.0", "5.0", "10%", "110", "1.800"]
    assert cells[2] == ["ours, gpt2", "1 of 3", "20.0", ">30.0", "-", "900", "1.870"]
    assert cells[3] == ["nanoGPT's settings", "3 of 3", "40.0", "50.0", "100%", "2,000", "1.880"]
    theirs.seconds = [None] * 3  # they took longer than they had: our share is an upper bound
    assert "<10%" in table(TASK, [ours, theirs])
    assert max(map(len, table(TASK, [ours, slow, theirs]).splitlines())) < 100
    stored = as_json(TASK, [ours])
    assert json.loads(json.dumps(stored, allow_nan=False))["results"][0]["seconds"] == [4.0, 6.0, 5.0]
    assert stored["target"] == 2.9 and stored["train_characters"] == len(TEXT)


def test_a_text_is_cut_as_nanogpt_cuts_it(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("0123456789" * 20)
    train, val = speedrun_command.texts_of(str(path))
    assert (len(train), len(val)) == (180, 20) and train + val == "0123456789" * 20
    path.write_text("short")
    with pytest.raises(DataError, match="has 5 characters; a speedrun needs at least 80"):
        speedrun_command.texts_of(str(path))


def test_case_53_a_text_that_is_none_is_told(tmp_path, monkeypatch):
    path = tmp_path / "text.txt"
    path.write_bytes(("0123456789" * 20).encode("utf-16-le"))
    with pytest.raises(DataError, match="is UTF-16LE without a byte order mark"):
        speedrun_command.texts_of(str(path))
    path.write_text("0123456789" * 20)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert len(speedrun_command.texts_of("~/text.txt")[0]) == 180
    with pytest.raises(DataError, match=r"cannot read .*none\.txt: No such file"):
        speedrun_command.texts_of("~/none.txt")


def test_the_command_measures_writes_and_prints(tmp_path, monkeypatch, capsys):
    text = tmp_path / "text.txt"
    text.write_text(TEXT)
    given = {}

    def measured(task, seeds, folder, *, echo, limit):
        given.update(task=task, seeds=list(seeds), folder=folder)
        echo("seed 1: done")
        names = [(name, settings) for name, (_, _, settings) in contestants(folder, task.ours).items()]
        return [Result(name, settings, [2.0], [2.0], [1.8], [10]) for name, settings in names]

    monkeypatch.setattr(race, "measure", measured)
    arguments = [
        "--text",
        str(text),
        "--modern",
        "steps=7",
        "--modern",
        "learning_rate=2e-3",
        "--seeds",
        "2",
        "--threads",
        "1",
        "--set",
        f"root={tmp_path}",
    ]
    monkeypatch.setattr(sys, "argv", ["speedrun", *arguments])
    speedrun_command.main()
    assert given["seeds"] == [1, 2] and given["task"].target == speedrun_command.TARGET == 1.88
    shown = capsys.readouterr().out
    assert (
        "to 1.88 nats/char" in shown
        and "ours, modern: steps 7, batch_size 16, learning_rate 0.002, min_learning_rate_ratio 0.0, optimizer muon"
        in shown
    )
    stored = json.loads((tmp_path / "reports" / "speedrun.json").read_text())
    assert stored["target"] == 1.88 and len(stored["results"]) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--text", __file__, "--gpt2", "steps=0"], "--gpt2 steps must be at least 1, found 0"),
        (["--nanogpt", "nowhere"], "model.py does not exist"),
        (["--text", __file__, "--modern", "learning_rat=1"], "did you mean 'learning_rate'"),
        (["--text", __file__, "--gpt2", "batch_size=0"], "batch_size must be at least 1"),
    ],
)
def test_mistakes_are_refused(monkeypatch, arguments, message):
    monkeypatch.setattr(sys, "argv", ["speedrun", *arguments])
    with pytest.raises(ConfigError, match=message):
        speedrun_command.main()


@pytest.mark.slow
def test_processes_take_turns_until_all_have_reached_the_target():
    ours = {preset: settings | {"steps": 30} for preset, settings in race.OURS.items()}
    task = Task(TEXT, TEXT[:300], target=4.0, num_threads=1, slice_seconds=0.05, ours=ours)
    lines = []
    results = race.measure(task, [1], "", echo=lines.append, limit=20.0)
    assert len(lines) == 3 and all("reached after" in line for line in lines)
    assert all(result.seconds[0] is not None and result.best[0] <= 4.0 for result in results)
