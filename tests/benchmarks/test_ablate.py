"""bench/ablate.py: every part is left out once, and the table compares equal seeds."""

from bench.ablate import OTHERS, table, variants
from model.settings import PRESET_SETTINGS, SWITCHES, MiniGPTConfig, TrainConfig


def test_each_variant_differs_from_modern_in_exactly_one_part():
    found = variants()
    modern = PRESET_SETTINGS["modern"]
    preset = {*modern.model, *modern.train}
    others = {*SWITCHES, *OTHERS} - preset
    assert list(found)[:2] == ["gpt2", "modern"]
    assert set(found) == {"gpt2", "modern"} | {f"modern - {name}" for name in preset} | {
        f"modern + {name}" for name in others
    }

    def parts(model, train):
        config, training = MiniGPTConfig(5, **model), TrainConfig(**train)
        on = {name for name in SWITCHES if getattr(config, name)}
        return on | {name for name, value in {**modern.train, **OTHERS}.items() if getattr(training, name) == value}

    assert parts(*found.pop("gpt2")) == set()
    assert parts(*found.pop("modern")) == preset
    for name, settings in found.items():
        assert parts(*settings) == preset ^ {name.split()[-1]}, name


def test_the_table_takes_differences_on_the_seeds_that_both_have():
    results = {
        "gpt2|1": {"bits_per_char": 3.0, "steps": 10}, "gpt2|2": {"bits_per_char": 3.2, "steps": 12},
        "modern|1": {"bits_per_char": 2.5, "steps": 8},
    }  # fmt: skip
    header, gpt2, modern = (line.split() for line in table(results).splitlines())
    assert header[0] == "variant"
    assert gpt2 == ["gpt2", "2", "3.1000", "0.1414", "+0.5000", "11"]
    assert modern == ["modern", "1", "2.5000", "-", "+0.0000", "8"]
