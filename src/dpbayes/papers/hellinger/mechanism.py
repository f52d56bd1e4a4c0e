"""M_H itself: its law, one release, what it costs, how far it goes, and what a released posterior says.

By Bayes' rule and the noise of its mechanism, P(counts | released) ∝ P(released | counts)·DirichletMultinomial(counts |
prior): summed over all tables where they can be listed, else as ``inference.released`` reads it for the products. Or
taken as it is, as the papers do. Symbols as in ``scores``; u = −H is the score.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincinv, gammaln

from dpbayes.base import checks
from dpbayes.base.checks import Floats, non_negative, positive
from dpbayes.base.display import Chart, Facts, Shown, picture
from dpbayes.base.errors import InvalidArgument
from dpbayes.hellinger import calibration, candidates
from dpbayes.hellinger import distance as distances
from dpbayes.hellinger.baselines import PosteriorExponential, PosteriorLaplace
from dpbayes.hellinger.certificate import affordable
from dpbayes.hellinger.distance import Laws
from dpbayes.hellinger.mechanism import Hellinger, expected, step_probabilities
from dpbayes.inference.released import Reading, reading
from dpbayes.papers.checked import equal, found, states
from dpbayes.papers.hellinger.scores import UNIT, Prior, floats, laplace_scale, total
from dpbayes.papers.result import Result, shown

__all__ = [
    "M_H", "Aware", "Coverage", "Naive", "Released", "accuracy", "coverage", "delta", "expected_H", "laplace",
    "laplace_law", "law", "lemma_4_1", "loss", "posterior", "renyi", "steps",
]  # fmt: skip

Law = dict[tuple[int, ...], float]
Pairwise = Callable[[Floats, Floats], float]


@dataclass(frozen=True, slots=True)
class Naive:
    """A Dirichlet law read cell by cell."""

    parameters: tuple[float, ...]

    @property
    def mean(self) -> Floats:
        """Expected shares."""
        return np.asarray(self.parameters) / math.fsum(self.parameters)

    def interval(self, level: float = 0.95) -> Floats:
        """Central intervals of the shares, one per row."""
        checks.probability("interval", level=level)
        values, tail = np.asarray(self.parameters), 0.5 * (1.0 - level)
        ends = (betaincinv(values, values.sum() - values, at) for at in (tail, 1.0 - tail))
        return np.column_stack([*ends])


@dataclass(frozen=True, slots=True, kw_only=True)
class Aware:
    """The shares behind a release, given its noise; ``naive`` is the released law, which ignores it."""

    reading: Reading
    naive: Naive

    @property
    def mean(self) -> Floats:
        """Expected shares."""
        return self.reading.mean

    def interval(self, level: float = 0.95) -> Floats:
        """Central intervals of the shares, one per row."""
        return np.column_stack(self.reading.interval(level))


@lru_cache(maxsize=16)
def read(made: Hellinger | PosteriorLaplace | PosteriorExponential, released: tuple[float, ...]) -> Aware:
    """The posterior of a release, exact where tables can be listed."""
    naive = Naive(released)
    if not isinstance(made, Hellinger) or candidates.number(made.total, len(made.prior)) ** 2 > 30_000_000:
        return Aware(reading=reading(made, released), naive=naive)
    joint = _joint(made)
    k = candidates.check_counts("posterior", np.subtract(released, made.prior), len(made.prior), made.total)
    tables = joint.laws.rows.all_tables()
    weights = candidates.shares(joint.logs(tuple(k.tolist())))
    exact = Reading(prior=np.asarray(made.prior), total=made.total, counts=tables, weights=weights)
    return Aware(reading=exact, naive=naive)


class Joint:
    """The law of tables and releases together, for a prior that the tables follow."""

    def __init__(self, made: Hellinger) -> None:
        self.laws = Laws.of(made.prior, made.total, made.sharpness, made.smoothing)
        tables = self.laws.rows.all_tables()
        logs = (gammaln(np.add(made.prior, tables)) - gammaln(tables + 1.0)).sum(axis=1)
        exponents, normalisers = np.array([self.laws.exponent(tuple(table)) for table in tables.tolist()]).T
        self._exponents, self._logs = exponents, np.log(candidates.shares(logs)) - normalisers

    def logs(self, k: tuple[int, ...]) -> Floats:
        """Ln P(c, k) for every table c."""
        return np.asarray(self._logs - self._exponents * self.laws.rows.distances(k))  # H is symmetric


_joint = lru_cache(maxsize=4)(Joint)


class Coverage(NamedTuple):
    """How often intervals hold the first share: those of the posterior given the noise, and of the released law."""

    aware: float
    naive: float


def law(x: ArrayLike, *, prior: Prior, epsilon: float, delta: float | None = None, sensitivity: str = "smooth") -> Law:
    """Probability ∝ exp(−ε·H(BI(x), r)/(2S(x))) of every candidate r, by its counts
    Source: [H-full] definition 3; [H-notes] sections 2.1 and 2.2.

    >>> law([2, 2], prior=(1, 1), epsilon=0.8, delta=1e-8)[1, 3]
    0.2068...
    """
    return _law(mechanism(prior, total(x), epsilon, delta, sensitivity), x)


def laplace_law(x: ArrayLike, *, prior: Prior, epsilon: float) -> Law:
    """The law of the baseline that cuts noisy counts to what is left of n, at the scale that costs exactly ε
    Source: [H-abstract] section 5.
    """
    return _law(PosteriorLaplace.at(prior=floats(prior), total=total(x), epsilon=epsilon, unit=UNIT), x)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Released(Shown):
    """A posterior as released: its parameters, and the mechanism that drew them and prices them."""

    released: tuple[float, ...]
    mechanism: Hellinger | PosteriorLaplace | PosteriorExponential

    @property
    def posterior(self) -> Aware:
        """What the release says about the shares, given the noise of its mechanism."""
        return read(self.mechanism, self.released)

    @property
    def naive(self) -> Naive:
        """The released law taken for the posterior, as the papers do: its intervals ignore the noise."""
        return Naive(self.released)

    def _facts(self) -> tuple[str, Facts]:
        laws = {name: f"{shown(law.mean)}, 95 % {shown(law.interval().tolist())}" for name, law in self.laws().items()}
        return f"released {shown(self.released)}", [(name, said.replace("\n", "")) for name, said in laws.items()]

    def plot(self, path: str | Path | None = None) -> Chart:
        """The density of each share, given the noise, and the prior's."""
        names = {cell: f"cell {cell + 1}" for cell in range(len(self.released))}
        return picture("law_picture", self.posterior.reading, names, "a posterior", path=path)

    def laws(self) -> dict[str, Aware | Naive]:
        """Both readings, as far as there are any: that of other distances is not known, and noise may go below 0."""
        known = not isinstance(self.mechanism, PosteriorExponential) or self.mechanism.score == "hellinger"
        aware: dict[str, Aware | Naive] = {"posterior": self.posterior} if known else {}
        return aware | ({"naive": self.naive} if min(self.released) > 0 else {})

    @property
    def loss(self) -> Result[float]:
        """Stated ε, and the exact one where it is known or can be enumerated."""
        made = self.mechanism
        if isinstance(made, Hellinger):
            return _loss(made)
        exact = made.renyi(math.inf) if isinstance(made, PosteriorLaplace) else None
        return Result("A26" if exact is None else "F7", made.renyi(math.inf), exact=exact)


