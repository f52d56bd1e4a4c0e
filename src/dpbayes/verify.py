"""Check a release from its file alone: the promise is priced again, and every number recomputed from what was drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np

from dpbayes.errors import DpbayesError
from dpbayes.ledger.entry import canonical
from dpbayes.mechanisms.dirichlet import Dirichlet
from dpbayes.mechanisms.gaussian import Gaussian
from dpbayes.mechanisms.laplace import Laplace
from dpbayes.mechanisms.records import from_record
from dpbayes.privacy.cost import Cost
from dpbayes.products import TableMechanism, groups, products
from dpbayes.release import Kind, Product, Release, Table, digest_of

if TYPE_CHECKING:
    from dpbayes.ledger.ledger import Ledger

SLACK = 1e-9
"""The cost may exceed the promise by this share of it: the rounding of sums."""

TOLERANCE = 1e-6
"""Recomputed numbers may differ by this share of the largest one: other processors round otherwise."""

MADE_BY: dict[Kind, tuple[type, ...]] = {
    "gammas": (Dirichlet,),
    "pseudo-records": (Dirichlet,),
    "noisy-counts": (Gaussian, Laplace),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was checked, with the numbers that decided it."""

    name: str
    passed: bool
    detail: str

    def __str__(self) -> str:
        return f"{'pass' if self.passed else 'FAIL'}  {self.name}: {self.detail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """All checks of a release."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    def record(self) -> dict[str, object]:
        """JSON form."""
        listed = [{"name": check.name, "passed": check.passed, "detail": check.detail} for check in self.checks]
        return {"ok": self.ok, "checks": listed}


class _Failed(Exception):  # noqa: N818 - never leaves this module
    """The reason why a check did not pass."""


def verify(release: Release, *, ledger: Ledger | None = None) -> Verification:
    """Check what a release promises; with its ledger, also that it was charged.

    A check that cannot be carried out has failed: nothing is raised. The checks show that the file keeps its promise
    and agrees with itself, not who wrote it.

    >>> from dpbayes import Adjacency, Laplace, PrivacyUnit, PureDP
    >>> from dpbayes.release import Axis, Release, Table
    >>> unit = PrivacyUnit(adjacency=Adjacency.REPLACE_ONE)
    >>> drawn = Table(marginal={"of": ["sex"], "given": []}, axes=[Axis(name="sex", levels=["F", "M"])],
    ...               mechanism=Laplace(scale=1, unit=unit).record(), kind="noisy-counts", values=[52, 47])
    >>> claim = PureDP(epsilon=1.5)
    >>> made = verify(Release(dpbayes="0.1.0", created="2025-01-31T12:00:00+00:00", dataset="survey",
    ...                       unit=unit.record(), guarantee=claim.record(), accounting="exact", choice="asked for",
    ...                       records=100, seeded=False, tables=[drawn]))
    >>> print(next(check for check in made.checks if not check.passed))
    FAIL  promise: the mechanisms cost 2, more than the 1.5 of ε=1.5 (pure)
    """
    checks = {
        "randomness": lambda: _randomness(release),
        "mechanisms": lambda: _mechanisms(release),
        "promise": lambda: _promise(release),
        "public totals": lambda: _public_totals(release),
        "values": lambda: _values(release),
        "products": lambda: _products(release),
    }
    if ledger is not None:
        checks["ledger"] = lambda: _ledger(release, ledger)
    return Verification(checks=tuple(_checked(name, check) for name, check in checks.items()))


def _checked(name: str, check: Callable[[], str]) -> Check:
    try:
        with np.errstate(all="ignore"):
            return Check(name=name, passed=True, detail=check())
    except _Failed as reason:
        return Check(name=name, passed=False, detail=str(reason))
    except DpbayesError as problem:
        return Check(name=name, passed=False, detail=str(problem))
    except (ArithmeticError, ValueError, TypeError, MemoryError) as problem:
        # a file may hold any numbers; whatever arithmetic they break, the release is not verified
        return Check(name=name, passed=False, detail=f"cannot be computed ({type(problem).__name__})")


def _randomness(release: Release) -> str:
    if release.seeded:
        raise _Failed("drawn with a seed, so nothing is promised")
    return "not seeded, says the file"


def _read(release: Release) -> Iterator[tuple[str, Table, TableMechanism]]:
    """Each table with its name and its mechanism."""
    for number, table in enumerate(release.tables, start=1):
        mechanism = from_record(table.mechanism)
        if not isinstance(mechanism, MADE_BY[table.kind]):
            raise _Failed(f"table {number}: {table.kind} are not drawn by {table.mechanism['mechanism']}")
        yield f"table {number}, {table.asked}", table, mechanism  # type: ignore[misc]  # narrowed by MADE_BY


def _mechanisms(release: Release) -> str:
    unit = release.privacy_unit
    for name, table, mechanism in _read(release):
        if canonical(mechanism.record()) != canonical(table.mechanism):
            raise _Failed(f"{name}: the record is not as dpbayes writes it")
        if mechanism.unit != unit:
            raise _Failed(f"{name}: the mechanism protects another unit than the release")
        if isinstance(mechanism, Dirichlet):
            _check_dirichlet(name, table, mechanism)
    return f"{len(release.tables)} known, all for {unit.adjacency} with at most {unit.max_rows} rows a person"


def _check_dirichlet(name: str, table: Table, mechanism: Dirichlet) -> None:
    """What a record could claim to look cheaper than a table of counts is."""
    moved, declared = mechanism.unit.sensitivity, mechanism.sensitivity
    if declared is not None and any(
        getattr(declared, part) < getattr(moved, part) for part in ("l1", "l2_squared", "linf")
    ):
        raise _Failed(f"{name}: the declared sensitivity is below that of a table of counts")
    if isinstance(mechanism.concentration, tuple) and len(mechanism.concentration) != len(table.values):
        raise _Failed(f"{name}: there are not as many concentrations as cells")


