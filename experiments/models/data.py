"""The eight data sets of [RDP] section 5, split and coded as the authors did it.

Bins are quantiles of the training part and categories those that occur: **public by decree, for this experiment only**.
In the product both are declared or paid for.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from dpbayes import Adjacency, PrivacyUnit
from dpbayes.domain.attribute import Attribute
from dpbayes.domain.schema import Schema

FOLDER = Path(os.environ.get("DPBAYES_DATA", Path(__file__).parents[3] / "shared" / "datasets"))
NAMES = ("creditcard", "thyroid", "shopper", "digit", "germancredit", "bank", "spam", "adult")
EPSILONS = (0.001, 0.0129, 0.1668, 1.29, 10.0)
ORDER = 5.0
UNIT = PrivacyUnit(adjacency=Adjacency.REPLACE_ONE)


@dataclass(frozen=True)
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
                Attribute(name=name, categories=(*map(str, range(size - 1)), "other"))
                for name, size in self.levels.items()
            ),
        )

    def only(self, names: list[str]) -> Split:
        """The same split with these columns only."""
        return Split(
            self.name,
            {name: self.train[name] for name in names},
            {name: self.test[name] for name in names},
            {name: self.levels[name] for name in names},
        )


def split(name: str, repetition: int) -> Split:
    """70 % for training, at random; numbers with more than 30 values are binned."""
    frame = pd.read_parquet(FOLDER / f"{name}.parquet")
    if name == "adult":
        frame = frame.drop(columns="education-num")
    order = np.random.default_rng([1, repetition]).permutation(len(frame))
    training = np.zeros(len(frame), dtype=bool)
    training[order[: round(0.7 * len(frame))]] = True
    coded = {column: _coded(frame[column], training) for column in frame.columns}
    return Split(
        name,
        {column: codes[training] for column, (codes, _) in coded.items()},
        {column: codes[~training] for column, (codes, _) in coded.items()},
        {column: size for column, (_, size) in coded.items()},
    )


def _coded(values: pd.Series, training: np.ndarray) -> tuple[np.ndarray, int]:
    if values.dtype.kind not in "if" or values.nunique() <= 30:
        found, codes = np.unique(values.to_numpy(), return_inverse=True)
        return codes, len(found)
    seen = values[training]
    kept = []
    for rank, (value, count) in enumerate(seen.value_counts().items()):
        if count <= len(seen) / 3 ** (rank + 1):
            break
        kept.append(value)
    rest = seen[~seen.isin(kept)]
    inner = np.unique(np.quantile(rest, np.linspace(0, 1, 11)))[1:-1] if len(rest) else np.array([])
    codes = np.searchsorted(inner, values.to_numpy(), side="right")
    for position, value in enumerate(kept):
        codes[values.to_numpy() == value] = len(inner) + 1 + position
    return codes, len(inner) + 1 + len(kept)


def networks() -> dict[str, dict[str, list]]:
    """The three graphs."""
    return json.loads((FOLDER / "networks.json").read_text(encoding="utf-8"))