def M_H(
    x: ArrayLike, *, prior: Prior, epsilon: float, delta: float | None = None, sensitivity: str = "smooth",
    distance: str = "hellinger", rng: np.random.Generator | None = None,
) -> Released:  # fmt: skip
    """Draws one posterior by ``law``, of any number of cells and records. Another ``distance`` is "kl".
    Source: [H-full] definition 3; [H-notes] definition 2.1; [H-abstract] section 6 for other distances.

    >>> post = M_H([49, 49], prior=(1, 1), epsilon=0.8, delta=1e-8)
    >>> sum(post.released), post.loss.exact < post.loss.printed
    (100.0, True)
    """
    alpha, n = floats(prior), total(x)
    made: Hellinger | PosteriorExponential
    if distance == "hellinger":
        made = mechanism(prior, n, epsilon, delta, sensitivity)
    else:
        made = PosteriorExponential(prior=alpha, total=n, sharpness=epsilon, score=distance, unit=UNIT)
    return Released(released=tuple(map(float, made.draw(x, rng))), mechanism=made)


def laplace(x: ArrayLike, *, prior: Prior, epsilon: float, rng: np.random.Generator | None = None) -> Released:
    """The baseline with the printed scale: whole noise on all counts but the last. ``loss`` has what it costs.
    Source: [H-full] section 2.
    """
    alpha = floats(prior)
    scale = laplace_scale(epsilon=epsilon, m=len(alpha)).printed
    made = PosteriorLaplace(prior=alpha, total=total(x), scale=scale, truncated=False, unit=UNIT)
    return Released(released=tuple(map(float, made.draw(x, rng))), mechanism=made)


def posterior(
    released: Prior, *, prior: Prior, epsilon: float, delta: float | None = None, sensitivity: str = "smooth"
) -> Aware:
    """P(counts | released) ∝ P(released | counts)·DirichletMultinomial(counts | prior), for parameters drawn by M_H
    Source: our reading of [H-full] definition 3; the papers take what is released for the posterior.
    """
    alpha, values = floats(prior), floats(released)
    n = round(math.fsum(values) - math.fsum(alpha))
    return read(mechanism(alpha, n, epsilon, delta, sensitivity), values)


