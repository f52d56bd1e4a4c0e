"""M_H itself: its law, one release, what it costs and how far it goes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpbayes import _checks
from dpbayes._checks import Floats
from dpbayes.errors import InvalidArgument
from dpbayes.mechanisms.hellinger import calibration
from dpbayes.mechanisms.hellinger import distance as distances
from dpbayes.mechanisms.hellinger.accuracy import expected, step_probabilities
from dpbayes.mechanisms.hellinger.certificate import affordable
from dpbayes.mechanisms.hellinger.exponential import PosteriorExponential
from dpbayes.mechanisms.hellinger.laws import Laws
from dpbayes.mechanisms.hellinger.mechanism import Hellinger
from dpbayes.mechanisms.posterior_laplace import PosteriorLaplace
from dpbayes.papers.hellinger.scores import UNIT, Prior, laplace_scale, total
from dpbayes.papers.result import Result

Law = dict[tuple[int, ...], float]
Pairwise = Callable[[Floats, Floats], float]

SENSITIVITIES = ("smooth", "global", "local")


def law(x: ArrayLike, *, prior: Prior, epsilon: float, delta: float | None = None, sensitivity: str = "smooth") -> Law:
    """Probability ∝ exp(−ε·H(BI(x), r)/(2S(x))) of every candidate r, by its counts

    Symbols: ε epsilon, H Hellinger distance, S the sensitivity.
    Source: [H-full] definition 3; [H-notes] sections 2.1 and 2.2.
    Adjacency: replace-one.

    >>> law([2, 2], prior=(1, 1), epsilon=0.8, delta=1e-8)[1, 3]
    0.2068...
    """
    return _law(_mechanism(prior, total(x), epsilon, delta, sensitivity), x)


def laplace_law(x: ArrayLike, *, prior: Prior, epsilon: float) -> Law:
    """The law of the baseline that cuts noisy counts to what is left of n, at the scale that costs exactly ε

    Symbols: ε epsilon, n records.
    Source: [H-abstract] section 5.
    Adjacency: replace-one.
    """
    made = PosteriorLaplace.at(prior=tuple(prior), total=total(x), epsilon=epsilon, unit=UNIT)
    return _law(made, x)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A posterior as released: ``released`` its parameters, ``naive`` what they say if the noise is ignored.

    ``mechanism`` is what drew it and prices it, ``loss`` what it costs.
    """

    released: tuple[float, ...]
    mechanism: Hellinger | PosteriorLaplace | PosteriorExponential

    @property
    def naive(self) -> Naive:
        """The released law taken for the posterior, as the papers do: its intervals ignore the mechanism's noise."""
        return Naive(self.released)

    @property
    def loss(self) -> Result[float]:
        """Stated ε, and the exact one where it can be enumerated."""
        made = self.mechanism
        if isinstance(made, Hellinger):
            return _loss(made)
        return Result("F7" if isinstance(made, PosteriorLaplace) else "A26", made.renyi(math.inf))


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
        from scipy.special import betaincinv

        _checks.probability("interval", level=level)
        values, tail = np.asarray(self.parameters), 0.5 * (1.0 - level)
        ends = (betaincinv(values, values.sum() - values, at) for at in (tail, 1.0 - tail))
        return np.column_stack([*ends])


def M_H(
    x: ArrayLike,
    *,
    prior: Prior,
    epsilon: float,
    delta: float | None = None,
    sensitivity: str = "smooth",
    distance: str = "hellinger",
    rng: np.random.Generator | None = None,
) -> Release:
    """Draws one posterior by ``law``, of any number of cells and records. Another ``distance`` is "kl".

    Source: [H-full] definition 3; [H-notes] definition 2.1; [H-abstract] section 6 for other distances.

    >>> post = M_H([49, 49], prior=(1, 1), epsilon=0.8, delta=1e-8)
    >>> sum(post.released)
    100.0
    >>> post.loss.exact < post.loss.printed
    True
    """
    alpha, n = tuple(map(float, prior)), total(x)
    made: Hellinger | PosteriorExponential
    if distance == "hellinger":
        made = _mechanism(prior, n, epsilon, delta, sensitivity)
    else:
        made = PosteriorExponential(prior=alpha, total=n, sharpness=epsilon, score=distance, unit=UNIT)
    return Release(released=tuple(map(float, made.draw(x, rng))), mechanism=made)


