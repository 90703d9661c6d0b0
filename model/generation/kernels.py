"""Numba kernels for one token of each sample on the CPU: a small model costs less than the calls of torch's operations.

All arrays are float32 and contiguous. `CachedGPT` holds the caller, and the same in torch's own operations.

Shapes: R rows (samples at once), L layers, T block size, C channels, H heads, D head size (C / H), F width of the MLP,
V vocabulary.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from model.fused.kernels import causal_softmax, gelu
from tokenizer.engine.jit import kernel

Float = NDArray[np.float32]

# As in model.fused.kernels: sums in any order, so that loops become vector instructions.
_FLAGS = {"reassoc", "contract", "nsz", "arcp"}
_kernel = partial(kernel, fastmath=_FLAGS, error_model="numpy")
_ZERO, _ONE = np.float32(0), np.float32(1)


class Weights(NamedTuple):
    """The weights of a model, layer by layer; a part that the model does not have is empty."""

    table: Float
    """(V, C)."""
    positions: Float
    """(T, C), or empty with rope."""
    norms: Float
    """(L, 2, 2, C): weight and bias of both norms of a layer."""
    final_norm: Float
    """(2, C)."""
    qkv: Float
    """(L, 3C, C)."""
    qkv_bias: Float
    """(L, 3C)."""
    mix: Float
    """(L, C, C)."""
    mix_bias: Float
    """(L, C)."""
    widen: Float
    """(L, F, C)."""
    widen_bias: Float
    """(L, F)."""
    narrow: Float
    """(L, C, F)."""
    narrow_bias: Float
    """(L, C)."""
    cosine: Float
    """(T, D / 2), or empty without rope."""
    sine: Float
    """(T, D / 2), or empty without rope."""


class Switches(NamedTuple):
    """The parts that a preset switches on."""

    rope: bool
    qk_norm: bool
    relu_squared: bool
    rms_norm: bool
    epsilon: np.float32
    """Of every norm."""


class Room(NamedTuple):
    """Memory that every call uses again."""

    stream: Float
    """(R, C): the residual stream."""
    normed: Float
    """(R, C)."""
    packed: Float
    """(R, 3C): queries, keys and values."""
    mixed: Float
    """(R, C)."""
    hidden: Float
    """(R, F)."""
    slope: Float
    """(R * F,): what the GELU kernel computes besides."""
    scores: Float
    """(R * H, 1, T)."""


@_kernel
def next_logits(
    weights: Weights,
    switches: Switches,
    room: Room,
    keys: Float,
    values: Float,
    ids: NDArray[np.int64],
    position: int,
    logits: Float,
) -> None:
    """Logits (R, V) after the token `ids` (R,) at `position`; its keys and values go into (L, R, H, T, D)."""
    num_rows, num_channels = room.stream.shape
    for r in range(num_rows):
        for c in range(num_channels):
            room.stream[r, c] = weights.table[ids[r], c]
            if not switches.rope:
                room.stream[r, c] += weights.positions[position, c]
    for layer in range(keys.shape[0]):
        _norm(room.stream, weights.norms[layer, 0], switches, room.normed)
        _linear(room.normed, weights.qkv[layer], weights.qkv_bias[layer], room.packed)
        _place(weights, switches, room.packed, keys[layer], values[layer], position)
        _attend(room, keys[layer], values[layer], position)
        _add_linear(room.mixed, weights.mix[layer], weights.mix_bias[layer], room.stream)
        _norm(room.stream, weights.norms[layer, 1], switches, room.normed)
        _linear(room.normed, weights.widen[layer], weights.widen_bias[layer], room.hidden)
        _bend(room, switches)
        _add_linear(room.hidden, weights.narrow[layer], weights.narrow_bias[layer], room.stream)
    _norm(room.stream, weights.final_norm, switches, room.normed)
    for v in range(weights.table.shape[0]):
        for r in range(num_rows):
            logits[r, v] = _dot(weights.table[v], room.normed[r])


@_kernel
def _dot(a: Float, b: Float) -> np.float32:
    """The product of two vectors (n,)."""
    total = _ZERO
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@_kernel
def _linear(x: Float, matrix: Float, bias: Float, out: Float) -> None:
    """out (R, n) = x (R, m) times `matrix` (n, m) transposed, plus `bias` (n,)."""
    for n in range(matrix.shape[0]):
        for r in range(x.shape[0]):
            out[r, n] = _dot(matrix[n], x[r]) + bias[n]


@_kernel
def _add_linear(x: Float, matrix: Float, bias: Float, out: Float) -> None:
    """The same, added to `out`."""
    for n in range(matrix.shape[0]):
        for r in range(x.shape[0]):
            out[r, n] += _dot(matrix[n], x[r]) + bias[n]


@_kernel
def _norm(x: Float, weight_and_bias: Float, switches: Switches, out: Float) -> None:
    """The model's norm of every row of `x` (R, C): LayerNorm, or a division by the root mean square."""
    size = np.float32(x.shape[1])
    for r in range(x.shape[0]):
        row, o = x[r], out[r]
        mean = _ZERO
        if not switches.rms_norm:
            for c in range(row.size):
                mean += row[c]
            mean /= size
        squares = _ZERO
        for c in range(row.size):
            squares += (row[c] - mean) * (row[c] - mean)
        factor = _ONE / np.sqrt(squares / size + switches.epsilon)
        for c in range(row.size):
            o[c] = (row[c] - mean) * factor
        if not switches.rms_norm:
            for c in range(row.size):
                o[c] = o[c] * weight_and_bias[0, c] + weight_and_bias[1, c]