def coverage(
    *, prior: Prior, n: int, epsilon: float, delta: float | None = None, sensitivity: str = "smooth"
) -> Coverage:
    """How often 95 % intervals of the first share hold it, exactly, for shares that follow the prior.
    Source: our reading of [H-full] definition 3; the papers take what is released for the posterior.
    """
    made, level = mechanism(prior, n, epsilon, delta, sensitivity), 0.95
    joint = _joint(made)
    tables = joint.laws.rows.all_tables()
    both = np.array([np.bincount(tables[:, 0], np.exp(joint.logs(tuple(k)))) for k in tables.tolist()])  # of k and c₁
    mass, whole = both.sum(axis=1), made.total + math.fsum(made.prior)
    a = made.prior[0] + np.arange(made.total + 1.0)
    grid = np.linspace(0.0, 1.0, 801)
    chances = both @ betainc(a[:, None], whole - a[:, None], grid) / mass[:, None]

    def below(x: Floats) -> Floats:
        return np.asarray((both * betainc(a, whole - a, x[:, None])).sum(axis=1))

    def quantile(tail: float) -> Floats:
        at, rows = np.clip((chances < tail).sum(axis=1), 1, grid.size - 1), np.arange(len(tables))
        low, high, start, end = grid[at - 1], grid[at], chances[rows, at - 1], chances[rows, at]
        for _ in range(3):
            x = low + (tail - start) / (end - start) * (high - low)
            chance = below(x) / mass
            left = chance < tail
            low, start = np.where(left, x, low), np.where(left, chance, start)
            high, end = np.where(left, high, x), np.where(left, end, chance)
        return np.asarray(x)

    released = np.array([Naive(tuple(np.add(made.prior, k))).interval(level)[0] for k in tables]).T
    ends = [quantile(0.5 * (1.0 - level)), quantile(0.5 * (1.0 + level))]
    aware, naive = (float((below(upper) - below(lower)).sum()) for lower, upper in (ends, released))
    return Coverage(aware, naive)


@states("N25 A3 A23 A24 N22")
def expected_H(
    x: ArrayLike, *, prior: Prior, epsilon: float, delta: float | None = None, sensitivity: str = "smooth"
) -> Result[float]:
    """E[H(BI(x), r)] of one release: a sum over all candidates where they can be listed, else over draws
    Source: [H-notes] section 4.2; the open questions of [H-abstract] sections 1 and 6.
    """
    made = expected(mechanism(prior, total(x), epsilon, delta, sensitivity), x)
    return found(made.hellinger, None if made.draws else made.hellinger, standard_error=made.standard_error)


@states("F30 F29 N18", c=positive)
def accuracy(
    x: ArrayLike, *, c: float, prior: Prior, epsilon: float, delta: float | None = None, sensitivity: str = "smooth"
) -> Result[float]:
    """P[H ≥ c] ≤ |R|·e^(−εc/(2S)), and the exact probability
    Source: [H-full] lemma 4.6, in its proof; [H-notes] lemma 2.2.
    """
    made = mechanism(prior, total(x), epsilon, delta, sensitivity)
    scores, shares = _scored(made, x)
    return found(math.exp(made.log_candidates - made.exponent(x) * c), float(shares[scores <= -c].sum()))


@states("N29 N30")
def steps(
    x: ArrayLike, *, prior: Prior, epsilon: float, delta: float | None = None, sensitivity: str = "smooth"
) -> Result[Floats]:
    """P[a release is t steps away], t = 0 … n; a step moves one record. Equal steps are not equal distances
    Source: [H-notes] section 4.4.
    """
    return equal(step_probabilities(mechanism(prior, total(x), epsilon, delta, sensitivity), x))


def loss(
    *, prior: Prior, n: int, epsilon: float, delta: float | None = None, sensitivity: str = "smooth"
) -> Result[float]:
    """The stated ε (∞ for local sensitivity), and exactly the largest log ratio over all neighbours and candidates
    Source: [H-full] definition 1, lemma 4.7 and section 4.1; [H-notes] sections 2.1 and 2.2.

    >>> loss(prior=(1, 1), n=20, epsilon=0.8, sensitivity="global").exact
    0.478735...
    """
    return _loss(mechanism(prior, n, epsilon, delta, sensitivity))


@states("F4 N19", epsilon_at=non_negative)
def delta(
    epsilon_at: float, *, prior: Prior, n: int, epsilon: float, delta: float | None = None, sensitivity: str = "smooth"
) -> Result[float]:
    """δ(ε) = max Σ (P − e^ε·P′)₊ over all neighbours
    Source: [H-full] definition 2; [H-notes] lemma 2.3.
    """
    return equal(_worst(mechanism(prior, n, epsilon, delta, sensitivity), _hockey_stick(epsilon_at)))


