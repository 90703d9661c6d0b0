"""Numba kernels for what comes between the matrix products of a training step on the CPU.

torch runs each elementwise operation as a pass over memory of its own, and draws dropout by a serial generator; a
kernel here makes one pass of several of them, and computes only what the causal mask lets through. Every kernel is
a serial loop that releases Python's lock: the threads of `training.gradient` run them side by side. All arrays are
float32 and contiguous; `ops` holds the callers and the plain formulas that these must equal.

Shapes: N batch * heads, T time, D head size, R rows, C columns, V vocabulary.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from tokenizer.engine.jit import inlined, kernel

Float = NDArray[np.float32]

# Sums in any order and fused multiply-adds, so that loops become vector instructions; NaN and infinity keep their
# meaning, because the guards of the training loop look for them.
_FLAGS = {"reassoc", "contract", "nsz", "arcp"}
_kernel = partial(kernel, fastmath=_FLAGS, error_model="numpy")
_inlined = partial(inlined, fastmath=_FLAGS, error_model="numpy")

_LOG2_E = np.float32(1.44269504)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_SMALLEST = np.float32(-87.0)  # exp of less is no normal float32
_ZERO, _HALF, _ONE = np.float32(0), np.float32(0.5), np.float32(1)


@_inlined
def _exp(x: np.float32) -> np.float32:
    """exp(x) for x <= 0, to 2 units in the last place: 2**n * exp(r), |r| <= ln(2) / 2 (Cephes' expf)."""
    # Which power of two, and what is left of x: ln(2) in two parts makes the difference exact.
    clamped = x if x > _SMALLEST else _SMALLEST
    n = np.floor(clamped * _LOG2_E + _HALF)
    r = x - n * _LN2_HIGH - n * _LN2_LOW
    # exp(r) by a polynomial.
    p = np.float32(1.9875691500e-4)
    p = p * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    p = p * r * r + r + _ONE
    # 2**n: its exponent bits, written directly.
    power = np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
    return _ZERO if x < _SMALLEST else p * power


@_inlined
def _is_kept(index: int, seed: np.uint32, threshold: np.uint32) -> np.bool_:
    """Whether entry `index` survives dropout: its 32 hashed bits (Wellons' lowbias32) reach `threshold`."""
    x = np.uint32(np.uint32(index) ^ seed)
    x = np.uint32(x ^ np.uint32(x >> np.uint32(16)))
    x = np.uint32(x * np.uint32(0x7FEB352D))
    x = np.uint32(x ^ np.uint32(x >> np.uint32(15)))
    x = np.uint32(x * np.uint32(0x846CA68B))
    x = np.uint32(x ^ np.uint32(x >> np.uint32(16)))
    return x >= threshold


@_kernel
def gelu(x: Float, out: Float, slope: Float) -> None:
    """Exact GELU x * Phi(x) and its derivative Phi(x) + x * phi(x), all (n,), in one pass.

    erf is Abramowitz and Stegun 7.1.26: absolute error 1.5e-7, and its exponential is phi's.
    """
    for i in range(x.size):
        v = x[i]
        bell = _exp(-_HALF * v * v)  # sqrt(2 pi) * phi(v)
        t = _ONE / (_ONE + np.float32(0.3275911 * 0.70710678) * abs(v))
        p = np.float32(1.061405429)
        p = p * t + np.float32(-1.453152027)
        p = p * t + np.float32(1.421413741)
        p = p * t + np.float32(-0.284496736)
        p = p * t + np.float32(0.254829592)
        tail = _HALF * p * t * bell  # Phi(-|v|)
        below = tail if v < _ZERO else _ONE - tail
        out[i] = v * below
        slope[i] = below + v * bell * np.float32(0.39894228)


@_kernel
def drop(x: Float, out: Float, seed: np.uint32, threshold: np.uint32, kept_scale: np.float32) -> None:
    """out (n,) = x (n,), entries dropped with probability threshold / 2**32, the others times `kept_scale`.

    Nothing is stored: the way back asks `_is_kept` the same questions again. `out` may be `x`.
    """
    for i in range(x.size):
        out[i] = x[i] * kept_scale if _is_kept(i, seed, threshold) else _ZERO


@_kernel
def cross_entropy(logits: Float, targets: NDArray[np.int64], scale: np.float32, losses: Float) -> None:
    """Losses (R,) in nats of `targets` (R,); `logits` (R, V) become their gradient, (softmax - one-hot) * scale."""
    for r in range(logits.shape[0]):
        row = logits[r]
        # The greatest logit, taken from all: so no exponential overflows.
        top = row[0]
        for v in range(row.size):
            top = row[v] if row[v] > top else top
        # The loss, and the exponentials in place of the logits.
        wanted = row[targets[r]] - top
        total = _ZERO
        for v in range(row.size):
            e = _exp(row[v] - top)
            row[v] = e
            total += e
        losses[r] = np.log(total) - wanted
        # The gradient in place of the exponentials.
        factor = scale / total
        for v in range(row.size):
            row[v] *= factor
        row[targets[r]] -= scale


@_kernel
def causal_softmax(scores: Float, begin: int, scale: np.float32) -> None:
    """softmax(scale * scores) in place, (N, Q, K): row i is query begin + i, which sees begin + i + 1 keys."""
    for n in range(scores.shape[0]):
        for i in range(scores.shape[1]):
            _softmax_row(scores[n, i], begin + i + 1, scale)


@_kernel
def _softmax_row(row: Float, visible: int, scale: np.float32) -> None:
    """The same for one `row` (K,), whose first `visible` keys count; the others get probability 0."""
    top = row[0]
    for j in range(visible):
        top = row[j] if row[j] > top else top
    total = _ZERO
    for j in range(visible):
        e = _exp((row[j] - top) * scale)
        row[j] = e
        total += e
    inverse = _ONE / total
    for j in range(visible):
        row[j] *= inverse
    for j in range(visible, row.size):
        row[j] = _ZERO


@_kernel
def score_grad(grad: Float, probabilities: Float, inner: Float, scale: np.float32) -> None:
    """grad (n, K) = probabilities * (grad - inner) * scale, `inner` (n,) for each row."""
    for i in range(grad.shape[0]):
        _score_grad_row(grad[i], probabilities[i], inner[i], scale)


@_kernel
def _score_grad_row(grad: Float, probabilities: Float, inner: np.float32, scale: np.float32) -> None:
    """The same for one row (K,)."""
    for j in range(grad.size):
        grad[j] = probabilities[j] * (grad[j] - inner) * scale


@_kernel
def rms_norm(x: Float, epsilon: np.float32, out: Float, inverse: Float) -> None:
    """out (R, C) = x / sqrt(mean of squares + epsilon) for each row; that divisor's inverse into `inverse` (R,)."""
    for r in range(x.shape[0]):
        row, o = x[r], out[r]
        total = _ZERO
        for c in range(row.size):
            total += row[c] * row[c]
        factor = _ONE / np.sqrt(total / np.float32(row.size) + epsilon)
        for c in range(row.size):
            o[c] = row[c] * factor
        inverse[r] = factor


@_kernel
def rms_norm_backward(normed: Float, inverse: Float, grad: Float, out: Float) -> None:
    """out (R, C) = inverse * (grad - normed * mean(grad * normed)): the gradient of `rms_norm` by its input."""
    for r in range(grad.shape[0]):
        n, g, o = normed[r], grad[r], out[r]
        total = _ZERO
        for c in range(n.size):
            total += n[c] * g[c]
        mean = total / np.float32(n.size)
        for c in range(n.size):
            o[c] = inverse[r] * (g[c] - n[c] * mean)


@_kernel
def rotate(x: Float, cosine: Float, sine: Float, out: Float) -> None:
    """out (N, T, D): pairs (d, d + D/2) of x turned by the angles whose `cosine` and `sine` (T, D/2) are given."""
    half = x.shape[2] // 2
    for n in range(x.shape[0]):
        for t in range(x.shape[1]):
            for d in range(half):
                first, second = x[n, t, d], x[n, t, half + d]
                out[n, t, d] = first * cosine[t, d] - second * sine[t, d]
                out[n, t, half + d] = first * sine[t, d] + second * cosine[t, d]


@_kernel
def adamw(
    weights: Float,
    gradient: Float,
    first: Float,
    second: Float,
    beta1: np.float32,
    beta2: np.float32,
    size: np.float32,
    root: np.float32,
    kept: np.float32,
    epsilon: np.float32,
) -> None:
    """One step of AdamW, all (n,): `size` and `root` hold both corrections of bias, `kept` what decay leaves."""
    for i in range(weights.size):
        g = gradient[i]
        m = first[i] + (_ONE - beta1) * (g - first[i])
        v = beta2 * second[i] + (_ONE - beta2) * g * g
        first[i], second[i] = m, v
        weights[i] = weights[i] * kept - size * m / (np.sqrt(v) / root + epsilon)
