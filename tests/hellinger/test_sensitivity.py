"""Sensitivities against the definition, by brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpbayes.base.errors import InvalidArgument
from dpbayes.hellinger import candidates, distance, sensitivity

CASES = [
    ((1.0, 1.0), 1),
    ((1.0, 1.0), 9),
    ((0.2, 3.0), 7),
    ((1.0, 1.0, 1.0), 1),
    ((1.0, 1.0, 1.0), 7),
    ((0.1, 2.0, 5.0), 6),
    ((5.0, 0.1, 0.1), 6),
    ((1.0, 1.0, 1.0, 1.0), 5),
    ((0.1, 1.0, 5.0, 1.0), 4),
    ((1.0,) * 5, 4),
    ((0.3, 0.3, 4.0, 1.0, 2.0), 3),
]


def brute_force(prior: tuple[float, ...], total: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All tables, their local sensitivity by definition (all neighbours, all candidates), and their distances."""
    tables = candidates.all_tables(total, len(prior))
    posteriors = tables + np.asarray(prior)
    scores = distance.hellinger(posteriors[:, None, :], posteriors[None, :, :])
    moves = np.abs(tables[:, None] - tables[None]).sum(axis=-1) // 2
    local = np.array(
        [max(np.abs(scores[x] - scores[y]).max() for y in np.flatnonzero(moves[x] == 1)) for x in range(len(tables))]
    )
    return tables, local, moves


@pytest.mark.parametrize(("prior", "total"), CASES)
def test_every_sensitivity_is_that_of_its_definition(prior: tuple[float, ...], total: int) -> None:
    tables, local, moves = brute_force(prior, total)
    assert sensitivity.global_sensitivity(prior, total) == pytest.approx(local.max(), rel=1e-10)
    for smoothing in (0.0, 0.015, 0.2, 0.7, 3.0, math.inf):
        discount = np.exp(-np.where(moves > 0, smoothing, 0.0) * moves)
        truth = (local[None, :] * discount).max(axis=1)
        found = [sensitivity.smooth_sensitivity(prior, table, smoothing) for table in tables]
        np.testing.assert_allclose(found, truth, rtol=1e-10)
        if len(prior) == 2:
            np.testing.assert_allclose(sensitivity.two_cell_sensitivities(prior, total, smoothing), truth, rtol=1e-10)


def test_smooth_sensitivity_lies_between_local_and_global_and_falls_with_smoothing() -> None:
    prior, counts = (1.0,) * 6, [300, 200, 5, 0, 1, 494]
    values = [sensitivity.smooth_sensitivity(prior, counts, g) for g in (0.0, 0.001, 0.01, 0.1, 1.0, math.inf)]
    assert values == sorted(values, reverse=True)
    assert values[0] == pytest.approx(sensitivity.global_sensitivity(prior, 1000))
    assert values[-1] == pytest.approx(sensitivity.local_sensitivity(prior, counts))


def test_neighbours_differ_by_a_factor_of_e_to_the_smoothing_at_most() -> None:
    values = np.log(sensitivity.two_cell_sensitivities((0.5, 2.0), 400, 0.03))
    assert np.abs(np.diff(values)).max() <= 0.03 + 1e-12


def test_the_valid_global_sensitivity_of_the_notes() -> None:
    for total in (100, 120):
        assert sensitivity.global_sensitivity((7.0, 4.0, 5.0), total) == pytest.approx(0.23363, abs=5e-6)


def test_many_tables_at_once_are_those_one_by_one() -> None:
    rng = np.random.default_rng(2)
    for prior in ((1.0,) * 9, (0.1, 0.1, 2.0, 5.0, 2.0, 0.1, 0.1, 0.1)):
        tables = rng.multinomial(40, rng.dirichlet(np.full(len(prior), 0.5), size=200))
        found = sensitivity.many_cells(prior, tables, 0.08)
        assert found.tolist() == [sensitivity.smooth_sensitivity(prior, table, 0.08) for table in tables]


@pytest.mark.parametrize("kappa", [0.1, 0.9, 1.0])
def test_what_remains_of_one_is_log_convex(kappa: float) -> None:
    u = np.geomspace(1e-3, 1e3, 4001)
    f = sensitivity.step_divergence(u)
    logs = np.log1p(-kappa * np.exp(-f)) if kappa < 1 else np.log(-np.expm1(-f))
    slopes = np.diff(logs) / np.diff(u)
    assert (np.diff(slopes) > -1e-9 * np.abs(slopes[1:])).all()


def test_large_tables_need_no_enumeration() -> None:
    counts = np.full(1000, 1000)
    value = sensitivity.smooth_sensitivity((1.0,) * 1000, counts, 0.015)
    assert value == pytest.approx(sensitivity.local_sensitivity((1.0,) * 1000, counts))


@pytest.mark.parametrize(
    ("prior", "counts", "sentence"),
    [
        ((0.0, 1.0), [1, 1], "above 0"),
        ((-1.0, 1.0), [1, 1], "above 0"),
        ((math.nan, 1.0), [1, 1], "above 0"),
        ((1.0,), [1], "two or more cells"),
        ((1.0, 1.0), [0, 0], "empty table"),
        ((1.0, 1.0), [-1, 2], "between 0"),
        ((1.0, 1.0), [0.5, 1], "whole"),
        ((1.0, 1.0), [[1, 2]], "joint table"),
        ((1.0, 1.0), [10**9, 10**9], "10\\^9"),
    ],
)
def test_bad_tables_are_refused_with_a_reason(prior: tuple[float, ...], counts: object, sentence: str) -> None:
    with pytest.raises(InvalidArgument, match=sentence):
        sensitivity.smooth_sensitivity(prior, counts, 0.1)


def test_negative_smoothing_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="smoothing"):
        sensitivity.smooth_sensitivity((1.0, 1.0), [3, 3], -0.1)
