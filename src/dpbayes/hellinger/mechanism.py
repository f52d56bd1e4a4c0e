"""The Hellinger mechanism: the exponential mechanism on posteriors, scored by Hellinger distance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from dpbayes.base import checks
from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import InvalidArgument
from dpbayes.hellinger import candidates, sampler
from dpbayes.hellinger.candidates import PosteriorMechanism
from dpbayes.hellinger.certificate import Certificate
from dpbayes.hellinger.distance import beta_total_variation, bhattacharyya
from dpbayes.hellinger.promise import NoPromise, Promise, Proved, SmoothTail, enumerated
from dpbayes.hellinger.sampler import Sampler, score_sampler
from dpbayes.hellinger.sensitivity import pure_epsilon, smooth_sensitivity
from dpbayes.mechanisms import noise
from dpbayes.mechanisms.kinds import Record
from dpbayes.mechanisms.selection import Selection
from dpbayes.mechanisms.stated import Stated
from dpbayes.schema.unit import Unit

CALIBRATIONS = ("published", "proved", "certified", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hellinger(PosteriorMechanism):
    """Releases the posterior Dir(α + k) with probability ∝ exp(−ε·H/(2S)), H its distance from Dir(α + counts).

    ``sharpness`` is the ε of the weights and ``smoothing`` the γ of the smooth sensitivity S: 0 calibrates to the
    global sensitivity, infinity to the local one, as the papers did in experiments. What is promised depends on
    ``calibration``: `proved` (the better of our two theorems), `certified` (a stored enumeration, bound to these
    parameters by its digest; without one the theorems are stated instead), `published` (the theorem as printed, with
    ``delta``; its proof has a gap), `none` (nothing). What is proved may carry an enumeration too: it holds what the
    release costs exactly, and beside others.
    Make one by ``calibration.published``, ``proved``, ``certified``, ``with_global`` or ``with_local``.

    Source: [H-full] definition 3.

    >>> from dpbayes import Unit
    >>> from dpbayes.schema import Adjacency
    >>> unit = Unit(adjacency=Adjacency.REPLACE_ONE)
    >>> release = Hellinger(prior=(1.0, 1.0), total=98, sharpness=0.8, smoothing=0.0, calibration="proved", unit=unit)
    >>> release.renyi(math.inf)
    0.8
    >>> float(release.draw([49, 49]).sum())
    100.0
    """

    kind = "hellinger-1"
    law_in_words = (
        "α + k, k drawn from all tables of the public size with P[k] ∝ exp(−a·H), H the Hellinger distance between the "
        "posteriors of k and of the counts; a is larger where a record moves that distance less"
    )
    prior: tuple[float, ...]
    total: int
    sharpness: float
    smoothing: float
    calibration: str
    unit: Unit
    delta_published: float | None = None
    certificate: Certificate | None = None

    def __post_init__(self) -> None:
        PosteriorMechanism.__post_init__(self)
        checks.positive("Hellinger", sharpness=self.sharpness)
        checks.one_of("Hellinger", CALIBRATIONS, calibration=self.calibration)
        if isinstance(self.smoothing, bool) or not self.smoothing >= 0:
            raise InvalidArgument(f"Hellinger: expected smoothing >= 0, got {self.smoothing!r}.")
        if math.isinf(self.smoothing) != (self.calibration == "none"):
            raise InvalidArgument(
                "Hellinger: the local sensitivity (infinite smoothing) has calibration `none`, and only it."
            )
        if (self.delta_published is not None) != (self.calibration == "published"):
            raise InvalidArgument(
                "Hellinger: expected delta_published with the calibration `published`, and only there."
            )
        if self.delta_published is not None:
            checks.probability("Hellinger", delta_published=self.delta_published)
            largest = published_smoothing(self.sharpness, self.delta_published, self.log_candidates)
            if self.smoothing > largest * (1 + 1e-12):
                raise InvalidArgument(f"Hellinger: the published theorem needs smoothing <= {largest!r}.")
        has = (
            () if self.certificate is None else ("certified", "proved") if self.certificate.profile else ("certified",)
        )
        if self.calibration not in has if has else self.calibration == "certified":
            raise InvalidArgument(
                "Hellinger: expected a certificate with the calibration `certified`; with `proved` one that has a "
                "profile, or none."
            )
        parameters = self.prior, self.total, self.sharpness, self.smoothing, self.unit
        if (made := self.certificate) is not None and made.digest not in ("", made.binding(*parameters)):
            raise InvalidArgument(
                "Hellinger: the certificate belongs to other parameters, or was changed. Certify the mechanism again."
            )

    @property
    def log_candidates(self) -> float:
        """ln|R|."""
        return candidates.log_number(self.total, len(self.prior))

    @property
    def promise(self) -> Promise:
        """What is known about the privacy of a draw."""
        if self.calibration == "none":
            return NoPromise()
        if self.certificate is not None and self.certificate.digest:
            return enumerated(self.certificate) if self.certificate.profile else self._stated(self.certificate.epsilon)
        if self.delta_published is not None:
            return self._stated(self.sharpness, self.delta_published)
        pure = pure_epsilon(self.prior, self.total, self.sharpness, self.smoothing)
        ranged = Selection(sharpness=pure, unit=self.unit)
        if self.smoothing == 0:
            return ranged
        return Proved(
            ranged=ranged,
            tail=SmoothTail(sharpness=self.sharpness, smoothing=self.smoothing, log_candidates=self.log_candidates),
        )

    @property
    def exact(self) -> bool:
        """Whether the promise is a pair of laws, rather than a bound on the tail of the loss."""
        promise = self.promise
        return promise.exact if isinstance(promise, Proved) else True

    def confirm(self) -> None:
        """Derive the certificate again, once per process, and raise ReleaseError if it is not what enumeration gives.

        Whoever can write a certificate can also write its digest, so a ledger calls this before it charges, and
        ``ledger verify`` and ``audit`` call it for what is stored. It takes up to a minute for the largest tables.
        A certificate without digest is not relied upon, and there is nothing to confirm.
        """
        if self.certificate is not None and self.certificate.digest:
            self.certificate.confirm(self.prior, self.total, self.sharpness, self.smoothing)

    def _stated(self, epsilon: float, delta: float = 0.0) -> Stated:
        return Stated(epsilon_stated=epsilon, delta_stated=delta, unit=self.unit, what="posterior")

    def _loss(self) -> Promise:
        return self.promise

    def but_for(self) -> tuple[Stated | Hellinger, float]:
        """The pure release that remains of a stated promise, and the chance δ that everything is lost instead.

        Source: [KOV] theorem 3.3.
        """
        promise = self.promise
        return promise.but_for() if isinstance(promise, Stated) else (self, 0.0)

    def exponent(self, counts: ArrayLike) -> float:
        """The factor a = ε/(2S(counts)) of H in the weights; private, as the counts are.

        Symbols: ε sharpness, S smooth sensitivity.
        Source: [H-full] definition 3.
        Adjacency: replace-one.
        """
        table = self.table(counts)
        return self.sharpness / (2.0 * smooth_sensitivity(self.prior, table, self.smoothing))

    def sampler(self, counts: ArrayLike) -> Sampler:
        """The exact sampler for this table; holds private numbers."""
        table = self.table(counts)
        a = self.exponent(table)
        return score_sampler(self.prior, table, a, sampler.HELLINGER)

    def law(self, counts: ArrayLike) -> tuple[Ints, Floats]:
        """All candidates and their probabilities, where they can be listed; private, as the counts are."""
        table = self.table(counts)
        listed = candidates.all_tables(self.total, len(self.prior))
        divergence = candidates.divergences(self.prior, table, listed)
        return listed, candidates.shares(-self.exponent(table) * sampler.HELLINGER.score(divergence))

    def draw(self, counts: ArrayLike, rng: np.random.Generator | None = None) -> Floats:
        """One release: the parameters α + k of a posterior."""
        if self.calibration == "none" and rng is None:
            raise InvalidArgument(
                "Hellinger: the calibration `none` guarantees nothing, so a release is refused. "
                "Use calibration.proved; for an experiment hand in a generator."
            )
        return PosteriorMechanism.draw(self, counts, rng)

    def record(self) -> Record:
        """JSON form, in which an infinite smoothing is null."""
        smoothing = self.smoothing if math.isfinite(self.smoothing) else None
        return {**PosteriorMechanism.record(self), "smoothing": smoothing}

    @classmethod
    def from_record(cls, record: Record) -> Self:
        """Read the JSON form back."""
        smoothing, certificate = record["smoothing"], record["certificate"]
        read = {
            "smoothing": math.inf if smoothing is None else smoothing,
            "certificate": None if certificate is None else Certificate.from_record(certificate),
        }
        return super(Hellinger, cls).from_record({**record, **read})


def published_smoothing(epsilon: float, delta: float, log_candidates: float) -> float:
    """γ = ln(1 − ε/(2·ln(δ/(2|R|)))).

    Symbols: ε epsilon, δ delta, |R| number of candidates.
    Source: [H-abstract] theorem 4.1. The figure captions of [H-notes] used n for |R| = n + 1.
    Adjacency: replace-one.

    >>> round(published_smoothing(0.8, 0.8, math.log(100)), 13)
    0.0699407108115
    """
    checks.positive("published_smoothing", epsilon=epsilon)
    checks.probability("published_smoothing", delta=delta)
    return math.log1p(0.5 * epsilon / (log_candidates + math.log(2.0) - math.log(delta)))


# how far a released posterior is from the true one ------------------------------------------------------------------
#
# These numbers are computed from a table. For a private table they are private: use them on public guesses.

ENUMERATED = 200_000
"""Up to this many candidates an expectation is a sum; beyond, an average of draws."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """Expected distances between what is released and the true posterior.

    ``total_variation`` holds two bounds of it, which are equal when there are two cells. ``standard_error`` is that of
    ``hellinger``: zero if it is a sum over all candidates, else from ``draws`` draws.
    """

    hellinger: float
    l1: float
    total_variation: tuple[float, float]
    standard_error: float
    draws: int


def expected(
    mechanism: PosteriorMechanism, counts: ArrayLike, *, draws: int = 2000, rng: np.random.Generator | None = None
) -> Accuracy:
    """E[H], E‖k − c‖₁ and E[TV] of one release: exact where the candidates can be listed, else by the sampler.

    A result that is no posterior (untruncated Laplace noise may give one) counts as H = TV = 1.

    Symbols: H Hellinger distance, TV total variation, c the true counts and k the released ones.
    Source: [H-notes] sections 4.2 and 4.3.
    Adjacency: none, this is about one table.
    """
    table = mechanism.table(counts)
    few = candidates.number(mechanism.total, len(mechanism.prior)) <= ENUMERATED
    listable = few and getattr(mechanism, "truncated", True)
    if listable:
        tables, shares = mechanism.law(table)
    else:
        tables = mechanism.draw_many(table, draws, noise.generator(rng))
        shares = np.full(draws, 1.0 / draws)
    distance, low, high = _distances(mechanism.prior, table, tables)
    mean = float(shares @ distance)
    error = 0.0 if listable else float(np.sqrt(shares @ (distance - mean) ** 2 / draws))
    return Accuracy(
        hellinger=mean,
        l1=float(shares @ np.abs(tables - table).sum(axis=1)),
        total_variation=(float(shares @ low), float(shares @ high)),
        standard_error=error,
        draws=0 if listable else draws,
    )


def step_probabilities(mechanism: PosteriorMechanism, counts: ArrayLike) -> Floats:
    """P[a release is t steps from the truth], t = 0, 1, …, n; a step moves one record.

    Symbols: n total.
    Source: [H-notes] section 4.4.
    Adjacency: none, this is about one table.
    """
    table = mechanism.table(counts)
    tables, shares = mechanism.law(table)
    steps = np.abs(tables - table).sum(axis=1) // 2
    return np.asarray(np.bincount(steps, shares, mechanism.total + 1), dtype=np.float64)


def _distances(prior: tuple[float, ...], table: Ints, tables: Ints) -> tuple[Floats, Floats, Floats]:
    """H and bounds of TV for every row; 1 where a row is no posterior."""
    alpha = np.asarray(prior)
    valid = (alpha + tables > 0).all(axis=1)
    distance, low, high = np.ones(len(tables)), np.ones(len(tables)), np.ones(len(tables))
    if not valid.any():
        return distance, low, high
    rows = tables[valid]
    if rows.min() >= 0 and len(rows) > table.sum():
        divergence = candidates.divergences(prior, table, rows)
    else:
        divergence = bhattacharyya(alpha + rows, alpha + table)
    inside = np.sqrt(-np.expm1(-divergence))
    distance[valid] = inside
    if len(prior) == 2:
        low[valid] = high[valid] = beta_total_variation(alpha + rows, alpha + table)
    else:
        low[valid], high[valid] = inside**2, inside * np.sqrt(2.0 - inside**2)
    return distance, low, high
