"""What releases say together about the table behind them: one posterior for everything published. Free."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Literal

import numpy as np

from dpbayes._checks import Floats
from dpbayes.domain import codec
from dpbayes.domain.marginal import Marginal
from dpbayes.domain.prior import Prior
from dpbayes.domain.schema import Schema
from dpbayes.errors import ReleaseError
from dpbayes.inference.ask import Answer
from dpbayes.inference.measurement import Exact, GammaNoise, GaussianNoise, LaplaceNoise, Measurement, Noise
from dpbayes.inference.numbers import TableEstimate
from dpbayes.inference.posterior import Posterior as Joint
from dpbayes.inference.released import Reading, reading
from dpbayes.inference.repeats import Repeats
from dpbayes.mechanisms.dirichlet import Dirichlet
from dpbayes.mechanisms.gaussian import Gaussian
from dpbayes.mechanisms.laplace import Laplace
from dpbayes.release.format import Answer as Drawn
from dpbayes.release.format import Release, Table

NOISY = ("gammas", "noisy-counts")
"""Kinds of tables that measure the counts."""


class Posterior:
    """Estimates, intervals, draws and answers from one release or several of one data set.

    All tables are measurements of one private table, so they sharpen each other and agree. Reading it costs nothing
    and touches no private row.
    """

    def __init__(self, releases: Release | Iterable[Release]) -> None:
        self.releases = (releases,) if isinstance(releases, Release) else tuple(releases)
        _check_together(self.releases)

    @property
    def schema(self) -> Schema:
        """What is public about the data set."""
        return self.releases[0].schema

    @cached_property
    def joint(self) -> Joint:
        """The inference itself, on arrays."""
        tables = [(release, table) for release in self.releases for table in release.tables if table.kind in NOISY]
        if not tables:
            raise ReleaseError("Posterior: expected a release with tables of counts or gammas.")
        names = {name for release in self.releases for table in release.tables for name in table.marginal.names}
        schema = self.schema
        sizes = {each.name: len(each.levels) for each in schema.attributes}
        records = next((release.records for release in self.releases if release.records is not None), None)
        margins = [
            Measurement(axes=margin.of, values=_shaped(margin.totals, margin.of, schema), noise=Exact())
            for margin in schema.margins
            if set(margin.of) <= names
        ]
        return Joint(
            [_measurement(release, table) for release, table in tables],
            sizes,
            records=records,
            margins=margins,
            zeros=[
                (each.names, zeros)
                for each in schema.structure
                if set(each.names) <= names and (zeros := schema.zeros(each.names)) is not None
            ],
            priors={prior.of: _shaped(prior.shares, prior.of, schema) for prior in self._priors(names)},
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
        return self.joint.estimate(asked.of, asked.given, level=level)

    def ask(
        self, question: str, *, level: float = 0.95, target: Literal["records", "population"] = "records"
    ) -> Answer:
        """Estimate and interval of any sum, difference, product or ratio of counts and shares.

        ``posterior.ask("share(income='80k and over' | sex='male') - share(income='80k and over' | sex='female')")``
        """
        levels = {each.name: each.levels for each in self.schema.attributes}
        return self.joint.ask(question, levels, level=level, target=target)

    def draws(self, marginals: Iterable[str | Marginal], number: int, rng: np.random.Generator) -> list[Floats]:
        """Draws of whole tables for multiple imputation; shared margins agree in each draw."""
        return self.joint.draws([Marginal.of_text(each).names for each in marginals], number, rng)

    def __repr__(self) -> str:
        tables = sum(table.kind in NOISY for release in self.releases for table in release.tables)
        return f"Posterior({self.schema.id!r}: {tables} tables of {len(self.releases)} releases)"


def repeats(schema: Schema) -> Repeats:
    """How many rows one person may have, in all and within the attributes that declare fewer."""
    most = schema.unit.max_rows
    declared = [each for each in schema.attributes if (each.max_rows or most) < most]
    return Repeats(most=most, within={each.name: np.array(each.rows_at_levels(most)) for each in declared})


def _check_together(releases: tuple[Release, ...]) -> None:
    """Refuse releases that are not about one table, or are there twice."""
    if not releases:
        raise ReleaseError("Posterior: expected one release or more.")
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
    if len({release.digest() for release in releases}) < len(releases):
        raise ReleaseError("Posterior: a release is there twice. It would count twice: hand it in once.")


def _measurement(release: Release, table: Table) -> Measurement:
    noise = measured_noise(release.paid[table.by].mechanism, table.marginal.shape(release.schema))
    return Measurement(axes=table.marginal.names, values=release.array(table), noise=noise)


def measured_noise(mechanism: object, shape: tuple[int, ...] = (-1,)) -> Noise:
    """The law of the noise that a mechanism adds to a table of this shape, or to its cells in a row."""
    match mechanism:
        case Dirichlet(weight=weight, concentration=alpha):
            return GammaNoise(
                weight=weight, concentration=np.reshape(alpha, shape) if isinstance(alpha, tuple) else alpha
            )
        case Gaussian(sigma=sigma):
            return GaussianNoise(sigma=sigma)
        case Laplace(scale=scale):
            return LaplaceNoise(scale=scale)
    raise ReleaseError(f"Posterior: tables drawn by {type(mechanism).__name__} have no estimate.")


def released(release: Release, answer: Drawn) -> Reading:
    """What a released posterior says about counts and shares, with the noise of its mechanism. Free."""
    mechanism = release.paid[answer.by].mechanism
    prior = [float(value) for value in release.job["prior"]]
    prior = prior * len(answer.values) if len(prior) == 1 else prior
    noisy = mechanism if hasattr(mechanism, "prior") else measured_noise(mechanism)
    return reading(noisy, answer.values, prior=prior, total=release.records)  # type: ignore[arg-type]  # of numbers


def _shaped(numbers: Iterable[float], names: tuple[str, ...], schema: Schema) -> Floats:
    return np.asarray(tuple(numbers), dtype=np.float64).reshape([len(schema[name].levels) for name in names])
