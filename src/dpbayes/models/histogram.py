"""The simplest model: the joint distribution of a few attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from dpbayes import _checks
from dpbayes._checks import Floats, Ints
from dpbayes.domain.marginal import Marginal
from dpbayes.domain.schema import Schema
from dpbayes.estimate.table import estimate
from dpbayes.models.base import Published, draw_of
from dpbayes.models.sampling import pick


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """One joint table of all these attributes."""

    kind: ClassVar[str] = "histogram"
    attributes: tuple[str, ...]
    estimate: Literal["posterior", "draw"] = "posterior"

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        _checks.one_of("Histogram", ("posterior", "draw"), estimate=self.estimate)

    @property
    def draws(self) -> bool:
        """Whether it is a single draw."""
        return self.estimate == "draw"

    def marginals(self, schema: Schema) -> tuple[Marginal, ...]:
        """The one table."""
        asked = Marginal(self.attributes)
        asked.axes(schema)
        return (asked,)

    def shares(self, schema: Schema, sigma: float, records: int) -> tuple[float, ...]:  # noqa: ARG002 - ModelSpec
        """All of the budget."""
        return (1.0,)

    def build(self, published: Published) -> HistogramModel:
        """The distribution, from the published table only."""
        table = published[Marginal(self.attributes)]
        if self.draws:
            shares = draw_of(table).reshape(table.values.shape)
        else:
            shares = estimate(table.values, table.noise, records=published.records, level=None).population
        return HistogramModel(spec=self, published=published, shares=shares)

    def record(self) -> dict[str, Any]:
        """JSON form."""
        return {"attributes": list(self.attributes), "estimate": self.estimate}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HistogramModel:
    """Shares of all cells of the joint table."""

    kind: ClassVar[str] = "histogram"
    spec: Histogram
    published: Published
    shares: Floats

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool = False) -> dict[str, Ints]:
        """Records, as positions among levels."""
        cells = pick(self.shares.reshape(1, -1), np.zeros(rows, dtype=np.int64), rng, even=even)
        return dict(zip(self.spec.attributes, np.unravel_index(cells, self.shares.shape), strict=True))

    def record(self) -> dict[str, Any]:
        """JSON form without the release."""
        return {"spec": self.spec.record(), "shares": self.shares.tolist()}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], published: Published) -> HistogramModel:
        """Read the JSON form back."""
        return cls(spec=Histogram(**record["spec"]), published=published, shares=np.asarray(record["shares"]))
