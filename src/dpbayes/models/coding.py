"""Columns of any kind as positions among declared levels, by the one rule of ``Attribute.level``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpbayes.domain.attribute import Attribute
from dpbayes.domain.values import is_missing, plain

Codes = NDArray[np.int64]

_LOOKED_UP = 2**16
"""Integers that span less than this are coded by a table."""


def codes(attribute: Attribute, column: object) -> Codes:
    """The level of every value of a column; values that were not declared follow the attribute's rule.

    >>> codes(Attribute(name="sex", categories=("F", "M")), ["M", "F", None, "?"]).tolist()
    [1, 0, 2, 2]
    """
    values = np.asarray(column)
    if values.dtype.kind in "iub" and values.size:
        return _integer_codes(attribute, values)
    if values.dtype.kind == "f" and attribute.edges:
        return _binned(attribute, values.astype(np.float64))
    distinct: dict[object, int] = {}
    found = np.empty(len(values), dtype=np.int64)
    for position, value in enumerate(values.tolist()):
        key = None if is_missing(value) else value
        level = distinct.get((type(key), key))
        if level is None:
            level = attribute.level(plain(value))
            distinct[type(key), key] = level
        found[position] = level
    return found


def _integer_codes(attribute: Attribute, values: np.ndarray) -> Codes:
    low, high = int(values.min()), int(values.max())
    if high - low < _LOOKED_UP:
        kind = bool if values.dtype.kind == "b" else int
        table = np.array([attribute.level(kind(value)) for value in range(low, high + 1)], dtype=np.int64)
        return table[values.astype(np.int64) - low]
    distinct, inverse = np.unique(values, return_inverse=True)
    return np.array([attribute.level(value) for value in distinct.tolist()], dtype=np.int64)[inverse]


def _binned(attribute: Attribute, values: np.ndarray) -> Codes:
    edges = np.asarray(attribute.edges)
    found = np.searchsorted(edges, values, side="right") - 1
    outside = ~np.isfinite(values) | (values < edges[0]) | (values >= edges[-1])
    found[outside] = attribute.level(np.inf)
    found[np.isnan(values)] = attribute.level(None)
    return found.astype(np.int64)
