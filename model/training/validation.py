"""How often and on how much text a run is watched, so that watching takes at most a tenth of its time.

Everything follows from the settings and the text, nothing from a clock: figures must not depend on the machine. The
forward pass of a figure costs a third of a training step's operations for each token.
"""

import math
from dataclasses import dataclass

from model.settings import MiniGPTConfig, TrainConfig
from tokenizer.encode_splits import EncodedSplit

FORWARD_SHARE = 1 / 3
"""Operations of a forward pass, as a share of those of a training step on as many tokens."""
SHARE_OF_ALL = 0.03
"""Share of a run's operations that figures may take, reckoned from what all contestants have in common. An operation
may take longer in them than in training, up to 2.8 times on a busy CPU, so that they stay below a tenth of the time."""
SHARE_OF_OWN = 0.045
"""The same, reckoned for the contestant itself."""
SHORTEST_SAMPLE = 1_000
"""Characters below which a sample says little; a budget too small for it has fewer figures instead."""
FLOPS_PER_SECOND = 5_000_000_000
"""What a budget in seconds is taken for: two slow cores do more."""
_COMMON_VOCABULARY = 256


@dataclass(frozen=True)
class Validation:
    """The figures on the val sample while a run trains."""

    max_characters: int
    """Length of the sample, at most."""
    every_fraction: float
    """Share of the budget between two figures."""


def validation_of(
    config: TrainConfig, model_config: MiniGPTConfig, flops_per_token: int, train: EncodedSplit
) -> Validation:
    """The figures for a run by `config`; `flops_per_token` is its model's, `train` its encoded text.

    The length is reckoned from what contestants share (the sizes of the model but its vocabulary, the bytes of the
    text: no token is shorter than one), so that all have the same sample. Only a contestant that would spend more than
    SHARE_OF_OWN on it, such as one with a vocabulary far larger than its model, has a shorter one.
    """
    wanted = min(1.0, config.val_every_fraction)
    num_figures = math.ceil(1.0 / wanted)
    shared, own = _characters_seen(config, model_config, flops_per_token, train)
    in_all = min(SHARE_OF_ALL * shared, SHARE_OF_OWN * own) / FORWARD_SHARE
    shortest = min(SHORTEST_SAMPLE, config.val_characters)
    if in_all / num_figures < shortest:
        num_figures = max(1, math.floor(in_all / shortest))
        wanted = max(wanted, 1.0 / num_figures)
    return Validation(max(1, min(config.val_characters, math.floor(in_all / num_figures))), wanted)


def _characters_seen(
    config: TrainConfig, model_config: MiniGPTConfig, flops_per_token: int, train: EncodedSplit
) -> tuple[float, float]:
    """Characters that a run will see: at least, whatever the tokenizer, and about, by the contestant's own tokens."""
    unit, amount = config.budget.unit, config.budget.amount
    if unit == "characters":
        return amount, amount
    flops = amount * FLOPS_PER_SECOND if unit == "seconds" else amount
    common = flops_per_token - 6 * model_config.embedding_dim * (model_config.vocab_size - _COMMON_VOCABULARY)
    shared_tokens, own_tokens = {
        "tokens": (amount, amount),
        "steps": (amount * config.batch_size * model_config.block_size,) * 2,
        "flops": (flops / common, flops / flops_per_token),
        "seconds": (flops / common, flops / flops_per_token),
    }[unit]
    return shared_tokens * train.num_chars / train.num_bytes, own_tokens * train.num_chars / len(train.ids)
