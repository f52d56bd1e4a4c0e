"""What a model is: a specification that names the tables it needs, and what it makes of them once they are published.

Nothing here can reach a private table: a model is built from ``Published`` numbers alone, so building, predicting and
sampling are post-processing and cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from dpbayes._checks import Floats
from dpbayes.domain.marginal import Marginal
from dpbayes.domain.schema import Schema
from dpbayes.domain.unit import PrivacyUnit
from dpbayes.errors import ReleaseError
from dpbayes.estimate.noise import GammaNoise, GaussianNoise, LaplaceNoise, Noise
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.release import Axis, Release, Spending, Table, now


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoisyTable:
    """One published table as an array: gammas, or counts plus whole-number noise."""

    marginal: Marginal
    values: Floats
    mechanism: dict[str, Any]
    grid: float | None = None

    @property
    def noise(self) -> Noise:
        """The law of the noise, from the published record of the mechanism."""
        return noise_of_record(self.mechanism)

    @property
    def rows(self) -> Floats:
        """The values as rows × cells: one row for each combination of what is given."""
        given = int(np.prod(self.values.shape[: len(self.marginal.given)]))
        return self.values.reshape(given, -1)

    def to_table(self, schema: Schema) -> Table:
        """The entry of a release file."""
        gammas = isinstance(self.noise, GammaNoise)
        values = self.values.ravel()
        return Table(
            marginal=self.marginal.record(),
            axes=[Axis(name=axis.name, levels=list(axis.levels)) for axis in self.marginal.axes(schema)],
            mechanism=self.mechanism,
            kind="gammas" if gammas else "noisy-counts",
            values=values.tolist() if gammas else values.astype(np.int64).tolist(),
            grid=self.grid,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Published:
    """All that a model may see: noisy tables, how they were made, and what they promise together."""

    schema: Schema
    guarantee: Guarantee
    accounting: str
    choice: str
    records: int | None
    seeded: bool
    tables: tuple[NoisyTable, ...]
    created: str = ""
    spending: Spending | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "created", self.created or now())

    @property
    def unit(self) -> PrivacyUnit:
        """Whom the guarantee protects."""
        return self.schema.unit

    def __getitem__(self, marginal: Marginal) -> NoisyTable:
        for table in self.tables:
            if table.marginal == marginal:
                return table
        raise ReleaseError(f"Model: the release has no table {marginal}. Fit the model again.")

    def statement(self) -> str:
        """The promise in one English sentence."""
        return Release.model_construct(
            unit=dict(self.unit.record()), guarantee=dict(self.guarantee.record()), seeded=self.seeded,
            tables=list(self.tables),  # only their number matters here
        ).statement()  # fmt: skip

    def release(self) -> Release:
        """The release file: the numbers themselves, from which anyone can build the model again."""
        return self._release([table.to_table(self.schema) for table in self.tables])

    @classmethod
    def of(cls, release: Release, schema: Schema) -> Published:
        """Read a release file back; the schema says what its axes mean."""
        tables = []
        for table in release.tables:
            expected = [axis.levels for axis in table.asked.axes(schema)]
            if [tuple(axis.levels) for axis in table.axes] != [tuple(levels) for levels in expected]:
                raise ReleaseError(
                    "Model: the release has other levels than the schema. Use the schema it was made with."
                )
            tables.append(NoisyTable(
                marginal=table.asked, values=table.array(), mechanism=table.mechanism, grid=table.grid
            ))  # fmt: skip
        return cls(
            schema=replace(schema, unit=release.privacy_unit),
            guarantee=release.promise,
            accounting=release.accounting,
            choice=release.choice,
            records=release.records,
            seeded=release.seeded,
            tables=tuple(tables),
            created=release.created,
            spending=release.ledger,
        )

    def _release(self, tables: list[Table]) -> Release:
        return Release(
            dpbayes=version("dpbayes"),
            created=self.created,
            dataset=self.schema.id,
            unit=dict(self.unit.record()),
            guarantee=dict(self.guarantee.record()),
            accounting=self.accounting,
            choice=self.choice,
            records=self.records,
            seeded=self.seeded,
            tables=tables,
            ledger=self.spending,
        )


class Model(Protocol):
    """A built model: everything in it is public."""

    kind: ClassVar[str]

    @property
    def published(self) -> Published:
        """What it was built from."""

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool = False) -> dict[str, np.ndarray]:
        """Records drawn from the model: for each attribute the positions among its levels.

        They are independent, or else spread as evenly as the model's shares allow.
        """

    def record(self) -> dict[str, Any]:
        """JSON form without the release."""


M_co = TypeVar("M_co", bound=Model, covariant=True)


class ModelSpec(Protocol[M_co]):
    """What a model needs, and how it is built. ``fitting.fit`` serves every specification."""

    kind: ClassVar[str]

    @property
    def draws(self) -> bool:
        """Whether the model is the papers' single Dirichlet draw rather than an estimate."""

    def marginals(self, schema: Schema) -> tuple[Marginal, ...]:
        """The tables it needs; refuses a schema that it does not fit."""

    def shares(self, schema: Schema, sigma: float, records: int) -> tuple[float, ...]:
        """How much of the budget, in 1/σ², each table should get, relative to the others.

        ``sigma`` is the noise that the whole budget would leave on one table, ``records`` a public guess.
        """

    def build(self, published: Published) -> M_co:
        """The model, from published tables only."""


def noise_of_record(record: dict[str, Any]) -> Noise:
    """The law of the noise that a mechanism's record describes."""
    match record.get("mechanism"):
        case "dirichlet-1":
            alpha = record["concentration"]
            return GammaNoise(
                weight=record["weight"], concentration=alpha if isinstance(alpha, float) else np.array(alpha)
            )
        case "gaussian-1":
            return GaussianNoise(sigma=record["sigma"])
        case "laplace-1":
            return LaplaceNoise(scale=record["scale"])
        case other:
            raise ReleaseError(f"Model: cannot read tables made by {other!r}; a newer dpbayes may.")


def draw_of(table: NoisyTable) -> Floats:
    """The posterior draw of the papers: gammas normalised in every row."""
    if not isinstance(table.noise, GammaNoise):
        raise ReleaseError("Model: a posterior draw needs the Dirichlet mechanism.")
    return np.asarray(table.rows / table.rows.sum(axis=1, keepdims=True))