@states("N7")
def renyi(
    order: float, *, prior: Prior, n: int, epsilon: float, delta: float | None = None, sensitivity: str = "smooth"
) -> Result[float]:
    """D_λ = max ln Σ P^λ·P′^(1−λ)/(λ−1) over all neighbours, λ order
    Source: [H-notes] section 2.1 for the laws; [RDP] definition 2.2.
    """
    made = mechanism(prior, n, epsilon, delta, sensitivity)
    less = order - 1.0
    return equal(_worst(made, lambda p, q: math.log(float(np.exp(order * p - less * q).sum())) / less))


@states("F22 N16", delta_prime=checks.probability)
def lemma_4_1(
    x: ArrayLike, *, score: float, shift: float, prior: Prior, epsilon: float, delta: float, delta_prime: float
) -> Result[float]:
    """P[u = ŝ] ≤ e^(ε/2)·P[u = ŝ + t] + δ′/2 for a shift t ≥ −S(x): false, as ŝ + t may be nobody's score
    It holds for weights: ``weights`` is the ratio of e^(εu/(2S)) at ŝ and at ŝ + t. Lemma 4.6 says it of ŝ and e^λ·ŝ.
    Source: [H-full] lemma 4.1; [H-notes] lemma 2.1.
    """
    made = mechanism(prior, total(x), epsilon, delta, "smooth")
    a = made.exponent(x)
    if not shift >= -0.5 * epsilon / a:
        raise InvalidArgument("lemma_4_1: expected a shift of at least −S(x), the smooth sensitivity.")
    scores, shares = _scored(made, x)
    left, right = (float(shares[np.isclose(scores, at, rtol=0, atol=1e-12)].sum()) for at in (score, score + shift))
    bound = math.exp(0.5 * epsilon) * right + 0.5 * delta_prime
    return found(bound, left, valid=left <= bound, weights=math.exp(-a * shift))


def mechanism(prior: Prior, n: int, epsilon: float, delta: float | None, sensitivity: str) -> Hellinger:
    """M_H with one of its three sensitivities."""
    checks.one_of("M_H", ("smooth", "global", "local"), sensitivity=sensitivity)
    alpha = floats(prior)
    if sensitivity != "smooth":
        make = calibration.with_global if sensitivity == "global" else calibration.with_local
        return make(prior=alpha, total=n, epsilon=epsilon, unit=UNIT)
    if delta is None:
        raise InvalidArgument("M_H: the smooth sensitivity needs a δ. State one, or take sensitivity='global'.")
    return calibration.published(prior=alpha, total=n, epsilon=epsilon, delta=delta, unit=UNIT)


def _law(made: Hellinger | PosteriorLaplace, x: ArrayLike) -> Law:
    tables, shares = made.law(x)
    return dict(zip(map(tuple, tables.tolist()), shares.tolist(), strict=True))


def _scored(made: Hellinger, x: ArrayLike) -> tuple[Floats, Floats]:
    """The score of every candidate, and its probability."""
    tables, shares = made.law(x)
    return -distances.hellinger(np.add(made.prior, tables), np.add(made.prior, x)), shares


def _loss(made: Hellinger) -> Result[float]:
    """Stated and exact; the statement holds if the exact ε does, or the exact δ at the stated ε."""
    local = made.calibration == "none"
    stated, allowed = math.inf if local else made.sharpness, made.delta_published or 0.0
    rows = "F21 N10" if local else "F3 F20 N7" if made.smoothing == 0 else "A15 F32 N19"
    if not affordable(made.prior, made.total):
        return Result(rows, stated)
    exact = _worst(made, lambda p, q: float((p - q).max()))
    holds = exact <= stated or _worst(made, _hockey_stick(stated)) <= allowed
    return Result(rows, stated, exact=exact, valid=holds)


def _hockey_stick(epsilon: float) -> Pairwise:
    return lambda p, q: float(np.maximum(np.exp(p) - np.exp(epsilon + q), 0.0).sum())


def _worst(made: Hellinger, of: Pairwise) -> float:
    """The largest value over all neighbours, both ways, of the logarithms of their laws."""
    if not affordable(made.prior, made.total):
        raise InvalidArgument("M_H: too many tables to enumerate in a minute. Take fewer records or cells.")
    laws = Laws.of(made.prior, made.total, made.sharpness, made.smoothing)
    pairs = ((table, other) for table in laws.rows.tables() for other in laws.rows.neighbours(table))
    logs = ((laws.probabilities(table)[0], laws.probabilities(other)[0]) for table, other in pairs)
    return max(max(of(p, q), of(q, p)) for p, q in logs)
