"""bench/ablate.py: every part is left out once, and the table compares equal seeds."""

import pytest

from bench.ablate import OTHERS, chosen, interval_of, table, variants
from data.errors import ConfigError
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
    assert gpt2 == ["gpt2", "2", "3.1000", "0.1414", "+0.5000", "-", "11"]
    assert modern == ["modern", "1", "2.5000", "-", "+0.0000", "-", "8"]


def test_the_interval_is_students_t_over_the_seeds():
    # Three differences: mean 0.02, sd 0.01, t with two degrees of freedom 4.3027.
    assert interval_of([0.01, 0.02, 0.03]) == "-0.0048 to +0.0448"
    assert interval_of([0.01]) == interval_of([0.0, 0.0]) == "-"


def test_named_parts_alone_are_trained_next_to_modern():
    assert chosen("") == list(variants())
    assert chosen("beta1,optimizer") == ["modern", "modern + beta1", "modern - optimizer"]
    with pytest.raises(ConfigError, match="no part 'beta2'"):
        chosen("beta2")
