"""What a model is: a specification that names the tables it needs, and what it makes of releases that have them.

Nothing here can reach a private table: a model is built from releases alone, so building, predicting and sampling are
post-processing and cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from hmac import compare_digest
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, cast

import numpy as np

from dpbayes.base import display, files
from dpbayes.base.checks import Floats
from dpbayes.base.codec import READERS, Record, WithKind, canonical, digest, fields_record
from dpbayes.base.display import Chart
from dpbayes.base.errors import ReleaseError
from dpbayes.mechanisms.noise import software
from dpbayes.models.network import Network
from dpbayes.release.estimates import Posterior, measurement, measuring, weighted
from dpbayes.release.format import Release, Table
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.public import summed
from dpbayes.schema.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

LEAST_SHARE = 1e-9
"""No value is impossible to a model, only rare: a logarithm stays finite."""

SMALL = 20_000
"""Cells of a draw that is kept in memory, with what was inferred from it, until another one is read."""

OPTIONS = ("mechanism", "tempered")
"""Fields of a specification that are for its release, and no part of the model."""

KINDS = {
    "bayes-net": "dpbayes.models.bayes_net:BayesNet",
    "histogram": "dpbayes.models.histogram:Histogram",
    "latent": "dpbayes.models.latent:Latent",
    "naive-bayes": "dpbayes.models.naive_bayes:NaiveBayes",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoisyTable:
    """One published table as an array, with unbiased counts and the variance of their noise."""

    marginal: Marginal
    drawn: bool
    """Whether it holds gammas, which make a posterior draw."""
    values: Floats
    counts: Floats
    variance: Floats
    slope: float
    """How much a count moves with a value: 1/r for gammas of weight r."""

    @property
    def joint(self) -> bool:
        """Whether it holds several attributes together."""
        return len(self.marginal.names) > 1

    @property
    def rows(self) -> Floats:
        """The values as rows × cells: one row for each combination of what is given."""
        given = int(np.prod(self.values.shape[: len(self.marginal.given)]))
        return self.values.reshape(given, -1)

    def seen_as(self, marginal: Marginal) -> NoisyTable:
        """The same numbers with the axes of another marginal; axes that it lacks are summed over, with their noise."""
        parts = (self.values, self.counts, self.variance)
        values, counts, variance = (summed(part, self.marginal.names, marginal.names) for part in parts)
        return replace(self, marginal=marginal, values=values, counts=counts, variance=variance)


@dataclass(frozen=True, eq=False, repr=False)
class Published:
    """All that a model may see: releases of one data set under one schema."""

    releases: tuple[Release, ...]
    _latest: ClassVar[tuple[list[Any], Posterior | None]] = [], None

    def __getstate__(self) -> dict[str, object]:
        """Only the releases: what follows from them is computed again."""
        return {"releases": self.releases}

    @cached_property
    def posterior(self) -> Posterior:
        """What they say together about the table; a draw that is read twice in a row is inferred from once."""
        made, (latest, read) = Posterior(self.releases), Published._latest
        told = [(each.tables, each.schema, each.records, each.paid, each.job.get("priors")) for each in made.releases]
        if read is not None and told == latest:
            made.joint = read.joint
        elif sum(len(table.values) for each in made.releases for table in each.tables) <= SMALL:
            Published._latest = told, made
        return made

    @classmethod
    def of(cls, releases: Release | Published | Iterable[Release]) -> Published:
        """One release or several."""
        if isinstance(releases, Published):
            return releases
        return cls((releases,) if isinstance(releases, Release) else tuple(releases))

    @property
    def schema(self) -> Schema:
        """What is public about the data set."""
        return self.posterior.schema

    def shares(self, of: Sequence[str], given: Sequence[str] = ()) -> Floats:
        """Shares of the population, for every combination of what is given, none of them zero: rows × cells."""
        self._contained(Marginal(tuple(of), tuple(given)))
        found = self.posterior.joint.shares(of, given)
        floor = np.full(found.shape, LEAST_SHARE)
        if (zeros := self.schema.zeros((*given, *of))) is not None:
            # what is impossible is never drawn, and its logarithm is still finite
            found, floor = np.where(zeros, 0.0, found), np.where(zeros, 1e-300, floor)
        rows = np.maximum(found, floor).reshape(int(np.prod(found.shape[: len(given)])), -1)
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))

    @property
    def records(self) -> int | None:
        """The number of records, where it is public."""
        return next((release.records for release in self.releases if release.records is not None), None)

    @property
    def tables(self) -> tuple[NoisyTable, ...]:
        """Every table with noise that can be described."""
        return tuple(_noisy(release, table) for release, table in measuring(self.releases))

    def statement(self) -> str:
        """What the releases guarantee, a sentence each."""
        return " ".join(release.statement() for release in self.releases)

    def __repr__(self) -> str:
        return f"Published({display.listed(self.releases, most=3)})"

    def __contains__(self, marginal: Marginal) -> bool:
        """Whether the table of these attributes is published, or can be summed out of one that is."""
        return bool(self._fitting(marginal))

    def holds(self, marginal: Marginal) -> bool:
        """Whether a table of just these attributes is published."""
        return any(set(table.marginal.names) == set(marginal.names) for _, table in measuring(self.releases))

    def __getitem__(self, marginal: Marginal) -> NoisyTable:
        """The table of these attributes: asked for as such, in another order, or summed out of a larger one.

        Of several, it is the smallest one, and of equally large ones that with the least noise.
        """
        fitting = self._contained(marginal)
        size = min(len(table.values) for _, table in fitting)
        views = [_noisy(release, table) for release, table in fitting if len(table.values) == size]
        return min(views, key=lambda view: float(view.variance.mean())).seen_as(marginal)

    def _contained(self, marginal: Marginal) -> list[tuple[Release, Table]]:
        """Tables with all these attributes; refused where there are none."""
        if fitting := self._fitting(marginal):
            return fitting
        listed = ((release, table) for release in self.releases for table in release.tables)
        if any(weighted(*each) and set(each[1].marginal.names) >= set(marginal.names) for each in listed):
            raise ReleaseError(
                f"Model: the posterior of {marginal} was drawn among candidates. Its law has two modes, and models "
                "leave it out. Release a table, or a posterior with mechanism = 'laplace'."
            )
        raise ReleaseError(f"Model: no release has the table {marginal}, nor one that contains it. Release it first.")

    def _fitting(self, marginal: Marginal) -> list[tuple[Release, Table]]:
        names = set(marginal.names)
        return [each for each in measuring(self.releases) if set(each[1].marginal.names) >= names]


def _noisy(release: Release, table: Table) -> NoisyTable:
    measured = measurement(release, table)
    noise, counts = measured.noise, measured.noise.center(measured.values)
    return NoisyTable(
        marginal=table.marginal,
        drawn=table.kind == "gammas",
        values=measured.values,
        counts=counts,
        variance=noise.variance(np.maximum(counts, 0.0)),
        slope=noise.slope(),
    )


class Model(Protocol):
    """A built model: everything in it is public."""

    kind: ClassVar[str]

    @property
    def published(self) -> Published:
        """What it was built from."""

    @property
    def network(self) -> Network:
        """Its graph and tables; refused where it has none."""

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool = False) -> dict[str, np.ndarray]:
        """Records drawn from the model: for each attribute the positions among its levels.

        They are independent, or else spread as evenly as the model's shares allow.
        """


class Built(display.Shown):
    """What every built model offers besides: synthetic records, and a short description of itself."""

    __slots__ = ()
    kind: ClassVar[str]
    spec: ModelSpec[Any]
    published: Published

    def synthesise(self, rows: int, *, rng: np.random.Generator | None = None, even: bool = True) -> pa.Table:
        """Synthetic records with the schema's types, as many as you like, at no cost: see ``synthetic_table``."""
        return display.door("synthetic_table", self, rows, rng=rng, even=even)

    def plot(self, path: str | Path | None = None, *, node: str | None = None) -> Chart:
        """The network, or the table of a node as a heat map; written to ``path`` if there is one."""
        network, schema = cast(Model, self).network, self.published.schema
        if node is None:
            return display.picture("network_picture", network, f"{self.kind} of {schema.id}", path=path)
        return display.picture("table_picture", network, node, schema, path=path)

    def _facts(self) -> tuple[str, list[tuple[str, str]]]:
        asked = [(key, str(value)) for key, value in self.spec.record().items() if key != "kind" and value]
        return f"{self.kind} of {self.published.schema.id!r}", [*asked, ("guarantee", self.published.statement())]


