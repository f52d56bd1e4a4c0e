"""Arrow columns from arrays and texts, and back.

Arrow's own conversions load pandas, if it is installed, and functions for computing, which take longer than a small
release does. These use the memory as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow

LONGEST = 2**31 - 1
"""Bytes of text that an ordinary column of texts can hold."""


def numbers(values: np.ndarray) -> pyarrow.Array:
    """A column of whole or floating-point numbers.

    >>> numbers(np.array([1.5, 2.0])).to_pylist()
    [1.5, 2.0]
    """
    import pyarrow

    kinds = {"int32": pyarrow.int32(), "int64": pyarrow.int64(), "float64": pyarrow.float64()}
    buffer = pyarrow.py_buffer(np.ascontiguousarray(values))
    return pyarrow.Array.from_buffers(kinds[values.dtype.name], values.size, [None, buffer])


def coded(codes: np.ndarray, levels: Sequence[str]) -> pyarrow.DictionaryArray:
    """A column of codes with the levels that they stand for.

    >>> coded(np.array([1, 0, 1]), ["F", "M"]).to_pylist()
    ['M', 'F', 'M']
    """
    import pyarrow

    return pyarrow.DictionaryArray.from_arrays(
        numbers(codes.astype(np.int32)), texts(levels, np.arange(len(levels), dtype=np.int32))
    )


def texts(levels: Sequence[str], codes: np.ndarray) -> pyarrow.Array:
    """A column of texts: the level of each code.

    >>> texts(["F", "M"], np.array([1, 0, 1])).to_pylist()
    ['M', 'F', 'M']
    """
    import pyarrow

    encoded = [level.encode() for level in levels]
    lengths = np.array([len(level) for level in encoded], dtype=np.int64)
    ends = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths[codes])])
    data = pyarrow.py_buffer(b"".join(map(encoded.__getitem__, codes.tolist())))
    kind = pyarrow.LargeStringArray if ends[-1] > LONGEST else pyarrow.StringArray
    offsets = pyarrow.py_buffer(ends if ends[-1] > LONGEST else ends.astype(np.int32))
    return kind.from_buffers(codes.size, offsets, data)


def harmless(text: str) -> str:
    """A text that a spreadsheet takes for text: one that it would compute starts with an apostrophe.

    Categories can be bought from private rows, and so be written by anybody.

    >>> harmless("=1+1"), harmless("-0.5"), harmless("@home"), harmless("a=b")
    ("'=1+1", '-0.5', "'@home", 'a=b')
    """
    if text[:1] not in ("=", "+", "-", "@", "\t", "\r"):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text
