"""What releases say: together about the table behind them, one posterior for everything published; and table by table.

Reading them is free.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dpbayes.base import codec
from dpbayes.base.checks import Floats
from dpbayes.base.display import Chart, Facts, Shown, door, embed, joined, listed, picture, plural
from dpbayes.base.errors import MissingExtra, ReleaseError
from dpbayes.inference.ask import Reply, names_in
from dpbayes.inference.joint import JointPosterior
from dpbayes.inference.measurement import Exact, Measurement
from dpbayes.inference.numbers import Repeats, TableEstimate, with_half
from dpbayes.mechanisms.gaussian import GaussianNoise
from dpbayes.mechanisms.kinds import Mechanism, Noise
from dpbayes.mechanisms.laplace import LaplaceNoise
from dpbayes.release import numbers
from dpbayes.release.format import WHOLE, Product, Release, Table
from dpbayes.release.reading import releases_in
from dpbayes.schema.labels import labels, places
from dpbayes.schema.marginal import Marginal, Prior
from dpbayes.schema.schema import Schema

if TYPE_CHECKING:  # a released posterior loads its laws where one is read
    import pyarrow

    from dpbayes.inference.released import Reading
    from dpbayes.inference.weighted import Weighted

NOISY = ("gammas", "noisy-counts", "parameters")
"""Kinds of tables that measure the counts."""


class Posterior(Shown):
    """Estimates, intervals, draws and answers from one release or several of one data set.

    All tables are measurements of one private table, so they sharpen each other and agree. Reading it costs nothing
    and touches no private row.
    """

    def __init__(self, *releases: Release | str | Path | Iterable[Release]) -> None:
        """Releases, the files or folders that hold them, or a folder of releases: then of everything in it.

        A release that another one of them supersedes is left out: whoever published it took it back.
        """
        found = tuple(release for each in releases for release in _listed(each))
        if not found or not all(isinstance(release, Release) for release in found):
            raise ReleaseError("Posterior: expected one release or more, such as Release.load('published').")
        self.releases = standing(found)
        _check_together(self.releases)

    def __getitem__(self, marginal: str | Marginal) -> TableEstimate:
        """Agreeing estimates of a table, with intervals of 95 %: ``posterior["income|sex"]``."""
        return self.table(marginal)

    @property
    def schema(self) -> Schema:
        """What is public about the data set."""
        return self.releases[0].schema

    @cached_property
    def joint(self) -> JointPosterior:
        """The inference itself, on arrays."""
        tables = measuring(self.releases)
        if not tables:
            raise ReleaseError(
                "Posterior: expected tables of counts or gammas, or a released posterior of these attributes."
            )
        names = {name for release in self.releases for table in release.tables for name in table.marginal.names}
        schema = self.schema
        sizes = {each.name: len(each.levels) for each in schema.attributes}
        records = next((release.records for release in self.releases if release.records is not None), None)
        margins = [
            Measurement(axes=margin.of, values=_shape(margin.totals, margin.of, schema), noise=Exact())
            for margin in schema.margins
            if set(margin.of) <= names
        ]
        return JointPosterior(
            [measurement(release, table) for release, table in tables],
            sizes,
            records=records,
            margins=margins,
            zeros=[
                (each.names, zeros)
                for each in schema.structure
                if set(each.names) <= names and (zeros := schema.zeros(each.names)) is not None
            ],
            priors={prior.of: _shape(prior.shares, prior.of, schema) for prior in self._priors(names)},
            repeats=repeats(schema),
        )

    def _priors(self, names: set[str]) -> list[Prior]:
        """Public guesses that came with the releases, the first for each set of attributes."""
        found: dict[frozenset[str], Prior] = {}
        for release in self.releases:
            for prior in codec.from_record(tuple[Prior, ...], release.job.get("priors", []), "job.priors"):
                if set(prior.of) <= names:
                    found.setdefault(frozenset(prior.of), prior)
        return list(found.values())

    def table(self, marginal: str | Marginal, *, level: float = 0.95) -> TableEstimate:
        """Agreeing estimates of a table, published or determined by what is published, with intervals."""
        asked = Marginal.of_text(marginal)
        asked.axes(self.schema)
        drawn = self._weighted(asked.names)
        if self._alone is not None and not asked.given and {*asked.names} == {*self._alone.sizes}:
            drawn = self._alone
        if drawn is not None:
            found = drawn.estimate(asked.of, asked.given, level=level)
        else:
            found = self.joint.estimate(asked.of, asked.given, level=level)
        return replace(found, labels=tuple(labels(axis) for axis in asked.axes(self.schema)))

    def ask(
        self,
        question: str,
        *,
        level: float = 0.95,
        population: bool = False,
        target: Literal["records", "population"] = "records",
    ) -> Reply:
        """Estimate and interval of any sum, difference, product or ratio of counts and shares.

        Of these records, or with ``population``, which is ``target="population"``, of all people that they stand for.

        ``posterior.ask("share(income='80k and over' | sex='male') - share(income='80k and over' | sex='female')")``
        """
        target = "population" if population else target
        levels = {each.name: places(each) for each in self.schema.attributes}
        if (drawn := self._weighted(names_in(question))) is not None:
            return drawn.ask(question, levels, level=level, target=target)
        if self._alone and (found := self._alone.printed(question, levels, level=level, target=target)):
            return found
        return self.joint.ask(question, levels, level=level, target=target)

    def draws(self, marginals: Iterable[str | Marginal], number: int, rng: np.random.Generator) -> list[Floats]:
        """Draws of whole tables for multiple imputation; shared margins agree in each draw."""
        asked = [Marginal.of_text(each).names for each in marginals]
        if (drawn := self._weighted({name for names in asked for name in names})) is not None:
            return drawn.draws(asked, number, rng)
        return self.joint.draws(asked, number, rng)

    def _weighted(self, names: Iterable[str]) -> Weighted | None:
        """The weighted draws that tell about these attributes, if a mechanism drew their posterior among candidates."""
        asked = set(names)
        listed = ((release, table) for release in self.releases for table in release.tables if weighted(release, table))
        return next((self._drawn(*each) for each in listed if asked <= set(each[1].marginal.names)), None)

    @cached_property
    def _alone(self) -> Weighted | None:
        """A released posterior with nothing beside it: of its cells, what is printed."""
        tables = [(release, table) for release in self.releases for table in release.tables if table.kind in NOISY]
        return self._drawn(*tables[0]) if len(tables) == 1 and tables[0][1].kind == "parameters" else None

    def _drawn(self, release: Release, table: Table) -> Weighted:
        """A released posterior with all that linear measurements tell of the same table."""
        sizes = dict(zip(table.marginal.names, table.marginal.shape(self.schema), strict=True))
        from dpbayes.inference.weighted import Weighted

        found = released(release, table, self._factor(tuple(sizes)) if weighted(release, table) else None)
        return Weighted(reading=found, sizes=sizes, repeats=repeats(self.schema))

    def _factor(self, axes: tuple[str, ...]) -> Measurement | None:
        """What other releases measure of a table: itself, or else their estimate with its mean variance."""
        others = measuring(self.releases)
        if not others or not self.joint.estimable(axes):
            return None
        if len(others) == 1 and others[0][1].marginal.names == axes:
            found = measurement(*others[0])
            if isinstance(found.noise, LaplaceNoise | GaussianNoise):
                return found
        mean, variance = self.joint.linear(axes)
        spread = (
            float(variance.mean()) * mean.size / max(mean.size - 1, 1)
        )  # the estimate knows the total; cells do not
        return Measurement(axes=axes, values=mean, noise=GaussianNoise(sigma=max(spread, 1e-6) ** 0.5))

    def _facts(self) -> tuple[str, Facts]:
        tables = [str(table.marginal) for each in self.releases for table in each.tables if table.kind in NOISY]
        said = f"{plural(len(tables), 'table')} of {plural(len(self.releases), 'release')}"
        return f"Posterior of {self.schema.id!r}: {said}", [("tables", listed(tables))]


def _listed(releases: Release | str | Path | Iterable[Release]) -> Iterable[Release]:
    if isinstance(releases, (str, Path)):
        return releases_in(releases)
    if isinstance(releases, Iterable):
        return [found for each in releases for found in _listed(each)]
    return (releases,)


def standing(releases: Iterable[Release]) -> tuple[Release, ...]:
    """The releases that no other one of them supersedes."""
    given = tuple(releases)
    replaced = tuple(each.about["supersedes"] for each in given if "supersedes" in each.about)
    return tuple(each for each in given if not replaced or not each.digest().startswith(replaced))


def repeats(schema: Schema) -> Repeats:
    """How many rows one person may have, in all and within the attributes that declare fewer."""
    most = schema.unit.max_rows
    declared = [each for each in schema.attributes if (each.max_rows or most) < most]
    return Repeats(most=most, within={each.name: np.array(each.rows_at_levels(most)) for each in declared})


def _check_together(releases: tuple[Release, ...]) -> None:
    """Refuse releases that are not about one table, or are there twice."""
    first = releases[0]
    for other in releases[1:]:
        if other.dataset != first.dataset:
            raise ReleaseError(
                f"Posterior: the releases are of different data sets, {first.dataset!r} and {other.dataset!r}. "
                "Hand in those of one."
            )
        if other.unit != first.unit:
            raise ReleaseError(
                f"Posterior: the releases protect different units, {first.unit} and {other.unit}. Keep those of one."
            )
        if replace(other.schema, records=None, margins=()) != replace(first.schema, records=None, margins=()):
            raise ReleaseError(
                "Posterior: the releases were made with different schemas, so their tables cannot be compared. Keep "
                "those of one."
            )
        if other.seeded != first.seeded:
            raise ReleaseError("Posterior: a seeded release, which is not private, cannot be mixed with private ones.")
    if len(releases) > 1 and len({release.digest() for release in releases}) < len(releases):
        raise ReleaseError("Posterior: a release is there twice. It would count twice: hand it in once.")


def measuring(releases: Iterable[Release]) -> list[tuple[Release, Table]]:
    """The tables that measure counts with a noise whose mean and variance say enough."""
    listed = ((release, table) for release in releases for table in release.tables if table.kind in NOISY)
    return [(release, table) for release, table in listed if not weighted(release, table)]


def weighted(release: Release, table: Table) -> bool:
    """Whether a table was drawn among candidates: its law has two modes, and only weighted draws tell both."""
    if table.kind != "parameters":
        return False
    from dpbayes.hellinger.baselines import PosteriorExponential
    from dpbayes.hellinger.mechanism import Hellinger

    return isinstance(release.paid[table.by].mechanism, Hellinger | PosteriorExponential)


def measurement(release: Release, table: Table) -> Measurement:
    """What a table measures; the parameters of a posterior measure the counts, once the prior is taken off."""
    values = release.array(table)
    noise = measured_noise(release.paid[table.by].mechanism, values.shape)
    if table.kind == "parameters":
        values = values - np.reshape(prior_of(release, table), values.shape)
    return Measurement(axes=table.marginal.names, values=values, noise=noise)


def prior_of(release: Release, table: Table) -> Floats:
    """The parameters of the prior of a released posterior, one for each cell."""
    listed = np.asarray(release.job.get("prior", [1.0]), dtype=np.float64)
    return np.broadcast_to(listed, table.values.shape) if listed.size == 1 else listed


def released(release: Release, table: Table, factor: Measurement | None = None) -> Reading:
    """What a released posterior says about counts and shares, with the noise of its mechanism. Free."""
    from dpbayes.inference.released import reading

    made: Any = release.paid[table.by].mechanism
    law = made if hasattr(made, "prior") else measured_noise(made)
    prior, total = prior_of(release, table).tolist(), release.records
    return reading(law, table.values.tolist(), prior=prior, total=total, factor=factor)


def measured_noise(mechanism: object, shape: tuple[int, ...] = (-1,)) -> Noise:
    """The law of the noise that a mechanism adds to a table of this shape, or to its cells in a row."""
    if not isinstance(mechanism, Mechanism):
        raise ReleaseError(f"Posterior: tables drawn by {type(mechanism).__name__} have no estimate.")
    return mechanism.noise(shape)


def _shape(numbers: Iterable[float], names: tuple[str, ...], schema: Schema) -> Floats:
    return np.asarray(tuple(numbers), dtype=np.float64).reshape([len(schema[name].levels) for name in names])


SHOWN = 12


UNITS = {"empirical": "% of the records", "population": "% of the population", "counts": "records"}
"""Which numbers of a table are shown first, and what they count."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class TableView:
    """A table with its estimates: ``release["income|sex"]``."""

    release: Release
    table: Table

    @property
    def marginal(self) -> Marginal:
        """Which table it is."""
        return self.table.marginal

    @property
    def reading(self) -> Reading:
        """The law of the counts and shares behind a released posterior, with the noise of its mechanism."""
        if self.table.kind != "parameters":
            raise ReleaseError(f"Release: {self.marginal} is no released posterior. Read it by its estimates.")
        return released(self.release, self.table)

    def to_arrow(self) -> pyarrow.Table:
        """One row per cell: its levels, what was released, and every product with the ends of its intervals.

        A column of numbers whose name is an attribute's already gets an underscore.
        """
        import pyarrow

        columns: dict[str, Any] = {}
        axes = self.release.axes(self.table)
        positions = np.unravel_index(np.arange(self._cells), tuple(len(axis.levels) for axis in axes))
        for axis, position in zip(axes, positions, strict=True):
            columns[axis.name] = numbers.coded(position, axis.levels)
        for name, values in self._numbers().items():
            columns[numbers.free_name(name, columns)] = numbers.column(values)
        return pyarrow.table(columns)

    @property
    def _cells(self) -> int:
        return self.marginal.size(self.release.schema)

    def _numbers(self) -> dict[str, np.ndarray]:
        drawn = self.table.values
        listed = {self.table.drawn_as: drawn.astype(np.int64) if self.table.kind in WHOLE else drawn}
        listed = {} if self.table.kind == "derived" else listed
        for name, made in self.table.products.items():
            parts = {name: made.values, f"{name}_lower": made.lower, f"{name}_upper": made.upper}
            listed |= {part: values for part, values in parts.items() if values is not None}
        return listed

    def to_pandas(self) -> Any:
        """The same as a pandas frame."""
        try:
            import pandas  # noqa: F401 - pyarrow needs it
        except ImportError:
            raise MissingExtra("Release: pandas is not installed. Install it, or use to_arrow().") from None
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The same as a polars frame."""
        try:
            import polars
        except ImportError:
            raise MissingExtra("Release: polars is not installed. Install it, or use to_arrow().") from None
        return polars.from_arrow(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Any library that reads Arrow streams can read the table."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def plot(self, path: str | Path | None = None) -> Chart:
        """Shares with their intervals, or densities of a released posterior, as a picture that notebooks show.

        It is written to ``path`` if there is one.
        """
        return picture("densities" if self.table.kind == "parameters" else "shares", self, path=path)

    def __repr__(self) -> str:
        name = next((each for each in UNITS if each in self.table.products), None)
        head = f"{self.marginal}, {UNITS[name] if name else self.table.kind}"
        if name is None and self.table.kind == "derived":
            return head
        made = self.table.products[name] if name else Product(values=self.table.values)
        scale, given = (1.0 if name in (None, "counts") else 100.0), len(self.marginal.given)
        cells: dict[str, list[str]] = {}
        levels = product(*(axis.levels for axis in self.release.axes(self.table)))
        for index, cell in zip(range(min(SHOWN, self._cells)), levels, strict=False):
            said = f"{' · '.join(cell[given:])} {with_half(made, index, scale)}"
            cells.setdefault(" · ".join(cell[:given]), []).append(said)
        rows = [f"{row}: {', '.join(listed)}" if row else ", ".join(listed) for row, listed in cells.items()]
        more = f"; … and {self._cells - SHOWN:,} more cells" if self._cells > SHOWN else ""
        level = f" ({100 * self.release.level:g} %)" if made.lower is not None else ""
        return f"{head}: {'; '.join(rows)}{more}{level}"

    def _repr_html_(self) -> str:
        drawn = [self.plot().figure] if self.table.products else []
        return embed(joined([*drawn, door("section", 1, self.release, self.table)]))