M_co = TypeVar("M_co", bound=Model, covariant=True)


class ModelSpec(Protocol[M_co]):
    """What a model needs, and how it is built. ``jobs.model.Fit`` serves every specification."""

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

    def build(self, releases: Release | Published | Iterable[Release]) -> M_co:
        """The model, from published tables only."""

    def record(self) -> Record:
        """JSON form, with its ``kind``."""


class BaseSpec(WithKind):
    """What specifications share: their JSON form by fields, options for the release, and an estimate unless they ask
    for a single draw.
    """

    __slots__ = ()
    place: ClassVar[str] = "model"

    def record(self) -> Record:
        """JSON form: what a model is, whatever its release was made with."""
        return {"kind": self.kind, **fields_record(self, without=OPTIONS)}

    @property
    def options(self) -> dict[str, Any]:
        """How a release is made for it, where that was said."""
        return {name: getattr(self, name) for name in OPTIONS if hasattr(self, name)}

    @property
    def draws(self) -> bool:
        """Whether it is the papers' single draw."""
        return getattr(self, "estimate", "posterior") == "draw"


def spec_from_record(record: object) -> ModelSpec[Model]:
    """The specification that wrote this record."""
    if not isinstance(record, dict) or record.get("kind") not in KINDS:
        raise ReleaseError(f"Model: expected a kind that is one of {', '.join(KINDS)}.")
    kind = record["kind"]
    module, name = KINDS[str(kind)].split(":")
    made = getattr(import_module(module), name)
    return cast("ModelSpec[Model]", made.from_record({key: value for key, value in record.items() if key != "kind"}))


