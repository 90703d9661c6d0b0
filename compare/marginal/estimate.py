"""How far the canonical segmentation lies above the marginal: an estimate by sampling segmentations.

A BPE model spreads probability over all id sequences v whose bytes are the text x, but is scored on one of them, the
canonical c = encode(x). So its reported bits are an upper bound on -log2 p(x), p(x) = sum_v p(v) (Cao and Rimell
2021, "You should evaluate your language model on marginal likelihood over tokenisations"; Chirkova et al. 2023,
"Should you marginalize over possible tokenizations?").

The estimator is stratified: c is in the sum exactly, the rest by importance sampling with K draws v_k ~ q,

    p_hat(x) = p(c) + 1/K sum_k p(v_k) / q(v_k),        q over the segmentations other than c.

p_hat is unbiased and never below p(c); by Jensen E[log p_hat] <= log p, so the gap that it shows is, in expectation,
a lower bound on the true gap, and close to it only if the effective sample size is not small.

The proposal stands in for BPE-dropout (Provilkov et al. 2020): mostly canonical, with local departures into smaller
tokens. BPE-dropout itself has no usable q(v): many patterns of dropped merges end in one segmentation, and their sum
has no closed form. Here q(v) is a product of token weights over the lattice of all vocabulary tokens in the text,
normalised by dynamic programming, so it is known exactly and drawn from exactly (see `segmentations`). A
token's weight is the model's own probability for it: after the canonical prefix where the token begins at a canonical
border, on average over canonical places elsewhere; both to a power below 1, which keeps q wider than p.

Shapes: K samples, B batch, S tokens of a segmentation, T positions, C channels, V vocabulary, P passages.
"""

import math
import textwrap
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from compare.certainty.intervals import over_text
from compare.marginal.result import EffectiveSamples, Gap, MarginalGap, PassageGap
from compare.marginal.segmentations import (
    Edges,
    Proposal,
    Vocabulary,
    longest_segmentations,
    num_segmentations,
    path_starts,
)
from data.config import require
from data.errors import DataError
from model.evaluate import context_of
from model.gpt import MiniGPT
from model.windows import token_losses
from tokenizer.base import Tokenizer

Float64Array = NDArray[np.float64]

VERSION = 2
"""Of how the estimate is made and stored (proposal, passages, interval). It goes up with every change of the code that
can change a figure; older results are left out of a comparison."""
LOW_EFFECTIVE_SAMPLES = 10.0
"""With fewer, the sum over the other segmentations is uncertain by more than a third."""
_POWER = 0.9  # of the model's probabilities in the weights
_BATCH_SIZE = 64  # segmentations in one forward pass
_TERMINAL_WIDTH = 98


def marginal_gap(
    model: MiniGPT,
    tokenizer: Tokenizer,
    passages: Sequence[str],
    *,
    samples: int = 64,
    seed: int = 1,
    progress: bool = False,
) -> MarginalGap:
    """Bits of the canonical segmentation against the estimated marginal.

    Each passage is read after one newline and scored within one block, and every segmentation of it must fit
    there. Gaps come in bits per character and in per cent of the canonical bits, each with a 95 % interval over
    passages by Student's t, which holds for few of them too; it ends at 0, as no gap is below (None for one passage). A
    text with one segmentation needs no draws: its gap is exactly 0. The training mode of `model` is restored. Raises
    ConfigError for settings out of range, DataError for passages that are missing, empty or too long, and
    TokenizerError for characters without a token.
    """
    require(samples >= 1, f"samples must be at least 1, found {samples}")
    if not passages:
        raise DataError("there are no passages to segment; give at least one")
    context_ids, vocabulary = context_of(tokenizer), Vocabulary(tokenizer)
    lattices = [vocabulary.edges(passage.encode("utf-8")) for passage in passages]
    canonical = [tokenizer.encode(passage) for passage in passages]
    for number, (passage, edges) in enumerate(zip(passages, lattices, strict=True)):
        _check_length(number, passage, edges, len(context_ids), model.config.block_size)
    was_training = model.training
    model.eval()
    try:
        elsewhere = mean_log_probabilities(model, context_ids, canonical)
        rows = [
            _passage_row(
                *(model, context_ids, passage, edges, ids, elsewhere, samples),
                rng=np.random.default_rng([seed, number]),
            )
            for number, (passage, edges, ids) in enumerate(
                tqdm(
                    zip(passages, lattices, canonical, strict=True),
                    total=len(passages),
                    desc="segmenting",
                    disable=not progress,
                    unit="passage",
                    leave=False,
                )
            )
        ]
    finally:
        model.train(was_training)
    return _summary(rows, samples, seed)


