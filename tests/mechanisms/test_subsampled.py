"""Amplification by a secret sample, against enumeration of all samples and against dp-accounting."""

from __future__ import annotations

import json
import math
from functools import lru_cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, LaplaceDpEvent, PoissonSampledDpEvent
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
from scipy.stats import binom, chi2, hypergeom

import dpbayes as dp
from dpbayes import ApproxDP, Cost, Dirichlet, Gaussian, Laplace, Ledger, Unit
from dpbayes.base.errors import InvalidArgument
from dpbayes.hellinger import calibration
from dpbayes.mechanisms import Stated
from dpbayes.mechanisms.kinds import from_record
from dpbayes.mechanisms.subsampled import Subsampled, subsampled
from dpbayes.mechanisms.threshold import Threshold
from dpbayes.privacy import sampling
from dpbayes.privacy.bounds import randomised_response
from dpbayes.privacy.pld import delta_of, from_statement

CHANGE, REPLACE = Unit(adjacency="add-remove"), Unit(adjacency="replace-one")
FAR = 120
EPSILONS = (0.0, 0.02, 0.1, 0.25, 0.5, 0.9)
Pair = tuple[np.ndarray, np.ndarray]


def noisy(counts: tuple[int, ...], scale: float) -> np.ndarray:
    """The law of discrete Laplace noise on a table, on a grid."""
    grid = np.arange(-FAR, FAR + 1)
    laws = [math.tanh(0.5 / scale) * np.exp(-np.abs(grid - count) / scale) for count in counts]
    return laws[0] if len(laws) == 1 else np.multiply.outer(laws[0], laws[1]).ravel()


@lru_cache
def poisson(counts: tuple[int, ...], rate: float, scale: float) -> np.ndarray:
    """The law of a release from a Poisson sample: all samples, one by one."""
    found = 0.0
    for sample in product(*(range(count + 1) for count in counts)):
        chance = math.prod(binom.pmf(kept, count, rate) for kept, count in zip(sample, counts, strict=True))
        found = found + chance * noisy(sample, scale)
    return np.asarray(found)


@lru_cache
def fixed(counts: tuple[int, int], size: int, scale: float) -> np.ndarray:
    """The same for a sample of fixed size."""
    total = sum(counts)
    chances = hypergeom.pmf(np.arange(size + 1), total, counts[0], size)
    return np.asarray(sum(chance * noisy((k, size - k), scale) for k, chance in enumerate(chances.tolist()) if chance))


def lost(pair: Pair, epsilon: float) -> float:
    return float(np.maximum(pair[0] - math.exp(epsilon) * pair[1], 0).sum())


def divergence(pair: Pair, order: float) -> float:
    return math.log1p(math.fsum(pair[0] * np.expm1((order - 1) * np.log(pair[0] / pair[1])))) / (order - 1)


def poisson_pairs(rate: float, scale: float) -> list[Pair]:
    """Neighbours by an added row, both ways round."""
    tables = [(0,), (1,), (3,), (0, 2), (2, 2)]
    both = [(poisson(each, rate, scale), poisson((each[0] + 1, *each[1:]), rate, scale)) for each in tables]
    return both + [(q, p) for p, q in both]


def fixed_pairs(total: int, size: int, scale: float) -> list[Pair]:
    laws = [fixed((k, total - k), size, scale) for k in range(total + 1)]
    both = [(laws[k], laws[k + 1]) for k in range(total)]
    return both + [(q, p) for p, q in both]


