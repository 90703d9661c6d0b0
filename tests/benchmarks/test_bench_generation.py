"""bench/generation.py: the table, and how much faster the cache is."""

import argparse

import pytest

from bench import generation
from model.settings import PRESETS


def test_the_table_has_both_presets(capsys: pytest.CaptureFixture[str]) -> None:
    generation.main(["--tokens", "6", "--block", "4", "--vocab", "9", "--repeat", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[2:]] == [[preset, rows] for preset in PRESETS for rows in ("1", "8")]


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_the_cache_is_five_times_as_fast_at_block_128(preset: str) -> None:
    arguments = argparse.Namespace(tokens=500, block=128, vocab=2_000, repeat=3)
    plain, cached = (generation.tokens_per_second(arguments, preset, 1, cache=cache) for cache in (False, True))
    assert cached > 5 * plain