def _check_length(number: int, passage: str, edges: Edges, num_context: int, block_size: int) -> None:
    if not passage:
        raise DataError(f"passage {number} is empty: there is nothing to segment; leave it out")
    longest = longest_segmentations(edges)[-1]
    room = block_size - num_context + 1
    if longest > room:
        raise DataError(
            f"passage {number} ({passage[:20]!r}…) has segmentations of up to {longest} tokens, but a block of "
            f"{block_size} scores {room} tokens in one pass; cut it shorter"
        )


def _passage_row(
    model: MiniGPT,
    context_ids: Sequence[int],
    passage: str,
    edges: Edges,
    canonical: list[int],
    elsewhere: Float64Array,
    samples: int,
    *,
    rng: np.random.Generator,
) -> PassageGap:
    """Canonical and marginal bits of one passage; `elsewhere` (V,) are log weights off the canonical borders."""
    after_canonical = next_token_log_probabilities(model, context_ids, canonical)
    place = {start: position for position, start in enumerate(path_starts(edges, canonical))}
    log_weights = [
        [
            _POWER * float((after_canonical[place[edge.start]] if edge.start in place else elsewhere)[edge.token])
            for edge in row
        ]
        for row in edges
    ]
    proposal = Proposal(edges, canonical, log_weights)
    drawn = [] if proposal.is_empty else [proposal.draw(rng) for _ in range(samples)]
    nats = segmentation_nats(model, context_ids, [canonical, *(ids for ids, _ in drawn)])
    log_ratios = -nats[1:] - np.array([log_q for _, log_q in drawn])  # log p(v_k) / q(v_k)
    marginal_nats, effective_samples = stratified_estimate(float(nats[0]), log_ratios)
    return PassageGap(
        canonical_bits=float(nats[0]) / math.log(2),
        marginal_bits=marginal_nats / math.log(2),
        effective_samples=effective_samples,
        log10_segmentations=math.log10(num_segmentations(edges)),
        text=passage,
        num_chars=len(passage),
    )


def stratified_estimate(canonical_nats: float, log_ratios: Float64Array) -> tuple[float, float | None]:
    """-log p_hat in nats, and the effective sample size (sum w)^2 / sum w^2 (Kong 1992); None without draws.

    `log_ratios` (K,) are log p(v_k) / q(v_k) of segmentations drawn from all but the canonical one.
    """
    if not len(log_ratios):
        return canonical_nats, None
    largest = float(log_ratios.max())
    weights = np.exp(log_ratios - largest)
    log_rest = largest + math.log(float(weights.mean()))
    # Adding to p(c) in the log domain: log(p(c) + rest) = log p(c) + log(1 + rest / p(c)).
    gap = float(np.logaddexp(0.0, log_rest + canonical_nats))
    return canonical_nats - gap, float(weights.sum() ** 2 / (weights**2).sum())


def _summary(rows: Sequence[PassageGap], samples: int, seed: int) -> MarginalGap:
    canonical = np.array([row.canonical_bits for row in rows], dtype=np.float64)
    marginal = np.array([row.marginal_bits for row in rows], dtype=np.float64)
    num_chars = np.array([row.num_chars for row in rows], dtype=np.float64)
    gaps = canonical - marginal
    effective = [row.effective_samples for row in rows if row.effective_samples is not None]
    over_passages = EffectiveSamples(float(np.median(effective)), min(effective)) if effective else None
    return MarginalGap(
        samples=samples,
        seed=seed,
        num_passages=len(rows),
        num_chars=int(num_chars.sum()),
        canonical_bits_per_char=float(canonical.sum() / num_chars.sum()),
        marginal_bits_per_char=float(marginal.sum() / num_chars.sum()),
        gap_bits_per_char=_ratio(gaps, num_chars),
        gap_percent=_ratio(100.0 * gaps, canonical),
        effective_samples=over_passages,
        note=_note(None if over_passages is None else over_passages.median, samples),
        passages=tuple(rows),
    )


def _ratio(above: Float64Array, below: Float64Array) -> Gap:
    """Sum over sum of two figures (P,), with the 95 % interval over passages; `above` is never negative."""
    low = high = None
    estimate = over_text(above, np.zeros_like(above), below)
    if estimate is not None:
        low, high = max(0.0, estimate.interval.low), estimate.interval.high
    return Gap(float(above.sum() / below.sum()), low, high)