@pytest.mark.parametrize("rate", [0.03, 0.4, 0.9])
@pytest.mark.parametrize("scale", [0.8, 3.0])
def test_no_pair_of_small_tables_exceeds_the_price_of_poisson_sampling_and_one_attains_it(
    rate: float, scale: float
) -> None:
    made, pairs = subsampled(Laplace(scale=scale, unit=CHANGE), rate), poisson_pairs(rate, scale)
    for epsilon in EPSILONS:
        worst = max(lost(pair, epsilon) for pair in pairs)
        assert worst <= made.delta(epsilon) * (1 + 1e-9) + 1e-12
        assert made.delta(epsilon) <= worst * (1 + 1e-6) + 1e-9
        assert made.delta(epsilon) <= delta_of(made.pld(0.002), epsilon) * (1 + 1e-9) <= worst + 2e-3
    for order in (1.2, 2.0, 2.7, 8.0, 40.0):
        worst = max(divergence(pair, order) for pair in pairs)
        assert worst <= made.renyi(order) * (1 + 1e-9) <= 1.03 * worst + 1e-9


@pytest.mark.parametrize(("total", "size"), [(2, 1), (5, 2), (6, 5)])
@pytest.mark.parametrize("scale", [1.5, 6.0])
def test_no_pair_of_small_tables_exceeds_the_price_of_a_fixed_size_and_one_attains_it(
    total: int, size: int, scale: float
) -> None:
    made = subsampled(Laplace(scale=scale, unit=REPLACE), size / total)
    pairs = fixed_pairs(total, size, scale)
    for epsilon in EPSILONS:
        worst = max(lost(pair, epsilon) for pair in pairs)
        assert worst <= made.delta(epsilon) * (1 + 1e-9) + 1e-9
        assert made.delta(epsilon) <= worst * (1 + 1e-6) + 1e-6
        assert made.delta(epsilon) <= delta_of(made.pld(0.002), epsilon) * (1 + 1e-9) <= worst + 2e-3
    for order in (1.2, 2.0, 2.7, 8.0):
        assert max(divergence(pair, order) for pair in pairs) <= made.renyi(order) * (1 + 1e-6)


@pytest.mark.parametrize("scale", [1.5, 6.0])
def test_two_sampled_releases_cost_no_less_than_their_enumerated_composition(scale: float) -> None:
    one = Laplace(scale=scale, unit=CHANGE)
    cost = Cost.of(subsampled(one, 0.3), 2)
    for delta in (1e-1, 1e-2):
        epsilon = cost.epsilon(delta)
        found = [
            lost((np.outer(p, a).ravel(), np.outer(q, b).ravel()), at)
            for at in (epsilon, 0.95 * epsilon - 1e-3)
            for (p, q), (a, b) in [
                ((poisson((0,), 0.3, scale), poisson((1,), 0.3, scale)),) * 2,
                ((poisson((1,), 0.3, scale), poisson((0,), 0.3, scale)),) * 2,
            ]
        ]
        assert max(found[:2]) <= delta + 1e-9
        assert epsilon == 0.0 or max(found[2:]) > delta


@pytest.mark.parametrize("rate", [0.5, 0.05])
@pytest.mark.parametrize("times", [1, 100])
def test_the_sampled_gaussian_costs_what_dp_accounting_says(rate: float, times: int) -> None:
    """Noise on whole numbers is not quite the Gaussian law: at σ = 6 a per mille."""
    theirs = PLDAccountant(value_discretization_interval=1e-3)
    theirs.compose(PoissonSampledDpEvent(rate, GaussianDpEvent(6.0)), times)
    ours = Cost.of(subsampled(Gaussian(sigma=6.0, unit=CHANGE), rate), times).epsilon(1e-5)
    assert ours == pytest.approx(theirs.get_epsilon(1e-5), rel=2e-2, abs=2e-3)


def test_the_sampled_laplace_costs_at_most_a_little_more_than_dp_accounting_says() -> None:
    theirs = PLDAccountant(value_discretization_interval=1e-3)
    theirs.compose(PoissonSampledDpEvent(0.2, LaplaceDpEvent(10.0)), 50)
    ours = Cost.of(subsampled(Laplace(scale=10.0, unit=CHANGE), 0.2), 50).epsilon(1e-5)
    assert ours == pytest.approx(theirs.get_epsilon(1e-5), rel=5e-2)


