"""Small things that tests of several themes need."""

import os

from hypothesis import settings

DEEP_FACTOR = 50


def examples(number: int) -> settings:
    """Settings for a property: so many examples, and DEEP_FACTOR times as many under HYPOTHESIS_PROFILE=deep."""
    is_deep = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
    return settings(max_examples=number * (DEEP_FACTOR if is_deep else 1))
