"""The simplest model: the joint distribution of a few attributes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dpbayes.base import checks
from dpbayes.base.checks import Floats, Ints
from dpbayes.base.errors import InvalidArgument
from dpbayes.models.model import BaseSpec, Built, Published, draw_of
from dpbayes.models.network import Network, pick
from dpbayes.release.format import Release
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram(BaseSpec):
    """One joint table of all these attributes."""

    kind: ClassVar[str] = "histogram"
    attributes: tuple[str, ...]
    estimate: Literal["posterior", "draw"] = "posterior"

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        checks.one_of("Histogram", ("posterior", "draw"), estimate=self.estimate)

    def marginals(self, schema: Schema) -> tuple[Marginal, ...]:
        """The one table."""
        asked = Marginal(self.attributes)
        asked.axes(schema)
        return (asked,)

    def shares(self, schema: Schema, sigma: float, records: int) -> tuple[float, ...]:  # noqa: ARG002 - ModelSpec
        """All of the budget."""
        return (1.0,)

    def build(self, releases: Release | Published | Iterable[Release]) -> HistogramModel:
        """The distribution, from the published table only."""
        published = Published.of(releases)
        shape = Marginal(self.attributes).shape(published.schema)
        drawn = draw_of(published[Marginal(self.attributes)]) if self.draws else published.shares(self.attributes)
        shares = drawn.reshape(shape)
        return HistogramModel(spec=self, published=published, shares=shares)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class HistogramModel(Built):
    """Shares of all cells of the joint table."""

    kind: ClassVar[str] = "histogram"
    spec: Histogram
    published: Published
    shares: Floats

    @property
    def network(self) -> Network:
        """One node; a joint table of several attributes has no graph."""
        if len(self.spec.attributes) > 1:
            raise InvalidArgument("Model: a joint table of several attributes has no graph.")
        (name,) = self.spec.attributes
        return Network.of(self.published.schema, {name: ()}, {name: self.shares.reshape(1, -1)})

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool = False) -> dict[str, Ints]:
        """Records, as positions among levels."""
        cells = pick(self.shares.reshape(1, -1), np.zeros(rows, dtype=np.int64), rng, even=even)
        return dict(zip(self.spec.attributes, np.unravel_index(cells, self.shares.shape), strict=True))
