"""Every text goes through the engine here, however short; tests/bpe/test_small.py has the way without it."""

from collections.abc import Iterator

import pytest

from tokenizer import bpe


@pytest.fixture(scope="package", autouse=True)
def _the_engine_answers() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bpe, "_PLAIN_CHARACTERS", -1)
        yield
