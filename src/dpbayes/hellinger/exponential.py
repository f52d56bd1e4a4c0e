"""The exponential mechanism on posteriors with other scores, calibrated to their global sensitivity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpbayes.base import checks
from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import InvalidArgument
from dpbayes.hellinger import candidates, sampler, sensitivity
from dpbayes.hellinger.distance import beta_total_variation, kl
from dpbayes.hellinger.sampler import UNDERFLOW, Cell, KlCell, Sampler, score_sampler
from dpbayes.mechanisms import noise
from dpbayes.mechanisms.base import Mechanism
from dpbayes.mechanisms.selection import Selection
from dpbayes.schema.unit import PrivacyUnit

SCORES = ("hellinger", "kl", "total-variation")


@dataclass(frozen=True, slots=True, kw_only=True)
class PosteriorExponential(Mechanism):
    """Releases Dir(α + k) with probability ∝ exp(−ε·score/(2Δ)), Δ the global sensitivity of the score.

    Scores: `hellinger`; `kl`, which is KL(released ‖ true); `total-variation` for two cells. It is ε-DP by the
    classical theorem, and its loss ranges over no more than ε, which is what it costs beside others. The χ² score is
    refused: two posteriors of as many records can be infinitely far apart.

    Source: [H-notes] section 2.1; [MT07] theorem 6; [DDR20] for the range.

    >>> from dpbayes import Adjacency, PrivacyUnit
    >>> unit = PrivacyUnit(adjacency=Adjacency.REPLACE_ONE)
    >>> release = PosteriorExponential(prior=(1.0, 1.0), total=50, sharpness=1.0, score="kl", unit=unit)
    >>> release.renyi(float("inf"))
    1.0
    """

    kind = "posterior-exponential-1"
    tables = ("parameters",)
    closed = True
    law_in_words = "α + k, k drawn from all tables of the public size by the exponential mechanism"
    prior: tuple[float, ...]
    total: int
    sharpness: float
    score: str
    unit: PrivacyUnit

    def __post_init__(self) -> None:
        owner = "PosteriorExponential"
        object.__setattr__(self, "prior", tuple(float(value) for value in self.prior))
        candidates.check_prior(owner, self.prior)
        candidates.check_unit(owner, self.unit)
        candidates.check_total(owner, self.total)
        object.__setattr__(self, "total", int(self.total))
        checks.positive(owner, sharpness=self.sharpness)
        if self.score == "chi-squared":
            raise InvalidArgument(
                f"{owner}: the χ² score has unbounded sensitivity, as χ² between two posteriors of the same "
                "number of records is infinite once 2p − q leaves the positive numbers. "
                "Use hellinger, kl or total-variation."
            )
        checks.one_of(owner, SCORES, score=self.score)
        if self.score == "total-variation" and len(self.prior) != 2:
            raise InvalidArgument(
                f"{owner}: the total variation distance of Dirichlet distributions has a closed form for two cells "
                f"only, got {len(self.prior)}. Use hellinger, which bounds it on both sides."
            )

    def _loss(self) -> Selection:
        return Selection(sharpness=self.sharpness, unit=self.unit)

    def concentrated(self, omega: float) -> float:
        """That of a selection whose loss ranges over the sharpness."""
        return self._loss().concentrated(omega)

    @property
    def sensitivity(self) -> float:
        """Δ, how far the score of any candidate can move when one record moves."""
        if self.score == "hellinger":
            return sensitivity.global_sensitivity(self.prior, self.total)
        return (kl_sensitivity if self.score == "kl" else total_variation_sensitivity)(self.prior, self.total)

    @property
    def exponent(self) -> float:
        """The factor a = ε/(2Δ) of the score in the weights."""
        return self.sharpness / (2.0 * self.sensitivity)

    def sampler(self, counts: ArrayLike) -> Sampler:
        """The exact sampler for this table; holds private numbers."""
        table = candidates.check_counts("PosteriorExponential", counts, len(self.prior), self.total)
        a = self.exponent
        if self.score == "hellinger":
            return score_sampler(self.prior, table, a, sampler.HELLINGER)
        kind, reach = (KlCell, UNDERFLOW / a) if self.score == "kl" else (Cell, UNDERFLOW)
        pairs = zip(self.prior, table, strict=True)
        cells = [kind(prior=prior, count=int(count), total=self.total, reach=reach) for prior, count in pairs]
        if self.score == "kl":
            # the weight is one exponential, which is its own envelope
            alone = sampler.Envelope(rates=np.array([a]), log_weights=np.zeros(1))
            return Sampler(cells, alone, lambda _, divergence: -a * divergence)
        above = sampler.fitted(sampler.SQUARED_HELLINGER, a)
        return Sampler(cells, above, lambda tables, _: -a * self.distances(table, tables))

    def distances(self, table: Ints, others: Ints) -> Floats:
        """The score between the posterior of a table and those of other tables."""
        prior = np.asarray(self.prior)
        if self.score == "kl":
            return kl(prior + others, prior + table)
        if self.score == "total-variation":
            return beta_total_variation(prior + others, prior + table)
        return np.asarray(sampler.HELLINGER.score(candidates.divergences(self.prior, table, others)))

    def law(self, counts: ArrayLike) -> tuple[Ints, Floats]:
        """All candidates and their probabilities, where they can be listed; private, as the counts are."""
        table = candidates.check_counts("PosteriorExponential", counts, len(self.prior), self.total)
        listed = candidates.listed(self.total, len(self.prior))
        return listed, candidates.normalised(-self.exponent * self.distances(table, listed))

    def draw_many(self, counts: ArrayLike, size: int, rng: np.random.Generator | None = None) -> Ints:
        """``size`` independent candidate tables k, one per row. Each of them is a release and is paid for."""
        checks.positive_integer("PosteriorExponential", size=size)
        return self.sampler(counts).draw(size, noise.generator(rng))

    def draw(self, counts: ArrayLike, rng: np.random.Generator | None = None) -> Floats:
        """One release: the parameters α + k of a posterior."""
        return np.asarray(self.prior + self.draw_many(counts, 1, rng)[0])


def kl_sensitivity(prior: tuple[float, ...], total: int) -> float:
    """Δ = max over i ≠ j of ψ(α_i + n) − ln α_i + ln(α_j + n − 1) − ψ(α_j), for the score KL(candidate ‖ posterior).

    Symbols: α prior, n total, ψ digamma. It grows like 2·ln n; the other direction of KL grows like n.
    Source: our proof, docs/explanation/proofs/hellinger.md.
    Adjacency: replace-one, a record goes from cell i to cell j.
    """
    from scipy.special import digamma

    alpha = np.asarray(prior, np.float64)
    leaves = digamma(alpha + total) - np.log(alpha)
    enters = np.log(alpha + total - 1) - digamma(alpha)
    return float(max(leaves[i] + np.delete(enters, i).max() for i in range(alpha.size)))


def total_variation_sensitivity(prior: tuple[float, ...], total: int) -> float:
    """Δ = max over p + q = n − 1 of TV(Beta(a+1, b), Beta(a, b+1)) = x^a·(1−x)^b·(a+b)/(a·b·B(a, b)), x = a/(a+b).

    TV is a metric, so the largest step is the sensitivity.

    Symbols: a = α₁ + p, b = α₂ + q, n total, B the beta function.
    Source: our proof, docs/explanation/proofs/hellinger.md.
    Adjacency: replace-one.
    """
    from scipy.special import betaln

    largest = 0.0
    for start in range(0, total, 1 << 20):
        p = np.arange(start, min(start + (1 << 20), total), dtype=np.float64)
        a, b = prior[0] + p, prior[1] + total - 1 - p
        logs = -a * np.log1p(b / a) - b * np.log1p(a / b) + np.log1p(b / a) - np.log(b) - betaln(a, b)
        largest = max(largest, float(np.exp(logs.max())))
    return largest
