"""A request: what is made of which tables, under which guarantee, for whom and why; its file is reviewable in git."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpbayes.base import display, toml
from dpbayes.base.errors import DpbayesError, InvalidArgument, SchemaError
from dpbayes.base.files import write
from dpbayes.base.toml import Faults, unknown_key
from dpbayes.design.noise import is_want, loosest, wants
from dpbayes.jobs.base import Setting, maker, of_type, requestable
from dpbayes.privacy.calibrate import guarantee_of, guarantee_of_text
from dpbayes.privacy.guarantee import ApproxDP, Guarantee, PureDP
from dpbayes.release.words import ABOUT, checked
from dpbayes.schema.marginal import Marginal
from dpbayes.schema.schema import Schema

if TYPE_CHECKING:
    from dpbayes.design.plan import Job
    from dpbayes.ledger.account import Account

OWNER = "Request"

NUMBERS = ("epsilon", "delta", "guarantee")
"""The keys that make up the guarantee: the names of the options."""

FILES = ("prior", "scores")
"""Keys that name files."""

GONE = {
    "want": 'write the accuracy behind the table, as in tables = ["region ± 50 records"]',
    "synthetic": 'write as = "synthetic", and in tables the attribute to predict, if there is one',
    "product": 'write as = "draw", "pseudo-records" or "posterior"',
    "prior_parameters": "write prior",
    "expected_records": "write records_guess into the schema",
    "pseudo_records": 'write draws, with as = "pseudo-records"',
    "accounting": "the papers' parameters are in dpbayes.papers",
    "order": 'write guarantee = "RDP(5, 1)"',
    "rho": 'write guarantee = "ZCDP(0.1)"',
    "omega": 'write guarantee = "TCDP(0.1, 20)"',
}
"""Keys of 0.2.0, and what is written instead."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Request(display.Shown):
    r"""Everything that a release needs to be told, but for the private table itself, its schema and its ledger.

    All of it may be left out, and be said later by options or by ``with_changes``.

    >>> asked = Request.from_toml('title = "Income"\ntables = ["sex", "income|sex"]\nepsilon = 1\ndelta = 1e-6')
    >>> asked.target, asked.job().marginals[0].of, asked.about
    (ApproxDP(epsilon=1.0, delta=1e-06), ('sex',), {'title': 'Income'})
    """

    title: str = ""
    author: str = ""
    contact: str = ""
    purpose: str = ""
    supersedes: str = ""
    """The id of an earlier release that this one replaces."""
    tables: tuple[str, ...] = ()
    """``sex,income`` is a joint table, ``income|sex`` one of incomes for each sex, ``… ± 1 point`` how exact it is."""
    product: str = "tables"
    """What is made of them: a key of ``jobs.base.requestable()``; ``as`` in its file."""
    target: Guarantee | None = None
    open_delta: bool = False
    """Whether δ was not said: then it is that of the ledger, and 0 without one or under a limit that has none."""
    keys: Mapping[str, Any] = field(default_factory=dict)
    """What else the job is told, by the names of its keys."""
    folder: Path = Path()
    """Where the request file is: files that it names start from there."""
    stem: Path | None = None
    """What the names of the data set's files begin with."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", tuple(self.tables))
        object.__setattr__(self, "folder", Path(self.folder))
        known = maker(self.product).MAKES[self.product].keys
        for key in self.keys:
            if key not in known:
                raise InvalidArgument(f"{OWNER}: {_not_a_key(key, self.product)}")
        checked({name: getattr(self, name) for name in ABOUT}, owner=OWNER)
        exact = [is_want(text) for text in self.tables]
        if any(exact) and not (all(exact) and self.product == "tables"):
            raise InvalidArgument(
                f"{OWNER}: either all tables name an accuracy, or none; and only tables can have one."
            )
        wants([text for text in self.tables if is_want(text)])
        for marginal in self.marginals:
            assert marginal.of

    def __hash__(self) -> int:
        return hash(self.to_toml())

    def _facts(self) -> tuple[str, display.Facts]:
        lines = (line.partition(" = ") for line in self.to_toml().splitlines() if line)
        return f"Request of {self.product}", [(name, value) for name, _, value in lines]

    @property
    def about(self) -> dict[str, str]:
        """What readers of the release are told: title, author, contact, purpose, supersedes."""
        return checked({name: getattr(self, name) for name in ABOUT}, owner=OWNER)

    @property
    def marginals(self) -> tuple[Marginal, ...]:
        """The tables that are named."""
        return tuple(wants([text])[0].marginal if is_want(text) else Marginal.parse(text) for text in self.tables)

    @property
    def unlimited(self) -> bool:
        """Whether accuracies are wanted at any price."""
        wanted = any(map(is_want, self.tables))
        return wanted and (self.target is None or self.target == loosest(self.target))

    @property
    def reads(self) -> bool:
        """Whether it names files of numbers."""
        return self.product != "posterior" and any(key in self.keys for key in FILES)

    def job(self, schema: Schema | None = None) -> Job:
        """What is asked for; the schema is needed where files are to be read."""
        if schema is None and self.reads:
            raise InvalidArgument(f"{OWNER}: expected the schema, which says what a file of numbers is about.")
        setting = Setting(schema=schema, folder=self.folder, stem=self.stem)
        return maker(self.product).requested(self.product, self.tables, self.keys, setting)  # type: ignore[return-value]

    def guarantee(self, account: Account | None = None) -> Guarantee:
        """The target for a data set: for accuracies the most that is allowed, if nothing is said what is left."""
        if self.unlimited:
            return account.rest() if account is not None else self.target or loosest(PureDP(epsilon=1.0))
        if self.target is None:
            raise InvalidArgument(f"{OWNER}: expected epsilon (--epsilon 1), or accuracies, as in 'sex ± 50 records'.")
        delta = account.budget.exception if self.open_delta and account is not None else 0.0
        return ApproxDP(epsilon=self.target.size, delta=delta) if delta else self.target

    def origin(self, account: Account | None = None) -> str:
        """Where δ comes from, if it was not said."""
        if not self.open_delta or self.unlimited:
            return ""
        if account is None:
            return " (no ledger says a δ, so δ is 0)"
        return " (the δ of the ledger)" if account.budget.exception else " (the limit of the ledger has no δ)"

    def with_changes(self, **changes: Any) -> Request:
        """The same request, but for what is given and not None: options win over the file."""
        said = {name: value for name, value in changes.items() if value is not None}
        if said.get("target") is not None:
            said = {"open_delta": False, **said}
        if said.get("product", self.product) != self.product:  # what was said to another job
            known = maker(said["product"]).MAKES[said["product"]].keys
            said = {"keys": {name: value for name, value in self.keys.items() if name in known}, **said}
        return replace(self, **said)

    # -- its file ---------------------------------------------------------------------------------------------

    def to_toml(self) -> str:
        """The text of a request file; what is left at its default is left out."""
        said: dict[str, object] = {name: getattr(self, name) for name in ABOUT if getattr(self, name)}
        if self.product != "tables":
            said["as"] = self.product
        if self.tables:
            said["tables"] = list(self.tables)
        if self.target is not None and self.target.epsilon_delta is not None:
            epsilon, delta = self.target.epsilon_delta
            said |= {"epsilon": epsilon} if self.open_delta else {"epsilon": epsilon, "delta": delta}
        elif self.target is not None:
            said["guarantee"] = repr(self.target)
        return toml.dumps(
            said | {key: list(held) if isinstance(held, tuple) else held for key, held in self.keys.items()}
        )

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
            raise InvalidArgument(
                f"{OWNER}: there is no file {str(path)!r}. `dpbayes example .` writes a request.toml to start from."
            ) from None
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
            made = cls(**said, folder=folder)
            if made.tables and not made.reads and made.product not in ("wide", "vector"):
                made.job()  # what does not go together is said before a table is named
        except DpbayesError as problem:
            raise InvalidArgument(f"{OWNER}: {problem}".replace(f"{OWNER}: {OWNER}: ", f"{OWNER}: ")) from None
        return made


def asked_for(epsilon: float | None, delta: float | None, guarantee: str | None, *, wanted: bool) -> dict[str, Any]:
    """The target that three options or keys name, as fields of a request; none if they name none."""
    if guarantee is not None:
        if (epsilon, delta) != (None, None):
            raise InvalidArgument("Guarantee: expected epsilon with delta, or guarantee; got both.")
        return {"target": guarantee_of_text(guarantee), "open_delta": False}
    if epsilon is None and delta is None:
        return {}
    if epsilon is None and not wanted:
        raise InvalidArgument("Guarantee: expected epsilon with delta, as in epsilon = 1 and delta = 1e-6.")
    made = guarantee_of(epsilon=1.0 if epsilon is None else epsilon, delta=delta or None)
    return {"target": loosest(made) if epsilon is None else made, "open_delta": delta is None}


def _said(table: Mapping[str, object], faults: Faults) -> dict[str, Any]:
    """The values of a file by the names of the fields, as far as they are sound."""
    product = table.get("as", "tables")
    with faults.at("as"):
        maker(of_type(str, "as", product))
    if faults.found:
        product = "tables"
    said: dict[str, Any] = {"product": product, "keys": {}}
    for key, value in table.items():
        with faults.at(key):
            if key in ABOUT:
                said[key] = checked({key: value}, owner=OWNER).get(key, "")  # type: ignore[dict-item]  # checked
            elif key == "tables":
                said[key] = _tables(value, faults)
            elif key not in (*NUMBERS, "as"):
                said["keys"][key] = _key(str(product), key, value)
    with faults.at(next((key for key in table if key in NUMBERS), "epsilon")):
        types = {"epsilon": float, "delta": float, "guarantee": str}
        given = {key: of_type(types[key], key, table[key]) if key in table else None for key in NUMBERS}
        said |= asked_for(**given, wanted=any(map(is_want, said.get("tables", ()))))
    return said


def _tables(value: object, faults: Faults) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidArgument('expected tables to be a list of texts, as in tables = ["sex,income"].')
    for text in value:
        with faults.at("tables"):
            wants([text]) if is_want(text) else Marginal.parse(text)
    return tuple(value)


def _key(product: str, key: str, value: object) -> object:
    """The value of a key, tried on a job of one table where that can be done."""
    job = maker(product)
    if key not in job.MAKES[product].keys:
        raise InvalidArgument(_not_a_key(key, product))
    try:
        job.requested(product, ["a"], {key: value}, Setting(stem=Path("a")))
    except SchemaError:
        pass
    except InvalidArgument as problem:
        if key in str(problem) and key != "scores":  # which need the schema
            raise
    return value


def _not_a_key(key: str, product: str) -> str:
    """The sentence about a key that this product does not have."""
    if key in GONE:
        return f"{key!r} is gone since 0.2.0: {GONE[key]}."
    known = maker(product).MAKES[product].keys
    others = [name for name, job in requestable().items() if key in job.MAKES[name].keys]
    if others:
        return f"{key} goes with --as {' or '.join(others)}, not with {product}."
    return f"there is {unknown_key(key, (*ABOUT, 'tables', 'as', *NUMBERS, *known))}"
