"""The exact worst case of the Hellinger mechanism over all neighbouring data sets, and the record that states it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache

import numpy as np

from dpbayes.base import checks
from dpbayes.base.checks import Floats
from dpbayes.base.errors import InvalidArgument, ReleaseError
from dpbayes.hellinger import candidates
from dpbayes.hellinger.distance import Laws, Table
from dpbayes.privacy.bounds import renyi_weights
from dpbayes.privacy.pld import split
from dpbayes.schema.unit import Unit

SLACK = 1e-8
"""Added to every certified ε: covers the rounding of distances and normalisers of small tables."""

QUICK_WORK = 4_000_000
"""Up to this a second or two: then every calibration with a theorem enumerates what composes."""

ORDERS = 1.0 + 2.0 ** (np.arange(-16, 29) / 4.0)
"""The orders of the divergences that a certificate holds. Its records mean these: do not change them."""

STEPS = 64
"""The profile of a certificate has this many steps of ε."""

FINE = 8
"""Losses are moved to multiples of this part of a step."""

LARGEST_EPSILON = 300.0
"""Beyond it e^ε overflows, and nobody wants it: such a certificate holds no curves."""

OPTIONAL = {"digest", "profile", "divergences"}
"""What a record leaves out where it is empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What enumeration proved: ``epsilon`` pure, ``epsilon_at_delta`` at ``delta``, and where the worst case is.

    ``table`` and ``neighbour`` are the data sets and ``candidate`` the release at which the loss is largest. They
    range over all possible data sets and say nothing about any real one. ``digest`` ties these numbers to the
    parameters of one mechanism; a certificate without one is not relied upon.

    ``profile`` holds the largest δ of all pairs at ``STEPS`` equal steps from ε = 0 to ``epsilon``, ``divergences`` the
    largest Rényi divergence at each of the ``ORDERS``: what the release costs beside others. Certificates made before
    have neither, and cost beside others what every release of their pure ε does.
    """

    epsilon: float
    delta: float
    epsilon_at_delta: float
    table: Table
    neighbour: Table
    candidate: Table
    digest: str = ""
    profile: tuple[float, ...] = ()
    divergences: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        checks.positive("Certificate", epsilon=self.epsilon, epsilon_at_delta=self.epsilon_at_delta)
        checks.non_negative("Certificate", delta=self.delta)
        curves = {f"profile[{at}]": each for at, each in enumerate(self.profile)}
        checks.non_negative("Certificate", **curves, **{f"D[{at}]": each for at, each in enumerate(self.divergences)})
        sizes = len(self.profile), len(self.divergences)
        if sizes not in ((0, 0), (STEPS + 1, len(ORDERS))) or (self.profile and self.profile[-1] > 0):
            raise InvalidArgument("Certificate: its profile or its divergences are not complete. Certify again.")

    def record(self) -> dict[str, object]:
        """JSON form."""
        fields = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
        return {key: value for key, value in fields.items() if key not in OPTIONAL or value}

    @classmethod
    def from_record(cls, record: object) -> Certificate:
        """Read the JSON form back."""
        if not isinstance(record, dict) or set(record) | OPTIONAL != set(cls.__dataclass_fields__):
            raise ReleaseError("Certificate: expected a record with " + ", ".join(cls.__dataclass_fields__) + ".")
        fields = {key: tuple(value) if isinstance(value, list) else value for key, value in record.items()}
        return cls(**fields)  # type: ignore[arg-type]  # checked by ``confirm``, which derives them again

    def binding(self, prior: tuple[float, ...], total: int, sharpness: float, smoothing: float, unit: Unit) -> str:
        """SHA-256 of these numbers with the parameters of the mechanism they hold for."""
        parameters = {"prior": prior, "total": total, "sharpness": float(sharpness), "smoothing": float(smoothing)}
        content = {**parameters, "unit": unit.record(), "certificate": replace(self, digest="").record()}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def bound(
        self, prior: tuple[float, ...], total: int, sharpness: float, smoothing: float, unit: Unit
    ) -> Certificate:
        """The certificate with the digest that ties it to these parameters."""
        return replace(self, digest=self.binding(prior, total, sharpness, smoothing, unit))

    def confirm(self, prior: tuple[float, ...], total: int, sharpness: float, smoothing: float) -> None:
        """Raise ReleaseError unless enumeration gives the same numbers; up to half the slack may be missing."""
        derived = certify(prior, total, sharpness=sharpness, smoothing=smoothing, delta=self.delta)
        stated, found = (self.epsilon, self.epsilon_at_delta), (derived.epsilon, derived.epsilon_at_delta)
        near = 1e-7  # as a certificate that is derived again must come
        held = all(-0.5 * SLACK <= one - other <= near for one, other in zip(stated, found, strict=True))
        if held and self.profile:
            curves = _curves(prior, total, sharpness, smoothing, self.epsilon)
            pairs = zip(self.profile + self.divergences, (each for curve in curves for each in curve), strict=True)
            held = all(-0.5 * SLACK * other <= one - other <= near for one, other in pairs)
        if not held:
            raise ReleaseError(
                "Certificate: it is not the one that enumeration gives. Do not trust it; certify the mechanism again."
            )


def work(prior: tuple[float, ...], total: int) -> int:
    """How many pairs of neighbours times candidates a certificate looks at, roughly."""
    cells = len(prior)
    pairs = cells * (cells - 1) if cells > 2 else 1
    like = math.prod(math.factorial(prior.count(value)) for value in set(prior))
    return candidates.number(total, cells) ** 2 * pairs // like


def affordable(prior: tuple[float, ...], total: int) -> bool:
    """Whether a certificate takes about a minute at most."""
    # candidates times neighbouring pairs; with the search around it, a calibration then takes about a minute
    return candidates.number(total, len(prior)) <= candidates.LONGEST_LIST and work(prior, total) <= 100_000_000


def certify(prior: tuple[float, ...], total: int, *, sharpness: float, smoothing: float, delta: float) -> Certificate:
    """ε = max over neighbours c, c′ and candidates k of |ln P_c(k) − ln P_c′(k)|; and the smallest ε at δ.

    It is kept for as long as the process runs, so that charging what was just certified costs nothing more.

    Symbols: P_c the law of the release for table c.
    Source: enumeration, with the symmetries of docs/explanation/proofs/hellinger.md.
    Adjacency: replace-one.

    >>> round(certify((1.0, 1.0), 20, sharpness=0.8, smoothing=0.02, delta=1e-8).epsilon, 3)
    0.479
    """
    if not affordable(prior, total):
        raise InvalidArgument(
            "Certificate: too many candidates to enumerate within a minute. Use the calibration `proved`."
        )
    return _certify(prior, total, sharpness, smoothing, delta)


def with_curves(
    made: Certificate, prior: tuple[float, ...], total: int, sharpness: float, smoothing: float
) -> Certificate:
    """The certificate with what the release costs beside others."""
    if made.epsilon > LARGEST_EPSILON:
        return made
    profile, divergences = _curves(prior, total, sharpness, smoothing, made.epsilon)
    return replace(made, profile=profile, divergences=divergences, digest="")


@lru_cache(maxsize=64)
def _certify(prior: tuple[float, ...], total: int, sharpness: float, smoothing: float, delta: float) -> Certificate:
    laws = Laws.of(prior, total, sharpness, smoothing)
    rows = laws.rows
    pairs = ((table, other) for table in rows.tables() for other in rows.neighbours(table))
    return worst_case(laws, pairs, delta)


def worst_case(laws: Laws, pairs: Iterable[tuple[Table, Table]], delta: float) -> Certificate:
    """The worst of these pairs, both directions of each."""
    pure, at_delta = -1.0, 0.0
    worst: tuple[Table, Table, int] = ((), (), 0)
    for table, other in pairs:
        (log_p, p), (log_q, q) = laws.probabilities(table), laws.probabilities(other)
        loss = log_p - log_q
        for sign, index in ((1.0, int(loss.argmax())), (-1.0, int(loss.argmin()))):
            if sign * loss[index] > pure:
                pure = float(sign * loss[index])
                worst = (table, other, index) if sign > 0 else (other, table, index)
        if delta > 0:
            at_delta = max(at_delta, _epsilon(p, q, delta, at_delta), _epsilon(q, p, delta, at_delta))
    slack = SLACK + laws.rounding
    return Certificate(
        epsilon=pure + slack,
        delta=delta,
        epsilon_at_delta=(at_delta if delta > 0 else pure) + slack,
        table=worst[0],
        neighbour=worst[1],
        candidate=laws.rows.candidate(worst[2]),
    )


def _epsilon(p: Floats, q: Floats, delta: float, start: float) -> float:
    """The smallest ε ≥ start with Σ (p − e^ε·q)₊ ≤ δ: Newton's steps from the left on a convex function of e^ε."""
    factor = math.exp(start)
    while True:
        excess = p - factor * q
        above = excess > 0
        surplus = float(excess[above].sum()) - delta
        if surplus <= 0 or not above.any():
            return math.log(factor)
        step = surplus / float(q[above].sum())
        if step <= 1e-12 * factor:
            return math.log(factor + step)
        factor += step


