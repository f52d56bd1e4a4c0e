"""Numbers rounded to what their noise supports: for pages, tables and files of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpbayes._checks import Floats

MOST_DIGITS = 6
"""Decimals at most: a percentage is never printed finer."""

FINEST = 15.0
"""Powers of ten within which doubles are rounded: they hold no more digits."""

FOR_READERS, FOR_FILES = 0.5, 0.05
"""How large a rounding step may be, as a share of the uncertainty: it adds a quarter of the share to the error at most
(half a step). People get one or two digits of it, programs one digit more."""


SMALLEST = 1e-300
"""A file may state any number; what is smaller cannot be told from this."""

LOPSIDED = 3.0
"""An interval whose longer side is up to this many times its shorter one is printed as ± the longer side."""


def step_of(uncertainty: float, share: float = FOR_READERS) -> float:
    """The largest power of ten that is at most this share of the uncertainty (half the width of an interval).

    >>> step_of(37.0), step_of(0.4), step_of(0.15)
    (10.0, 0.1, 0.01)
    """
    if not (math.isfinite(uncertainty) and uncertainty > 0):
        return 10.0**-MOST_DIGITS
    return 10.0 ** math.floor(math.log10(max(uncertainty * share, SMALLEST)) + 1e-9)


def decimals(step: float) -> int:
    """How many decimals show a step.

    >>> decimals(0.01), decimals(10.0)
    (2, 0)
    """
    return min(max(-math.floor(math.log10(step) + 0.5), 0), MOST_DIGITS)


def text_of(value: float, step: float) -> str:
    """A number rounded to a step, with thousands separated and no negative zero.

    >>> text_of(10471.3, 10.0), text_of(0.0421, 0.01), text_of(-0.0001, 0.01)
    ('10,470', '0.04', '0.00')
    """
    nearest = _whole(round, value / step, value, step) + 0.0
    digits = decimals(step)
    said = f"{nearest:,.{digits}f}"
    return said.removeprefix("-") if float(said.replace(",", "")) == 0 else said.replace("-", "−", 1)


def _whole(rounding: Callable[[float], int], steps: float, value: float, step: float) -> float:
    """A number of steps, made whole; a value of more steps than doubles count stays as it is."""
    return rounding(steps) * step if math.isfinite(steps) else value


def outward(lower: float, upper: float, step: float) -> tuple[float, float]:
    """An interval rounded away from its middle, so that it still holds what it held.

    >>> outward(0.123, 0.181, 0.01)
    (0.12, 0.19)
    """
    ends = _whole(math.floor, lower / step + 1e-9, lower, step), _whole(math.ceil, upper / step - 1e-9, upper, step)
    return round(ends[0], 12) + 0.0, round(ends[1], 12) + 0.0


def spread_text(value: float, lower: float, upper: float, step: float, top: float = math.inf) -> str:
    """The uncertainty of a number: ± the longer side of its interval, or the interval where it is lopsided.

    What ± reaches is possible: nothing below zero, and nothing above ``top``.

    >>> spread_text(12.3, 11.9, 12.7, 0.1), spread_text(0.2, 0.0, 0.9, 0.1)
    ('± 0.4', '0.0–0.9')
    """
    short, long = sorted((upper - value, value - lower))
    if long <= LOPSIDED * short + step and value - long >= -step and value + long <= top + step:
        return f"± {text_of(_whole(math.ceil, long / step - 1e-6, long, step), step)}"
    low, high = outward(lower, upper, step)
    return f"{text_of(low, step)}–{text_of(high, step)}"


def for_files(
    values: Floats, lower: Floats | None, upper: Floats | None
) -> tuple[Floats, Floats | None, Floats | None]:
    """Each number rounded to a digit or two of its own uncertainty; intervals outward, so that they hold it.

    >>> [part.tolist() for part in for_files(*(np.array([end]) for end in (0.123456, 0.1201, 0.1299)))]
    [[0.1235], [0.1201], [0.1299]]
    """
    if lower is None or upper is None:
        six = np.array([float(f"{value:.6g}") for value in values.tolist()])
        return six, lower, upper
    half = np.maximum(np.subtract(upper, lower) / 2, 0.0)
    sure = ~(np.isfinite(half) & (half > 0))
    power = np.floor(np.log10(np.where(sure, 1.0, half) * FOR_FILES) + 1e-9)
    power = np.clip(np.where(sure, -float(MOST_DIGITS), power), -FINEST, FINEST)
    up, down = 10.0 ** np.maximum(power, 0.0), 10.0 ** np.maximum(-power, 0.0)  # a step is up / down: both are exact
    return (
        np.rint(values * down / up) * up / down + 0.0,
        np.floor(lower * down / up + 1e-9) * up / down + 0.0,
        np.ceil(upper * down / up - 1e-9) * up / down + 0.0,
    )