MADE = [
    subsampled(Laplace(scale=3.0, unit=CHANGE), 0.2),
    subsampled(Gaussian(sigma=2.0, unit=CHANGE), 0.05),
    subsampled(Gaussian(sigma=3.0, unit=REPLACE), 0.5),
    subsampled(Dirichlet(weight=1, concentration=10, unit=CHANGE), 0.1),
    subsampled(Dirichlet(weight=1, concentration=(10.0, 12.0), unit=REPLACE), 0.1),
]


@pytest.mark.parametrize("made", MADE, ids=lambda made: f"{type(made.mechanism).__name__}-{made.sampling}")
def test_a_sample_costs_less_than_the_table_in_every_notion(made: Subsampled) -> None:
    whole = made.mechanism
    for epsilon in (0.0, 0.1, 0.5):
        assert made.delta(epsilon) <= made.rate * whole.delta(epsilon) * (1 + 1e-9)
    for order in (1.001, 1.7, 2.0, 3.5, 6.0):
        assert made.renyi(order) <= whole.renyi(order) * (1 + 1e-9)
        assert made.renyi(order) <= made.concentrated(order + 0.1) * order * (1 + 1e-12)
    for delta in (1e-3, 1e-6):
        assert made.delta(made.epsilon(delta)) <= delta * (1 + 1e-9)
        assert Cost.of(made, 10).epsilon(delta) < Cost.of(whole, 10).epsilon(delta)
    assert from_record(json.loads(json.dumps(made.record()))) == made
    orders = [made.renyi(order) for order in (1.1, 2.0, 2.5, 5.0)]
    assert orders == sorted(orders)


def test_the_divergences_of_an_unbounded_loss_are_not_below_those_of_its_pair() -> None:
    """Gaussian noise on a table of no row and of one: the mixture is enumerated, both ways round."""
    grid, sigma, rate = np.arange(-60, 62), 2.0, 0.1
    without = np.exp(-0.5 * (grid / sigma) ** 2)
    row = np.exp(-0.5 * ((grid - 1) / sigma) ** 2)
    q = without / without.sum()
    p = (1 - rate) * q + rate * row / row.sum()
    made = subsampled(Gaussian(sigma=sigma, unit=CHANGE), rate)
    for order in (1.3, 2.0, 2.5, 7.0, 20.0):
        worst = max(divergence((p, q), order), divergence((q, p), order))
        assert worst <= made.renyi(order)
    for order in (2.0, 7.0, 20.0):
        assert made.renyi(order) <= 1.02 * divergence((p, q), order)


@pytest.mark.parametrize("rule", ["gaussian", "renyi"])
def test_a_ledger_charges_what_is_amplified_and_holds_its_record(rule: str, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "book.ledger")
    ledger.open("trial", ApproxDP(epsilon=5.0, delta=1e-6), CHANGE, rule=rule)  # type: ignore[arg-type]
    made = MADE[1]
    with ledger.series("trial", Cost.of(made, 30)) as series:
        assert series.draw([300, 500]).shape == (2,)
    account = ledger.account("trial")
    assert account.cost == Cost.of(made, 30)
    exact = Cost.of(made, 30).epsilon(1e-6)
    assert exact * (1 - 1e-9) <= account.budget.amount(account.cost) < 0.5 * Cost.of(made.mechanism, 30).epsilon(1e-6)


def test_the_sample_has_the_law_that_is_priced() -> None:
    rng = np.random.default_rng(4)
    thinned = subsampled(Laplace(scale=1.0, unit=CHANGE), 0.3)
    found = np.array([thinned.sample([6, 0, 3], rng) for _ in range(4000)])
    assert not found[:, 1].any()
    for column, rows in ((0, 6), (2, 3)):
        expected = 4000 * binom.pmf(np.arange(rows + 1), rows, 0.3)
        seen = np.bincount(found[:, column], minlength=rows + 1)
        assert ((seen - expected) ** 2 / expected).sum() < chi2.isf(1e-6, rows)
    drawn = subsampled(Laplace(scale=1.0, unit=REPLACE), 0.5)
    found = np.array([drawn.sample([[4], [5]], rng).ravel() for _ in range(4000)])
    assert (found.sum(axis=1) == 4).all()  # half of nine, rounded down
    expected = 4000 * hypergeom.pmf(np.arange(5), 9, 4, 4)
    assert ((np.bincount(found[:, 0], minlength=5) - expected) ** 2 / expected).sum() < chi2.isf(1e-6, 4)