def _note(median: float | None, samples: int) -> str:
    if median is None:
        return "every passage has one segmentation, the canonical one: the gap is exactly 0"
    if median < LOW_EFFECTIVE_SAMPLES:
        return (
            f"the median effective sample size is low ({median:.1f} of {samples}): the estimate is only a lower bound "
            "on the gap; draw more samples"
        )
    return (
        f"in expectation a lower bound on the gap; with a median effective sample size of {median:.1f} of {samples} "
        "it should be close"
    )


@torch.inference_mode()
def segmentation_nats(
    model: MiniGPT, context_ids: Sequence[int], segmentations: Sequence[Sequence[int]], batch_size: int = _BATCH_SIZE
) -> Float64Array:
    """(K,) -log p of each segmentation after the context, in nats: one forward pass each, nothing truncated."""
    device = next(model.parameters()).device
    totals = np.zeros(len(segmentations))
    order = sorted(range(len(segmentations)), key=lambda k: len(segmentations[k]))
    for first in range(0, len(order), batch_size):
        rows = order[first : first + batch_size]
        lengths = torch.tensor([len(segmentations[k]) for k in rows])
        stream = torch.zeros(len(rows), len(context_ids) + int(lengths.max()), dtype=torch.long)
        for row, k in enumerate(rows):
            stream[row, : len(context_ids) + len(segmentations[k])] = torch.tensor([*context_ids, *segmentations[k]])
        # Padding stands behind all real positions, which causal attention cannot see.
        positions = torch.arange(stream.shape[1] - 1)[None, :] - (len(context_ids) - 1)
        needed = (positions >= 0) & (positions < lengths[:, None])  # (B, T)
        hidden = model.hidden(stream[:, :-1].to(device))[needed.to(device)]
        losses = token_losses(model, hidden, stream[:, 1:][needed].to(device)).cpu().double()
        owner = torch.arange(len(rows))[:, None].expand_as(needed)[needed]
        sums = torch.zeros(len(rows), dtype=torch.float64).index_add_(0, owner, losses)
        totals[rows] = sums.numpy()
    return totals


@torch.inference_mode()
def next_token_log_probabilities(model: MiniGPT, context_ids: Sequence[int], ids: Sequence[int]) -> Float64Array:
    """(S, V) log p of every token at each place of `ids`, in nats."""
    device = next(model.parameters()).device
    stream = torch.tensor([[*context_ids, *ids[:-1]]], device=device)
    logits = model.logits(model.hidden(stream)[0, len(context_ids) - 1 :]).double()
    out: Float64Array = torch.log_softmax(logits, dim=-1).cpu().numpy()
    return out


def mean_log_probabilities(
    model: MiniGPT, context_ids: Sequence[int], segmentations: Sequence[Sequence[int]]
) -> Float64Array:
    """(V,) log of every token's probability on average over all places of the given segmentations."""
    sums = np.zeros(model.config.vocab_size)
    for ids in segmentations:
        sums += np.exp(next_token_log_probabilities(model, context_ids, ids)).sum(axis=0)
    out: Float64Array = np.log(sums / sum(map(len, segmentations)) + np.finfo(np.float64).tiny)
    return out


def as_text(contestant: str, result: MarginalGap) -> str:
    """What `marginal_gap` found, for a terminal."""
    effective = result.effective_samples
    lines = [
        ("contestant", contestant),
        ("passages", f"{result.num_passages:,} ({result.num_chars:,} characters)"),
        ("canonical bits per character", f"{result.canonical_bits_per_char:.4f}"),
        ("marginal bits per character", f"{result.marginal_bits_per_char:.4f}"),
        ("gap in bits per character", _with_interval(result.gap_bits_per_char, "{:.4f}")),
        ("gap in per cent", _with_interval(result.gap_percent, "{:.3f}")),
        ("samples for each passage", f"{result.samples:,}" if effective else "none needed"),
        (
            "effective sample size",
            f"median {effective.median:.1f}, least {effective.min:.1f}" if effective else "–",
        ),
    ]
    width = max(len(label) for label, _ in lines)
    table = "\n".join(f"{label.ljust(width)}  {value}" for label, value in lines)
    return f"{table}\n\n{textwrap.fill(result.note, _TERMINAL_WIDTH)}"


def _with_interval(gap: Gap, form: str) -> str:
    value = form.format(gap.value)
    if gap.low is None:
        return f"{value} (one passage: no interval)"
    return f"{value} (95 % interval {form.format(gap.low)} to {form.format(gap.high)})"
