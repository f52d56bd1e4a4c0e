"""The eight data sets of [RDP] section 5, split and coded as the authors did it.

Bins are quantiles of the training part and categories those that occur: **public by decree, for these experiments
only**. In the product both are declared or paid for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpbayes import Attribute, Schema, Unit
from dpbayes.schema import Adjacency
from experiments import data

CLASS = "target"
UNIT = Unit(adjacency=Adjacency.REPLACE_ONE)
MOST_VALUES = 30
"""Numbers with more distinct values than this are binned."""

BINS = 10
SPLIT_SEED = 1
TITLES = {
    "creditcard": "CreditCard",
    "thyroid": "Thyroid",
    "shopper": "Shopper",
    "digit": "Digit",
    "germancredit": "GermanCredit",
    "bank": "Bank",
    "spam": "Spam",
    "adult": "Adult",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Coded training and test columns, and how many levels each column has."""

    name: str
    train: dict[str, np.ndarray]
    test: dict[str, np.ndarray]
    levels: dict[str, int]

    @property
    def schema(self) -> Schema:
        """Declared levels; the last one is named *other*, so that no further level is needed for unknown values."""
        return Schema(
            id=self.name,
            unit=UNIT,
            attributes=tuple(
                Attribute(name=name, categories=(*map(str, range(size - 1)), "other"), missing="other")
                for name, size in self.levels.items()
            ),
        )


def table(name: str) -> pd.DataFrame:
    """A data set with the attributes that the paper counts: Adult without the one that repeats another."""
    frame = data.load(name)
    return frame.drop(columns="education-num") if name == "adult" else frame


def split(name: str, repetition: int, only: Iterable[str] | None = None) -> Split:
    """70 % for training, at random; numbers with many values are binned. ``only`` keeps these columns."""
    frame = table(name)
    order = np.random.default_rng([SPLIT_SEED, repetition]).permutation(len(frame))
    training = np.zeros(len(frame), dtype=bool)
    training[order[: round(0.7 * len(frame))]] = True
    coded = {column: _coded(frame[column], training) for column in only or frame.columns}
    return Split(
        name=name,
        train={column: codes[training] for column, (codes, _) in coded.items()},
        test={column: codes[~training] for column, (codes, _) in coded.items()},
        levels={column: size for column, (_, size) in coded.items()},
    )


def binned(values: pd.Series) -> bool:
    """Whether a column is a number with too many values to be categories; asked of the training part."""
    return values.dtype.kind in "if" and values.nunique() > MOST_VALUES


def bins(seen: pd.Series) -> tuple[list[float], np.ndarray]:
    """Values so frequent that count > N/3^(rank+1), which stay apart, and the inner edges of bins for the rest."""
    kept = []
    for rank, (value, count) in enumerate(seen.value_counts().items()):
        if count <= len(seen) / 3 ** (rank + 1):
            break
        kept.append(value)
    rest = seen[~seen.isin(kept)]
    return kept, np.unique(np.quantile(rest, np.linspace(0, 1, BINS + 1)))[1:-1] if len(rest) else np.array([])


def _coded(values: pd.Series, training: np.ndarray) -> tuple[np.ndarray, int]:
    """Codes and their number."""
    if not binned(values[training]):
        found, codes = np.unique(values.to_numpy(), return_inverse=True)
        return codes, len(found)
    kept, inner = bins(values[training])
    codes = np.searchsorted(inner, values.to_numpy(), side="right")
    for position, value in enumerate(kept):
        codes[values.to_numpy() == value] = len(inner) + 1 + position
    return codes, len(inner) + 1 + len(kept)
