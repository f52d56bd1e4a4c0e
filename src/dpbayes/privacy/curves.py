"""Curves δ(ε), ε(δ) and ε(λ) of whole arrays: each formula is written for one number, once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

CURVES = ("renyi", "delta", "epsilon")


def on_arrays(cls: type[T]) -> type[T]:
    """Let ``renyi``, ``delta`` and ``epsilon`` of a class take arrays too, number by number."""
    for name in CURVES:
        if name in vars(cls):
            setattr(cls, name, _on_arrays(vars(cls)[name]))
    return cls


def _on_arrays(formula: Callable[[Any, float], float]) -> Callable[[Any, Any], Any]:
    @wraps(formula)
    def curve(self: Any, at: Any) -> Any:
        if np.ndim(at) == 0:
            return formula(self, at)
        values = np.asarray(at, dtype=np.float64)
        return np.array([formula(self, float(value)) for value in values.flat]).reshape(values.shape)

    return curve
