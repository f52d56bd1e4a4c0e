"""What the Hellinger papers compute without drawing: distances, candidates, sensitivities, γ, the radius of noise."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dpbayes import _checks
from dpbayes._checks import Floats
from dpbayes.domain.unit import Adjacency, PrivacyUnit
from dpbayes.errors import InvalidArgument
from dpbayes.mechanisms.hellinger import candidates, distance
from dpbayes.mechanisms.hellinger.laws import Rows, Sensitivities
from dpbayes.mechanisms.hellinger.mechanism import published_smoothing
from dpbayes.mechanisms.hellinger.promise import SmoothTail
from dpbayes.mechanisms.hellinger.sensitivity import global_sensitivity, local_sensitivity, smooth_sensitivity
from dpbayes.mechanisms.posterior_laplace import PosteriorLaplace
from dpbayes.papers.result import Result

Prior = Sequence[float]

UNIT = PrivacyUnit(adjacency=Adjacency.REPLACE_ONE)


def BI(x: ArrayLike, *, prior: Prior) -> Result[Floats]:
    """The posterior's parameters, prior + x.

    Source: [H-full] section 1; [H-abstract] section 2; [H-notes] section 1.

    >>> float(BI([49, 49], prior=(1, 1))[0])
    50.0
    """
    candidates.check_prior("BI", tuple(prior))
    value = np.asarray(prior, np.float64) + candidates.check_counts("BI", x, len(prior), total(x))
    return Result("F1 A4 A5 N1", value, exact=value)


def density(theta: ArrayLike, *, parameters: Prior) -> Result[float]:
    """Π θ_i^(α_i − 1)/B(α), exact; printed, for the beta law and in the notes, with exponents α_i

    Symbols: α parameters, B the multivariate beta function.
    Source: [H-full] section 1; [H-notes] section 1.
    Adjacency: none.

    >>> round(density([0.3, 0.7], parameters=(2, 1)).exact, 12)
    0.6
    """
    from scipy.special import gammaln, xlogy

    alpha, point = np.asarray(parameters, np.float64), np.asarray(theta, np.float64)
    candidates.check_prior("density", tuple(alpha))
    if point.shape != alpha.shape or (point < 0).any() or not math.isclose(float(point.sum()), 1.0):
        raise InvalidArgument(f"density: expected {alpha.size} shares that sum to 1.")
    log_beta = gammaln(alpha).sum() - gammaln(alpha.sum())
    exact = float(np.exp(xlogy(alpha - 1.0, point).sum() - log_beta))
    return Result("F2 N2", exact * float(point.prod()), exact=exact, valid=False)


def H(u: ArrayLike, v: ArrayLike) -> Result[float]:
    """The Hellinger distance of two Dirichlet laws.

    Source: [H-full] sections 2 and 3.1.

    >>> round(float(H([7, 4, 5], [8, 3, 5])), 12)
    0.239992747797
    """
    value = float(distance.hellinger(u, v))
    return Result("F9 F16 A1 A8 N4", value, exact=value)


def kl(u: ArrayLike, v: ArrayLike) -> Result[float]:
    """KL of two Dirichlet laws. Source: [H-abstract] abstract."""
    value = float(distance.kl(u, v))
    return Result("A1", value, exact=value)


def chi_squared(u: ArrayLike, v: ArrayLike) -> Result[float]:
    """χ² of two Dirichlet laws, infinite unless 2u − v > 0. Source: [H-abstract] abstract."""
    value = float(distance.chi_squared(u, v))
    return Result("A1", value, exact=value)


def tv_bounds(u: ArrayLike, v: ArrayLike) -> Result[float]:
    """``lower`` and ``upper`` bound the total variation by H; exact for two cells of equal sums.

    Source: [H-full] section 2; [H-abstract] section 3.

    >>> round(tv_bounds([5, 5], [3, 7]).upper, 6)
    0.612372
    """
    lower, upper = (float(bound) for bound in distance.total_variation_bounds(u, v))
    closed = np.size(u) == 2 and np.sum(u) == np.sum(v)
    exact = float(distance.beta_total_variation(u, v)) if closed else None
    return Result("F10 A1", upper, exact=exact, parts={"lower": lower, "upper": upper})


def R_post(n: int, m: int) -> Result[int]:
    """C(n+m−1, m−1) posteriors can be released; printed C(n+1, m−1), which is right for two cells only

    Symbols: n records, m cells.
    Source: [H-full] section 3.1; [H-abstract] section 4.
    Adjacency: replace-one, where n is public.

    >>> R_post(10, 3).printed, R_post(10, 3).exact
    (55, 66)
    """
    _checks.positive_integer("R_post", n=n, m=m)
    printed, exact = math.comb(n + 1, m - 1), candidates.number(n, m)
    return Result("F18 F12 A10 A14 N3 N11", printed, exact=exact, valid=printed == exact)


def LS(x: ArrayLike, *, prior: Prior) -> Result[float]:
    """The local sensitivity of the score: H(BI(x), BI(y)) for the worst neighbour y of x, as r = BI(x) is the worst r.

    Source: [H-full] section 3.1; [H-notes] sections 2.2 and 4.1.
    """
    value = local_sensitivity(tuple(map(float, prior)), x)
    return Result("F15 A13 N9 N23", value, exact=value)


def GS(*, prior: Prior, n: int) -> Result[float]:
    """The largest LS of a table of n records. Source: [H-notes] section 2.1."""
    value = global_sensitivity(tuple(map(float, prior)), n)
    return Result("N6", value, exact=value)


def S(x: ArrayLike, *, prior: Prior, gamma: float) -> Result[float]:
    """Max over x′ of LS(x′)·e^(−γ·d(x, x′)), the smooth sensitivity, d the number of records that differ

    Printed for three cells and more: x′ is x or a neighbour of it. ``l1`` takes the ℓ₁ distance of the histograms for
    d, as [H-abstract] prints, which is 2d. ``notes`` has LS(x) in place of LS(x′), so that nothing is smoothed.

    Symbols: γ gamma, LS local sensitivity.
    Source: [H-full] equation (1), section 3.1; [H-abstract] equation (1); [H-notes] definition 2.1.
    Adjacency: replace-one.

    >>> S([2, 2, 2], prior=(1, 1, 1), gamma=0.05)
    [H-full] ...: printed 0.368141, which does not hold, exact 0.398724, ...
    """
    alpha, table = tuple(map(float, prior)), _checks.counts("S", x)
    exact = printed = smooth_sensitivity(alpha, table, gamma)
    local = local_sensitivity(alpha, table)
    if len(alpha) > 2:
        near = max(local_sensitivity(alpha, other) for other in candidates.neighbours(table.tolist()))
        printed = max(local, math.exp(-gamma) * near)
    parts = {"l1": smooth_sensitivity(alpha, table, 2.0 * gamma), "notes": local}
    return Result("F14 F17 A12 A14 N13", printed, exact=exact, valid=printed == exact, parts=parts)


def gamma(*, epsilon: float, delta: float, n: int, m: int = 2) -> Result[float]:
    """γ with |R| of each document: ``abstract`` n+1, ``full`` C(n+1, m−1), ``notes_caption`` n, exact C(n+m−1, m−1).

    Source: [H-full] section 3.1; [H-abstract] theorem 4.1; [H-notes] section 2.3.1 and figure 3.
    """
    size = R_post(n, m)
    numbers = (n + 1, size.printed, n, candidates.number(n, m))
    abstract, full, caption, exact = (published_smoothing(epsilon, delta, math.log(number)) for number in numbers)
    parts = {"abstract": abstract, "full": full, "notes_caption": caption}
    return Result("F19 N15 N27 N28", full, exact=exact, valid=size.valid, parts=parts)


def theorem_4_1(*, epsilon: float, delta: float, n: int, m: int = 2) -> Result[float]:
    """γ with which M_H is said to be (ε, δ)-DP: printed with n+1 candidates for any number of cells.

    Source: [H-abstract] theorem 4.1.
    """
    found = gamma(epsilon=epsilon, delta=delta, n=n, m=m)
    return Result("A15", found.abstract, exact=found.exact, valid=m == 2)


def laplace_scale(*, epsilon: float, m: int = 2) -> Result[float]:
    """Printed 2/ε. With two cells one number carries noise and moves by 1, so that 1/ε costs ε already.

    Source: [H-full] section 2; [H-abstract] section 3.
    """
    _checks.positive_integer("laplace_scale", m=m)
    fair = PosteriorLaplace.at(prior=(1.0,) * m, total=1, epsilon=epsilon, unit=UNIT)
    return Result("F7 A6", 2.0 / epsilon, exact=fair.scale)


def laplace_radius(*, m: int, epsilon: float, gamma: float) -> Result[float]:
    """T = (2/ε)·ln(m/γ) bounds the noise in ℓ∞ (``linf``) and m·t in ℓ₁ (``l1``), but with probability γ

    In ℓ∞ that probability is 1 − (1 − γ/m)^m exactly. The first display of the notes has |x| where its proof has m.

    Symbols: m cells, ε epsilon, γ gamma.
    Source: [H-notes] section 3.1.
    Adjacency: one replaced record, which moves two parameters by one each.
    """
    _checks.positive_integer("laplace_radius", m=m)
    _checks.positive("laplace_radius", epsilon=epsilon)
    _checks.probability("laplace_radius", gamma=gamma)
    t = 2.0 / epsilon * math.log(m / gamma)
    return Result("N21 N20 F8 A7", gamma, exact=1.0 - (1.0 - gamma / m) ** m, parts={"linf": t, "l1": m * t})


def proved_epsilon(*, prior: Prior, n: int, epsilon: float, gamma: float, delta: float) -> float:
    """ε + (e^γ − 1)·ln(|R|/δ) + γ·ln|R|, what the papers' proof gives once the normalisers are in it

    The mechanism itself states a little less (``SmoothTail.epsilon``), or the pure bound.

    Symbols: ε epsilon, γ gamma, |R| number of candidates.
    Source: our proof, docs/explanation/proofs/hellinger.md.
    Adjacency: replace-one.
    """
    _checks.probability("proved_epsilon", delta=delta)
    logs = candidates.log_number(n, len(prior))
    tail = SmoothTail(sharpness=epsilon, smoothing=gamma, log_candidates=logs)
    return tail.base + tail.growth * (logs - math.log(delta))


def pure_epsilon(*, prior: Prior, n: int, epsilon: float, gamma: float) -> float:
    """ε·(1 + (e^γ − 1)/S_min), a pure guarantee that does not grow with the number of candidates

    The mechanism itself states a little less (``mechanisms.hellinger.pure``), and needs no list of tables.

    Symbols: ε epsilon, γ gamma, S_min the least smooth sensitivity of a table.
    Source: our proof, docs/explanation/proofs/hellinger.md.
    Adjacency: replace-one.
    """
    rows = Rows(tuple(map(float, prior)), n)
    sensitivities = Sensitivities(rows, gamma)
    least = min(sensitivities(rows.canonical(table)) for table in rows.tables())
    return epsilon * (1.0 + math.expm1(gamma) / least)


def total(x: ArrayLike) -> int:
    """The records of a table."""
    return int(_checks.counts("M_H", x).sum())
