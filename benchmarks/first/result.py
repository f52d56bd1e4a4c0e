"""What an estimate consists of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpbayes._checks import Floats

ROUNDING = 1e-6
"""What sums of weights may be off: a number so near to a whole one is that one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Ends of central credible intervals, cell by cell."""

    lower: Floats
    upper: Floats

    @classmethod
    def named(cls, name: str, arrays: dict[str, Floats], *, whole: bool = False) -> Interval | None:
        """The interval called ``name lower``, ``name upper``, if there is one; widened to ``whole`` numbers."""
        lower, upper = arrays.get(f"{name} lower"), arrays.get(f"{name} upper")
        if lower is None or upper is None:
            return None
        if whole:
            lower, upper = np.floor(lower + ROUNDING), np.ceil(upper - ROUNDING)
        return cls(lower=lower, upper=upper)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The noise-aware posterior of a released table, in the table's own shape.

    ``empirical`` is about the records themselves, ``population`` about where such records come from.
    """

    counts: Floats
    empirical: Floats
    population: Floats
    records: Floats | float
    """The number of records of the table, or of each row: as declared, or estimated."""
    strength: float
    """β: how many records per cell the fitted prior is worth."""
    level: float | None
    counts_interval: Interval | None
    empirical_interval: Interval | None
    population_interval: Interval | None
    notes: tuple[str, ...]
