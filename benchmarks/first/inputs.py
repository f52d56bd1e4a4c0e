"""Checks of what is handed to an estimate. All of it is public: released values and declared parameters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.first.noise import GammaNoise, Noise
from dpbayes import _checks
from dpbayes._checks import Floats
from dpbayes.errors import InvalidArgument


def released_values(owner: str, values: ArrayLike, noise: Noise) -> Floats:
    """Finite numbers, and none below zero if they are gamma draws."""
    try:
        table = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(f"{owner}: expected the released values as one array of numbers.") from None
    if table.size == 0 or table.ndim == 0 or not np.isfinite(table).all():
        raise InvalidArgument(f"{owner}: expected the released values as a non-empty array of finite numbers.")
    if isinstance(noise, GammaNoise):
        if (table < 0).any():
            raise InvalidArgument(f"{owner}: expected gamma draws, which are never negative.")
        try:
            np.broadcast_to(noise.concentration, table.shape)
        except ValueError:
            raise InvalidArgument(
                f"{owner}: expected a concentration for each value, {table.shape}, got {np.shape(noise.concentration)}."
            ) from None
    return table


def record_number(owner: str, records: int | None) -> float | None:
    """A public number of records, or None when it is private."""
    if records is None:
        return None
    if isinstance(records, bool) or not isinstance(records, (int, np.integer)) or records < 0:
        raise InvalidArgument(f"{owner}: expected records as a whole number >= 0, or None if private, got {records!r}.")
    return float(records)


def prior_shape(owner: str, shape: ArrayLike | None, expected: tuple[int, ...]) -> Floats:
    """A distribution without zeros over the expected cells; even if none is given."""
    if shape is None:
        return np.full(expected, 1.0 / np.prod(expected))
    try:
        given = np.asarray(shape, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(f"{owner}: expected shape as an array of numbers.") from None
    if given.shape != expected:
        raise InvalidArgument(f"{owner}: expected shape for {expected} cells, got {given.shape}.")
    if not np.isfinite(given).all() or not (given > 0).all():
        raise InvalidArgument(f"{owner}: expected every share of the shape > 0 and finite; mix in an even one.")
    return np.asarray(given / given.sum())


def interval_level(owner: str, level: float | None) -> None:
    """Strictly between 0 and 1, or None for no intervals."""
    if level is not None:
        _checks.probability(owner, level=level)


def unnormalised(owner: str, table: Floats, noise: Noise, totals: Floats | float | None) -> tuple[Floats, Noise]:
    """Dirichlet draws brought back to the scale of gammas: sums over the last axis are r·n + Σα, their mean.

    The likelihood given n does not depend on the scale, so that any would do; this one starts the search well.
    """
    if not (isinstance(noise, GammaNoise) and noise.normalised):
        return table, noise
    if totals is None:
        raise InvalidArgument(f"{owner}: a normalised draw has lost its total; it needs public records.")
    concentration = np.broadcast_to(noise.concentration, table.shape).sum(axis=-1)
    target = noise.weight * np.asarray(totals) + concentration
    scaled = table * (target / np.maximum(table.sum(axis=-1), 1e-300))[..., None]
    return scaled, replace(noise, normalised=False, floor=0.0)


def row_records(owner: str, records: ArrayLike, rows: int) -> Floats:
    """Public totals of the rows: one whole number for each."""
    try:
        totals = np.asarray(records, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(f"{owner}: expected records as one whole number for each row.") from None
    if totals.shape != (rows,):
        raise InvalidArgument(f"{owner}: expected records for {rows} rows, got shape {totals.shape}.")
    if not np.isfinite(totals).all() or (totals < 0).any() or (totals != np.floor(totals)).any():
        raise InvalidArgument(f"{owner}: expected records as whole numbers >= 0.")
    return totals
