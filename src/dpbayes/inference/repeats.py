"""Several rows of one person: how much more shares of a population may vary than with independent rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from dpbayes.base.checks import Floats, Ints
from dpbayes.inference.residuals import Axes, widened


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Repeats:
    """The most rows of one person, and the most at each level of an attribute where less is public."""

    most: int = 1
    within: Mapping[str, Ints] = field(default_factory=dict)

    def among(self, chosen: Mapping[str, Floats]) -> float:
        """Var(θ̂) ≤ m·θ(1−θ)/n for a share of the rows with the chosen levels: m, the most that are one person's

        Symbols: θ share in the population, θ̂ in the n rows with the chosen levels (0 or 1 for each level), m rows.
        Source: docs/explanation/proofs/population.md, theorem 1.
        Adjacency: none, this is post-processing.

        >>> repeats = Repeats(most=8, within={"year": np.array([1, 1, 8])})
        >>> repeats.among({}), repeats.among({"year": np.array([1, 1, 0])})
        (8.0, 2.0)
        """
        few = [float(self.within[name] @ levels) for name, levels in chosen.items() if name in self.within]
        return min([float(self.most), *few])

    def table(self, rows: Axes) -> Floats:
        """The same for shares within each combination of levels of these attributes, in the shape of their table."""
        found = np.full([1] * len(rows), float(self.most))
        for name in set(rows) & set(self.within):
            found = np.minimum(found, widened(np.asarray(self.within[name], dtype=np.float64), (name,), rows))
        return found

    @property
    def said(self) -> str:
        """The sentence that stands beside intervals for a population; empty where rows are independent people.

        >>> Repeats().said
        ''
        """
        if self.most == 1:
            return ""
        fewer = f", or fewer within {' or '.join(self.within)}, as the schema declares" if self.within else ""
        return (
            f"One person may have up to {self.most} rows, and they may all be alike: intervals for the population "
            f"allow for {self.most} times the sampling variance of independent rows{fewer}."
        )
