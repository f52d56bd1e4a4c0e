"""[H-full] section 4: which candidates have one score, and the last two lemmas. As printed, and what is true instead.

Parameters are those of posteriors, so that all have the same sum.
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
from dpbayes.base.errors import InvalidArgument
from dpbayes.hellinger import candidates
from dpbayes.hellinger.mechanism import published_smoothing
from dpbayes.papers.checked import found, prior, states
from dpbayes.papers.hellinger.scores import floats, total
from dpbayes.papers.result import Result

__all__ = ["lemma_4_6", "lemma_4_7", "theorem_4_2", "theorem_4_3", "theorem_4_4", "theorem_4_5", "ties"]

MOST_CELLS = 9
"""Rearrangements are listed up to this many cells."""

MOST_LISTED = 200_000
"""Candidates are compared one by one up to this many."""


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


@states("F26", beta=prior)
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
    if len(alpha) > MOST_CELLS:
        raise InvalidArgument(f"ties: expected up to {MOST_CELLS} cells, got {len(alpha)}.")
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
    if not whole or n < 1 or candidates.number(int(n), cells) > MOST_LISTED:
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