READERS[ModelSpec] = lambda record: spec_from_record(cast(Record, record))
READERS[ModelSpec[Model]] = READERS[ModelSpec]


def built(releases: Iterable[Release], spec: ModelSpec[Model] | None = None) -> Model:
    """A model from releases: the one that was fitted, if no other is named."""
    published = Published.of(releases)
    if spec is None:
        fitted = [release.job["model"] for release in published.releases if "model" in release.job]
        if not fitted:
            raise ReleaseError("Model: the release was not made for a model. Name one, such as NaiveBayes(target=…).")
        spec = spec_from_record(cast(Record, fitted[0]))
    return spec.build(published)


def keep(published: Published, spec: ModelSpec[Model], arrays: Mapping[str, np.ndarray]) -> None:
    """Keep what took long to fit beside the folder of its release, if anything can be written there.

    First a seal of this user, since no check of a release sees it, then a line with draw, model and code, then npz.
    """
    place, key = _kept_as(published, spec)
    if place is not None:
        np.savez(held := BytesIO(), allow_pickle=False, **arrays)
        rest = key + held.getvalue()
        with suppress(OSError):
            files.write(place, files.sealed(rest) + b"\n" + rest)


def kept(published: Published, spec: ModelSpec[Model]) -> dict[str, np.ndarray] | None:
    """What this user kept of this very model; nothing if it was changed, or is of another release or version."""
    place, key = _kept_as(published, spec)
    with suppress(OSError):
        seal, _, rest = (b"" if place is None else place.read_bytes()).partition(b"\n")
        if seal and rest.startswith(key) and compare_digest(files.sealed(rest), seal):
            with np.load(BytesIO(rest[len(key) :]), allow_pickle=False) as arrays:
                return dict(arrays)
    return None


def _kept_as(published: Published, spec: ModelSpec[Model]) -> tuple[Path | None, bytes]:
    """Where the model of one release is kept, published/.3.model for published/3, and the line that says what it is."""
    first, *others = published.releases
    folder = Path(first.place).absolute()
    folder = folder.parent if folder.name == "release.json" else folder
    if others or not first.place or not (folder / "release.json").is_file():
        return None, b""
    code = digest(b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))))
    told = {"draw": first.digest(), "model": spec.record(), "software": software(), "code": code}
    return folder.with_name(f".{folder.name}.model"), canonical(told).encode() + b"\n"


def by_cells(cells: Iterable[int]) -> tuple[float, ...]:
    """Parts of the budget: the cells of each table, as a power of two, as few mechanisms compose faster.

    Its expected KL grows with the square of a table's cells over its part; the sum is smallest for parts ∝ cells.
    Source: docs/explanation/models.md, splitting the budget.
    """
    return tuple(2.0 ** round(math.log2(max(size, 1))) for size in cells)


def noise_distance(variance: Floats, total: float) -> float:
    """Mean total variation that noise of these variances alone makes: Σ sd/(N·√(2π)), as for a Gaussian error."""
    return float(np.sqrt(np.maximum(variance, 0.0)).sum() / (total * math.sqrt(2.0 * math.pi)))


def draw_of(table: NoisyTable) -> Floats:
    """The posterior draw of the papers: gammas normalised in every row."""
    if not table.drawn:
        raise ReleaseError("Model: a posterior draw needs the Dirichlet mechanism.")
    return np.asarray(table.rows / table.rows.sum(axis=1, keepdims=True))


def distribution(tables: Sequence[NoisyTable]) -> NoisyTable:
    """The largest joint table among these."""
    joint = [table for table in tables if not table.marginal.given]
    if not joint:
        raise ReleaseError("Model: the release has no joint table to draw from. Fit a network instead.")
    return max(joint, key=lambda table: table.values.size)
