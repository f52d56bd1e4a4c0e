"""Hellinger mechanisms for a target: as published, as proved, as certified, and the global and local variants."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dpbayes.base import checks
from dpbayes.base.errors import InvalidArgument, TargetUnreachable
from dpbayes.hellinger import candidates
from dpbayes.hellinger.certificate import QUICK_WORK, Certificate, affordable, certify, with_curves, work, worst_case
from dpbayes.hellinger.distance import Laws, Rows, Sensitivities, Table
from dpbayes.hellinger.mechanism import Hellinger, published_smoothing
from dpbayes.hellinger.promise import SmoothTail
from dpbayes.hellinger.sensitivity import largest_useful_smoothing, range_excess, smooth_sensitivity
from dpbayes.privacy.calibrate import Family
from dpbayes.privacy.convert import GOLDEN
from dpbayes.schema.unit import Unit

Prior = tuple[float, ...]

_SMOOTHINGS = np.geomspace(2e-3, 2.0, 13)


def published(*, prior: Prior, total: int, epsilon: float, delta: float, unit: Unit) -> Hellinger:
    """The mechanism of the papers, with their γ and their promise. The printed proof leaves out the normalisers.

    Source: [H-abstract] theorem 4.1, with |R| for n + 1 as in [H-full].
    """
    _check(prior, total, unit, epsilon, delta)
    smoothing = published_smoothing(epsilon, delta, candidates.log_number(total, len(prior)))
    return Hellinger(
        prior=prior,
        total=total,
        sharpness=epsilon,
        smoothing=smoothing,
        calibration="published",
        unit=unit,
        delta_published=delta,
    )


def with_global(*, prior: Prior, total: int, epsilon: float, unit: Unit) -> Hellinger:
    """The exponential mechanism with global sensitivity: ε-DP.

    Source: [H-notes] section 2.1; [MT07] theorem 6.
    """
    return _enumerated(
        Hellinger(prior=prior, total=total, sharpness=epsilon, smoothing=0.0, calibration="proved", unit=unit)
    )


def with_local(*, prior: Prior, total: int, epsilon: float, unit: Unit) -> Hellinger:
    """The exponential mechanism with local sensitivity as in the papers: it promises nothing, for experiments only.

    Source: [H-notes] section 2.2.
    """
    return Hellinger(prior=prior, total=total, sharpness=epsilon, smoothing=math.inf, calibration="none", unit=unit)


def proved(
    *,
    prior: Prior,
    total: int,
    epsilon: float,
    delta: float = 0.0,
    unit: Unit,
    around: Sequence[Sequence[int]] | None = None,
) -> Hellinger:
    """The best γ, and the largest sharpness for which one of our two theorems gives (ε, δ) with it; δ = 0 is pure ε.

    γ is where ``expected_distance`` is smallest. S depends on the table, so that is averaged over public reference
    tables: ``around``, or draws from the prior. It is never chosen from the data.

    Source: our proof, docs/explanation/proofs/hellinger.md.
    """
    _check(prior, total, unit, epsilon, delta or 0.5)
    tables = references(prior, total, around)
    logs = candidates.log_number(total, len(prior))

    def sharpness(smoothing: float) -> float:
        purely = epsilon / (1.0 + 0.5 * range_excess(prior, total, smoothing)) * (1.0 - 1e-15)
        if smoothing == 0 or delta == 0:
            return purely
        tail = SmoothTail(sharpness=0.0, smoothing=smoothing, log_candidates=logs)
        return max(purely, epsilon - tail.epsilon(delta))

    def mean_distance(smoothing: float) -> float:
        half = 0.5 * sharpness(smoothing)
        exponents = [half / smooth_sensitivity(prior, table, smoothing) for table in tables]
        return math.fsum(expected_distance(prior, *pair) for pair in zip(tables, exponents, strict=True)) / len(tables)

    # little smoothing is where the tail can win, and from the largest on all γ are alike
    largest = largest_useful_smoothing(prior, total)
    smallest = min(1e-3 * epsilon / logs, 1e-3 * largest)
    smoothing = _minimiser(mean_distance, np.geomspace(smallest, largest, 12))
    smoothing = min(smoothing, 0.0, key=mean_distance)
    return _enumerated(
        Hellinger(
            prior=prior,
            total=total,
            sharpness=sharpness(smoothing),
            smoothing=smoothing,
            calibration="proved",
            unit=unit,
        )
    )


def _enumerated(made: Hellinger) -> Hellinger:
    """The mechanism with what it costs exactly, where that takes a second or two."""
    if not affordable(made.prior, made.total) or work(made.prior, made.total) > QUICK_WORK:
        return made
    found = certify(made.prior, made.total, sharpness=made.sharpness, smoothing=made.smoothing, delta=0.0)
    found = with_curves(found, made.prior, made.total, made.sharpness, made.smoothing)
    bound = found.bound(made.prior, made.total, made.sharpness, made.smoothing, made.unit)
    return replace(made, certificate=bound) if found.profile else made


def certified(
    *,
    prior: Prior,
    total: int,
    epsilon: float,
    unit: Unit,
    delta: float = 0.0,
    around: Sequence[Sequence[int]] | None = None,
) -> Hellinger:
    """γ and sharpness, tuned jointly for the smallest expected distance, whose enumerated worst case is pure ε.

    The expected distance is averaged over public reference tables: ``around``, or draws from the prior. The
    certificate also states the exact ε at δ, if that is not 0. Refused where enumeration takes minutes.

    Source: docs/explanation/proofs/hellinger.md.
    """
    _check(prior, total, unit, epsilon, delta or 0.5)
    if not affordable(prior, total):
        raise InvalidArgument(
            f"Hellinger: {candidates.number(total, len(prior))} candidates are too many to certify in a minute. "
            "Use the calibration `proved`."
        )
    rows = Rows(prior, total)
    active = _active_pairs(rows)
    tables = [tuple(int(k) for k in table) for table in references(prior, total, around)]

    def tuned(smoothing: float) -> tuple[float, float]:
        """Expected distance and sharpness at this γ, by the active pairs only."""
        sensitivities = Sensitivities(rows, smoothing)
        sharpness = _largest_sharpness(
            lambda s: worst_case(Laws(rows, s, sensitivities), active, 0.0).epsilon, epsilon, start=1.5 * epsilon
        )
        laws = Laws(rows, sharpness, sensitivities)
        return float(np.mean([laws.expected_distance(table) for table in tables])), sharpness

    smoothing = _minimiser(lambda gamma: tuned(gamma)[0], _SMOOTHINGS)
    sharpness = tuned(smoothing)[1]
    best: tuple[Certificate, float] | None = None
    for _ in range(8):
        certificate = certify(prior, total, sharpness=sharpness, smoothing=smoothing, delta=delta)
        ratio = epsilon / certificate.epsilon
        if ratio >= 1.0:
            best = certificate, sharpness
            if ratio < 1.0 + 1e-4:
                break
        sharpness *= ratio * (1.0 - 1e-5)
    if best is None:
        raise TargetUnreachable(f"Hellinger: no sharpness was certified for ε={epsilon:g}.")
    certificate, sharpness = best
    certificate = with_curves(certificate, prior, total, sharpness, smoothing)
    return with_certificate(prior, total, sharpness, smoothing, unit, certificate)


def with_certificate(
    prior: Prior, total: int, sharpness: float, smoothing: float, unit: Unit, certificate: Certificate
) -> Hellinger:
    """The mechanism that a certificate belongs to, and is from now on bound to."""
    return Hellinger(
        prior=prior,
        total=total,
        sharpness=sharpness,
        smoothing=smoothing,
        calibration="certified",
        unit=unit,
        certificate=certificate.bound(prior, total, sharpness, smoothing, unit),
    )


def family(*, prior: Prior, total: int, unit: Unit, smoothing: float = 0.0) -> Family[Hellinger]:
    """Proved mechanisms at one γ, by their sharpness: for ``privacy.calibrate``, alone or alongside other releases."""
    return Family(
        name="hellinger",
        make=lambda sharpness: Hellinger(
            prior=prior, total=total, sharpness=sharpness, smoothing=smoothing, calibration="proved", unit=unit
        ),
        larger_is_safer=False,
    )


def references(prior: Prior, total: int, around: Sequence[Sequence[int]] | None) -> list[Table]:
    """Public tables that a mechanism is tuned for: those handed in, or fixed draws from the prior."""
    if around is not None:
        checked = [candidates.check_counts("Hellinger", table, len(prior), total) for table in around]
        if not checked:
            raise InvalidArgument("Hellinger: expected at least one reference table in around.")
        return [tuple(int(k) for k in table) for table in checked]
    # not a secret: the same tables every time, so that a calibration can be reproduced
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(total, rng.dirichlet(np.maximum(prior, 1e-3), size=16))
    return [tuple(int(k) for k in table) for table in drawn]


def expected_distance(prior: Prior, table: Table, exponent: float) -> float:
    """E[H] ≈ (m/a + w)/(1 + w), w = |R|·e^{−a}/Z, Z = m!·V_m·(8/a²)^{m/2}·√(Πu/Σu) at least 1: near and far candidates.

    Near the truth H is a norm, so the weights e^{−aH} have mass Z and mean distance m/a there. Far from it H is about
    1, and all |R| candidates are as good. Once ln|R| exceeds a + ln Z, the release says nothing.

    Symbols: a exponent, m = d − 1, V_m volume of the unit ball, u = α + c the posterior's parameters, R candidates.
    Source: our approximation, docs/explanation/proofs/hellinger.md.
    Adjacency: none, this is about one table.
    """
    axes = len(prior) - 1
    own = np.add(prior, table)
    log_ball = 0.5 * axes * math.log(math.pi) - math.lgamma(0.5 * axes + 1.0)
    log_shape = 0.5 * (float(np.log(own).sum()) - math.log(float(own.sum())))
    log_near = math.lgamma(axes + 1.0) + log_ball + 0.5 * axes * math.log(8.0) - axes * math.log(exponent) + log_shape
    log_far = candidates.log_number(sum(table), len(prior)) - exponent
    far = math.exp(min(log_far - max(log_near, 0.0), 700.0))
    return (min(axes / exponent, 1.0) + far) / (1.0 + far)


def _active_pairs(rows: Rows) -> list[tuple[Table, Table]]:
    """A spread of neighbouring pairs, dense near the border of the simplex: enough to search with."""
    room = max(min(4_000_000 // rows.size, 400), 24) // 2
    tables = list(rows.tables())
    size = len(tables)
    if len(rows.prior) == 2:
        ends = np.geomspace(1, size, room).astype(np.int64) - 1
        chosen = np.unique(
            np.concatenate([ends, size - 1 - ends, np.linspace(0, size - 1, room // 4).astype(np.int64)])
        )
    else:
        chosen = np.unique(np.linspace(0, size - 1, max(room // len(rows.prior), 12)).astype(np.int64))
    return [(tables[index], other) for index in chosen for other in rows.neighbours(tables[index])]


def _largest_sharpness(cost: Callable[[float], float], epsilon: float, start: float) -> float:
    """Where the cost, nearly proportional to the sharpness, reaches ε."""
    sharpness = start
    for _ in range(12):
        ratio = epsilon / cost(sharpness)
        sharpness *= ratio
        if abs(ratio - 1.0) < 1e-4:
            break
    return sharpness


def _minimiser(value: Callable[[float], float], grid: np.ndarray) -> float:
    """A grid, then a golden section around its best point."""
    values = [value(float(x)) for x in grid]
    best = int(np.argmin(values))
    low, high = math.log(grid[max(best - 1, 0)]), math.log(grid[min(best + 1, len(grid) - 1)])
    tried = {float(grid[best]): values[best]}
    for _ in range(6):
        a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        for x in (a, b):
            if math.exp(x) not in tried:
                tried[math.exp(x)] = value(math.exp(x))
        low, high = (low, b) if tried[math.exp(a)] <= tried[math.exp(b)] else (a, high)
    return min(tried, key=tried.__getitem__)


def _check(prior: Prior, total: int, unit: Unit, epsilon: float, delta: float) -> None:
    candidates.check_prior("Hellinger", prior)
    candidates.check_unit("Hellinger", unit)
    candidates.check_total("Hellinger", total)
    checks.positive("Hellinger", epsilon=epsilon)
    checks.probability("Hellinger", delta=delta)
