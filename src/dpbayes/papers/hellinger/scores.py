"""What the Hellinger papers compute without drawing: distances, candidates, sensitivities, γ, noise, and ties.

[H-full] section 4 asks which candidates have one score: as printed, and what is true instead. Its parameters are those
of posteriors, so that all have the same sum. Neighbours differ in one replaced record.

Symbols: x counts, n records, m cells, u and v Dirichlet parameters, BI(x) the posterior, H the Hellinger distance, |R|
the number of candidates, ε epsilon, δ delta, γ gamma.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike

from dpbayes.base import checks
from dpbayes.base.checks import Floats, non_negative, probability
from dpbayes.base.errors import InvalidArgument
from dpbayes.hellinger import candidates, distance
from dpbayes.hellinger.baselines import PosteriorLaplace
from dpbayes.hellinger.distance import Rows, Sensitivities
from dpbayes.hellinger.mechanism import published_smoothing
from dpbayes.hellinger.promise import SmoothTail
from dpbayes.hellinger.sensitivity import global_sensitivity, local_sensitivity, smooth_sensitivity
from dpbayes.papers import tcdp
from dpbayes.papers.checked import equal, found, states, up_to
from dpbayes.papers.checked import prior as one_or_each
from dpbayes.papers.result import Result
from dpbayes.schema.unit import Adjacency, Unit

__all__ = [
    "BI", "GS", "LS", "H", "R_post", "S", "chi_squared", "density", "gamma", "kl", "laplace_radius", "laplace_scale",
    "lemma_4_6", "lemma_4_7", "proved_epsilon", "pure_epsilon", "theorem_4_1", "theorem_4_2", "theorem_4_3",
    "theorem_4_4", "theorem_4_5", "ties", "tv_bounds",
]  # fmt: skip

Prior = Sequence[float]

UNIT = Unit(adjacency=Adjacency.REPLACE_ONE)


def floats(prior: Prior) -> tuple[float, ...]:
    """A prior as the mechanisms keep it."""
    try:
        alpha = tuple(float(value) for value in prior)
    except (TypeError, ValueError):
        raise InvalidArgument("M_H: expected a prior with one number per cell.") from None
    candidates.check_prior("M_H", alpha)
    return alpha


def total(x: ArrayLike) -> int:
    """The records of a table."""
    return int(checks.counts("M_H", x).sum())


@states("F1 A4 A5 N1")
def BI(x: ArrayLike, *, prior: Prior) -> Result[Floats]:
    """The posterior's parameters, prior + x
    Source: [H-full] section 1; [H-abstract] section 2; [H-notes] section 1.

    >>> float(BI([49, 49], prior=(1, 1))[0])
    50.0
    """
    alpha = floats(prior)
    return equal(np.asarray(alpha) + candidates.check_counts("BI", x, len(alpha), total(x)))


@states("F2 N2")
def density(theta: ArrayLike, *, parameters: Prior) -> Result[float]:
    """Π θ_i^(α_i − 1)/B(α), exact; printed, for the beta law and in the notes, with exponents α_i
    Source: [H-full] section 1; [H-notes] section 1.
    """
    exact = float(tcdp.density(theta, alpha=parameters))
    printed = exact * float(np.asarray(theta, np.float64).prod())
    return found(printed, exact, valid=printed == exact)


@states("F9 F16 A1 A8 N4")
def H(u: ArrayLike, v: ArrayLike) -> Result[float]:
    """√(1 − B((u+v)/2)/√(B(u)·B(v))), the Hellinger distance of two Dirichlet laws
    Source: [H-full] sections 2 and 3.1.

    >>> round(float(H([7, 4, 5], [8, 3, 5])), 12)
    0.239992747797
    """
    return equal(float(distance.hellinger(u, v)))


@states("A1")
def kl(u: ArrayLike, v: ArrayLike) -> Result[float]:
    """KL of two Dirichlet laws
    Source: [H-abstract] abstract.
    """
    return equal(float(distance.kl(u, v)))


@states("A1")
def chi_squared(u: ArrayLike, v: ArrayLike) -> Result[float]:
    """χ² of two Dirichlet laws, ∞ unless 2u − v > 0
    Source: [H-abstract] abstract.
    """
    return equal(float(distance.chi_squared(u, v)))


@states("F10 A1")
def tv_bounds(u: ArrayLike, v: ArrayLike) -> Result[float]:
    """H² ≤ TV ≤ H·√(2 − H²), ``lower`` and ``upper``; exact for two cells of equal sums
    Source: [H-full] section 2; [H-abstract] section 3.
    """
    lower, upper = (float(bound) for bound in distance.total_variation_bounds(u, v))
    closed = np.size(u) == 2 and np.sum(u) == np.sum(v)
    return found(upper, float(distance.beta_total_variation(u, v)) if closed else None, lower=lower, upper=upper)


@states("F18 F12 A10 A14 N3 N11", n=checks.positive_integer, m=up_to(10_000))
def R_post(n: int, m: int) -> Result[int]:
    """C(n+m−1, m−1) posteriors can be released; printed C(n+1, m−1), which is right for two cells only
    Source: [H-full] section 3.1; [H-abstract] section 4.
    """
    printed, exact = math.comb(n + 1, m - 1), candidates.number(n, m)
    return found(printed, exact, valid=printed == exact)


@states("F15 A13 N9 N23")
def LS(x: ArrayLike, *, prior: Prior) -> Result[float]:
    """H(BI(x), BI(y)) for the worst neighbour y: the local sensitivity of the score, as r = BI(x) is the worst r
    Source: [H-full] section 3.1; [H-notes] sections 2.2 and 4.1.
    """
    return equal(local_sensitivity(floats(prior), x))


@states("N6")
def GS(*, prior: Prior, n: int) -> Result[float]:
    """The largest LS of a table of n records
    Source: [H-notes] section 2.1.
    """
    return equal(global_sensitivity(floats(prior), n))


@states("F14 F17 A12 A14 N13", gamma=non_negative)
def S(x: ArrayLike, *, prior: Prior, gamma: float) -> Result[float]:
    """Max over x′ of LS(x′)·e^(−γ·d(x, x′)), the smooth sensitivity, d the number of records that differ
    Printed for three cells and more: x′ is x or a neighbour. ``l1`` takes the ℓ₁ distance of histograms for d, as
    [H-abstract] prints, which is 2d. ``notes`` has LS(x) in place of LS(x′), so that nothing is smoothed.
    Source: [H-full] equation (1), section 3.1; [H-abstract] equation (1); [H-notes] definition 2.1.

    >>> S([2, 2, 2], prior=(1, 1, 1), gamma=0.05)
    [H-full] (1): printed 0.368141, which does not hold, exact 0.398724, ...
    """
    alpha, table = floats(prior), checks.counts("S", x)
    exact = printed = smooth_sensitivity(alpha, table, gamma)
    local, twice = local_sensitivity(alpha, table), smooth_sensitivity(alpha, table, 2.0 * gamma)
    if len(alpha) > 2:
        near = max(local_sensitivity(alpha, other) for other in candidates.neighbours(table.tolist()))
        printed = max(local, math.exp(-gamma) * near)
    return found(printed, exact, valid=printed == exact, l1=twice, notes=local)


@states("F19 N15 N27 N28")
def gamma(*, epsilon: float, delta: float, n: int, m: int = 2) -> Result[float]:
    """γ = ln(1 − ε/(2·ln(δ/(2|R|)))), |R| = n+1 (``abstract``), C(n+1, m−1) (``full``), n (``notes_caption``), or exact
    Source: [H-full] section 3.1; [H-abstract] theorem 4.1; [H-notes] section 2.3.1 and figure 3.
    """
    size = R_post(n, m)
    numbers = (n + 1, size.printed, n, candidates.number(n, m))
    abstract, full, caption, exact = (published_smoothing(epsilon, delta, math.log(number)) for number in numbers)
    return found(full, exact, valid=size.valid, abstract=abstract, full=full, notes_caption=caption)


@states("A15")
def theorem_4_1(*, epsilon: float, delta: float, n: int, m: int = 2) -> Result[float]:
    """γ with which M_H is said to be (ε, δ)-DP, printed with n+1 candidates for any number of cells
    Source: [H-abstract] theorem 4.1.
    """
    made = gamma(epsilon=epsilon, delta=delta, n=n, m=m)
    return found(made.abstract, made.exact, valid=m == 2)


def proved_epsilon(*, prior: Prior, n: int, epsilon: float, gamma: float, delta: float) -> float:
    """ε + (e^γ − 1)·ln(|R|/δ) + γ·ln|R|, what the papers' proof gives with the normalisers in it
    The mechanism states a little less, by integrating the tail, or the pure bound.
    Source: our proof, docs/explanation/proofs/hellinger.md.
    """
    checks.probability("proved_epsilon", delta=delta)
    logs = candidates.log_number(n, len(floats(prior)))
    tail = SmoothTail(sharpness=epsilon, smoothing=gamma, log_candidates=logs)
    return tail.base + tail.growth * (logs - math.log(delta))


def pure_epsilon(*, prior: Prior, n: int, epsilon: float, gamma: float) -> float:
    """ε·(1 + (e^γ − 1)/S_min), pure and free of |R|, S_min the least S of a table; the mechanism states a little less
    Source: our proof, docs/explanation/proofs/hellinger.md.
    """
    rows = Rows(floats(prior), n)
    sensitivities = Sensitivities(rows, gamma)
    least = min(sensitivities(rows.canonical(table)) for table in rows.tables())
    return epsilon * (1.0 + math.expm1(gamma) / least)


@states("F7 A6")
def laplace_scale(*, epsilon: float, m: int = 2) -> Result[float]:
    """Printed 2/ε. With two cells one number carries noise and moves by 1, so that 1/ε costs ε already
    Source: [H-full] section 2; [H-abstract] section 3.
    """
    fair = PosteriorLaplace.at(prior=(1.0,) * m, total=1, epsilon=epsilon, unit=UNIT)
    return found(2.0 / epsilon, fair.scale)


@states("N21 N20 F8 A7", gamma=probability)
def laplace_radius(*, m: int, epsilon: float, gamma: float) -> Result[float]:
    """T = (2/ε)·ln(m/γ) bounds noise of scale 2/ε in ℓ∞ (``linf``), m·t in ℓ₁ (``l1``), but with probability γ
    In ℓ∞ that is 1 − (1 − γ/m)^m exactly. The first display of the notes has |x| where its proof has m.
    Source: [H-notes] section 3.1.
    """
    t = 2.0 / epsilon * math.log(m / gamma)
    return found(gamma, 1.0 - (1.0 - gamma / m) ** m, linf=t, l1=m * t)


def theorem_4_2(c: tuple[float, float], a: tuple[float, float], b: tuple[float, float]) -> bool:
    """a₁ = b₀, a₀ = b₁, c₀ + a₀ = c₁ + b₁ and c₀ + b₀ = c₁ + a₁: then beta(a) and beta(b) are equally far from beta(c)
    The printed "only if" is false: the condition suffices and is not needed.
    Source: [H-full] theorem 4.2; docs/explanation/proofs/hellinger-ties.md.

    >>> theorem_4_2((5, 5), (3, 7), (7, 3)), theorem_4_2((5, 6), (3, 8), (8, 3))
    (True, False)
    """
    return a[1] == b[0] and a[0] == b[1] and c[0] + a[0] == c[1] + b[1] and c[0] + b[0] == c[1] + a[1]


def theorem_4_3(c: Sequence[float], a: Sequence[float], b: Sequence[float]) -> bool:
    """set(a) = set(b) and set(c + a) = set(c + b), as multisets: then DL(a) and DL(b) are equally far from DL(c)
    The printed "only if" is false: DL(1,1,5) and DL(1,4,2) are equally far from DL(2,2,3).
    Source: [H-full] theorem 4.3; docs/explanation/proofs/hellinger-ties.md.

    >>> theorem_4_3((2, 2, 3), (1, 4, 2), (4, 1, 2)), theorem_4_3((2, 2, 3), (1, 1, 5), (1, 4, 2))
    (True, False)
    """
    _same_length(c, a, b)
    return sorted(a) == sorted(b) and _sums(c, a) == _sums(c, b)


@states("F25 N14")
def theorem_4_4(x: ArrayLike, *, prior: Sequence[float]) -> Result[int]:
    """At most two candidates have one score, printed; exact, the largest number that have (distances to 12 digits)
    Two holds for two cells. For m ≥ 3 cells and prior parameters ≥ 1, ``bound`` = 2·C(n+m−2, m−2) holds.
    Source: [H-full] theorem 4.4, the case m = 2; docs/explanation/proofs/hellinger-ties.md for the rest.

    >>> theorem_4_4([10, 10], prior=(1, 1)).exact, theorem_4_4([1, 1, 1], prior=(1, 1, 1)).exact
    (2, 6)
    """
    alpha, n = floats(prior), total(x)
    table, m = candidates.check_counts("theorem_4_4", x, len(alpha), n), len(alpha)
    distances = candidates.divergences(alpha, table, candidates.all_tables(n, m))
    most = int(np.unique(np.round(distances, 12), return_counts=True)[1].max())
    return found(2, most, valid=most <= 2, bound=2 * math.comb(n + m - 2, m - 2))


@states("F26", beta=one_or_each)
def theorem_4_5(alpha: Sequence[float], beta: Sequence[float]) -> Result[int]:
    """k!·k!/(Π|a_i|!·Π|b_i|!) candidates as far from α as β, printed, and false; ``ties`` bounds them from below
    Here k is the number of cells, and |a_i|, |b_i| say how often each value occurs in α and β. Exact where parameters
    are whole and the prior is 1 in every cell: they are compared in fractions.
    Source: [H-full] theorem 4.5; docs/explanation/proofs/hellinger-ties.md.

    >>> theorem_4_5((2, 5, 9), (3, 6, 7)).printed, theorem_4_5((2, 5, 9), (3, 6, 7)).exact
    (36, 1)
    """
    _same_length(alpha, beta)
    repeated = math.prod(math.factorial(often) for each in (alpha, beta) for often in Counter(each).values())
    printed, exact = math.factorial(len(alpha)) ** 2 // repeated, _equally_far(alpha, beta)
    return found(printed, exact, valid=printed == exact, ties=ties(alpha, beta))


def ties(alpha: Sequence[float], beta: Sequence[float]) -> tuple[int, int]:
    """(Π_a |a|!/Π_b n_ab!, #{β′ : theorem 4.3's condition}): lower bounds on that number, the first at most the second
    Here |a| says how often a occurs in α, n_ab in how many cells α is a and β is b; cells share one prior parameter.
    Source: docs/explanation/proofs/hellinger-ties.md.

    >>> ties((2, 5, 9), (3, 6, 7)), ties((2, 2, 3), (1, 4, 2))
    ((1, 1), (2, 2))
    """
    _same_length(alpha, beta)
    if len(alpha) > 9:  # 362,880 rearrangements are listed one by one
        raise InvalidArgument(f"ties: expected up to 9 cells, got {len(alpha)}.")
    pairs = Counter(zip(alpha, beta, strict=True))
    by_symmetry = math.prod(math.factorial(often) for often in Counter(alpha).values()) // math.prod(
        math.factorial(often) for often in pairs.values()
    )
    wanted = _sums(alpha, beta)
    return by_symmetry, sum(_sums(alpha, each) == wanted for each in set(permutations(beta)))


@states("F27 F28 F31 N17", delta_prime=checks.probability)
def lemma_4_6(*, epsilon: float, delta_prime: float, n: int, m: int = 2) -> Result[float]:
    """λ ≤ ln(1 − ε/(2·ln(δ′/(2|R|)))) makes the tail |R|·exp(ε/(2(1 − e^λ))) at most δ′/2; printed with δ′ for ε
    Source: [H-full] lemma 4.6, its equation (2) and the lines after it; [H-notes] lemma 2.2.
    """
    logs = candidates.log_number(n, m)
    exact = published_smoothing(epsilon, delta_prime, logs)
    printed = published_smoothing(delta_prime, delta_prime, logs)
    return found(printed, exact, valid=False, tail=math.exp(logs - 0.5 * epsilon / math.expm1(exact)))


@states("F32", delta_prime=checks.probability)
def lemma_4_7(*, epsilon: float, delta_prime: float) -> Result[float]:
    """δ = e^(ε/2)·δ′/2 of M_H; its proof loses the ratio of the normalisers
    Source: [H-full] lemma 4.7.
    """
    return found(0.5 * math.exp(0.5 * epsilon) * delta_prime)


def _equally_far(alpha: Sequence[float], beta: Sequence[float]) -> int | None:
    """How many vectors of whole numbers ≥ 1 with β's sum are as far from α as β is; None where that is not settled."""
    n, cells = math.fsum(beta) - len(beta), len(beta)
    whole = all(float(value).is_integer() for value in (*alpha, *beta)) and sum(alpha) == sum(beta) and cells > 1
    if not whole or n < 1 or candidates.number(int(n), cells) > 200_000:
        return None
    table, others = np.asarray(alpha, np.int64) - 1, candidates.all_tables(int(n), cells)
    distances = candidates.divergences((1.0,) * cells, table, others)
    mine = candidates.divergences((1.0,) * cells, table, np.asarray([beta], np.int64) - 1)
    near = others[np.abs(distances - mine) <= 1e-9] + 1
    score = _score(alpha, beta)
    return sum(_score(alpha, each) == score for each in near.tolist())


def _score(alpha: Sequence[float], beta: Sequence[float]) -> tuple[Fraction, int]:
    """Π Γ((α+β)/2)²/Γ(β) as a fraction and a power of π: equal where the distances from α are."""
    value, odd = Fraction(1), 0
    for a, b in zip(alpha, beta, strict=True):
        halves = int(a + b)
        value *= math.prod((Fraction(k, 2) for k in range(halves - 2, 0, -2)), start=Fraction(1)) ** 2
        value /= math.factorial(int(b) - 1)
        odd += halves % 2
    return value, odd


def _sums(one: Sequence[float], other: Sequence[float]) -> list[float]:
    return sorted(a + b for a, b in zip(one, other, strict=True))


def _same_length(*vectors: Sequence[float]) -> None:
    if len({len(vector) for vector in vectors}) != 1 or not vectors[0]:
        raise InvalidArgument("papers: expected vectors of one length.")
    for vector in vectors:
        checks.positive("papers", **{f"parameter {at}": value for at, value in enumerate(vector, start=1)})
