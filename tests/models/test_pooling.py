"""Rows of single draws that are drawn towards what they have in common."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from dpbayes import RDP, Attribute, BayesNet, Curator, Schema, Unit
from dpbayes.jobs import Fit
from dpbayes.models.bayes_net import STRENGTHS, expected_score, pool
from dpbayes.models.model import NoisyTable
from dpbayes.privacy.cost import Cost
from dpbayes.schema import Adjacency
from dpbayes.schema.marginal import Marginal
from dpbayes.tables.engine import CodedTable

COMMON = np.array([0.6, 0.3, 0.1])


def gammas(counts: np.ndarray, weight: float, concentration: float, rng: np.random.Generator) -> NoisyTable:
    drawn = rng.gamma(weight * counts + concentration)
    return NoisyTable(
        marginal=Marginal(("child",), ("parent",)),
        drawn=True,
        values=drawn,
        counts=(drawn - concentration) / weight,
        variance=(weight * counts + concentration) / weight**2,
        slope=1 / weight,
    )


@pytest.mark.parametrize("strength", [0.0, 0.7, 20.0, np.inf])
@pytest.mark.parametrize(("weight", "concentration"), [(0.02, 1.3), (0.5, 0.4), (2.0, 30.0)])
def test_the_score_has_the_mean_of_the_score_that_needs_private_counts(strength, weight, concentration):
    counts = np.tile([[40, 3, 0], [5, 9, 1], [0, 0, 0], [2, 30, 60]], (500, 1))
    rng, differences = np.random.default_rng(1), []
    for _ in range(40):
        table = gammas(counts, weight, concentration, rng)
        mixed = table.values + strength * COMMON if np.isfinite(strength) else np.broadcast_to(COMMON, counts.shape)
        true = (counts * np.log(mixed / mixed.sum(axis=1, keepdims=True))).sum()
        differences.append(expected_score(table, COMMON, strength) - true)
    assert abs(np.mean(differences)) < 4 * np.std(differences) / np.sqrt(len(differences))


@pytest.mark.parametrize("mean", [0.4, 1.0, 7.5])
def test_steins_identity_of_gammas(mean):
    law = stats.gamma(mean)

    def expected(value):
        return (
            integrate.quad(lambda z: law.pdf(z) * value(z), 0, 1)[0]
            + integrate.quad(lambda z: law.pdf(z) * value(z), 1, np.inf)[0]
        )

    left = expected(lambda z: mean * np.log(z + 0.3))
    right = expected(lambda z: z * np.log(z + 0.3) - z / (z + 0.3))
    assert left == pytest.approx(right, rel=1e-7)


def test_rows_that_are_alike_are_pooled_and_rows_that_differ_are_not():
    rng = np.random.default_rng(2)
    alike = np.tile(1000 * COMMON, (50, 1))
    hidden = gammas(alike, 0.005, 1.2, rng)
    far = pool(hidden, COMMON)
    alone = hidden.rows / hidden.rows.sum(axis=1, keepdims=True)
    assert (alike * np.log(far)).sum() > (alike * np.log(alone)).sum()
    assert np.abs(far - COMMON).mean() < 0.2 * np.abs(alone - COMMON).mean()
    different = np.tile(10_000 * np.eye(3), (5, 1)) + 50.0
    seen = gammas(different, 0.5, 30.0, rng)
    near = pool(seen, np.full(3, 1 / 3))
    assert np.abs(near - different / different.sum(axis=1, keepdims=True)).max() < 0.05
    assert STRENGTHS[0] == 0.0  # the papers' draw is among the candidates
    assert np.isinf(STRENGTHS[-1])


def network_release(accounting):
    rng = np.random.default_rng(3)
    columns = {"parent": rng.integers(0, 40, 3000), "child": rng.choice(5, 3000, p=[0.7, 0.1, 0.1, 0.05, 0.05])}
    schema = Schema(
        id="pooled",
        unit=Unit(adjacency=Adjacency.REPLACE_ONE),
        attributes=tuple(
            Attribute(name=name, categories=(*map(str, range(size - 1)), "other"), missing="other")
            for name, size in (("parent", 40), ("child", 5))
        ),
        records_guess=3000,
    )
    spec = BayesNet(edges=(("parent", "child"),), estimate="draw")
    job = Fit(model=spec, accounting=accounting)
    return Curator(CodedTable(columns), schema, seed=4).release(job, RDP(order=5, epsilon=0.05), estimates=False)


def test_exact_accounting_draws_a_childs_own_distribution_and_the_papers_parameters_do_not():
    exact, published = network_release("exact"), network_release("published")
    assert [str(table.marginal) for table in exact.tables] == ["parent", "child|parent", "child"]
    assert [str(table.marginal) for table in published.tables] == ["parent", "child|parent"]
    plain = published.array(published.tables[1]).reshape(40, 5)
    assert published.model().network.tables["child"] == pytest.approx(plain / plain.sum(axis=1, keepdims=True))
    truth = np.array([0.7, 0.1, 0.1, 0.05, 0.05])
    losses = [
        -(truth * np.log(release.model().network.tables["child"])).sum(axis=1).mean() for release in (exact, published)
    ]
    assert losses[0] < losses[1]
    paid = [each.mechanism for each in exact.paid for _ in range(each.times)]
    assert len(paid) == 3
    assert exact.promise.gap(Cost.total(paid)) <= 0
