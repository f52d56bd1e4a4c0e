"""Rows of the audit's table, and how much work a run does."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from audit.bounds import Evidence, lower


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much a run draws."""

    draws: int
    """Draws of a mechanism from each of two neighbours."""
    pairs: int
    """Pairs of cells in a published table."""
    releases: int
    """Separate releases of each of two neighbours."""
    rows: int
    """Rows of a table that is large enough to spill."""
    thorough: bool
    """Whether slow parts run."""


QUICK = Effort(draws=10_000, pairs=2_000, releases=60, rows=800_000, thorough=False)
LONG = Effort(draws=200_000, pairs=20_000, releases=3_000, rows=3_000_000, thorough=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One attack and what came of it."""

    area: str
    attack: str
    claim: str
    measured: str
    holds: bool
    bounds: int = 0
    """Statistical bounds behind it; zero where nothing is left to chance."""
    rejects: str = ""
    """The weakest planted fault that this attack notices; one that notices none is no evidence."""

    def record(self) -> dict[str, Any]:
        """JSON form."""
        return asdict(self)


Attack = Callable[[Effort], list[Row]]


def from_evidence(area: str, attack: str, evidence: Evidence) -> Row:
    """A row that says what was claimed and what was proved."""
    return Row(
        area=area,
        attack=attack,
        claim=f"ε = {number(evidence.epsilon)} at δ = {number(evidence.delta)}",
        measured=f"ε ≥ {number(evidence.epsilon_proved)}, δ ≥ {number(evidence.delta_proved)}, "
        f"{evidence.draws:,} draws",
        holds=evidence.holds,
        bounds=evidence.bounds,
    )


def from_betrayals(area: str, attack: str, betrayed: int, people: int, stated: float) -> Row:
    """A row for an event that cannot happen without the person: its chance is at most δ, whatever ε is."""
    proved = float(lower(betrayed, people))
    return Row(
        area=area,
        attack=attack,
        claim=f"δ = {number(stated)}",
        measured=f"δ ≥ {number(proved)}, {betrayed:,} of {people:,} people",
        holds=proved <= stated,
        bounds=1,
    )


def number(value: float) -> str:
    """Three digits, for people."""
    if math.isinf(value):
        return "∞"
    return f"{value:.3g}"
