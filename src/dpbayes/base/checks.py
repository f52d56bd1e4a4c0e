"""Validators called by keyword, so that a message can name the argument: ``positive("Gaussian", sigma=sigma)``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpbayes.base.errors import InvalidArgument

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LARGEST_COUNT = 2**62

_NUMBER = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|inf)")
_DECIMAL_COMMA = re.compile(r"([+-]?(?:[0-9]+|[0-9]{1,3}(?:\.[0-9]{3})+)),([0-9]+(?:[eE][+-]?[0-9]+)?)")
_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]*)?")


def number(owner: str, name: str, text: str) -> float:
    """A number as people write it: with a decimal point, and no commas.

    >>> number("studio", "ε", "1,5")
    Traceback (most recent call last):
    dpbayes.base.errors.InvalidArgument: studio: expected ε with a decimal point and no commas, got '1,5'. Write 1.5.
    """
    stripped = text.strip()
    if _NUMBER.fullmatch(stripped):
        return float(stripped)
    form = "with a decimal point and no commas" if "," in text else "to be a number"
    raise InvalidArgument(f"{owner}: expected {name} {form}, got {stripped[:40]!r}.{hint(stripped)}")


def whole(owner: str, name: str, text: str) -> int:
    """A whole number of at most 15 digits, one or above, as people write it: without commas."""
    stripped = text.strip()
    if re.fullmatch(r"[0-9]{1,15}", stripped) and int(stripped) > 0:
        return int(stripped)
    remedy = hint(stripped).split(" or ")[0].rstrip(".") + "." if _GROUPED.fullmatch(stripped) else ""
    raise InvalidArgument(f"{owner}: expected a whole number of {name}, 1 or more, got {stripped[:40]!r}.{remedy}")


def hint(text: str) -> str:
    """What to write instead of a number with commas; two numbers where a comma may be either; else nothing."""
    decimal, grouped = _DECIMAL_COMMA.fullmatch(text), _GROUPED.fullmatch(text)
    readings = [text.replace(",", "")] if grouped else []
    readings += [decimal[1].replace(".", "") + "." + decimal[2]] if decimal else []
    return f" Write {' or '.join(readings)}." if readings else ""


def _refuse(owner: str, name: str, expected: str, value: object) -> InvalidArgument:
    return InvalidArgument(f"{owner}: expected {name} {expected}, got {value!r}.")


def _number(owner: str, name: str, expected: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise _refuse(owner, name, expected, value)
    try:
        return float(value)
    except OverflowError:
        raise InvalidArgument(f"{owner}: expected {name} {expected}, got a number too large to compute with.") from None


def positive(owner: str, **named: object) -> None:
    """Each value is a finite number above zero."""
    for name, value in named.items():
        number = _number(owner, name, "> 0", value)
        if not (math.isfinite(number) and number > 0):
            raise _refuse(owner, name, "> 0 and finite", value)


def non_negative(owner: str, **named: object) -> None:
    """Each value is a finite number, zero or above."""
    for name, value in named.items():
        number = _number(owner, name, ">= 0", value)
        if not (math.isfinite(number) and number >= 0):
            raise _refuse(owner, name, ">= 0 and finite", value)


def positive_integer(owner: str, **named: object) -> None:
    """Each value is a whole number, one or above."""
    for name, value in named.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise _refuse(owner, name, "to be a whole number >= 1", value)


def probability(owner: str, **named: object) -> None:
    """Each value lies strictly between 0 and 1."""
    for name, value in named.items():
        number = _number(owner, name, "between 0 and 1", value)
        if not 0 < number < 1:
            raise _refuse(owner, name, "strictly between 0 and 1", value)


def order(owner: str, value: object) -> None:
    """A Rényi order lies above 1; infinity asks for the pure guarantee."""
    number = _number(owner, "order", "> 1", value)
    if not number > 1:
        raise _refuse(owner, "order", "> 1", value)


def one_of(owner: str, choices: Iterable[str], **named: object) -> None:
    """Each value is one of the named choices."""
    allowed = tuple(choices)
    for name, value in named.items():
        if value not in allowed:
            raise _refuse(owner, name, "to be one of " + ", ".join(allowed), value)


def amounts(owner: str, values: ArrayLike) -> Floats:
    """A table of counts or other amounts: finite numbers, zero or above. The message never repeats them."""
    return _table(owner, values).astype(np.float64, copy=False)


def counts(owner: str, values: ArrayLike) -> Ints:
    """A table of counts: whole numbers, zero or above. The message never repeats them."""
    array = _table(owner, values)
    if array.dtype.kind == "f" and not (array == np.floor(array)).all():
        raise InvalidArgument(f"{owner}: expected counts to be whole finite numbers; round them before.")
    return array.astype(np.int64, copy=False)


def _table(owner: str, values: ArrayLike) -> NDArray[np.generic]:
    """A non-empty array of numbers from 0 to 2^62."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise InvalidArgument(f"{owner}: expected counts as one rectangular array of numbers.") from None
    if array.dtype.kind not in "iuf" or array.ndim == 0 or array.size == 0:
        raise InvalidArgument(f"{owner}: expected counts as a non-empty array of numbers.")
    if not ((array >= 0) & (array <= LARGEST_COUNT)).all():  # not a number is neither
        raise InvalidArgument(f"{owner}: expected counts to be finite numbers between 0 and 2^62.")
    return array
