"""Check a release from its file alone: it is priced again, and every number recomputed from what was drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbayes.base.codec import canonical, digest
from dpbayes.base.display import plural
from dpbayes.base.errors import DpbayesError
from dpbayes.mechanisms.dirichlet import Dirichlet, on_grid
from dpbayes.mechanisms.kinds import confirm
from dpbayes.mechanisms.urn import PseudoRecords
from dpbayes.privacy.cost import Priced
from dpbayes.release.estimates import prior_of
from dpbayes.release.format import COMMITMENT, Answer, Product, Release, Table
from dpbayes.release.products import complete
from dpbayes.release.signature import SUFFIX, check_signature
from dpbayes.release.words import rows, times

if TYPE_CHECKING:
    from dpbayes.ledger.ledger import Ledger


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

    def __str__(self) -> str:
        return "\n".join(map(str, self.checks))

    __repr__ = __str__


class _Failed(DpbayesError):  # noqa: N818 - never leaves this module
    """The reason why a check did not pass."""


def verify(
    release: Release | str | Path,
    ledger: Ledger | str | Path | None = None,
    key: str | Path | None = None,
    *,
    folder: str | Path | None = None,
) -> Verification:
    """Check what a release guarantees; with its ledger, also that it was charged; with its folder, its files.

    A release that is named by its folder is checked with its files. With the public ``key`` of its publisher, also that
    it was signed: without, the checks show that the file keeps its guarantee and agrees with itself, not who wrote it.
    A check that cannot be carried out has failed: nothing is raised.
    """
    if not isinstance(release, Release):
        folder = folder or (release if Path(release).is_dir() else Path(release).parent)
        release = Release.load(release)
    checks: dict[str, Callable[[], str]] = {
        "randomness": lambda: _randomness(release),
        "seal": lambda: _seal(release),
        "mechanisms": lambda: _mechanisms(release),
        "guarantee": lambda: _guarantee(release),
        "public totals": lambda: _public_totals(release),
        "values": lambda: _values(release),
        "floating point": lambda: _floating_point(release),
        "products": lambda: _products(release),
    }
    if folder is not None:
        checks["files"] = lambda: _files(release, Path(folder))
    if key is not None:
        checks["signature"] = lambda: _signature(release, folder, key)
    if ledger is not None:
        checks["ledger"] = lambda: _ledger(release, ledger)
    return Verification(checks=tuple(_checked(name, check) for name, check in checks.items()))


def _checked(name: str, check: Callable[[], str]) -> Check:
    try:
        with np.errstate(all="ignore"):
            return Check(name=name, passed=True, detail=check())
    except DpbayesError as problem:
        return Check(name=name, passed=False, detail=str(problem))
    except (ArithmeticError, ValueError, TypeError, MemoryError) as problem:
        # a file may hold any numbers; whatever arithmetic they break, the release is not verified
        return Check(name=name, passed=False, detail=f"cannot be computed ({type(problem).__name__})")


def _randomness(release: Release) -> str:
    if release.seeded:
        raise _Failed("drawn with a seed, so nothing is guaranteed")
    return "not drawn with a seed, says the file"


def _seal(release: Release) -> str:
    if not release.seal:
        return "not read from a file"
    if release.seal != release.sealed():
        raise _Failed("the file was edited after it was written")
    return "the file is as it was written"


def _drawn(release: Release) -> Iterator[tuple[str, Table, Priced]]:
    """Each table that was drawn, with its name and its mechanism."""
    for table in release.tables:
        if table.kind == "derived":
            continue
        mechanism = release.paid[table.by].mechanism
        if table.kind not in getattr(mechanism, "tables", ()):
            raise _Failed(f"{table.marginal}: {table.kind} are not drawn by {mechanism.record()['mechanism']}")
        yield str(table.marginal), table, mechanism


def _mechanisms(release: Release) -> str:
    unit, used = release.unit, Counter(release.uses)
    for place, paid in enumerate(release.paid):
        if paid.mechanism.unit != unit:
            raise _Failed(f"mechanism {place + 1} protects another unit than the schema")
        if release.kind != "wide" and used[place] > paid.times:
            raise _Failed(f"mechanism {place + 1} was paid for {times(paid.times)} and drew {times(used[place])}")
        confirm(paid.mechanism)  # a certificate is worth what enumeration says
    for name, table, mechanism in _drawn(release):
        if isinstance(mechanism, (Dirichlet, PseudoRecords)):
            _check_dirichlet(name, table, mechanism)
        if getattr(mechanism, "cells", len(table.values)) != len(table.values):
            raise _Failed(f"{name}: the mechanism is one for another number of cells")
    if release.kind == "vector":
        _check_vector(release)
    return f"{plural(len(release.paid), 'mechanism')}, known and made for {unit.adjacency} and {rows(unit)} per person"


def _check_dirichlet(name: str, table: Table, mechanism: Dirichlet | PseudoRecords) -> None:
    """What a record could claim to look cheaper than a table of counts is."""
    moved, declared = mechanism.unit.sensitivity, getattr(mechanism, "sensitivity", None)
    if declared is not None and any(
        getattr(declared, part) < getattr(moved, part) for part in ("l1", "l2_squared", "linf")
    ):
        raise _Failed(f"{name}: the declared sensitivity is below that of a table of counts")
    if isinstance(mechanism.concentration, tuple) and len(mechanism.concentration) != len(table.values):
        raise _Failed(f"{name}: there are not as many concentrations as cells")


def _check_vector(release: Release) -> None:
    """A vector moves as far as its public scores say."""
    scores: Any = release.job.get("scores")
    moved = release.unit.moved_by(scores)
    for answer in release.answers:
        mechanism = release.paid[answer.by].mechanism
        if not isinstance(mechanism, Dirichlet) or mechanism.sensitivity != moved:
            raise _Failed(f"{answer.name}: the sensitivity is not the one that follows from the scores")
        if isinstance(mechanism.concentration, tuple) and len(mechanism.concentration) != len(answer.values):
            raise _Failed(f"{answer.name}: there are not as many concentrations as entries")
        values = np.asarray(answer.values, dtype=np.float64)
        if len(values) != len(scores[0]) or (on_grid(values, mechanism.grid) != values).any():
            raise _Failed(f"{answer.name}: expected a value for each entry, rounded as the mechanism rounds them")


def _guarantee(release: Release) -> str:
    promise, cost = release.promise, release.cost
    gap = promise.gap(cost)
    said = f"{promise.size + gap:.9g}"
    if not gap <= 0:  # also when the gap is not a number
        raise _Failed(f"it costs {said}, more than {promise}")
    return f"it costs {said}, within {promise}"


def _public_totals(release: Release) -> str:
    if release.unit.fixed_size:
        if release.records is not None and release.records < 0:
            raise _Failed("the number of records is negative")
        return "the number of records is public"
    if release.records is not None:
        raise _Failed("the number of records is in the file, though the unit keeps it private")
    return "no number of records is in the file: the unit keeps it private"


def _values(release: Release) -> str:
    for name, table, mechanism in _drawn(release):
        if getattr(mechanism, "closed", False):
            _check_total(name, release, table)
        if table.kind == "gammas":
            _check_gammas(name, table, mechanism)
        elif table.kind == "parameters":
            _check_parameters(name, release, table)
        elif table.kind == "shares" and not ((table.values >= 0).all() and table.values.sum() <= 1 + 1e-6):
            raise _Failed(f"{name}: expected shares that add up to one at most")
        elif table.kind == "pseudo-records" and (table.values < 0).any():
            raise _Failed(f"{name}: expected whole numbers, zero or above")
        elif isinstance(mechanism, PseudoRecords) and int(table.values.sum()) != mechanism.records:
            raise _Failed(f"{name}: expected {mechanism.records:,} pseudo-records")
    cells = sum(len(table.values) for table in release.tables)
    parts = [f"{plural(cells, 'value')} in {plural(len(release.tables), 'table')}"] if release.tables else []
    parts += [plural(len(release.answers), "answer")] if release.answers or not parts else []
    return f"{' and '.join(parts)}, all in the range of their mechanism"


def _check_gammas(name: str, table: Table, mechanism: Priced) -> None:
    grid = getattr(mechanism, "grid", 0.0)
    if not grid or (on_grid(table.values, grid) != table.values).any():
        raise _Failed(f"{name}: expected values that are rounded as the mechanism rounds them")


def _check_total(name: str, release: Release, table: Table) -> None:
    prior = float(prior_of(release, table).sum()) if table.kind == "parameters" else 0.0
    if round(float(table.values.sum()) - prior) != release.records:
        what = "parameters that add up to the prior and" if prior else "counts that add up to"
        raise _Failed(f"{name}: expected {what} the number of records")


def _check_parameters(name: str, release: Release, table: Table) -> None:
    counts = table.values - prior_of(release, table)
    if (np.abs(counts - np.rint(counts)) > 1e-6).any():
        raise _Failed(f"{name}: expected whole counts above the prior")


def _floating_point(release: Release) -> str:
    """Whether the guarantee survives that gammas were made of doubles."""
    if release.kind == "vector" or any(table.kind == "gammas" for table in release.tables):
        return "gammas are rounded so coarsely that the doubles behind them do not show"
    if any(table.kind == "shares" for table in release.tables):
        return "shares are rounded so coarsely that the doubles behind them do not show"
    return "whole numbers and choices only, exact on any computer"


def _products(release: Release) -> str:
    made_by = release.software.get("dpbayes", "an unknown version")
    if not any(table.products or table.groups or table.notes for table in release.tables):
        return "no estimates are stated"
    worst = 0.0
    for table, again in zip(release.tables, complete(release.drawn()).tables, strict=True):
        name = str(table.marginal)
        if again.products.keys() != table.products.keys():
            raise _Failed(f"{name}: expected the products {', '.join(again.products) or 'none'}")
        if [group.levels for group in again.groups] != [group.levels for group in table.groups]:
            raise _Failed(f"{name}: the groups are not those of the table")
        notes = ([each.notes, *(held.note for held in each.products.values())] for each in (table, again))
        if next(notes) != next(notes):
            raise _Failed(f"{name}: the remarks are not those that follow from the values")
        for product, numbers in table.products.items():
            worst = max(worst, _distance(f"{name}, {product}", numbers, again.products[product]))
        for written, recomputed in zip(table.groups, again.groups, strict=True):
            pairs = ((written.records, recomputed.records), (written.prior_share, recomputed.prior_share))
            worst = max(worst, *(abs(one - other) / max(abs(other), 1.0) for one, other in pairs))
        if not worst <= 1e-6:  # other processors round otherwise
            raise _Failed(
                f"{name}: estimates differ by {worst:.2g} from those of the released values (it was made by dpbayes "
                f"{made_by}; estimates may have changed since)"
            )
    return f"recomputed from the released values, largest difference {worst:.2g}"


def _distance(name: str, written: Product, recomputed: Product) -> float:
    """The largest difference, as a share of the number itself, or of a small one if it is smaller still."""
    worst = 0.0
    for part in ("values", "lower", "upper"):
        one, other = getattr(written, part), getattr(recomputed, part)
        if (one is None) != (other is None):
            raise _Failed(f"{name}: an end of the intervals is missing, or should not be there")
        if one is not None:
            sizes = np.abs(other)
            least = max(1e-3 * float(sizes.max()), 1e-300)
            worst = max(worst, float((np.abs(np.subtract(one, other)) / np.maximum(sizes, least)).max()))
    return worst


def _files(release: Release, folder: Path) -> str:
    for name, expected in release.files.items():
        if Path(name).name != name:
            raise _Failed("a file is named that does not lie beside the release")
        try:
            found = digest((folder / name).read_bytes())
        except OSError:
            raise _Failed(f"{name} is missing, or cannot be read") from None
        if found != expected:
            raise _Failed(f"{name} was changed after it was written")
    ours = {*release.files, "release.json", f"release.json{SUFFIX}"}
    strangers = sorted(path.name for path in folder.iterdir() if path.name not in ours) if release.files else []
    if strangers:
        raise _Failed(
            f"{strangers[0]} does not belong to the release. Move it out of the folder, and do not rely on it"
        )
    return f"{plural(len(release.files), 'file')} beside it, as written"


def _signature(release: Release, folder: str | Path | None, key: str | Path) -> str:
    if folder is None:
        raise _Failed("a signature is beside the release: verify its folder")
    found = check_signature(folder, key)
    if Release.load(folder).record() != release.record():
        raise _Failed("the signature is for another release")
    return f"signed with the key {found.key}: {found.comment}"


def _ledger(release: Release, where: Ledger | str | Path) -> str:
    if not release.lock:
        raise _Failed("the release names no charge: no ledger remembers it")
    if isinstance(where, (str, Path)):
        from dpbayes.ledger.ledger import Ledger

        where = Ledger(where)
    account = where.account(release.dataset)
    charge = next((each for each in account.charges.values() if each.lock == release.lock), None)
    if charge is None:
        raise _Failed("no charge in this ledger is for this release")
    if charge.state == "void":
        raise _Failed("the charge was taken back, as if nothing had been drawn")
    if account.unit != release.unit:
        raise _Failed("the ledger protects another unit")
    if charge.schema and charge.schema != release.schema.digest and not release.bought:
        raise _Failed("the charge was made under another schema")
    paid: Counter[str] = Counter()
    for each in release.paid:
        paid[canonical(each.mechanism.record())] += each.times
    for record, number in charge.releases:
        paid[record] -= number
    if any(paid.values()):
        raise _Failed("the charge is for other mechanisms, or for another number of draws")
    if not charge.digest:
        raise _Failed(
            f"the ledger does not note what was drawn for entry {charge.entry.serial}, so that these numbers could be "
            "any. Ask for `dpbayes ledger finish LEDGER`, which notes it from the draw that was kept"
        )
    if charge.digest != _opening(release).digest():
        raise _Failed("the ledger notes that something else was drawn for this charge")
    _check_spending(release, account.spending(charge.entry.serial))
    chain = f"the chain of {plural(len(account.entries), 'entry')} is sound"
    return f"charged in full as entry {charge.entry.serial} for exactly this draw; {chain}"


def _opening(release: Release) -> Release:
    """The draw that was noted: of a wide distribution that is its opening, which says by which key it answers."""
    if release.kind != "wide" or "opened" not in release.job:
        return release
    match release.job["opened"]:
        case {"key": str(key), "created": str(created), "software": dict(software), "about": dict(about)}:
            job = {name: value for name, value in release.job.items() if name != "opened"}
            answers = (Answer(name=COMMITMENT, by=0, values=(key,)),)
            opening = replace(release, job=job, tables=(), answers=answers)
            return replace(opening, created=created, software=software, about=about)
    raise _Failed("it does not say how the wide distribution was opened")


def _check_spending(release: Release, now: Any) -> None:
    """What the file says about the limit is what the ledger says of that entry."""
    stated = release.spending
    if stated is None:
        return
    if (stated.serial, stated.hash, canonical(stated.budget)) != (now.serial, now.hash, canonical(now.budget)):
        raise _Failed("the file states another entry or limit than the ledger")
    if not (np.isclose(stated.spent, now.spent, rtol=1e-6) and np.isclose(stated.left, now.left, rtol=1e-6, atol=1e-9)):
        raise _Failed("the file states another balance than the ledger")
