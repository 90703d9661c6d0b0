"""Numba kernels of the hand-written pass: what lies between its products, each over whole buffers in one call.

Like those of `model.fused.kernels`, they are serial loops over float32 that release Python's lock.

Shapes: B batch, T time, H heads, D head size, N batch * heads, R rows (B * T), C columns.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from tokenizer.engine.jit import kernel

Float = NDArray[np.float32]

# As in `model.fused.kernels`: sums in any order, but NaN and infinity keep their meaning.
_kernel = partial(kernel, fastmath={"reassoc", "contract", "nsz", "arcp"}, error_model="numpy")
_ZERO, _ONE, _TWO = np.float32(0), np.float32(1), np.float32(2)


@_kernel
def embed(ids: NDArray[np.int64], table: Float, positions: Float, out: Float) -> None:
    """out (B, T, C) = rows of `table` (V, C) for `ids` (B, T), plus `positions` (at least T, C; none if empty)."""
    for b in range(ids.shape[0]):
        for t in range(ids.shape[1]):
            row, o = table[ids[b, t]], out[b, t]
            for c in range(row.size):
                o[c] = row[c]
            if positions.shape[0]:
                place = positions[t]
                for c in range(row.size):
                    o[c] += place[c]


@_kernel
def embed_backward(ids: NDArray[np.int64], grad: Float, table: Float, positions: Float) -> None:
    """Add `grad` (B, T, C) to the rows of the gradients `table` and `positions` that `embed` read."""
    for b in range(ids.shape[0]):
        for t in range(ids.shape[1]):
            row, g = table[ids[b, t]], grad[b, t]
            for c in range(g.size):
                row[c] += g[c]
            if positions.shape[0]:
                place = positions[t]
                for c in range(g.size):
                    place[c] += g[c]


@_kernel
def layer_norm(
    x: Float, weight: Float, bias: Float, epsilon: np.float32, hat: Float, inverse: Float, out: Float
) -> None:
    """hat (R, C) = (x - mean) * inverse for each row, inverse (R,) of its deviation; out = hat * weight + bias."""
    for r in range(x.shape[0]):
        row, h, o = x[r], hat[r], out[r]
        total = _ZERO
        for c in range(row.size):
            total += row[c]
        mean = total / np.float32(row.size)
        squares = _ZERO
        for c in range(row.size):
            squares += (row[c] - mean) * (row[c] - mean)
        factor = _ONE / np.sqrt(squares / np.float32(row.size) + epsilon)
        for c in range(row.size):
            h[c] = (row[c] - mean) * factor
            o[c] = h[c] * weight[c] + bias[c]
        inverse[r] = factor


@_kernel
def layer_norm_backward(
    hat: Float, inverse: Float, weight: Float, grad: Float, total: Float, grad_weight: Float, grad_bias: Float
) -> None:
    """Add the gradient of `layer_norm` by its input to `total` (R, C); set those of its weight and bias (C,)."""
    for c in range(grad_weight.size):
        grad_weight[c], grad_bias[c] = _ZERO, _ZERO
    for r in range(grad.shape[0]):
        h, g, o = hat[r], grad[r], total[r]
        first, second = _ZERO, _ZERO
        for c in range(g.size):
            first += g[c] * weight[c]
            second += g[c] * weight[c] * h[c]
        mean, slope = first / np.float32(g.size), second / np.float32(g.size)
        for c in range(g.size):
            o[c] += inverse[r] * (g[c] * weight[c] - mean - h[c] * slope)
            grad_weight[c] += g[c] * h[c]
            grad_bias[c] += g[c]


@_kernel
def rms_norm_backward(normed: Float, inverse: Float, grad: Float, total: Float) -> None:
    """Add the gradient of a division by the root mean square to `total` (R, C)."""
    for r in range(grad.shape[0]):
        n, g, o = normed[r], grad[r], total[r]
        product = _ZERO
        for c in range(n.size):
            product += n[c] * g[c]
        mean = product / np.float32(n.size)
        for c in range(n.size):
            o[c] += inverse[r] * (g[c] - n[c] * mean)


@_kernel
def column_sums(x: Float, out: Float) -> None:
    """out (C,) = sum of the rows of x (R, C): the gradient of a bias."""
    for c in range(out.size):
        out[c] = _ZERO
    for r in range(x.shape[0]):
        row = x[r]
        for c in range(row.size):
            out[c] += row[c]


@_kernel
def relu_squared(x: Float, out: Float) -> None:
    """out (n,) = max(x, 0) squared; max(x, 0) in place of x (n,)."""
    for i in range(x.size):
        positive = x[i] if not x[i] < _ZERO else _ZERO  # NaN stays NaN
        x[i] = positive
        out[i] = positive * positive


@_kernel
def relu_squared_backward(positive: Float, grad: Float) -> None:
    """grad (n,) times the slope of `relu_squared`, in place."""
    for i in range(grad.size):
        grad[i] *= _TWO * positive[i]


@_kernel
def split_heads(packed: Float, cosine: Float, sine: Float, epsilon: np.float32, inverse: Float, out: Float) -> None:
    """out (3, B, H, T, D) = the queries, keys and values in packed (B, T, 3, H, D).

    Queries and keys are divided by their root mean square, whose inverse goes into inverse (2, B, H, T), unless that is
    empty; then their pairs (d, d + D/2) are turned by the angles of `cosine` and `sine` (T, D/2), unless these are.
    """
    half = packed.shape[4] // 2
    for b in range(packed.shape[0]):
        for t in range(packed.shape[1]):
            for part in range(3):
                for h in range(packed.shape[3]):
                    row, o = packed[b, t, part, h], out[part, b, h, t]
                    factor = _ONE
                    if part < 2 and inverse.shape[1]:
                        total = _ZERO
                        for d in range(row.size):
                            total += row[d] * row[d]
                        factor = _ONE / np.sqrt(total / np.float32(row.size) + epsilon)
                        inverse[part, b, h, t] = factor
                    if part < 2 and cosine.shape[0]:
                        for d in range(half):
                            first, second = row[d] * factor, row[half + d] * factor
                            o[d] = first * cosine[t, d] - second * sine[t, d]
                            o[half + d] = first * sine[t, d] + second * cosine[t, d]
                    else:
                        for d in range(row.size):
                            o[d] = row[d] * factor


@_kernel
def split_heads_backward(grad: Float, made: Float, cosine: Float, sine: Float, inverse: Float, packed: Float) -> None:
    """packed (B, T, 3, H, D) = the gradient of `split_heads` by its input, from `grad` by what it `made`.

    A turn changes no product of two vectors, so the norm's formula holds for turned vectors too, and its result is
    turned back.
    """
    half = packed.shape[4] // 2
    for b in range(packed.shape[0]):
        for t in range(packed.shape[1]):
            for part in range(3):
                for h in range(packed.shape[3]):
                    g, m, o = grad[part, b, h, t], made[part, b, h, t], packed[b, t, part, h]
                    factor, mean = _ONE, _ZERO
                    if part < 2 and inverse.shape[1]:
                        product = _ZERO
                        for d in range(g.size):
                            product += g[d] * m[d]
                        factor, mean = inverse[part, b, h, t], product / np.float32(g.size)
                    if part < 2 and cosine.shape[0]:
                        for d in range(half):
                            first = factor * (g[d] - m[d] * mean)
                            second = factor * (g[half + d] - m[half + d] * mean)
                            o[d] = first * cosine[t, d] + second * sine[t, d]
                            o[half + d] = second * cosine[t, d] - first * sine[t, d]
                    else:
                        for d in range(g.size):
                            o[d] = factor * (g[d] - m[d] * mean)


@_kernel
def softmax_backward(grad: Float, probabilities: Float, begin: int, scale: np.float32) -> None:
    """The gradient of `causal_softmax` by its scores in place of that by its `probabilities`, both (N, Q, K)."""
    for n in range(grad.shape[0]):
        for i in range(grad.shape[1]):
            _softmax_row_backward(grad[n, i], probabilities[n, i], begin + i + 1, scale)


@_kernel
def _softmax_row_backward(grad: Float, probabilities: Float, visible: int, scale: np.float32) -> None:
    """The same for one row (K,), whose first `visible` keys count."""
    inner = _ZERO
    for j in range(visible):
        inner += probabilities[j] * grad[j]
    for j in range(visible):
        grad[j] = probabilities[j] * (grad[j] - inner) * scale
    for j in range(visible, grad.size):
        grad[j] = _ZERO


@_kernel
def add_to(total: Float, added: Float) -> None:
    """total (n,) += added (n,)."""
    for i in range(total.size):
        total[i] += added[i]


@_kernel
def scale(x: Float, factor: np.float32) -> None:
    """x (n,) times `factor`, in place."""
    for i in range(x.size):
        x[i] *= factor


@_kernel
def sum_of_squares(x: Float) -> np.float64:
    """The sum of the squares of x (n,): of stretches in float32, of their sums in float64."""
    squares = np.float64(0)
    begin = 0
    while begin < x.size:
        end = min(begin + 4096, x.size)
        part = _ZERO
        stretch = x[begin:end]  # counted from 0, which lets the loop become vector instructions
        for i in range(stretch.size):
            part += stretch[i] * stretch[i]
        squares += np.float64(part)
        begin = end
    return squares


@_kernel
def look_ahead(gradient: Float, momentum: Float, out: Float, kept: np.float32) -> None:
    """momentum (n,) comes nearer to gradient (n,); out (n,) is Nesterov's look ahead."""
    for i in range(gradient.size):
        g = gradient[i]
        m = momentum[i] + (_ONE - kept) * (g - momentum[i])
        momentum[i] = m
        out[i] = g + kept * (m - g)


