"""A release: what was published, how it was made, and what it promises. Public, and readable for ever."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from dpbayes._checks import Floats
from dpbayes.domain.marginal import Marginal
from dpbayes.domain.unit import PrivacyUnit
from dpbayes.errors import DpbayesError, ReleaseError
from dpbayes.privacy.guarantee import ApproxDP, Guarantee, PureDP, guarantee_from_record, rounded_up

FORMAT = "dpbayes-release"
VERSION = 1

Kind = Literal["gammas", "noisy-counts", "pseudo-records"]


class _Public(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


def _writable(value: Any) -> Any:
    """Refuse what no JSON file can hold: infinities, and halves of characters."""
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    return value


Text = Annotated[str, AfterValidator(_writable)]
Record = Annotated[dict[str, Any], AfterValidator(_writable)]
Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]


class Axis(_Public):
    """One attribute of a table and its declared levels."""

    name: Text
    """As the schema names it."""
    levels: list[Text] = Field(min_length=1)
    """In the order of the values; levels for other, missing and dropped rows come last."""


class Product(_Public):
    """Numbers derived from what was drawn, at no further cost; each list is row-major over the axes."""

    values: list[float]
    """One number a cell. Shares add up to one over the table, in a conditional table over each row."""
    lower: list[float] | None = None
    """Lower ends of credible intervals."""
    upper: list[float] | None = None
    """Upper ends of credible intervals."""


class Group(_Public):
    """One row of a conditional table: how many records it seems to have, and how much of it is prior."""

    levels: list[Text]
    """Which row: a level for each attribute after the bar."""
    records: float
    """Its number of records, as estimated."""
    prior_share: Annotated[float, Field(ge=0, le=1)]
    """How much of it is prior or noise: near one, the group is too small to say much about."""


class Table(_Public):
    """One published table."""

    marginal: dict[str, list[Text]]
    """What was asked for: attributes ``of``, for each combination of ``given``."""
    axes: list[Axis]
    """First those of ``given``, then those of ``of``."""
    mechanism: Record
    """The record of the mechanism, from which its cost is computed again."""
    kind: Kind
    """What the values are: gammas of a Dirichlet draw, noisy counts, or counts of pseudo-records."""
    values: list[float] | list[Whole]
    """What was drawn, row-major over the axes. Everything else is computed from it."""
    grid: float | None = None
    """Gammas are rounded to multiples of this."""
    row_records: list[float] | None = None
    """Public totals of the rows of a conditional table, where the estimate used them."""
    prior: list[Annotated[float, Field(gt=0)]] | None = None
    """The public guess that guided the estimate: a share for each cell, or for each column of a conditional table."""
    products: dict[Text, Product] = Field(default_factory=dict)
    """``counts``, ``empirical`` shares of these records, ``population`` shares; ``draw`` of a Dirichlet release."""
    groups: list[Group] | None = None
    """The rows of a conditional table."""
    notes: list[Text] = Field(default_factory=list)
    """Remarks for readers."""

    @model_validator(mode="after")
    def _fits(self) -> Table:
        asked = Marginal.from_record(self.marginal)
        if tuple(axis.name for axis in self.axes) != asked.names:
            raise ValueError("axes do not fit the marginal")
        size, rows = math.prod(self.shape), math.prod(self.shape[: len(asked.given)])
        lists = [self.values]
        for product in self.products.values():
            lists += [each for each in (product.values, product.lower, product.upper) if each is not None]
        if any(len(each) != size for each in lists):
            raise ValueError("a list of values does not fit the axes")
        if any(len(each) != rows for each in (self.groups, self.row_records) if each is not None):
            raise ValueError("a list of groups does not fit the axes")
        if self.prior is not None and len(self.prior) * rows != size:
            raise ValueError("the prior does not fit the axes")
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        """Levels per axis."""
        return tuple(len(axis.levels) for axis in self.axes)

    @property
    def asked(self) -> Marginal:
        """The marginal that was asked for."""
        return Marginal.from_record(self.marginal)

    def array(self, product: str | None = None, part: Literal["values", "lower", "upper"] = "values") -> Floats:
        """The released numbers, or those of a product, in the shape of the table."""
        numbers = self.values if product is None else getattr(self.products[product], part)
        return np.asarray(numbers, dtype=np.float64).reshape(self.shape)


class Spending(_Public):
    """Where the release stands in its ledger."""

    receipt: dict[Text, Text | Whole]
    """Data set, serial and hash of the charge."""
    spent: float
    """Of the budget, this release included."""
    limit: float
    """Of the budget, in its own notion."""
    left: float
    """The largest cost of one more release."""
    budget: Record
    """The guarantee that all releases of the data set keep together."""


class Release(_Public):
    """Everything that is public about one release.

    ``guarantee`` is what all tables together promise, for ``unit``. ``seeded`` says that the randomness was
    repeatable: then nothing is promised.
    """

    format: Literal["dpbayes-release"] = "dpbayes-release"
    """Tells this file from others."""
    version: Literal[1] = 1
    """Of the format. A reader refuses a version that it does not know."""
    dpbayes: Text
    """The version of dpbayes that made it."""
    created: Text
    """When, in UTC."""
    dataset: Text
    """The declared id of the data set."""
    unit: dict[str, Any]
    """Whom the promise protects: adjacency, and the most rows of one person."""
    guarantee: dict[str, Any]
    """What is promised for all tables together."""
    accounting: Text
    """``exact``, or ``published`` where the papers' parameters were asked for."""
    choice: Text
    """Which mechanism, and why."""
    records: Whole | None
    """The number of records; null where it is private (add-remove)."""
    seeded: bool
    """Whether the randomness was repeatable: then nothing is promised."""
    level: Annotated[float, Field(gt=0, lt=1)] = 0.95
    """Of the credible intervals."""
    tables: list[Table] = Field(min_length=1)
    """What was asked for, in that order."""
    ledger: Spending | None = None
    """The charge; null if no ledger remembers the release."""

    @property
    def promise(self) -> Guarantee:
        """The guarantee as an object."""
        return guarantee_from_record(self.guarantee)

    @property
    def privacy_unit(self) -> PrivacyUnit:
        """The privacy unit as an object."""
        return PrivacyUnit.from_record(self.unit)

    def statement(self) -> str:
        """The promise in one English sentence."""
        if self.seeded:
            return "This release was drawn with a seed, so it promises no privacy at all: use it for tests only."
        unit = self.privacy_unit
        rows = "one row" if unit.max_rows == 1 else f"up to {unit.max_rows} rows"
        change = "Replacing" if unit.replaces else "Adding or removing"
        promise = self.promise
        what = "this table" if len(self.tables) == 1 else f"these {len(self.tables)} tables together"
        meaning = ""
        if isinstance(promise, (PureDP, ApproxDP)) and promise.epsilon < 700:
            factor = rounded_up(math.exp(promise.epsilon), digits=3)
            meaning = f": no probability of any outcome changes by more than a factor {factor}"
            meaning += f", but for a chance of {rounded_up(promise.delta)}" if isinstance(promise, ApproxDP) else ""
        return (
            f"{change} the data of any one person ({rows}) changes what {what} could say by at most {promise}{meaning}."
        )

    def to_json(self) -> str:
        """The JSON file."""
        return self.model_dump_json(indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Release:
        """Read a JSON file; what does not fit the format is refused in one sentence."""
        try:
            record = json.loads(text)
        except ValueError:
            raise ReleaseError("Release: the file is not JSON.") from None
        except RecursionError:
            raise ReleaseError("Release: the file is nested too deeply to be a release.") from None
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise ReleaseError(f"Release: expected a JSON object whose format is {FORMAT!r}.")
        if record.get("version") != VERSION:
            raise ReleaseError(
                f"Release: expected version {VERSION}, got {record.get('version')!r}. A newer dpbayes may have "
                "written it: upgrade to read it."
            )
        try:
            read = cls.model_validate(record)
            read.promise, read.privacy_unit.sensitivity  # noqa: B018 - reading them checks them
        except ValidationError as problem:
            first = problem.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise ReleaseError(f"Release: {where or 'the file'} does not fit: {first['msg']}.") from None
        except DpbayesError as problem:
            raise ReleaseError(f"Release: {problem}") from None
        return read

    @classmethod
    def load(cls, path: str | Path) -> Release:
        """Read a release from a file."""
        try:
            return cls.from_json(Path(path).read_bytes())
        except OSError as problem:
            raise ReleaseError(f"Release: cannot read {str(path)!r}: {problem.strerror}.") from None


def digest_of(tables: Sequence[Table]) -> str:
    """SHA-256 of what was drawn, without what was made of it: the ledger's note of the draw names it."""
    parts = {"marginal", "axes", "mechanism", "kind", "values", "grid"}
    drawn = [table.model_dump(mode="json", include=parts) for table in tables]
    return hashlib.sha256(json.dumps(drawn, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def now() -> str:
    """The time of a release, in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
