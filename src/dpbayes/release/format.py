"""A release: what was published, how it was made, and what it promises. Public, in one format for every product.

Everything that was drawn is in ``tables`` and ``answers``; ``paid`` lists the mechanisms that drew it, each named by
its place. All other numbers are computed from these, so that anyone can check them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from dpbayes.base import checks, codec
from dpbayes.base.checks import Floats
from dpbayes.base.codec import Record, canonical, digest
from dpbayes.base.display import door
from dpbayes.base.errors import InvalidArgument, ReleaseError
from dpbayes.ledger.account import Spending
from dpbayes.ledger.history import ID_LENGTH
from dpbayes.privacy.cost import Cost, Priced
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.release import numbers
from dpbayes.release.words import checked as checked_about
from dpbayes.release.words import statement
from dpbayes.schema.attribute import Attribute
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema
from dpbayes.schema.unit import Unit

if TYPE_CHECKING:
    from dpbayes.ledger.ledger import Ledger
    from dpbayes.release.estimates import Posterior, TableView
    from dpbayes.release.verify import Verification

FORMAT, VERSION = "dpbayes-release", 2

TableKind = Literal["gammas", "noisy-counts", "parameters", "pseudo-records", "shares", "derived"]

COMMITMENT = "SHA-256 of the key"
"""The answer that is published when a wide distribution is opened: it fixes all that are given later."""

WHOLE = ("noisy-counts", "pseudo-records")
"""Kinds of tables whose values are whole numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paid:
    """A mechanism that was paid for, and how often it drew."""

    mechanism: Priced
    times: int = 1

    def __post_init__(self) -> None:
        checks.positive_integer("Release", times=self.times)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Product:
    """Numbers derived from what was drawn, at no further cost; row-major over the axes."""

    values: Floats = field(repr=False)
    """One number per cell. Shares add up to one over the table, in a conditional table over each row."""
    lower: Floats | None = None
    """Lower ends of the intervals."""
    upper: Floats | None = None
    """Upper ends of the intervals."""
    note: str = ""
    """What the intervals allow for, where that has to be said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One row of a conditional table: how many records it seems to have, and how much of it is prior or noise."""

    levels: tuple[str, ...]
    """Which row: a level for each attribute after the bar."""
    records: float
    """Its number of records, as estimated."""
    prior_share: float
    """How much of it is prior or noise: near one, the group is too small to say much about."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """One published table. Axes come in the order given first, then of, with the levels of the schema."""

    marginal: Marginal
    """Which table."""
    by: int
    """The place in ``paid`` of the mechanism that drew it; −1 if it was not drawn."""
    kind: TableKind
    """Gammas of a Dirichlet draw, noisy counts, parameters of a released posterior, counts of pseudo-records, shares of
    a wide distribution; or derived: not drawn, because the other tables determine it."""
    values: Floats
    """What was drawn, nothing in a derived table. Everything else is computed from it."""
    asked: bool = True
    """Whether it was asked for; if not, it was measured because it sharpens others, and has no estimates here."""
    products: dict[str, Product] = field(default_factory=dict)
    """``counts``, ``empirical`` shares of these records, ``population`` shares; ``draw`` of a Dirichlet release."""
    groups: tuple[Group, ...] = ()
    """The rows of a conditional table."""
    notes: tuple[str, ...] = ()
    """Remarks for readers, computed too."""

    def record(self) -> Record:
        """JSON form; whole numbers are written as such."""
        return numbers.write_out(self.held())

    def held(self) -> Record:
        """The same with arrays in place of lists of numbers."""
        made = codec.fields_record(self, without=("values", "products"))
        made["values"] = self.values.astype(np.int64) if self.kind in WHOLE else self.values
        return numbers.with_products(made, self.products)

    @property
    def drawn_as(self) -> str:
        """What a column of the drawn values is called: the parameters of a posterior are no estimates."""
        return "released_parameter" if self.kind == "parameters" else "released"

    @property
    def long(self) -> bool:
        """Whether its lists of numbers are too long to be read by people."""
        return max(map(len, (self.values, *(product.values for product in self.products.values())))) > numbers.LONG

    @classmethod
    def from_record(cls, record: object) -> Table:
        """Read the JSON form back."""
        read = codec.from_fields(cls, record, "tables")
        drawn = record["values"]  # type: ignore[index]
        integers = drawn.dtype == np.int64 if isinstance(drawn, np.ndarray) else set(map(type, drawn)) <= {int}
        if read.kind in WHOLE and not integers:
            raise InvalidArgument(f"tables: expected whole numbers, as {read.kind} are.")
        return read


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Something drawn that is no table: categories, edges, the power of a model."""

    name: str
    """What it is, as ``edges of age``."""
    by: int
    """The place in ``paid`` of the mechanism that drew it."""
    values: tuple[str, ...] | tuple[float, ...]
    """The answer itself."""

    def __post_init__(self) -> None:  # a whole number is a float too, as the file gives it back
        object.__setattr__(self, "values", tuple(v if isinstance(v, str) else float(v) for v in self.values))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Release:
    """Everything that is public about one release."""

    job: Record
    """What was asked for; ``kind`` says by which sort of job."""
    schema: Schema
    """What is public about the table."""
    promise: Guarantee
    """What all of it together guarantees."""
    choice: str
    """Which mechanism, and why."""
    paid: tuple[Paid, ...]
    """The mechanisms that drew what is published."""
    records: int | None = None
    """The number of records; null where it is private."""
    seeded: bool = False
    """Whether the randomness was repeatable: then nothing is guaranteed."""
    created: str = ""
    """When, in UTC."""
    about: dict[str, str] = field(default_factory=dict)
    """For its readers: ``title``, ``author``, ``contact``, ``purpose``, and the id of the release it ``supersedes``."""
    software: dict[str, str] = field(default_factory=dict)
    """The versions of what drew and wrote it."""
    tables: tuple[Table, ...] = ()
    """Tables, in the order asked for; then those that were measured besides."""
    answers: tuple[Answer, ...] = ()
    """Everything else that was drawn."""
    lock: str = ""
    """Names the charge in the ledger; empty if no ledger remembers the release."""
    spending: Spending | None = None
    """Where the charge stands in the ledger."""
    files: dict[str, str] = field(default_factory=dict)
    """SHA-256 of the files that were written beside this one."""
    seal: str = ""
    """SHA-256 of all the rest, as its file states it: an edit shows. Empty before it is written."""
    place: str = field(default="", init=False)
    """Where it was read from or written to; no part of the file."""

    def __post_init__(self) -> None:
        if not self.tables and not self.answers and self.kind != "wide":
            raise InvalidArgument("Release: expected a table or an answer.")
        object.__setattr__(self, "about", checked_about(self.about))
        for by in self.uses:
            if not 0 <= by < len(self.paid):
                raise InvalidArgument("Release: expected every table and answer to name a mechanism that was paid for.")
        for table in self.tables:
            if table.kind not in get_args(TableKind):
                raise InvalidArgument(f"Release: expected a table of {', '.join(get_args(TableKind))}.")
            self._check_shape(table)

    def _check_shape(self, table: Table) -> None:
        shape = table.marginal.shape(self.schema)
        size, rows = math.prod(shape), math.prod(shape[: len(table.marginal.given)])
        if (table.kind == "derived") != (table.by == -1) or (table.kind == "derived" and len(table.values)):
            raise InvalidArgument(f"Release: expected {table.marginal} to be drawn by a mechanism, or derived.")
        lists = [] if table.kind == "derived" else [table.values]
        for product in table.products.values():
            lists += [part for part in (product.values, product.lower, product.upper) if part is not None]
        if any(len(part) != size for part in lists) or (table.groups and len(table.groups) != rows):
            raise InvalidArgument(f"Release: a list of {table.marginal} does not fit the levels of the schema.")
        if (
            table.kind in WHOLE
            and not ((table.values == np.rint(table.values)) & (np.abs(table.values) <= 2**53)).all()
        ):
            raise InvalidArgument(f"Release: expected the values of {table.marginal} to be whole numbers, up to 2⁵³.")

    # -- what it says -----------------------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """The sort of job that it answers."""
        return str(self.job.get("kind", ""))

    @property
    def dataset(self) -> str:
        """The declared id of the data set."""
        return self.schema.id

    @property
    def id(self) -> str:
        """A short name of this very draw, by which a later release can supersede it."""
        return self.digest()[:ID_LENGTH]

    @property
    def unit(self) -> Unit:
        """Whom the guarantee protects."""
        return self.schema.unit

    @property
    def cost(self) -> Cost:
        """What was paid for it."""
        return Cost.total(Cost.of(paid.mechanism, paid.times) for paid in self.paid)

    @property
    def asked(self) -> tuple[Table, ...]:
        """The tables for readers: those that were asked for."""
        return tuple(table for table in self.tables if table.asked)

    @property
    def uses(self) -> tuple[int, ...]:
        """For each table that was drawn and then each answer, the place of the mechanism that drew it."""
        tables = (table.by for table in self.tables if table.kind != "derived")
        return (*tables, *(answer.by for answer in self.answers))

    @property
    def bought(self) -> bool:
        """Whether parts of the schema were bought with it, so that it differs from the one that was charged."""
        return any(answer.name.startswith("edges of ") for answer in self.answers) and bool(self.tables)

    @property
    def level(self) -> float:
        """Of the intervals."""
        return float(self.job.get("level", 0.95))

    def statement(self) -> str:
        """The guarantee in plain English."""
        return statement(self.promise, self.unit, tables=len(self.tables), seeded=self.seeded)

    def __getitem__(self, marginal: str | Marginal) -> TableView:
        """A table with its estimates, by its name: ``release["income|sex"]``."""
        asked = Marginal.of_text(marginal)
        for table in self.tables:
            if table.marginal == asked:
                return door("TableView", self, table)
        known = ", ".join(str(table.marginal) for table in self.tables) or "none"
        raise ReleaseError(f"Release: it has no table {asked}. It has {known}.")

    def axes(self, table: Table) -> tuple[Attribute, ...]:
        """The attributes of a table, in axis order."""
        return table.marginal.axes(self.schema)

    def array(self, table: Table, product: str | None = None, part: str = "values") -> Floats:
        """The drawn numbers, or those of a product, in the shape of the table."""
        numbers = table.values if product is None else getattr(table.products[product], part)
        return np.asarray(numbers, dtype=np.float64).reshape(table.marginal.shape(self.schema))

    def __repr__(self) -> str:
        what = ", ".join(str(table.marginal) for table in self.tables[:4]) + (", …" if len(self.tables) > 4 else "")
        what = what or ", ".join(answer.name for answer in self.answers[:4])
        said = ["seeded, not private" if self.seeded else str(self.promise)]
        said += [] if self.spending is None else [f"entry {self.spending.serial}"]
        said += [self.place.removeprefix(f"{Path.cwd()}/")] if self.place else []
        return "; ".join([f"{self.kind} of {self.dataset}: {what}", *said])

    # -- what can be made of it: each is a function of a room above, behind a door ----------------------------------

    def verify(self, *, ledger: Ledger | str | Path | None = None) -> Verification:
        """Check what it guarantees; with its ledger, also that it was charged."""
        return door("verify", self, ledger=ledger)

    def save(
        self,
        folder: str | Path,
        *,
        numbers: Literal["csv", "parquet"] = "csv",
        also: Iterable[Literal["xlsx", "sheet"]] = (),
    ) -> tuple[Path, ...]:
        """Write ``release.json``, the numbers and ``report.html`` into a new folder, all at once.

        ``also`` adds a workbook (``xlsx``) and a privacy ``sheet``.
        """
        written: tuple[Path, ...] = door("save", self, folder, numbers=numbers, also=also)
        object.__setattr__(self, "place", str(folder))
        return written

    def posterior(self) -> Posterior:
        """What it says about the table behind it: estimates, intervals, draws, answers. Free."""
        return door("Posterior", self)

    def model(self, spec: Any = None) -> Any:
        """The model that was fitted, or any model whose tables the release holds. Free."""
        return door("built", (self,), spec)

    def build(self, spec: Any = None) -> Any:  # noqa: ARG002 - it is only told where it went
        """Is now ``model``."""
        raise AttributeError("Release.build is now Release.model.")

    def _repr_html_(self) -> str:
        return door("fragment", self)

    # -- its file ---------------------------------------------------------------------------------------------

    def drawn(self) -> Release:
        """Without what was computed from the draw, and without what came after it."""
        bare = tuple(replace(table, products={}, groups=(), notes=()) for table in self.tables)
        return replace(self, tables=bare, spending=None, files={}, seal="")

    def digest(self) -> str:
        """SHA-256 of the draw: the ledger's note of the charge names it, and so fixes all of it."""
        return digest(canonical(self.drawn()._content()))

    def _content(self, form: Callable[[Mapping[str, Any]], Record] = numbers.condense) -> Record:
        """Everything but the seal, which is taken of it, as is the digest: long lists are named by their hash."""
        tables = {"tables": [form(table.held()) for table in self.tables]} if self.tables else {}
        rest = codec.fields_record(self, without=("seal", "tables", "place"))
        return {"format": FORMAT, "version": VERSION, **rest, **tables}

    def sealed(self) -> str:
        """The seal that this content should have."""
        return digest(canonical(self._content()))

    def record(self) -> Record:
        """JSON form, with its seal."""
        return {**self._content(numbers.write_out), "seal": self.sealed()}

    def to_json(self, *, beside: bool = False) -> str:
        """The JSON file; with ``beside``, the numbers of large tables are in Parquet files beside it."""
        record = {**self._content(), "seal": self.sealed()} if beside else self.record()
        # lists that nobody reads are written without a line for each number, by the faster encoder
        indent = 1 if beside or sum(len(table.values) for table in self.tables) <= numbers.LONG else None
        return json.dumps(record, indent=indent, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Release:
        """Read the JSON form back; whether the seal fits is for ``verify`` to say."""
        content = {key: value for key, value in record.items() if key not in ("format", "version")}
        return codec.from_fields(cls, content)

    @classmethod
    def from_json(cls, text: str | bytes, *, folder: Path | None = None) -> Release:
        """Read a JSON file; what does not fit the format is refused in one sentence.

        The numbers of large tables may lie in Parquet files in its ``folder``.
        """
        return door("release_of", text, folder)

    @classmethod
    def load(cls, path: str | Path) -> Release:
        """Read a release from its file, or from the folder that holds ``release.json``."""
        where = Path(path)
        try:
            file = where / "release.json" if where.is_dir() else where
            text = file.read_bytes()
        except OSError as why:
            raise ReleaseError(f"Release: cannot read {str(path)!r}: {why.strerror}. Try `dpbayes release`.") from None
        made = cls.from_json(text, folder=file.parent)
        object.__setattr__(made, "place", str(path))
        return made


def now() -> str:
    """The time of a release, in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