def _promise(release: Release) -> str:
    promise = release.promise
    gap = promise.gap(Cost.total(mechanism for _, _, mechanism in _read(release)))
    said = f"of {promise}"
    if not gap <= SLACK * promise.size:  # also when the gap is not a number
        raise _Failed(f"the mechanisms cost {promise.size + gap:.9g}, more than the {promise.size:.9g} {said}")
    return f"the mechanisms cost {promise.size + gap:.9g} of the {promise.size:.9g} {said}"


def _public_totals(release: Release) -> str:
    if release.privacy_unit.replaces:
        if release.records is not None and release.records < 0:
            raise _Failed("the number of records is negative")
        return "the number of records is public under replace-one"
    if release.records is not None or any(table.row_records is not None for table in release.tables):
        raise _Failed("numbers of records are in the file, though add-remove promises to hide them")
    return "no number of records is in the file, as add-remove wants it"


def _values(release: Release) -> str:
    for name, table, _ in _read(release):
        values = np.asarray(table.values, dtype=np.float64)
        if table.kind == "gammas":
            if table.grid is None or not table.grid > 0:
                raise _Failed(f"{name}: gammas need a grid")
            steps = values / table.grid
            if not ((steps >= 1).all() and (steps == np.rint(steps)).all()):
                raise _Failed(f"{name}: expected positive multiples of {table.grid!r}")
        elif not all(isinstance(value, int) for value in table.values):
            raise _Failed(f"{name}: expected whole numbers")
        elif table.kind == "pseudo-records" and (values < 0).any():
            raise _Failed(f"{name}: expected whole numbers, zero or above")
    cells = sum(len(table.values) for table in release.tables)
    return f"{cells:,} values, all in the range of their mechanism"


def _products(release: Release) -> str:
    worst, made_by = 0.0, ""
    if release.dpbayes != version("dpbayes"):
        made_by = (
            f". It was made by dpbayes {release.dpbayes}, this is {version('dpbayes')}: estimates may have changed"
        )
    for name, table, mechanism in _read(release):
        again = _again(release, table, mechanism)
        if again.products.keys() != table.products.keys():
            raise _Failed(f"{name}: expected the products {', '.join(again.products) or 'none'}")
        if (again.groups is None) != (table.groups is None):
            raise _Failed(f"{name}: groups are missing, or there are some without a condition")
        for product, numbers in table.products.items():
            worst = max(worst, _distance(f"{name}, {product}", numbers, again.products[product]))
        for written, recomputed in zip(table.groups or [], again.groups or [], strict=True):
            if written.levels != recomputed.levels:
                raise _Failed(f"{name}: groups are not in the order of the table")
            pairs = ((written.records, recomputed.records), (written.prior_share, recomputed.prior_share))
            worst = max(worst, *(abs(one - other) / max(abs(other), 1.0) for one, other in pairs))
        if not worst <= TOLERANCE:
            raise _Failed(f"{name}: estimates differ by {worst:.2g} from those of the released values{made_by}")
    return f"recomputed from the released values, largest difference {worst:.2g}"


def _again(release: Release, table: Table, mechanism: TableMechanism) -> Table:
    """The table as it is made from its released values."""
    if table.kind == "pseudo-records":
        return table.model_copy(update={"products": {}, "groups": None})
    made = products(
        table.array(),
        mechanism,
        table.asked,
        records=release.records,
        row_records=None if table.row_records is None else np.asarray(table.row_records),
        shape=None if table.prior is None else np.asarray(table.prior),
        level=release.level,
    )
    return table.model_copy(
        update={"products": made, "groups": groups(table.axes, table.asked, made["counts"], mechanism)}
    )


def _distance(name: str, written: Product, recomputed: Product) -> float:
    """The largest difference, as a share of the largest number."""
    worst = 0.0
    for part in ("values", "lower", "upper"):
        one, other = getattr(written, part), getattr(recomputed, part)
        if (one is None) != (other is None):
            raise _Failed(f"{name}: an end of the intervals is missing, or should not be there")
        if one is not None:
            size = max(float(np.abs(other).max()), 1e-300)
            worst = max(worst, float(np.abs(np.subtract(one, other)).max()) / size)
    return worst


def _ledger(release: Release, ledger: Ledger) -> str:
    if release.ledger is None:
        raise _Failed("the release carries no receipt: it was never charged")
    receipt = release.ledger.receipt
    if receipt.get("dataset") != release.dataset:
        raise _Failed("the receipt is for another data set")
    account = ledger.account(release.dataset)
    charge = account.charges.get(receipt.get("serial"))  # type: ignore[arg-type]  # a wrong type finds nothing
    if charge is None or charge.entry.hash != receipt.get("hash"):
        raise _Failed("the receipt is not of a charge in this ledger")
    if charge.state == "void":
        raise _Failed("the charge was taken back, as if nothing had been drawn")
    if account.unit != release.privacy_unit:
        raise _Failed("the ledger protects another unit")
    charged: Counter[str] = Counter()
    for record, times in charge.releases:
        charged[record] += times
    if charged != Counter(canonical(table.mechanism) for table in release.tables):
        raise _Failed("the charge is for other mechanisms, or for another number of tables")
    if charge.digest and charge.digest != digest_of(release.tables):
        raise _Failed("the ledger notes that other values were drawn for this charge")
    same = " for exactly these values" if charge.digest else ""
    return f"charged in full as entry {charge.entry.serial}{same}; the chain of {len(account.entries)} entries is sound"