def test_a_sample_of_a_posterior_has_the_size_that_it_declares() -> None:
    inner = calibration.with_global(prior=(1.0, 1.0), total=20, epsilon=1.0, unit=REPLACE)
    made = subsampled(inner, 0.25)
    assert made.draw([30, 50]).sum() == 22.0
    assert made.renyi(math.inf) == pytest.approx(math.log1p(0.25 * math.expm1(inner.renyi(math.inf))))


@pytest.mark.parametrize(
    ("mechanism", "options", "sentence"),
    [
        (Laplace(scale=1, unit=REPLACE), {"sampling": "poisson"}, "use fixed"),
        (Laplace(scale=1, unit=CHANGE), {"sampling": "fixed"}, "use poisson"),
        (Laplace(scale=1, unit=Unit(adjacency="add-remove", max_rows=2)), {}, "one row per person"),
        (Stated(epsilon_stated=1, delta_stated=0.0, unit=CHANGE, what="a map"), {}, "draws from a table"),
        (MADE[0], {}, "draws from a table"),
        (Threshold(scale=4.0, threshold=40, unit=CHANGE), {}, "Subsampled"),
        (calibration.published(prior=(1.0, 1.0), total=9, epsilon=1.0, delta=1e-6, unit=REPLACE), {}, "exception"),
        (Laplace(scale=1, unit=CHANGE), {"sampling": "cluster"}, "one of"),
    ],
)
def test_what_has_no_proof_is_refused_in_a_sentence(mechanism: object, options: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidArgument, match=sentence):
        subsampled(mechanism, 0.1, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1, math.nan, math.inf])
def test_a_rate_is_between_nought_and_one(rate: float) -> None:
    with pytest.raises(InvalidArgument, match="rate"):
        dp.mechanisms.subsampled.subsampled(Laplace(scale=1, unit=CHANGE), rate)


def test_the_formulas_at_their_ends() -> None:
    response = randomised_response(1.0)
    assert sampling.sampled_delta(response.delta, 0.3, 1.0 - 1e-12) == pytest.approx(response.delta(0.3))
    assert sampling.sampled_pure(math.inf, 0.5) == math.inf
    assert sampling.sampled_pure(800.0, 0.5) == pytest.approx(800.0 + math.log(0.5))
    gaining, losing = sampling.sampled_loss(response, 0.1)
    assert gaining.delta(0.1) == pytest.approx(sampling.sampled_delta(response.delta, 0.1, 0.1))
    assert losing.delta(0.1) < gaining.delta(0.1)
    pld = sampling.sampled_pld(response.pld(1e-3), 0.1, 1e-3, replaces=True)
    assert delta_of(pld, 0.0) == pytest.approx(0.1 * response.delta(0.0), rel=1e-3)
    assert sampling.sampled_renyi(response.renyi, 2.0, 0.1, None) >= sampling.sampled_renyi(
        response.renyi, 2.0, 0.1, sampling.removed_moment(response.pld(1e-3), 0.1)
    )


@pytest.mark.parametrize("rate", [0.05, 0.5, 0.9])
def test_a_sampled_statement_loses_no_mass_and_gains_none(rate: float) -> None:
    """What only the table without the record does counts 1 − γ of itself."""
    for delta in (0.0, 0.2):
        losses, mixed = sampling._gaining(from_statement(0.5, delta, 0.05), 0, rate)
        assert mixed.sum() + rate * delta == pytest.approx(1.0, abs=1e-9)
        assert (mixed * np.exp(-losses)).sum() == pytest.approx(1.0, abs=1e-9)
