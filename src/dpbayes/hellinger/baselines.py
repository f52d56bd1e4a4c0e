"""What the Hellinger mechanism is measured against: posteriors by the exponential mechanism, and by Laplace noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpbayes.base import checks
from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import InvalidArgument
from dpbayes.hellinger import candidates, sampler, sensitivity
from dpbayes.hellinger.candidates import PosteriorMechanism
from dpbayes.hellinger.distance import beta_total_variation, kl
from dpbayes.hellinger.sampler import UNDERFLOW, KlCell, Sampler, ScoreCell, score_sampler
from dpbayes.mechanisms import noise
from dpbayes.mechanisms.kinds import Additive
from dpbayes.mechanisms.laplace import Laplace, LaplaceNoise
from dpbayes.mechanisms.selection import Selection
from dpbayes.mechanisms.stated import Stated
from dpbayes.schema.unit import Unit

SCORES = ("hellinger", "kl", "total-variation")


@dataclass(frozen=True, slots=True, kw_only=True)
class PosteriorExponential(PosteriorMechanism):
    """Releases Dir(α + k) with probability ∝ exp(−ε·score/(2Δ)), Δ the global sensitivity of the score.

    Scores: `hellinger`; `kl`, which is KL(released ‖ true); `total-variation` for two cells. It is ε-DP by the
    classical theorem, and its loss ranges over no more than ε, which is what it costs beside others. The χ² score is
    refused: two posteriors of as many records can be infinitely far apart.

    Source: [H-notes] section 2.1; [MT07] theorem 6; [DDR20] for the range.

    >>> from dpbayes import Unit
    >>> from dpbayes.schema import Adjacency
    >>> unit = Unit(adjacency=Adjacency.REPLACE_ONE)
    >>> release = PosteriorExponential(prior=(1.0, 1.0), total=50, sharpness=1.0, score="kl", unit=unit)
    >>> release.renyi(float("inf"))
    1.0
    """

    kind = "posterior-exponential-1"
    law_in_words = "α + k, k drawn from all tables of the public size by the exponential mechanism"
    prior: tuple[float, ...]
    total: int
    sharpness: float
    score: str
    unit: Unit

    def __post_init__(self) -> None:
        PosteriorMechanism.__post_init__(self)
        owner = "PosteriorExponential"
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
        table = self.table(counts)
        a = self.exponent
        if self.score == "hellinger":
            return score_sampler(self.prior, table, a, sampler.HELLINGER)
        kind, reach = (KlCell, UNDERFLOW / a) if self.score == "kl" else (ScoreCell, UNDERFLOW)
        pairs = zip(self.prior, table, strict=True)
        cells = [kind(prior=prior, count=int(count), total=self.total, reach=reach) for prior, count in pairs]
        if self.score == "kl":
            # the weight is one exponential, which is its own envelope
            alone = sampler.Envelope(rates=np.array([a]), log_weights=np.zeros(1))
            return Sampler(cells, alone, lambda _, divergence: -a * divergence)
        above = sampler.envelope_of(sampler.SQUARED_HELLINGER, a)
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
        table = self.table(counts)
        listed = candidates.all_tables(self.total, len(self.prior))
        return listed, candidates.shares(-self.exponent * self.distances(table, listed))


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


Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosingNoise(Additive):
    """Released x = c + k with Laplace noise on all cells but the last, which closes the public sum.

    Var[k_i] = v, and (d + 1)·v for the last cell as if it had noise of its own

    Symbols: v the variance of the noise, d number of cells. With the total known only contrasts matter, and to them
    independent noise of these variances gives the covariances that the closed sum has.
    Source: docs/explanation/proofs/residual-basis.md, a closed sum.
    Adjacency: none, this is post-processing.
    """

    scale: float
    shape: tuple[int, ...]

    even = False

    def variance(self, counts: Floats) -> Floats:
        """One variance, and d + 1 times that of the closing cell."""
        found = LaplaceNoise(scale=self.scale).variance(np.zeros(self.shape))
        found.flat[-1] *= found.size + 1
        return np.broadcast_to(found, np.shape(counts)).copy() if np.shape(counts) == self.shape else found

    def log_law(self, value: float, counts: Ints) -> Floats:
        """Of a cell that has noise of its own."""
        return LaplaceNoise(scale=self.scale).log_law(value, counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class PosteriorLaplace(PosteriorMechanism):
    """Discrete Laplace noise, P[k] ∝ exp(−|k|/scale), on all counts but the last, which closes the sum.

    ``truncated`` is the improved baseline: each noisy count in turn is cut to what is left of the n records, so the
    result is always a posterior. Untruncated, parameters may be zero or negative and then are no posterior at all.

    It departs from the papers in two ways: the noise is integer, so that its law and its cost are exact; and the
    cost is that of the cells which carry noise. For two cells that is one: the papers' scale 2/ε costs ε/2, not ε.

    Source: [H-abstract] section 3 (baseline), section 5 (truncation).

    >>> from dpbayes import Unit
    >>> from dpbayes.schema import Adjacency
    >>> unit = Unit(adjacency=Adjacency.REPLACE_ONE)
    >>> baseline = PosteriorLaplace(prior=(1.0, 1.0), total=98, scale=2.0, truncated=True, unit=unit)
    >>> baseline.renyi(float("inf"))
    0.5
    """

    kind = "posterior-laplace-1"
    law_in_words = (
        "α + x, x = c + k for each cell but the last with count c, P[k] ∝ exp(−|k|/scale) on the whole numbers, if "
        "truncated cut to what is left of the public total; the last cell is the rest of it"
    )
    prior: tuple[float, ...]
    total: int
    scale: float
    truncated: bool
    unit: Unit

    def __post_init__(self) -> None:
        PosteriorMechanism.__post_init__(self)
        checks.positive("PosteriorLaplace", scale=self.scale)
        if not isinstance(self.truncated, bool):
            raise InvalidArgument(f"PosteriorLaplace: expected truncated to be true or false, got {self.truncated!r}.")

    @classmethod
    def at(
        cls, *, prior: tuple[float, ...], total: int, epsilon: float, unit: Unit, truncated: bool = True
    ) -> PosteriorLaplace:
        """The baseline that is exactly ε-DP: scale = (number of cells that a record moves)/ε."""
        checks.positive("PosteriorLaplace", epsilon=epsilon)
        moved = 1.0 if len(prior) == 2 else 2.0
        return cls(prior=prior, total=total, scale=moved / epsilon, truncated=truncated, unit=unit)

    def _loss(self) -> Laplace | Stated:
        """Two cells carry noise in one place: randomised response. More carry it wherever a record moves."""
        if len(self.prior) == 2:
            return Stated(epsilon_stated=1.0 / self.scale, delta_stated=0.0, unit=self.unit, what="posterior")
        return Laplace(scale=self.scale, unit=self.unit)

    def draw_many(self, counts: ArrayLike, size: int, rng: np.random.Generator | None = None) -> Ints:
        """``size`` independent tables, one per row. Each of them is a release and is paid for."""
        checks.positive_integer("PosteriorLaplace", size=size)
        table = self.table(counts)
        noisy = noise.laplace(np.tile(table[:-1], (size, 1)), self.scale, rng)
        left = np.full(size, self.total, dtype=np.int64)
        for column in noisy.T:
            if self.truncated:
                np.clip(column, 0, left, out=column)
            left -= column
        return np.column_stack([noisy, left])

    def law(self, counts: ArrayLike) -> tuple[Ints, Floats]:
        """All candidates and their probabilities for the truncated baseline; private, as the counts are.

        P(k) = Π_i p_i(k_i), where p_i has the tails of the noise gathered at 0 and at what is left of n.

        Symbols: k a candidate, n total.
        Source: [H-abstract] section 5.
        Adjacency: replace-one.
        """
        if not self.truncated:
            raise InvalidArgument("PosteriorLaplace: untruncated noise has no finite list of candidates. Draw instead.")
        table = self.table(counts)
        listed = candidates.all_tables(self.total, len(self.prior))
        left = np.full(len(listed), self.total, dtype=np.int64)
        logs = np.zeros(len(listed))
        for count, column in zip(table[:-1], listed.T[:-1], strict=True):
            logs += self.log_truncated(column - count, column == 0, column == left)
            left = left - column
        return listed, np.asarray(np.exp(logs))

    def log_truncated(self, step: Ints, lowest: Flags, highest: Flags) -> Floats:
        """Of a cell: ln P[noise = step], or at an end of all that is cut to it, P[noise ≤ step] or P[noise ≥ step]."""
        ratio, size = np.exp(-1.0 / self.scale), np.abs(step)
        exact = np.log1p(-ratio) - np.log1p(ratio) - size / self.scale
        tail = -size / self.scale - np.log1p(ratio)
        rest = np.log1p(-(ratio ** (1.0 + size)) / (1.0 + ratio))
        beyond_up, beyond_down = np.where(step > 0, tail, rest), np.where(step < 0, tail, rest)
        value = np.where(lowest, beyond_down, np.where(highest, beyond_up, exact))
        return np.where(lowest & highest, 0.0, value)

    def noise(self, shape: tuple[int, ...] = (-1,)) -> ClosingNoise:
        """That of the counts: given their sum, as if every cell had noise of its own."""
        return ClosingNoise(scale=self.scale, shape=(len(self.prior),) if shape == (-1,) else shape)
