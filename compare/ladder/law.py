"""The law of a learning curve, L(t) = E + A t^-a with t the budget over the whole budget T, and how sure it is.

E is the floor that more training cannot go below, for this text and this size of model. A grid over (E, a) holds every
law; the best A of each node is found in closed form, and A is drawn around it as least squares have it. A node weighs
exp(-SSE / 2 s^2), integrated over A. s^2 is the variance of a point (a mean over seeds), or the scatter of the points
around the best law where that is larger: what does not follow the law makes the answer wider.

Two contestants read the same text, so their floors and exponents are near each other, not equal: a pair of laws weighs
exp(-(dE / TAU)^2 / 2 - (da / TAU)^2 / 2) besides. Laws with one floor and exponent could never cross.

Shapes: N points, F floors, K exponents, D draws.
"""

from dataclasses import dataclass

import numpy as np

from compare.characters import Float64Array, Int64Array

LEAST_POINTS = 4
"""Three numbers are fitted: only a fourth point can show that the law does not hold."""
TAU = 0.07
"""How far floors (bits per character) and exponents of two contestants typically lie apart."""
_GRID = (120, 160)  # floors and exponents
_EXPONENTS = (0.02, 1.5)
_NEGLIGIBLE = 1e-6  # of the greatest weight
_REFINEMENTS = 3


@dataclass(frozen=True)
class Laws:
    """All laws that may have made the points of one curve, with their weights."""

    floors: Float64Array
    """(F,) E, bits per character."""
    exponents: Float64Array
    """(K,) a."""
    factors: Float64Array
    """(F, K) the best A, bits per character: L(1) - E."""
    factor_sds: Float64Array
    """(K,) standard deviation of A around it."""
    weights: Float64Array
    """(F, K), of sum 1."""


@dataclass(frozen=True)
class Draws:
    """Laws drawn by weight."""

    floors: Float64Array
    """(D,)"""
    factors: Float64Array
    """(D,)"""
    exponents: Float64Array
    """(D,)"""

    def at(self, times: Float64Array | float) -> Float64Array:
        """Bits per character at `times` budgets: (D,) for one number, (D, M) for M of them."""
        if np.ndim(times) == 0:
            return self.floors + self.factors * np.power(times, -self.exponents)
        powers = np.asarray(times)[None, :] ** -self.exponents[:, None]
        return self.floors[:, None] + self.factors[:, None] * powers


def fit(times: Float64Array, bits: Float64Array, variance: float) -> Laws:
    """The laws of N >= LEAST_POINTS points: `bits` (N,) per character at `times` (N,) budgets.

    `variance` is that of one of `bits`. The grid is laid first over all that is possible, then over what has weight.
    """
    assert len(times) >= LEAST_POINTS and variance > 0.0
    floors, exponents = (0.0, float(bits.min())), _EXPONENTS
    for _ in range(_REFINEMENTS):
        laws = _on_grid(times, bits, variance, floors, exponents)
        floors = _with_weight(laws.floors, laws.weights.max(axis=1))
        exponents = _with_weight(laws.exponents, laws.weights.max(axis=0))
    return _on_grid(times, bits, variance, floors, exponents)


def _on_grid(
    times: Float64Array,
    bits: Float64Array,
    variance: float,
    floor_range: tuple[float, float],
    exponent_range: tuple[float, float],
) -> Laws:
    floors, exponents = np.linspace(*floor_range, _GRID[0]), np.linspace(*exponent_range, _GRID[1])
    powers = times[None, :] ** -exponents[:, None]  # (K, N)
    above = bits[None, :] - floors[:, None]  # (F, N)
    sums = (powers**2).sum(axis=1)
    factors = above @ powers.T / sums
    residuals = above[:, None, :] - factors[:, :, None] * powers[None]
    squares = (residuals**2).sum(axis=2)
    least = float(squares.min())
    scatter = max(variance, least / (len(times) - 3))
    weights = np.exp(-(squares - least) / (2.0 * scatter)) / np.sqrt(sums)  # A integrated out
    return Laws(floors, exponents, factors, np.sqrt(scatter / sums), weights / weights.sum())


def _with_weight(values: Float64Array, weights: Float64Array) -> tuple[float, float]:
    """The range of the values that weigh something, with one step of the grid at each end that is not the grid's."""
    kept = np.flatnonzero(weights > _NEGLIGIBLE * weights.max())
    return float(values[max(0, kept[0] - 1)]), float(values[min(len(values) - 1, kept[-1] + 1)])


def draw(laws: Laws, count: int, rng: np.random.Generator) -> Draws:
    """`count` laws of one contestant."""
    flat = _drawn(laws.weights.ravel()[None], _even(count, rng)[:, None])
    return _at_nodes(laws, *np.divmod(flat, len(laws.exponents)), rng)


def draw_pairs(one: Laws, other: Laws, count: int, rng: np.random.Generator) -> tuple[Draws, Draws]:
    """`count` pairs of laws of two contestants, by the weights of both and by how near they are.

    Drawn exactly: the first law by what it weighs with all that the second may be, then the second law given it, its
    floor before its exponent.
    """
    near_floors = _near(one.floors, other.floors)
    near_exponents = _near(one.exponents, other.exponents)
    partly = other.weights @ near_exponents.T  # (F of the other, K of the one)
    joint = one.weights * (near_floors @ partly)
    if not joint.sum() > 0.0:  # so far apart that no pair is near: the data have said so, and they count
        return draw(one, count, rng), draw(other, count, rng)
    flat = _drawn(joint.ravel()[None], _even(count, rng)[:, None])
    floor, exponent = np.divmod(flat, len(one.exponents))
    other_floor = _drawn(near_floors[floor] * partly[:, exponent].T, rng.random((count, 1)))
    other_exponent = _drawn(other.weights[other_floor] * near_exponents[exponent], rng.random((count, 1)))
    return _at_nodes(one, floor, exponent, rng), _at_nodes(other, other_floor, other_exponent, rng)


def _near(ours: Float64Array, theirs: Float64Array) -> Float64Array:
    return np.asarray(np.exp(-(((ours[:, None] - theirs[None, :]) / TAU) ** 2) / 2.0))


def _even(count: int, rng: np.random.Generator) -> Float64Array:
    """`count` numbers in [0, 1), one in each of as many equal parts, in random order: less noise than free ones."""
    return np.asarray((rng.permutation(count) + rng.random(count)) / count)


def _drawn(weights: Float64Array, uniform: Float64Array) -> Int64Array:
    """An index for each of `uniform` (D, 1), by the rows of `weights` ((D, M), or (1, M) for all)."""
    sums = np.cumsum(weights, axis=1)
    wanted = uniform * sums[:, -1:]
    places = np.searchsorted(sums[0], wanted[:, 0], side="right") if len(sums) == 1 else (sums <= wanted).sum(axis=1)
    return np.asarray(np.minimum(places, sums.shape[1] - 1), np.int64)


def _at_nodes(laws: Laws, floor: Int64Array, exponent: Int64Array, rng: np.random.Generator) -> Draws:
    noise = laws.factor_sds[exponent] * rng.standard_normal(len(floor))
    return Draws(laws.floors[floor], laws.factors[floor, exponent] + noise, laws.exponents[exponent])
