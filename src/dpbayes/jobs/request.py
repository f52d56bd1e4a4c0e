"""A request file: which tables or synthetic records, under which guarantee, for whom and why; reviewable in git."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dpbayes.base import checks, toml
from dpbayes.base.errors import InvalidArgument, SchemaError
from dpbayes.base.files import write
from dpbayes.base.toml import Faults, unknown_key
from dpbayes.design.noise import WISHES, Wish, wants
from dpbayes.jobs.tables import Tables
from dpbayes.mechanisms.tuning import Accounting
from dpbayes.privacy.calibrate import guarantee_of
from dpbayes.privacy.guarantee import Guarantee
from dpbayes.release.words import ABOUT, checked
from dpbayes.schema.marginal import Marginal, Prior
from dpbayes.schema.schema import Schema

if TYPE_CHECKING:
    from dpbayes.jobs.posterior import DirichletPosterior
    from dpbayes.jobs.synthetic import Synthetic

OWNER = "Request"

NUMBERS = ("epsilon", "delta", "order", "rho", "omega")
"""The keys that make up the guarantee: the names of the options."""

OPTIONS = ("mechanism", "product", "accounting", "expected_records", "pseudo_records", "level")
"""Keys that are options of ``Tables``."""

FOR_TABLES = ("tables", "want", "prior", "prior_parameters", "product", "accounting", "pseudo_records", "level")
"""Keys that say something about tables, and nothing about synthetic records."""

CHOICES: dict[str, tuple[str, ...]] = {
    "mechanism": WISHES,
    "accounting": ("exact", "published"),
    "product": ("estimate", "draw", "records", "posterior"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    r"""Everything that a release needs to be told, but for the private table itself, its schema and its ledger.

    All of it may be left out, and be said later by flags or by ``with_changes``.

    >>> asked = Request.from_toml('title = "Income"\ntables = ["sex", "income|sex"]\nepsilon = 1\ndelta = 1e-6')
    >>> asked.target, asked.job().marginals[0].of, asked.about
    (ApproxDP(epsilon=1, delta=1e-06), ('sex',), {'title': 'Income'})
    """

    title: str = ""
    author: str = ""
    contact: str = ""
    purpose: str = ""
    tables: tuple[str, ...] = ()
    """``sex,income`` is a joint table, ``income|sex`` one of incomes for each sex."""
    synthetic: bool | str = False
    """Instead of tables: synthetic records of the whole table; a text names the attribute that others will predict."""
    target: Guarantee | None = None
    mechanism: Wish = "auto"
    product: Literal["estimate", "draw", "records", "posterior"] = "estimate"
    accounting: Accounting = "exact"
    expected_records: int | None = None
    pseudo_records: int | None = None
    want: tuple[str, ...] = ()
    """How exact tables have to be, as in ``income|sex ± 1 point``; the guarantee is then the most that is allowed."""
    prior: tuple[str, ...] = ()
    """CSV files of public guesses; a relative path starts from the folder of the request file."""
    prior_parameters: tuple[float, ...] = (1.0,)
    """Of a posterior: one number for all cells, or one for each."""
    level: float = 0.95
    supersedes: str = ""
    """The id of an earlier release that this one replaces."""
    folder: Path = Path()
    """Where the request file is."""

    def __post_init__(self) -> None:
        for name in ("tables", "prior", "want", "prior_parameters"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "folder", Path(self.folder))
        checked({name: getattr(self, name) for name in ABOUT}, owner=OWNER)
        if self.synthetic is not False:
            self._synthetic()
        elif self.product == "posterior" and self.tables:
            self._posterior()
        elif self.tables or self.want:
            self._tables()

    @property
    def about(self) -> dict[str, str]:
        """What readers of the release are told: title, author, contact, purpose, supersedes."""
        return checked({name: getattr(self, name) for name in ABOUT}, owner=OWNER)

    def job(self, schema: Schema | None = None) -> Tables | Synthetic | DirichletPosterior:
        """What is asked for; the schema is needed where there are priors."""
        if self.product == "posterior" and self.synthetic is False:
            return self._posterior()
        return self.tables_of(schema) if self.synthetic is False else self._synthetic()

    def tables_of(self, schema: Schema | None = None) -> Tables:
        """The tables asked for; a request for synthetic records has none to show before they are drawn."""
        if self.synthetic is not False:
            raise InvalidArgument(
                f"{OWNER}: this request is for synthetic records, not for tables. Give it to dpbayes synth."
            )
        if not self.tables and not self.want:
            raise InvalidArgument(
                f'{OWNER}: expected a table or more. Write tables = ["sex,income"] or synthetic = true, '
                "or give --marginal."
            )
        if self.prior and schema is None:
            raise InvalidArgument(f"{OWNER}: expected the schema, which says what a prior is about.")
        return self._tables(tuple(self._prior(name, schema) for name in self.prior if schema is not None))

    def guarantee(self) -> Guarantee:
        """The target, which must have been said by now."""
        if self.target is None:
            raise InvalidArgument(
                f"{OWNER}: expected a guarantee. Write epsilon = 1 and delta = 1e-6, or give --epsilon."
            )
        return self.target

    def with_changes(self, **changes: Any) -> Request:
        """The same request, but for what is given and not None: flags win over the file, tables over records."""
        said = {name: value for name, value in changes.items() if value is not None}
        if said.get("tables") or said.get("want"):
            said = {"synthetic": False, **said}
        return replace(self, **said)

    # -- its file ---------------------------------------------------------------------------------------------

    def to_toml(self) -> str:
        """The text of a request file; what is left at its default is left out."""
        plain = {field.name: field.default for field in fields(self)}
        said: dict[str, object] = {}
        for name, default in plain.items():
            value = getattr(self, name)
            if value == default or name == "folder":
                continue
            if name == "target":
                said |= {key: number for key, number in value.record().items() if key in NUMBERS}
            else:
                said[name] = list(value) if isinstance(value, tuple) else value
        return toml.dumps(said)

    def save(self, path: str | Path) -> None:
        """Write the request file, whole or not at all."""
        try:
            write(Path(path), self.to_toml())
        except OSError:
            raise InvalidArgument(f"{OWNER}: {str(path)!r} cannot be written. Check the folder.") from None

    @classmethod
    def load(cls, path: str | Path) -> Request:
        """Read a request file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise InvalidArgument(f"{OWNER}: there is no file {str(path)!r}. Check the name.") from None
        except (OSError, ValueError):
            raise InvalidArgument(f"{OWNER}: {str(path)!r} cannot be read as UTF-8 text. Check the file.") from None
        return cls.from_toml(text, folder=Path(path).parent)

    @classmethod
    def from_toml(cls, text: str, *, folder: Path = Path()) -> Request:
        """Read the text of a request file; all that is wrong with it is said at once, each with its line."""
        table = toml.loads(text, owner=OWNER, error=InvalidArgument)
        faults = Faults(OWNER, toml.places(text))
        said = _said(table, faults)
        faults.raise_all(InvalidArgument)
        try:
            return cls(**said, folder=folder)
        except (InvalidArgument, SchemaError) as problem:
            raise InvalidArgument(f"{OWNER}: {problem}".replace(f"{OWNER}: {OWNER}: ", f"{OWNER}: ")) from None

    def _synthetic(self) -> Synthetic:
        """The job of synthetic records, or a sentence about what does not go with it."""
        from dpbayes.jobs.synthetic import Synthetic  # with its models, which tables do not need

        if not isinstance(self.synthetic, (bool, str)) or self.synthetic == "":
            raise InvalidArgument(
                f'{OWNER}: expected synthetic to be true, or the name of the attribute to predict, as in "income".'
            )
        plain = {field.name: field.default for field in fields(self)}
        for name in FOR_TABLES:
            if getattr(self, name) != plain[name]:
                raise InvalidArgument(f"{OWNER}: {name} goes with tables, not with synthetic. Leave one of them out.")
        if self.mechanism not in ("auto", "gaussian", "laplace"):
            raise InvalidArgument(
                f"{OWNER}: synthetic records need gaussian or laplace noise, got mechanism = {self.mechanism!r}. "
                "Leave it out, and it is chosen."
            )
        return Synthetic(
            target=self.synthetic if isinstance(self.synthetic, str) else None,
            mechanism=self.mechanism,
            expected_records=self.expected_records,
        )

    def _posterior(self) -> DirichletPosterior:
        """The job of a released posterior, or a sentence about what does not go with it."""
        from dpbayes.jobs.posterior import DirichletPosterior  # with its mechanisms, which tables do not need

        if len(self.tables) != 1:
            raise InvalidArgument(f"{OWNER}: a posterior is of one joint table. Choose one table.")
        if self.want or self.prior or self.pseudo_records is not None:
            raise InvalidArgument(
                f"{OWNER}: a posterior goes without want, prior and pseudo_records. Its prior is prior_parameters."
            )
        if self.mechanism not in ("auto", "laplace"):
            raise InvalidArgument(f"{OWNER}: a posterior has mechanism auto or laplace here, got {self.mechanism!r}.")
        return DirichletPosterior(
            marginal=Marginal.parse(self.tables[0]), prior=self.prior_parameters, mechanism=self.mechanism
        )

    def _tables(self, priors: tuple[Prior, ...] = ()) -> Tables:
        options = {name: getattr(self, name) for name in OPTIONS}
        options |= {"product": "estimate"} if self.product == "posterior" else {}
        return Tables(*self.tables, priors=priors, want=self.want, **options)

    def _prior(self, name: str, schema: Schema) -> Prior:
        try:
            return Prior.from_csv((self.folder / name).read_text(encoding="utf-8"), schema)
        except (OSError, UnicodeError):
            raise InvalidArgument(
                f"{OWNER}: the prior {name!r} cannot be read as UTF-8 text. Check the path."
            ) from None