@_kernel
def _place(weights: Weights, switches: Switches, packed: Float, keys: Float, values: Float, position: int) -> None:
    """Queries and keys in `packed` (R, 3C) normalised and turned; keys and values into (R, H, T, D) at `position`."""
    num_rows, num_heads, _, D = keys.shape
    C, half = num_heads * D, D // 2
    for r in range(num_rows):
        for part in range(2 * num_heads):  # the heads of the queries, then those of the keys
            head = packed[r, part * D : (part + 1) * D]
            if switches.qk_norm:
                factor = _ONE / np.sqrt(_dot(head, head) / np.float32(D) + switches.epsilon)
                for d in range(D):
                    head[d] *= factor
            if switches.rope:
                for d in range(half):
                    first, second = head[d], head[half + d]
                    cosine, sine = weights.cosine[position, d], weights.sine[position, d]
                    head[d] = first * cosine - second * sine
                    head[half + d] = first * sine + second * cosine
        for h in range(num_heads):
            for d in range(D):
                keys[r, h, position, d] = packed[r, C + h * D + d]
                values[r, h, position, d] = packed[r, 2 * C + h * D + d]


@_kernel
def _attend(room: Room, keys: Float, values: Float, position: int) -> None:
    """`mixed` (R, C) = attention of the queries in `packed` over the positions up to `position`."""
    num_rows, num_heads, _, D = keys.shape
    for r in range(num_rows):
        for h in range(num_heads):
            query = room.packed[r, h * D : (h + 1) * D]
            for t in range(position + 1):
                room.scores[r * num_heads + h, 0, t] = _dot(query, keys[r, h, t])
    causal_softmax(room.scores, position, _ONE / np.sqrt(np.float32(D)))
    for r in range(num_rows):
        for h in range(num_heads):
            out = room.mixed[r, h * D : (h + 1) * D]
            out[:] = _ZERO
            for t in range(position + 1):
                probability, value = room.scores[r * num_heads + h, 0, t], values[r, h, t]
                for d in range(D):
                    out[d] += probability * value[d]


@_kernel
def _bend(room: Room, switches: Switches) -> None:
    """The activation of the MLP, in place: ReLU squared or GELU."""
    hidden = room.hidden.reshape(room.hidden.size)
    if switches.relu_squared:
        for i in range(hidden.size):
            positive = hidden[i] if hidden[i] > _ZERO else _ZERO
            hidden[i] = positive * positive
    else:
        gelu(hidden, hidden, room.slope)
