"""How often a forecast is right, over many races whose truth is known."""

import numpy as np
import pytest

from compare.ladder.law import TAU
from compare.ladder.simulate import Quality, quality, races


def simulated(count: int, times: float, *, points: int = 5, seeds: int = 3, apart: float = TAU) -> Quality:
    return quality(races(count, points=points, seeds=seeds, apart=apart, seed=3), times)


def test_the_true_gap_of_a_race_is_that_of_its_laws() -> None:
    [race] = races(1, points=5, seeds=2)
    one, other = race.truth
    assert race.true_gap(4.0) == one.at(4.0)[0] - other.at(4.0)[0]
    assert [len(point.by_seed) for point in race.curves[0].points] == [2] * 5
    assert np.allclose(race.curves[0].times, 0.5 ** np.arange(5.0)[::-1])


def test_forecasts_of_some_races_are_mostly_right() -> None:
    found = simulated(40, 10.0)
    assert found.sign >= 0.8 and found.sign >= found.sign_at_whole + 0.1
    assert found.claims_right >= 0.93 and found.claimed >= 0.4
    assert found.coverage >= 0.8


@pytest.mark.slow
@pytest.mark.parametrize(("times", "sign"), [(4.0, 0.87), (10.0, 0.86), (100.0, 0.78)])
def test_forecasts_from_five_budgets_and_three_seeds(times: float, sign: float) -> None:
    found = simulated(400, times)
    assert found.sign >= sign and found.sign >= found.sign_at_whole + 0.15
    assert found.claims_right >= 0.96
    assert 0.87 <= found.coverage <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize(
    ("points", "seeds", "apart", "coverage"), [(4, 3, TAU, 0.8), (5, 1, TAU, 0.86), (7, 3, TAU, 0.9), (5, 3, 0.1, 0.82)]
)
def test_what_is_claimed_is_right_under_other_conditions(
    points: int, seeds: int, apart: float, coverage: float
) -> None:
    found = simulated(400, 10.0, points=points, seeds=seeds, apart=apart)
    assert found.claims_right >= 0.95
    assert found.coverage >= coverage