@_kernel
def normalise(gram: Float, tiny: np.float32, inverse: Float) -> None:
    """Each of gram (N, m, m) is divided by its trace plus `tiny`; that divisor to the power -1/2 into inverse (N,)."""
    for n in range(gram.shape[0]):
        trace = tiny
        for i in range(gram.shape[1]):
            trace += gram[n, i, i]
        inverse[n] = _ONE / np.sqrt(trace)
        for i in range(gram.shape[1]):
            row = gram[n, i]
            for j in range(row.size):
                row[j] /= trace


@_kernel
def polynomial(gram: Float, square: Float, a: np.float32, b: np.float32, c: np.float32) -> None:
    """square (N, m, m), gram times gram, becomes a * identity + b * gram + c * square."""
    for n in range(gram.shape[0]):
        for i in range(gram.shape[1]):
            row, s = gram[n, i], square[n, i]
            for j in range(row.size):
                s[j] = b * row[j] + c * s[j]
            s[i] += a


@_kernel
def move(weight: Float, by: Float, inverse: Float, kept: np.float32, length: np.float32) -> None:
    """weight (N, m, n) = weight * kept - length * inverse (N,) * by (N, m, n)."""
    for n in range(weight.shape[0]):
        factor = length * inverse[n]
        for i in range(weight.shape[1]):
            w, y = weight[n, i], by[n, i]
            for j in range(w.size):
                w[j] = w[j] * kept - factor * y[j]
