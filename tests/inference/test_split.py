"""The best split, against general optimisation over dense algebra."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from dpbayes.base.errors import InvalidArgument
from dpbayes.inference.measurement import subsets
from dpbayes.inference.split import best_split

SIZES = {"a": 2, "b": 3, "c": 4}
WANTED = [("a", "b"), ("b", "c"), ("c",)]


def matrix(axes):
    factors = [np.eye(size) if name in axes else np.ones((1, size)) for name, size in SIZES.items()]
    found = np.ones((1, 1))
    for factor in factors:
        found = np.kron(found, factor)
    return found


def dense_variances(information):
    """Mean variance of a cell of each wanted table, the number of records being known."""
    size = information.shape[0]
    free = np.linalg.svd(np.ones((1, size)))[2][1:].T
    covariance = free @ np.linalg.pinv(free.T @ information @ free, rcond=1e-11) @ free.T
    return np.array([np.diag(matrix(axes) @ covariance @ matrix(axes).T).mean() for axes in WANTED])


def searched(value, number, starts=2):
    """The least value over the simplex, by a general optimiser from several starts."""

    def of(logits):
        shares = np.exp(logits - logits.max())
        return value(shares / shares.sum())

    rng = np.random.default_rng(0)
    return min(minimize(of, rng.normal(0, 1, number), method="BFGS").fun for _ in range(starts))


@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (6.0, 12.0, 4.0)])
def test_no_other_gaussian_split_is_better(weights):
    tables = sorted({part for axes in WANTED for part in subsets(axes) if part})
    share = np.array(weights) / sum(weights)

    def value(shares):
        return share @ dense_variances(
            sum(p * matrix(axes).T @ matrix(axes) for p, axes in zip(shares, tables, strict=True))
        )

    found = best_split(SIZES, WANTED, weights=weights)
    assert found.objective == pytest.approx(searched(value, len(tables)), rel=1e-3)
    own = sum(p * matrix(axes).T @ matrix(axes) for axes, p in found.shares.items())
    np.testing.assert_allclose(list(found.variance.values()), dense_variances(own), rtol=1e-8)


def test_no_other_laplace_split_is_better():
    tables = sorted({part for axes in WANTED for part in subsets(axes) if part})

    def value(shares):
        return dense_variances(
            sum(q**2 * matrix(axes).T @ matrix(axes) for q, axes in zip(shares, tables, strict=True))
        ).mean()

    assert best_split(SIZES, WANTED, kind="laplace").objective <= 1.001 * searched(value, len(tables))


def test_the_optimum_is_what_residual_measurements_of_the_same_cost_reach():
    """Cost of a Gaussian mechanism: the largest diagonal entry of its information matrix."""
    parts = sorted({part for axes in WANTED for part in subsets(axes) if part})
    informations = []
    for part in parts:
        factors = [np.eye(n) - 1 / n if name in part else np.ones((n, n)) for name, n in SIZES.items()]
        found = np.ones((1, 1))
        for factor in factors:
            found = np.kron(found, factor)
        informations.append(found)

    def value(shares):
        information = sum(t * each for t, each in zip(shares, informations, strict=True))
        return dense_variances(information / np.diag(information).max()).mean()

    split = best_split(SIZES, WANTED)
    assert split.optimum == pytest.approx(searched(value, len(parts)), rel=1e-3)
    assert split.optimum < split.objective


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_wanted_errors_are_met_with_the_least_budget(kind):
    errors = [3.0, 9.0, 2.0]
    tables = sorted({part for axes in WANTED for part in subsets(axes) if part})
    power = 1 if kind == "gaussian" else 2

    def value(shares):
        information = sum(p**power * matrix(axes).T @ matrix(axes) for p, axes in zip(shares, tables, strict=True))
        ratios = dense_variances(information) / np.square(errors)
        return (ratios**40).sum() ** (1 / 40)

    found = best_split(SIZES, WANTED, errors=errors, kind=kind)
    reached = np.array(list(found.variance.values())) / found.objective
    assert (np.sqrt(reached) <= np.array(errors) * (1 + 1e-9)).all()
    assert found.objective <= 1.02 * searched(value, len(tables), starts=1)


def test_a_table_that_another_contains_is_named_and_useful_margins_are_added():
    split = best_split({"a": 20, "b": 20, "c": 2}, [("a", "b"), ("a",), ("a", "c"), ("b", "c")])
    assert set(split.shares) >= {("a", "b"), ("a", "c"), ("b", "c")}
    assert all(set(axes) < set(other) for axes, other in split.redundant.items())
    assert sum(split.shares.values()) == pytest.approx(1)
    wide = best_split({"a": 2, "b": 2, "c": 50}, [("a", "c"), ("b", "c")])
    assert wide.added == tuple(axes for axes in wide.shares if axes not in [("a", "c"), ("b", "c")])
    fine = best_split({"a": 30, "b": 2}, [("a", "b"), ("b",)], weights=[1.0, 1e-9])
    assert fine.redundant == {("b",): ("a", "b")}


def test_the_split_of_many_tables_is_near_the_best_possible():
    sizes = dict(zip("abcdefghij", [10, 17, 8, 16, 7, 6, 3, 43, 3, 10], strict=True))
    tables = [(name,) for name in sizes] + list(itertools.combinations(sizes, 2))
    cells = [float(np.prod([sizes[name] for name in axes])) for axes in tables]
    for weights in (None, cells):
        split = best_split(sizes, tables, weights=weights)
        assert np.sqrt(split.objective / split.optimum) < 1.06


def test_what_cannot_be_split_is_refused():
    with pytest.raises(InvalidArgument, match="different attributes"):
        best_split(SIZES, [("a", "x")])
    with pytest.raises(InvalidArgument, match="not both"):
        best_split(SIZES, [("a",)], weights=[1.0], errors=[1.0])
    with pytest.raises(InvalidArgument, match="errors > 0"):
        best_split(SIZES, [("a",)], errors=[0.0])