@lru_cache(maxsize=64)
def _curves(
    prior: tuple[float, ...], total: int, sharpness: float, smoothing: float, epsilon: float
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """δ(ε_i) = max over neighbours c, c′ of Σ_k (P_c(k) − e^{ε_i}·P_c′(k))₊, and D_λ = max D_λ(P_c ‖ P_c′), rounded up

    Losses are first moved to a grid so that both laws keep their mass, which makes every curve larger.

    Symbols: P_c the law of the release for table c, ε_i the steps from 0 to the pure ε, λ the orders.
    Source: enumeration; [Dots] algorithm 1 for the grid; docs/explanation/proofs/hellinger.md, section 4.
    Adjacency: replace-one.
    """
    laws = Laws.of(prior, total, sharpness, smoothing)
    rows, last = laws.rows, STEPS * FINE + 1
    step = epsilon / (STEPS * FINE)
    grid: Floats = step * np.arange(-last, last + 1, dtype=np.float64)
    at = step * FINE * np.arange(STEPS)
    gained, above = -np.expm1(np.minimum(at - grid[:, None], 0.0)), (grid[:, None] > at - 1.5 * step).astype(np.float64)
    small = (ORDERS - 1.0) * epsilon < LARGEST_EPSILON
    weights = np.column_stack([renyi_weights(grid, order) for order in ORDERS[small].tolist()])
    error = 2.5 * (laws.rounding + 1e-14)  # each loss may be wrong by this much, and each probability by this share
    profile, divergences = np.zeros(STEPS), np.where(small, 0.0, epsilon)  # no divergence is above the pure ε
    block: list[Floats] = []
    pairs = [(table, other) for table in rows.tables() for other in rows.neighbours(table)]
    for number, (table, other) in enumerate(pairs, start=1):
        (log_p, p), (log_q, _) = laws.probabilities(table), laws.probabilities(other)
        masses = split(log_p - log_q, p, step, -last, last)[1]
        block += [masses, (masses * np.exp(-grid))[::-1]]
        if len(block) >= 1024 or number == len(pairs):
            found = np.array(block)
            profile = np.maximum(profile, (found @ gained + error * (found @ above)).max(axis=0))
            largest = np.log1p((found @ weights).max(axis=0)) / (ORDERS[small] - 1.0)
            divergences[small] = np.maximum(divergences[small], largest)
            block = []
    profile = np.minimum(profile * (1.0 + SLACK), 1.0)
    divergences = divergences * (1.0 + SLACK) + error * (1.0 + 1.0 / (ORDERS - 1.0))
    return (*_short(profile), 0.0), _short(divergences)


def _short(values: Floats) -> tuple[float, ...]:
    """Twelve digits: what they leave out is far below the slack."""
    return tuple(float(f"{value:.12g}") for value in values.tolist())