def expected_H(
    x: ArrayLike, *, prior: Prior, epsilon: float, delta: float | None = None, sensitivity: str = "smooth"
) -> Result[float]:
    """E[H(BI(x), r)] of one release: a sum over all candidates where they can be listed, else over draws

    Symbols: H Hellinger distance, r released.
    Source: [H-notes] section 4.2; the open questions of [H-abstract] sections 1 and 6.
    Adjacency: none, this is about one table.
    """
    found = expected(_mechanism(prior, total(x), epsilon, delta, sensitivity), x)
    exact = None if found.draws else found.hellinger
    return Result("N25 A3 A23 A24 N22", found.hellinger, exact=exact, parts={"standard_error": found.standard_error})


def accuracy(
    x: ArrayLike, *, c: float, prior: Prior, epsilon: float, delta: float | None = None, sensitivity: str = "smooth"
) -> Result[float]:
    """P[H ≥ c] ≤ |R|·e^(−εc/(2S)), and the exact probability

    Symbols: c a distance, |R| number of candidates, ε epsilon, S the sensitivity.
    Source: [H-full] lemma 4.6, in its proof; [H-notes] lemma 2.2.
    Adjacency: none, this is about one table.
    """
    _checks.positive("accuracy", c=c)
    made = _mechanism(prior, total(x), epsilon, delta, sensitivity)
    tables, shares = made.law(x)
    far = distances.hellinger(np.add(made.prior, tables), np.add(made.prior, x)) >= c
    bound = math.exp(made.log_candidates - made.exponent(x) * c)
    return Result("F30 F29 N18", bound, exact=float(shares[far].sum()))


def steps(
    x: ArrayLike, *, prior: Prior, epsilon: float, delta: float | None = None, sensitivity: str = "smooth"
) -> Result[Floats]:
    """P[a release is t steps away], t = 0 … n; a step moves one record. Equal steps are not equal distances

    Symbols: n records.
    Source: [H-notes] section 4.4.
    Adjacency: none, this is about one table.
    """
    value = step_probabilities(_mechanism(prior, total(x), epsilon, delta, sensitivity), x)
    return Result("N29 N30", value, exact=value)


def loss(
    *, prior: Prior, n: int, epsilon: float, delta: float | None = None, sensitivity: str = "smooth"
) -> Result[float]:
    """The stated ε, and the exact one: the largest log ratio of two laws of M_H, over all neighbours and candidates

    Local sensitivity promises nothing, so that there its stated ε is infinite.

    Symbols: ε epsilon, n records.
    Source: [H-full] definition 1, lemma 4.7 and section 4.1; [H-notes] sections 2.1 and 2.2.
    Adjacency: replace-one.

    >>> loss(prior=(1, 1), n=20, epsilon=0.8, sensitivity="global").exact
    0.478735...
    """
    return _loss(_mechanism(prior, n, epsilon, delta, sensitivity))


def delta(
    epsilon_at: float,
    *,
    prior: Prior,
    n: int,
    epsilon: float,
    delta: float | None = None,
    sensitivity: str = "smooth",
) -> float:
    """The exact δ(ε) = max Σ (P − e^ε·P′)₊ of M_H over all neighbours

    Symbols: ε epsilon_at, P and P′ the laws for two neighbours.
    Source: [H-full] definition 2; [H-notes] lemma 2.3.
    Adjacency: replace-one.
    """
    _checks.non_negative("delta", epsilon_at=epsilon_at)
    made = _mechanism(prior, n, epsilon, delta, sensitivity)
    return _worst(made, _hockey_stick(epsilon_at))


def renyi(
    order: float, *, prior: Prior, n: int, epsilon: float, delta: float | None = None, sensitivity: str = "smooth"
) -> float:
    """The exact D_λ = max ln Σ P^λ·P′^(1−λ)/(λ−1) of M_H over all neighbours

    Symbols: λ order, P and P′ the laws for two neighbours.
    Source: [H-notes] section 2.1 for the laws; [RDP] definition 2.2.
    Adjacency: replace-one.
    """
    _checks.order("renyi", order)
    made = _mechanism(prior, n, epsilon, delta, sensitivity)
    return _worst(made, lambda p, q: math.log(np.exp(order * p + (1.0 - order) * q).sum()) / (order - 1.0))


def laplace(x: ArrayLike, *, prior: Prior, epsilon: float, rng: np.random.Generator | None = None) -> Release:
    """The baseline with the printed scale, whole noise on all counts but the last; ``loss`` has what it costs.

    Source: [H-full] section 2.
    """
    scale = laplace_scale(epsilon=epsilon, m=len(prior)).printed
    made = PosteriorLaplace(prior=tuple(prior), total=total(x), scale=scale, truncated=False, unit=UNIT)
    return Release(released=tuple(map(float, made.draw(x, rng))), mechanism=made)


