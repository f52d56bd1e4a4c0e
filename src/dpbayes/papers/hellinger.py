"""[H-full] theorems 4.2 to 4.5 and [H-notes] section 3.1 as printed, and what is true where they are not.

The theorems are about candidates with equal scores: which parameters β of a released posterior lie at one Hellinger
distance from the true ones, α. Parameters are those of posteriors, so that all have the same sum.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import permutations

from dpbayes import _checks
from dpbayes.errors import InvalidArgument

MOST_CELLS = 9
"""Rearrangements are listed up to this many cells."""


def theorem_4_2(centre: tuple[float, float], one: tuple[float, float], other: tuple[float, float]) -> bool:
    """α₂ = β₁, α₁ = β₂, α₀ + α₁ = β₀ + β₂ and α₀ + α₂ = β₀ + β₁: then beta(α₁, β₁) and beta(α₂, β₂) are equally far

    from beta(α₀, β₀). The printed "only if" is false: the condition suffices and is not needed.

    Symbols: (α₀, β₀) centre, (α₁, β₁) one, (α₂, β₂) other.
    Source: [H-full] theorem 4.2; docs/explanation/proofs/hellinger-ties.md.
    Adjacency: none.

    >>> theorem_4_2((5, 5), (3, 7), (7, 3)), theorem_4_2((5, 6), (3, 8), (8, 3))
    (True, False)
    """
    (a0, b0), (a1, b1), (a2, b2) = centre, one, other
    return a2 == b1 and a1 == b2 and a0 + a1 == b0 + b2 and a0 + a2 == b0 + b1


def theorem_4_3(centre: Sequence[float], one: Sequence[float], other: Sequence[float]) -> bool:
    """set(β₁) = set(β₂) and set(α + β₁) = set(α + β₂), as multisets: then DL(β₁) and DL(β₂) are equally far from DL(α)

    The printed "only if" is false: DL(1,1,5) and DL(1,4,2) are equally far from DL(2,2,3).

    Symbols: α centre, β₁ one, β₂ other.
    Source: [H-full] theorem 4.3; docs/explanation/proofs/hellinger-ties.md.
    Adjacency: none.

    >>> theorem_4_3((2, 2, 3), (1, 4, 2), (4, 1, 2)), theorem_4_3((2, 2, 3), (1, 1, 5), (1, 4, 2))
    (True, False)
    """
    _same_length(centre, one, other)
    return sorted(one) == sorted(other) and _sums(centre, one) == _sums(centre, other)


def theorem_4_4(*, cells: int, total: int) -> int:
    """|z| ≤ 2 for two cells; for k ≥ 3 cells and prior parameters ≥ 1, |z| ≤ 2·C(n+k−2, k−2)

    Symbols: |z| the number of candidates with one score, k cells, n total.
    Source: [H-full] theorem 4.4, which is the case k = 2; docs/explanation/proofs/hellinger-ties.md for the rest.
    Adjacency: none.

    >>> theorem_4_4(cells=2, total=500), theorem_4_4(cells=3, total=10)
    (2, 22)
    """
    _checks.positive_integer("theorem_4_4", cells=cells, total=total)
    return 2 * math.comb(total + cells - 2, cells - 2)


def theorem_4_5(alpha: Sequence[float], beta: Sequence[float]) -> int:
    """|z| = k!·k!/(Π|a_i|!·Π|b_i|!), as printed, which is false; ``ties`` bounds the number in truth.

    Symbols: k cells, |a_i| and |b_i| how often each value occurs in α and in β.
    Source: [H-full] theorem 4.5.
    Adjacency: none.

    >>> theorem_4_5((2, 5, 9), (3, 6, 7))
    36
    """
    _same_length(alpha, beta)
    repeated = math.prod(math.factorial(often) for each in (alpha, beta) for often in Counter(each).values())
    return math.factorial(len(alpha)) ** 2 // repeated


def ties(alpha: Sequence[float], beta: Sequence[float]) -> tuple[int, int]:
    """(Π_a |a|!/Π_b n_ab!, #{β′ : theorem 4.3's condition}): two lower bounds on |z|, the first at most the second

    Symbols: |a| how often a occurs in α, n_ab in how many cells α is a and β is b.
    Source: docs/explanation/proofs/hellinger-ties.md; the candidates share one prior parameter.
    Adjacency: none.

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


def laplace_radius(*, cells: int, epsilon: float, failure: float) -> tuple[float, float]:
    """(t, m·t), t = (2/ε)·ln(m/γ): Laplace noise of scale 2/ε on m parameters exceeds t in ℓ∞, or m·t in ℓ₁, with
    probability at most γ. In ℓ∞ it is 1 − (1 − γ/m)^m exactly, where the notes print γ.

    Symbols: m cells, ε epsilon, γ failure. The first display of the notes has |x| where its proof has m.
    Source: [H-notes] section 3.1.
    Adjacency: one replaced record, which moves two parameters by one each.

    >>> largest, together = laplace_radius(cells=3, epsilon=0.8, failure=0.05)
    >>> round(largest, 3), round(together, 3)
    (10.236, 30.708)
    """
    _checks.positive_integer("laplace_radius", cells=cells)
    _checks.positive("laplace_radius", epsilon=epsilon)
    _checks.probability("laplace_radius", failure=failure)
    largest = 2.0 / epsilon * math.log(cells / failure)
    return largest, cells * largest


def _sums(one: Sequence[float], other: Sequence[float]) -> list[float]:
    return sorted(a + b for a, b in zip(one, other, strict=True))


def _same_length(*vectors: Sequence[float]) -> None:
    if len({len(vector) for vector in vectors}) != 1 or not vectors[0]:
        raise InvalidArgument("papers: expected vectors of one length.")
    for vector in vectors:
        _checks.positive("papers", **{f"parameter {at}": value for at, value in enumerate(vector, start=1)})