def _said(table: Mapping[str, object], faults: Faults) -> dict[str, Any]:
    """The values of a file by the names of the fields, as far as they are sound."""
    known = (*ABOUT, "tables", "want", "synthetic", *NUMBERS, *OPTIONS, "prior", "prior_parameters")
    said: dict[str, Any] = {}
    for key, value in table.items():
        with faults.at(key):
            if key not in known:
                raise InvalidArgument(f"there is {unknown_key(key, known)}")
            if key in NUMBERS:
                continue
            said[key] = _one(key, value, faults)
    if any(key in table for key in NUMBERS):
        with faults.at(next(key for key in table if key in NUMBERS)):
            said["target"] = guarantee_of(**{key: _number(key, table[key]) for key in NUMBERS if key in table})
    return said


def _one(key: str, value: object, faults: Faults) -> object:
    """One value, checked by whoever uses it."""
    if key in ABOUT:
        return checked({key: value}, owner=OWNER).get(key, "")  # type: ignore[dict-item]
    if key == "synthetic":
        return Request(synthetic=value).synthetic  # type: ignore[arg-type]  # checked there
    if key in OPTIONS:
        if key in CHOICES:
            checks.one_of(OWNER, CHOICES[key], **{key: value})
        else:
            Tables("a", **_with_company(key, value))
        return value
    if key == "prior_parameters":
        if not isinstance(value, list):
            raise InvalidArgument("expected prior_parameters to be a list of numbers, as in prior_parameters = [1, 1].")
        return tuple(_number(key, each) for each in value)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidArgument(f'expected {key} to be a list of texts, as in {key} = ["sex,income"].')
    for text in value if key in ("tables", "want") else ():
        with faults.at(key):
            Marginal.parse(text) if key == "tables" else wants([text])
    return tuple(value)


def _with_company(key: str, value: object) -> dict[str, object]:
    """An option with what it needs beside it, so that it is judged on its own."""
    if key == "pseudo_records":
        return {key: value, "product": "records"}
    return {key: value}


def _number(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidArgument(f"expected {key} to be a number, got {value!r}.{checks.hint(str(value))}")
    return value