def lemma_4_1(
    x: ArrayLike, *, score: float, shift: float, prior: Prior, epsilon: float, delta: float, delta_prime: float
) -> Result[float]:
    """P[u = ŝ] ≤ e^(ε/2)·P[u = ŝ + t] + δ′/2 for t ≥ −S(x): false, as ŝ + t may be nobody's score

    It holds for the weights: ``weights`` is the ratio of e^(εu/(2S)) at ŝ and at ŝ + t, at most e^(ε/2). Lemma 4.6
    says the same of ŝ and e^λ·ŝ.

    Symbols: u = −H the score, ŝ score, t shift, δ′ delta_prime, S smooth sensitivity.
    Source: [H-full] lemma 4.1; [H-notes] lemma 2.1.
    Adjacency: none, this is about one table.

    >>> sliding = lemma_4_1([10, 10], score=0, shift=0.01, prior=(1, 1), epsilon=0.8, delta=1e-8, delta_prime=0.01)
    >>> sliding.printed, round(sliding.exact, 3)
    (0.005, 0.103)
    """
    made = _mechanism(prior, total(x), epsilon, delta, "smooth")
    a = made.exponent(x)
    if not shift >= -0.5 * epsilon / a:
        raise InvalidArgument("lemma_4_1: expected a shift of at least −S(x), the smooth sensitivity.")
    tables, shares = made.law(x)
    scores = -distances.hellinger(np.add(made.prior, tables), np.add(made.prior, x))
    left, right = (float(shares[np.isclose(scores, at, rtol=0, atol=1e-12)].sum()) for at in (score, score + shift))
    bound = math.exp(0.5 * epsilon) * right + 0.5 * delta_prime
    return Result("F22 N16", bound, exact=left, valid=left <= bound, parts={"weights": math.exp(-a * shift)})


def _mechanism(prior: Prior, n: int, epsilon: float, delta: float | None, sensitivity: str) -> Hellinger:
    """M_H with one of its three sensitivities."""
    _checks.one_of("M_H", SENSITIVITIES, sensitivity=sensitivity)
    parameters = tuple(map(float, prior))
    if sensitivity == "global":
        return calibration.with_global(prior=parameters, total=n, epsilon=epsilon, unit=UNIT)
    if sensitivity == "local":
        return calibration.with_local(prior=parameters, total=n, epsilon=epsilon, unit=UNIT)
    if delta is None:
        raise InvalidArgument("M_H: the smooth sensitivity needs a δ. State one, or take sensitivity='global'.")
    return calibration.published(prior=parameters, total=n, epsilon=epsilon, delta=delta, unit=UNIT)


def _law(made: Hellinger | PosteriorLaplace, x: ArrayLike) -> Law:
    tables, shares = made.law(x)
    return dict(zip(map(tuple, tables.tolist()), shares.tolist(), strict=True))


def _loss(made: Hellinger) -> Result[float]:
    """Stated and exact; the statement holds if the exact ε does, or the exact δ at the stated ε."""
    if not affordable(made.prior, made.total):
        return Result("F3 F20 N7", made.promise.epsilon(made.delta_published or 0.5))
    exact = _worst(made, lambda p, q: float((p - q).max()))
    if made.calibration == "none":
        return Result("F21 N10", math.inf, exact=exact)
    stated, allowed = made.sharpness, made.delta_published
    holds = exact <= stated or (allowed is not None and _worst(made, _hockey_stick(stated)) <= allowed)
    return Result("F3 F32 F20 A15 N7 N19", stated, exact=exact, valid=holds)


def _hockey_stick(epsilon: float) -> Pairwise:
    return lambda p, q: float(np.maximum(np.exp(p) - np.exp(epsilon + q), 0.0).sum())


def _worst(made: Hellinger, of: Pairwise) -> float:
    """The largest value over all neighbours, both ways, of the logarithms of their laws."""
    if not affordable(made.prior, made.total):
        raise InvalidArgument("M_H: too many tables to enumerate in a minute. Take fewer records or cells.")
    laws = Laws.of(made.prior, made.total, made.sharpness, made.smoothing)
    worst = 0.0
    for table in laws.rows.tables():
        for other in laws.rows.neighbours(table):
            p, q = laws.probabilities(table)[0], laws.probabilities(other)[0]
            worst = max(worst, of(p, q), of(q, p))
    return worst
