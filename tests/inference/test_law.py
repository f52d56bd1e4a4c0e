"""The linear law agrees with dense generalised least squares over the whole contingency table."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpbayes.base.errors import InvalidArgument
from dpbayes.inference.law import LinearLaw, NotEstimable
from dpbayes.inference.measurement import Exact, Measurement, even_covariance, even_noise
from dpbayes.mechanisms.dirichlet import GammaNoise
from dpbayes.mechanisms.gaussian import GaussianNoise
from dpbayes.mechanisms.laplace import LaplaceNoise

SIZES = {"a": 2, "b": 3, "c": 4, "d": 2}


def margin(axes, sizes=SIZES):
    """The 0/1 matrix that sums the whole table, row-major, to the margin on the axes in the order given."""
    names = list(sizes)
    shape = [sizes[name] for name in axes]
    matrix = np.zeros((math.prod(shape), math.prod(sizes.values())))
    for column, cell in enumerate(itertools.product(*(range(sizes[name]) for name in names))):
        matrix[np.ravel_multi_index([cell[names.index(name)] for name in axes], shape) if axes else 0, column] = 1
    return matrix


def dense(measured, exact, sizes=SIZES):
    """Mean of, and covariance factory for, the best linear unbiased estimate: GLS with exact constraints, by pinv."""
    design = np.vstack([margin(axes, sizes) / sd for axes, _, sd in measured])
    target = np.concatenate([np.ravel(values) / sd for _, values, sd in measured])
    constraint = np.vstack([np.zeros((1, design.shape[1])), *[matrix for matrix, _ in exact]])
    level = np.concatenate([[0.0], *[np.ravel(values) for _, values in exact]])
    start = np.linalg.pinv(constraint) @ level
    _, singular, rows = np.linalg.svd(constraint)
    free = rows[np.sum(singular > 1e-9) :].T
    information = np.linalg.pinv(free.T @ design.T @ design @ free, rcond=1e-12)
    mean = start + free @ information @ free.T @ design.T @ (target - design @ start)
    return mean, free @ information @ free.T


def released(rng, tables, sizes=SIZES):
    truth = rng.integers(0, 60, [sizes[name] for name in sizes]).astype(float)
    found = []
    for axes, sd in tables:
        clean = (margin(axes, sizes) @ truth.ravel()).reshape([sizes[name] for name in axes])
        found.append((axes, clean + rng.normal(0, sd, clean.shape), sd))
    return truth, found


def measurements(found):
    return [Measurement(axes=axes, values=values, noise=GaussianNoise(sigma=sd)) for axes, values, sd in found]


WORKLOADS = {
    "one four-way": [(("a", "b", "c", "d"), 5.0)],
    "overlapping, out of order": [(("c", "a"), 4.0), (("b", "c"), 7.0), (("a",), 3.5), (("d", "b", "a"), 6.0)],
    "two releases": [(("a", "b"), 4.0), (("a", "b"), 9.0), (("b", "c", "d"), 5.0), ((), 12.0)],
}


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", WORKLOADS)
def test_means_variances_and_covariances_are_those_of_generalised_least_squares(name, known):
    rng = np.random.default_rng(5)
    truth, found = released(rng, WORKLOADS[name])
    law = LinearLaw(measurements(found), SIZES, records=truth.sum() if known else None)
    exact = [(margin(()), [truth.sum()])] if known else []
    mean, covariance = dense(found, exact)
    for axes in law.tables:
        sums = margin(axes)
        shape = [SIZES[each] for each in axes]
        np.testing.assert_allclose(law.mean(axes), (sums @ mean).reshape(shape), rtol=0, atol=1e-9)
        wanted = np.diag(sums @ covariance @ sums.T).reshape(shape)
        np.testing.assert_allclose(law.variance(axes), wanted, rtol=1e-10, atol=1e-10)
        for kept in law.tables:
            if set(kept) <= set(axes):
                down = margin(kept)
                own = np.diag(sums @ covariance @ down.T @ (down @ sums.T > 0)).reshape(shape)
                np.testing.assert_allclose(law.covariance_with_margin(axes, kept), own, rtol=1e-9, atol=1e-10)
    functionals = [{axes: rng.normal(size=[SIZES[each] for each in axes])} for axes in law.tables]
    functionals.append({axes: rng.normal(size=[SIZES[each] for each in axes]) for axes in law.tables[-2:]})
    rows = np.array([sum(weights.ravel() @ margin(axes) for axes, weights in each.items()) for each in functionals])
    means, matrix = law.moments(functionals)
    np.testing.assert_allclose(means, rows @ mean, atol=1e-8)
    np.testing.assert_allclose(matrix, rows @ covariance @ rows.T, rtol=1e-9, atol=1e-9)


def test_public_margins_are_kept_exactly_and_sharpen_the_rest():
    rng = np.random.default_rng(6)
    truth, found = released(rng, [(("a", "b", "c"), 5.0), (("b", "d"), 3.0)])
    public = (margin(("b", "c")) @ truth.ravel()).reshape(3, 4)
    law = LinearLaw(
        [*measurements(found), Measurement(axes=("c", "b"), values=public.T, noise=Exact())], SIZES, truth.sum()
    )
    mean, covariance = dense(found, [(margin(("b", "c")), public)])
    for axes in law.tables:
        sums, shape = margin(axes), [SIZES[each] for each in axes]
        np.testing.assert_allclose(law.mean(axes), (sums @ mean).reshape(shape), atol=1e-8)
        np.testing.assert_allclose(law.variance(axes).ravel(), np.diag(sums @ covariance @ sums.T), atol=1e-9)
    np.testing.assert_allclose(law.mean(("b", "c")), public, atol=1e-9)


@pytest.mark.parametrize("known", [True, False])
def test_structural_zeros_are_conditioned_on(known):
    rng = np.random.default_rng(7)
    truth, found = released(rng, [(("a", "b", "c"), 5.0), (("b", "d"), 3.0), (("b", "c"), 4.0)])
    zeros = np.zeros((3, 4), dtype=bool)
    zeros[0, 1] = zeros[2, 3] = zeros[2, 2] = True
    law = LinearLaw(measurements(found), SIZES, truth.sum() if known else None, zeros=[(("b", "c"), zeros)])
    wide = np.broadcast_to(zeros, (2, 3, 4)).ravel()
    exact = [(margin(("a", "b", "c"))[wide], np.zeros(wide.sum()))]
    exact += [(margin(()), [truth.sum()])] if known else []
    mean, covariance = dense(found, exact)
    for axes in law.tables:
        sums, shape = margin(axes), [SIZES[each] for each in axes]
        np.testing.assert_allclose(law.mean(axes), (sums @ mean).reshape(shape), atol=1e-8)
        np.testing.assert_allclose(law.variance(axes).ravel(), np.diag(sums @ covariance @ sums.T), atol=1e-8)
    weights = [{("a", "b"): rng.normal(size=(2, 3))}, {("b", "d"): rng.normal(size=(3, 2))}]
    rows = np.array(
        [weights[0]["a", "b"].ravel() @ margin(("a", "b")), weights[1]["b", "d"].ravel() @ margin(("b", "d"))]
    )
    np.testing.assert_allclose(law.moments(weights)[1], rows @ covariance @ rows.T, atol=1e-8)
    table, other = law.draws([("a", "b", "c"), ("b", "d")], 4000, rng)
    np.testing.assert_allclose(table[:, np.broadcast_to(zeros, (2, 3, 4))], 0, atol=1e-8)
    np.testing.assert_allclose(table.sum(axis=(1, 3)), other.sum(axis=2), atol=1e-8)
    np.testing.assert_allclose(table.var(axis=0), law.variance(("a", "b", "c")), rtol=0.15, atol=1e-6)


def test_gamma_noise_propagates_the_variances_of_the_cells():
    """The estimate is linear: its variance is L diag(s²) Lᵀ, with L found by feeding unit vectors to the law."""
    rng = np.random.default_rng(8)
    noise = {
        ("a", "b"): GammaNoise(weight=0.3, concentration=rng.uniform(2, 9, (2, 3))),
        ("c", "b"): GaussianNoise(sigma=4.0),
    }
    third = GammaNoise(weight=0.5, concentration=4.0)
    truth = rng.integers(0, 60, (2, 3, 4)).astype(float)
    clean = [
        (("a", "b"), truth.sum(axis=2)),
        (("c", "b"), truth.sum(axis=0).T),
        (("a", "c", "b"), truth.transpose(0, 2, 1)),
    ]
    laws = [*noise.values(), third]

    def built(values):
        return LinearLaw(
            [
                Measurement(axes=axes, values=value, noise=law)
                for (axes, _), value, law in zip(clean, values, laws, strict=True)
            ],
            {"a": 2, "b": 3, "c": 4},
            records=truth.sum(),
        )

    values = [
        law.variance(value) * law.weight**2 if isinstance(law, GammaNoise) else value
        for (_, value), law in zip(clean, laws, strict=True)
    ]
    base = built(values)
    sizes = {"a": 2, "b": 3, "c": 4}
    spread = np.concatenate(
        [law.variance(np.maximum(value, 0)).ravel() for (_, value), law in zip(clean, laws, strict=True)]
    )
    for axes in base.tables:
        columns = []
        for place, value in enumerate(values):
            scale = laws[place].weight if isinstance(laws[place], GammaNoise) else 1.0
            for cell in np.ndindex(value.shape):
                moved = [each.copy() for each in values]
                moved[place][cell] += scale
                columns.append((built(moved).mean(axes) - base.mean(axes)).ravel())
        linear = np.array(columns).T
        full = linear * spread @ linear.T
        np.testing.assert_allclose(base.mean(axes).ravel(), margin(axes, sizes) @ truth.ravel(), atol=1e-8)
        np.testing.assert_allclose(base.variance(axes).ravel(), np.diag(full), rtol=1e-8, atol=1e-9)
        units = [{axes: unit.reshape(base.mean(axes).shape)} for unit in np.eye(full.shape[0])]
        np.testing.assert_allclose(base.moments(units)[1], full, rtol=1e-7, atol=1e-8)
        for kept in base.tables:
            if set(kept) < set(axes):
                indicator = (np.abs(margin(kept, sizes) @ margin(axes, sizes).T) > 0).astype(float)
                own = np.diag(full @ indicator.T @ indicator).reshape(base.mean(axes).shape)
                np.testing.assert_allclose(base.covariance_with_margin(axes, kept), own, rtol=1e-7, atol=1e-8)


def test_draws_of_gamma_noise_have_the_variances_of_the_cells():
    noise = GammaNoise(weight=0.3, concentration=5.0)
    values = np.array([[400.0, 6.0, 5.0], [20.0, 90.0, 4.0]])
    law = LinearLaw([Measurement(axes=("a", "b"), values=values, noise=noise)], {"a": 2, "b": 3}, records=1650)
    (table,) = law.draws([("a", "b")], 20_000, np.random.default_rng(1))
    np.testing.assert_allclose(table.var(axis=0), law.variance(("a", "b")), rtol=0.06)
    np.testing.assert_allclose(table.sum(axis=(1, 2)), 1650)
    assert law.variance(("a", "b")).max() > 3 * law.variance(("a", "b")).min()


def test_discrete_laplace_noise_has_the_variance_of_its_law():
    k = np.arange(-4000, 4001)
    law = np.exp(-np.abs(k) / 7.3)
    assert float(LaplaceNoise(scale=7.3).variance(np.zeros(1))[0]) == pytest.approx((law * k**2).sum() / law.sum())
    narrow = np.exp(-(k**2) / (2 * 0.4**2))
    assert float(GaussianNoise(sigma=0.4).variance(np.zeros(1))[0]) == pytest.approx(
        (narrow * k**2).sum() / narrow.sum()
    )


def test_what_nobody_measured_is_refused_with_what_would_tell():
    law = LinearLaw(measurements(released(np.random.default_rng(1), [(("a", "b"), 1.0), (("c",), 1.0)])[1]), SIZES)
    with pytest.raises(NotEstimable, match="a × b × c") as refused:
        law.mean(("a", "b", "c"))
    assert refused.value.missing == (("a", "b", "c"),)
    with pytest.raises(NotEstimable, match="contains d"):
        law.moments([{("d",): np.array([1.0, 0.0])}])
    mean, _ = law.moments([{("d",): np.ones(2)}])
    assert mean[0] == pytest.approx(float(law.mean(())))


def test_contradictory_public_margins_are_refused():
    tables = [Measurement(axes=("a",), values=np.array([3.0, 4.0]), noise=Exact())]
    with pytest.raises(InvalidArgument, match="contradict each other in the number of records"):
        LinearLaw(tables, SIZES, records=8)
    with pytest.raises(InvalidArgument, match="contradict each other in a"):
        LinearLaw([*tables, Measurement(axes=("a",), values=np.array([4.0, 3.0]), noise=Exact())], SIZES)


def test_draws_have_the_covariances_of_the_law():
    rng = np.random.default_rng(11)
    truth, found = released(rng, WORKLOADS["overlapping, out of order"])
    law = LinearLaw(measurements(found), SIZES, truth.sum())
    first, second = law.draws([("a", "b", "d"), ("b", "c")], 20_000, rng)
    np.testing.assert_allclose(first.sum(axis=(1, 3)), second.sum(axis=2), atol=1e-8)
    np.testing.assert_allclose(second.sum(axis=(1, 2)), truth.sum())
    np.testing.assert_allclose(first.var(axis=0), law.variance(("a", "b", "d")), rtol=0.07)
    np.testing.assert_allclose(second.mean(axis=0), law.mean(("b", "c")), atol=0.3)


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("exact", [[], [()], [("a",)], [("a", "b"), ("c",)]])
def test_variances_are_known_before_anything_is_drawn(workload, exact):
    """Against dense algebra with made-up values: they do not depend on what is drawn."""
    truth, found = released(np.random.default_rng(0), WORKLOADS[workload])
    known = [(margin(axes), margin(axes) @ truth.ravel()) for axes in exact]
    _, covariance = dense(found, known)
    order = list(SIZES)
    noise = even_noise(SIZES, [(tuple(sorted(axes, key=order.index)), sd**2) for axes, _, sd in found], exact)
    for axes in (("a", "b"), ("a",), ("c",) if workload != "one four-way" else ("a", "c", "d"), ("b",)):
        for inside in (axes, axes[:1], ()):
            both = margin(axes) @ covariance @ margin(inside).T
            cell = even_covariance(noise, SIZES, axes, inside)
            rows = margin(axes) @ margin(inside).T > 0
            np.testing.assert_allclose(both[rows], cell, rtol=1e-8, atol=1e-9)
