"""The exact worst case of the Hellinger mechanism over all neighbouring data sets, and the record that states it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache

from dpbayes import _checks
from dpbayes._checks import Floats
from dpbayes.domain.unit import PrivacyUnit
from dpbayes.errors import InvalidArgument, ReleaseError
from dpbayes.mechanisms.hellinger import candidates
from dpbayes.mechanisms.hellinger.laws import Laws, Table

SLACK = 1e-8
"""Added to every certified ε: covers the rounding of distances and normalisers of small tables."""

AGREE = 1e-7
"""How near a certificate that is derived again must come."""

LARGEST_WORK = 100_000_000
"""Candidates times neighbouring pairs: with the search around it, a calibration then takes about a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What enumeration proved: ``epsilon`` pure, ``epsilon_at_delta`` at ``delta``, and where the worst case is.

    ``table`` and ``neighbour`` are the data sets and ``candidate`` the release at which the loss is largest. They
    range over all possible data sets and say nothing about any real one. ``digest`` ties these numbers to the
    parameters of one mechanism; dpbayes 0.1.0 wrote none, and such a certificate is not relied upon.
    """

    epsilon: float
    delta: float
    epsilon_at_delta: float
    table: Table
    neighbour: Table
    candidate: Table
    digest: str = ""

    def __post_init__(self) -> None:
        _checks.positive("Certificate", epsilon=self.epsilon, epsilon_at_delta=self.epsilon_at_delta)
        _checks.non_negative("Certificate", delta=self.delta)

    def record(self) -> dict[str, object]:
        """JSON form."""
        fields = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
        return {key: value for key, value in fields.items() if key != "digest" or value}

    @classmethod
    def from_record(cls, record: object) -> Certificate:
        """Read the JSON form back."""
        if not isinstance(record, dict) or set(record) | {"digest"} != set(cls.__dataclass_fields__):
            raise ReleaseError("Certificate: expected a record with " + ", ".join(cls.__dataclass_fields__) + ".")
        fields = {key: tuple(value) if isinstance(value, list) else value for key, value in record.items()}
        return cls(**fields)  # type: ignore[arg-type]  # checked by ``confirm``, which derives them again

    def binding(
        self, prior: tuple[float, ...], total: int, sharpness: float, smoothing: float, unit: PrivacyUnit
    ) -> str:
        """SHA-256 of these numbers with the parameters of the mechanism they hold for."""
        parameters = {"prior": prior, "total": total, "sharpness": float(sharpness), "smoothing": float(smoothing)}
        content = {**parameters, "unit": unit.record(), "certificate": replace(self, digest="").record()}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def confirm(self, prior: tuple[float, ...], total: int, sharpness: float, smoothing: float) -> None:
        """Raise ReleaseError unless enumeration gives the same numbers; up to half the slack may be missing."""
        derived = certify(prior, total, sharpness=sharpness, smoothing=smoothing, delta=self.delta)
        stated, found = (self.epsilon, self.epsilon_at_delta), (derived.epsilon, derived.epsilon_at_delta)
        if not all(-0.5 * SLACK <= one - other <= AGREE for one, other in zip(stated, found, strict=True)):
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
    listable = len(prior) == 2 or candidates.number(total, len(prior)) <= candidates.LONGEST_LIST
    return listable and work(prior, total) <= LARGEST_WORK


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
