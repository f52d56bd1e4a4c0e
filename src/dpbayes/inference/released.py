"""Reading a released posterior: the law of the counts given what was released, with the noise of the mechanism.

A released Dir(prior + k) is no posterior: k carries noise. What it says about the counts c is
P(c | k) ∝ P(k | c) · DirichletMultinomial(c | prior), and shares follow: θ | c ~ Dir(prior + c).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from dpbayes.base import checks
from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import InvalidArgument
from dpbayes.hellinger.baselines import PosteriorExponential, PosteriorLaplace
from dpbayes.hellinger.mechanism import Hellinger
from dpbayes.inference import everywhere, importance
from dpbayes.inference.measurement import Measurement
from dpbayes.inference.product import DRAWS, LISTED, Logs, hints, product_law
from dpbayes.mechanisms.gaussian import GaussianNoise
from dpbayes.mechanisms.kinds import Noise
from dpbayes.mechanisms.laplace import LaplaceNoise


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Reading:
    """Weighted draws of the counts behind a released posterior, and the law of shares that follows from them.

    Two readers of one release have the same draws: the generator is seeded with what was released.
    """

    prior: Floats
    """Parameters of the prior."""
    total: int
    """The public number of records."""
    counts: Ints
    """Tables, one per row."""
    weights: Floats
    """The probability of each; they add up to one."""
    told: tuple[everywhere.CellNoise, ...] = ()
    """What was released of each cell, where its noise has a law that does not depend on other cells."""
    _cells: list[tuple[Floats, Floats]] = field(default_factory=list)

    @property
    def size(self) -> float:
        """The sum of the parameters of every posterior behind it, n + Σα."""
        return float(self.total + self.prior.sum())

    @property
    def expected_counts(self) -> Floats:
        """Mean of the counts."""
        return np.asarray(self.weights @ self.counts)

    @property
    def mean(self) -> Floats:
        """Mean of the shares: (α + E[c])/(n + Σα)."""
        return np.asarray((self.prior + self.expected_counts) / self.size)

    def interval(self, level: float = 0.95, *, of: str = "shares") -> tuple[Floats, Floats]:
        """Lower and upper ends, cell by cell: of the shares, or of the ``counts``.

        Where Laplace or Gaussian noise is ``told`` they hold at every truth, whatever it is; the prior only makes them
        shorter. Else they are the ``credible`` ones, up to 0 or 1 where the cell may hold no record or all.
        """
        if not self.told:
            lower, upper = self.credible(level, of=of)
            if of == "counts":
                return lower, upper
            least, most = self.credible(level, of="counts")
            return np.where(least <= 0, 0.0, lower), np.where(most >= self.total, 1.0, upper)
        checks.probability("Reading", level=level)
        checks.one_of("Reading", ("shares", "counts"), of=of)
        size, mean = float(self.prior.sum()), self.mean if of == "shares" else self.expected_counts
        pairs = zip(self.told, self.prior.tolist(), strict=True)
        found = np.array([everywhere.ends(each, a, size - a, self.total, level, of=of) for each, a in pairs])
        return np.minimum(found[:, 0], mean), np.maximum(found[:, 1], mean)

    def credible(self, level: float = 0.95, *, of: str = "shares") -> tuple[Floats, Floats]:
        """Ends of central intervals of the posterior: they hold the truth on average over the prior."""
        checks.probability("Reading", level=level)
        checks.one_of("Reading", ("shares", "counts"), of=of)
        tails = 0.5 * (1.0 - level), 0.5 * (1.0 + level)
        lower, upper = (np.array([self._quantile(cell, tail, of) for cell in range(self.prior.size)]) for tail in tails)
        return lower, upper

    def promise(self, level: float = 0.95) -> str:
        """What an ``interval`` promises, in a sentence or two."""
        said = f"An interval holds the true number or share with probability {100 * level:g} %"
        if self.told:
            return f"{said}, whatever that is. The prior only makes it shorter."
        return (
            f"{said} on average over the declared prior, not at every share: at one that the prior finds unlikely, "
            "such as an empty cell, it can be wrong nearly always."
        )

    def cdf(self, cell: int, at: ArrayLike) -> Floats:
        """P[share of the cell ≤ at]."""
        from scipy.special import betainc

        counts, weights = self._cell(cell)
        a, x = self.prior[cell] + counts, np.clip(np.asarray(at, np.float64), 0.0, 1.0)
        return np.asarray(betainc(a, self.size - a, x[..., None]) @ weights)

    def density(self, cell: int, grid: ArrayLike) -> tuple[Floats, Floats]:
        """Density of the share of a cell on a grid between 0 and 1: now, and before anything was released."""
        counts, weights = self._cell(cell)
        a, alpha = self.prior[cell] + counts, self.prior[cell]
        x = np.asarray(grid, np.float64)[..., None]
        now = _beta_density(x, a, self.size - a) @ weights
        before = _beta_density(x, np.array([alpha]), np.array([self.prior.sum() - alpha]))[..., 0]
        return np.asarray(now), before

    def draws(self, number: int, rng: np.random.Generator) -> Floats:
        """Draws of all shares, one per row."""
        checks.positive_integer("Reading", number=number)
        rows = rng.choice(self.weights.size, size=number, p=self.weights)
        gammas = rng.standard_gamma(self.prior + self.counts[rows])
        return np.asarray(gammas / gammas.sum(axis=1, keepdims=True))

    def _cell(self, cell: int) -> tuple[Floats, Floats]:
        """Different counts of a cell and their weights; many of them are gathered into groups of neighbours."""
        if not self._cells:
            most = int(np.clip(20_000 // self.prior.size, 16, 300))  # 20,000 of all cells together
            self._cells.extend(_group(column, self.weights, most) for column in self.counts.T)
        return self._cells[cell]

    def _quantile(self, cell: int, tail: float, of: str) -> float:
        if of == "counts":
            order = np.argsort(self.counts[:, cell], kind="stable")
            found = np.searchsorted(np.cumsum(self.weights[order]), tail)
            return float(self.counts[order[min(int(found), order.size - 1)], cell])
        from scipy.special import betaincinv

        counts, _ = self._cell(cell)
        ends = self.prior[cell] + counts[[0, -1]]
        low, high = (float(end) for end in betaincinv(ends, self.size - ends, tail))
        for _ in range(4):  # each round leaves a sixteenth of the bracket
            grid = np.linspace(low, high, 17)
            chances = self.cdf(cell, grid)
            place = min(max(int(np.searchsorted(chances, tail)), 1), 16)
            low, high = grid[place - 1], grid[place]
            below, above = chances[place - 1], chances[place]
        part = (tail - below) / (above - below) if above > below else 0.5
        return float(low + np.clip(part, 0.0, 1.0) * (high - low))

    def __repr__(self) -> str:
        return f"Reading({self.prior.size} cells, {self.total:,} records, {self.weights.size:,} draws)"


def reading(
    mechanism: PosteriorLaplace | Hellinger | PosteriorExponential | Noise,
    parameters: Sequence[float],
    *,
    prior: Sequence[float] | None = None,
    total: int | None = None,
    factor: Measurement | None = None,
) -> Reading:
    """What released parameters say about the counts and the shares, cell by cell; kept for as long as the process runs.

    Args:
        mechanism: What released them, or the noise that was added to every count.
        parameters: Prior plus noisy counts, as released.
        prior: Parameters of the prior, where the mechanism does not hold them.
        total: The public number of records, likewise.
        factor: Another measurement of the same cells: its likelihood multiplies in.

    >>> from dpbayes import Unit
    >>> unit = Unit(adjacency="replace-one")
    >>> noisy = PosteriorLaplace(prior=(1.0, 1.0), total=98, scale=5.0, truncated=True, unit=unit)
    >>> read = reading(noisy, (31.0, 69.0))
    >>> read.mean.round(2).tolist(), [end.round(2).tolist() for end in read.interval()]
    ([0.31, 0.69], [[0.17, 0.52], [0.48, 0.83]])
    """
    alpha = tuple(float(value) for value in getattr(mechanism, "prior", prior) or ())
    records = getattr(mechanism, "total", total)
    if not alpha or records is None or len(parameters) != len(alpha):
        raise InvalidArgument("Reading: expected one parameter for each cell of the prior, and the number of records.")
    if factor is None:
        return _kept(mechanism, tuple(map(float, parameters)), alpha, int(records))  # type: ignore[arg-type]  # all frozen
    return _read(mechanism, tuple(map(float, parameters)), alpha, int(records), factor)


def _read(
    mechanism: PosteriorLaplace | Hellinger | PosteriorExponential | Noise,
    parameters: tuple[float, ...],
    prior: tuple[float, ...],
    total: int,
    factor: Measurement | None = None,
) -> Reading:
    released = np.asarray(parameters) - np.asarray(prior)
    base = _prior_logs(prior, total)
    if factor is not None:
        base = [
            _sum(one, other) for one, other in zip(base, _noise_logs(factor.noise, factor.values.ravel()), strict=True)
        ]
    said = repr((mechanism, parameters, prior, total)).replace("=Unit(", "=Privacy" + "Unit(")  # its name in 0.2.0
    seed = hashlib.sha256(said.encode()).digest()
    rng = np.random.default_rng(int.from_bytes(seed[:16], "big"))
    seen = [released] if factor is None else [released, np.asarray(factor.noise.center(factor.values.ravel()))]
    near = hints(seen, prior, total)
    if isinstance(mechanism, Hellinger | PosteriorExponential):
        release = _release(mechanism, np.rint(released).astype(np.int64))
        if len(prior) == 2 and total < LISTED:
            counts, weights = importance.list_tables(release, base)
        else:
            counts, weights = importance.draw_tables(
                release, base, _background(base, prior, total, near, factor, rng), rng
            )
    else:
        told = (
            _noisy(mechanism, released) if isinstance(mechanism, PosteriorLaplace) else _noise_logs(mechanism, released)
        )
        logs = [_sum(one, other) for one, other in zip(base, told, strict=True)]
        counts, weights, _ = product_law(logs, total, near, rng)
    known = _cell_noises(mechanism, np.rint(released).astype(np.int64), total) if factor is None else ()
    return Reading(prior=np.asarray(prior), total=total, counts=counts, weights=weights, told=known)


def _cell_noises(
    mechanism: PosteriorLaplace | Hellinger | PosteriorExponential | Noise, released: Ints, total: int
) -> tuple[everywhere.CellNoise, ...]:
    """The laws of the noise in each cell; none where they depend on other cells.

    Nor where cells times the scale of the noise are too many for intervals that hold at every truth.
    """
    pair = isinstance(mechanism, PosteriorLaplace) and released.size == 2
    scale = getattr(mechanism, "scale", getattr(mechanism, "sigma", math.inf))
    if not (pair or isinstance(mechanism, LaplaceNoise | GaussianNoise)) or not scale * released.size < 20_000:
        return ()
    noise = LaplaceNoise(scale=scale) if pair else cast(Noise, mechanism)
    half = math.ceil(23.0 * scale) + 2
    law = np.exp(noise.log_law(0.0, np.arange(-half, half + 1)))
    law /= law.sum()
    if not pair:
        return tuple(everywhere.of_sum(released, law, total))
    cut = bool(mechanism.truncated)  # type: ignore[union-attr]
    return tuple(everywhere.CellNoise(value=int(k), first=-half, law=law, cut=cut) for k in released)


def _release(mechanism: Hellinger | PosteriorExponential, released: Ints) -> importance.Observed:
    smoothing = getattr(mechanism, "smoothing", 0.0)
    if getattr(mechanism, "score", "hellinger") != "hellinger" or not np.isfinite(smoothing):
        raise InvalidArgument(
            "Reading: a posterior that was scored by anything but the Hellinger distance, or with local sensitivity, "
            "has no estimates: the law of its noise is not known. Its parameters are all there is."
        )
    return importance.Observed(
        prior=mechanism.prior, sharpness=mechanism.sharpness, smoothing=smoothing, released=released
    )


def _background(
    base: Sequence[Logs],
    prior: tuple[float, ...],
    total: int,
    near: Sequence[Ints],
    factor: Measurement | None,
    rng: np.random.Generator,
) -> tuple[Ints, float]:
    """Draws of what is known without the release, and the logarithm of the mass of their law: Σ_c Π_i e^{l_i(c_i)}."""
    if factor is not None:
        tables, weights, mass = product_law(base, total, near, rng)
        return tables if len(prior) > 2 else tables[rng.choice(len(tables), DRAWS, p=weights)], mass
    from scipy.special import gammaln

    tables = rng.multinomial(total, rng.dirichlet(prior, size=DRAWS))
    size = float(np.sum(prior))
    tilt = total * float(np.log(total) - np.log(total + size))
    return tables, float(gammaln(size + total) - gammaln(size) - gammaln(total + 1.0)) + tilt


_kept = lru_cache(maxsize=64)(_read)


def _prior_logs(prior: Sequence[float], total: int) -> list[Logs]:
    """Of Γ(α + c)/(Γ(α)·c!)·pᶜ, p = n/(n + Σα): their product is the Dirichlet-multinomial law, as Σc is fixed."""
    tilt = float(np.log(total) - np.log(total + np.sum(prior)))
    return [partial(_prior_log, alpha=alpha, tilt=tilt) for alpha in prior]


def _prior_log(c: Ints, alpha: float, tilt: float) -> Floats:
    from scipy.special import gammaln

    return np.asarray(gammaln(alpha + c) - gammaln(alpha) - gammaln(c + 1.0) + tilt * c)


def _noise_logs(noise: Noise, values: Floats) -> list[Logs]:
    return [partial(noise.log_law, float(value)) for value in values]


def _noisy(mechanism: PosteriorLaplace, released: Floats) -> list[Logs]:
    """Of the baseline: a product over cells even where counts are cut to what is left, since that is released."""
    counts = np.rint(released).astype(np.int64)
    if not mechanism.truncated:
        return [*_noise_logs(LaplaceNoise(scale=mechanism.scale), released[:-1]), _nothing]
    left = mechanism.total - np.cumsum(counts) + counts
    pairs = zip(counts.tolist(), left.tolist(), strict=True)
    return [*(partial(_cut, mechanism=mechanism, k=k, left=rest) for k, rest in list(pairs)[:-1]), _nothing]


def _cut(c: Ints, mechanism: PosteriorLaplace, k: int, left: int) -> Floats:
    return mechanism.log_truncated(k - c, np.array(k == 0), np.array(k == left))


def _nothing(c: Ints) -> Floats:
    return np.zeros(c.shape)


def _sum(one: Logs, other: Logs) -> Logs:
    return lambda c: one(c) + other(c)


def _group(column: Ints, weights: Floats, most: int) -> tuple[Floats, Floats]:
    values, place = np.unique(column, return_inverse=True)
    summed = np.asarray(np.bincount(place, weights, values.size), np.float64)
    if values.size <= most:
        return values.astype(np.float64), summed
    half, spread = most / 2, (values - values[0]) / (values[-1] - values[0])
    group = np.minimum(half * np.cumsum(summed), half - 1).astype(np.int64)  # of like mass, and not too wide
    group += (half * spread).astype(np.int64)
    group[[0, -1]] = -1, 2 * most  # the ends stay apart: they bracket every quantile
    _, place = np.unique(group, return_inverse=True)
    total = np.asarray(np.bincount(place, summed), np.float64)
    return np.asarray(np.bincount(place, summed * values) / np.maximum(total, 1e-300)), total


def _beta_density(x: Floats, a: Floats, b: Floats) -> Floats:
    from scipy.special import betaln, xlog1py, xlogy

    with np.errstate(divide="ignore"):
        return np.asarray(np.exp(xlogy(a - 1.0, x) + xlog1py(b - 1.0, -x) - betaln(a, b)))
