"""What is published: verified, exported, signed. Free."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpbayes.base.display import plural
from dpbayes.base.errors import InvalidArgument, LedgerError
from dpbayes.base.files import write
from dpbayes.cli.ask import homes
from dpbayes.cli.command import Output, fresh, key_value, useless
from dpbayes.cli.output import tell, tell_people
from dpbayes.release.format import Release
from dpbayes.release.signature import SUFFIX, new_key
from dpbayes.release.signature import sign as signed

if TYPE_CHECKING:
    from dpbayes.cli.options import Text, Words
    from dpbayes.ledger.account import Account


def verify(things: Words, *, ledger: Text, key: Text, thorough: bool) -> Output:
    """Releases are priced again, and their numbers recomputed. With a ledger also that each was charged there, and
    which charged ones are missing. Of a ledger every hash, price and certificate is checked.

    Example: dpbayes verify published --ledger survey.ledger
    """
    if ledger is not None:
        from dpbayes.ledger.ledger import Ledger

        Ledger(ledger).datasets()  # a name that is none says nothing about a release
    results: list[dict[str, Any]] = []
    releases: list[Release] = []
    said: list[str] = []
    for thing in things:
        accounts = _ledger_in(thing)
        if accounts is not None:
            for account in accounts:
                results.append(_checked_account(thing, account, said))
            continue
        found = [(thing, Release.from_json(sys.stdin.buffer.read()))] if thing == "-" else []
        for place, release in found or [(str(path), Release.load(path)) for path in homes(Path(thing))]:
            releases.append(release)
            results.append(_checked(place, release, ledger, key, thorough, said))
    ok = all(each["ok"] for each in results)
    if ledger is not None and releases and ok:
        said += _missing(releases, ledger)
    return Output({"ok": ok, "checked": results}, lambda: tell("\n".join(said)), code=0 if ok else 1)


def _checked(
    place: str, release: Release, ledger: str | None, key: str | None, thorough: bool, said: list[str]
) -> dict[str, Any]:
    from dpbayes.release.verify import verify as verification

    where = Path(place)
    folder = None if place == "-" else where if where.is_dir() else where.parent
    result = verification(release, ledger=ledger, folder=folder if release.files or key else None, key=key)
    record = result.record() | {"thing": place, "id": release.id}
    said += [f"{place}:", str(result)]
    if thorough:
        record |= _certificate(release, said)
    ok = bool(record["ok"])
    said.append(release.statement() if ok else "This release does not verify: do not rely on its guarantee.")
    if key is None and folder is not None and (folder / f"release.json{SUFFIX}").exists():
        said.append("It is signed. To check by whom, give the publisher's public key with --key.")
    return record


def _certificate(release: Release, said: list[str]) -> dict[str, Any]:
    """The certificate of a posterior, derived again; nothing where the guarantee rests on a theorem."""
    from math import isfinite

    made = release.paid[0].mechanism
    if not isfinite(getattr(made, "smoothing", float("inf"))):
        said.append("pass  certificate: the guarantee rests on theorems alone")
        return {}
    from dpbayes.hellinger.certificate import certify

    delta, claimed = release.promise.exception, release.promise.size
    derived = certify(made.prior, made.total, sharpness=made.sharpness, smoothing=made.smoothing, delta=delta)  # type: ignore[attr-defined]
    exact = derived.epsilon if not delta else derived.epsilon_at_delta
    holds = bool(exact <= claimed)
    worst = f"worst pair of tables {list(derived.table)} and {list(derived.neighbour)}"
    said.append(f"{'pass' if holds else 'FAIL'}  certificate: it costs ε={exact:.9g}, {claimed:g} is claimed; {worst}")
    certificate = {"verified": holds, "claimed_epsilon": claimed, "certificate": derived.record()}
    return certificate if holds else certificate | {"ok": False}


def _missing(releases: list[Release], ledger: str) -> list[str]:
    """Which releases of the same data sets the ledger was charged for that are not here."""
    from dpbayes.ledger.history import history
    from dpbayes.ledger.ledger import Ledger

    said, here = [], {release.lock for release in releases}
    for name in dict.fromkeys(release.dataset for release in releases):
        account = Ledger(ledger).account(name)
        for past in history(account):
            each = account.charges[past.serial]
            if each.state == "drawn" and each.lock not in here:
                said.append(
                    f"missing: entry {past.serial} of {past.day}, {past.about}, was drawn and is not among these."
                )
    return said


def _ledger_in(thing: str) -> list[Account] | None:
    """The accounts of a ledger or of an export of one; None if it is neither."""
    from dpbayes.ledger.history import read as exported
    from dpbayes.ledger.ledger import Ledger

    path = Path(thing)
    if (
        thing.startswith(("postgresql://", "postgres://"))
        or path.suffix == ".ledger"
        or _begins(path, b"SQLite format 3")
    ):
        book = Ledger(thing)
        return [book.account(name) for name in book.datasets()]
    if path.suffix != ".jsonl" and not _begins(path, b'{"about":'):
        return None
    try:
        return list(exported(path.read_text(encoding="ascii").splitlines()).values())
    except (OSError, UnicodeDecodeError) as problem:
        raise LedgerError(f"Ledger: {thing} cannot be read as an export. Check the name.") from problem


def _begins(path: Path, start: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(start)) == start
    except OSError:
        return False


def _checked_account(thing: str, account: Account, said: list[str]) -> dict[str, Any]:
    """Every hash and price was checked when it was read; here certificates are, and whether the limit was kept."""
    from dpbayes.mechanisms.kinds import confirm
    from dpbayes.words import budget

    for mechanism, _ in account.cost.entries:
        confirm(mechanism)
    last, many = max(account.costs, default=0), plural(len(account.entries), "entry")
    kept = account.used <= 1.0 or last < max(each.serial for each in account.entries if each.kind == "budget")
    found = "every price is right" if kept else f"entry {last} is beyond the limit that it was made under"
    chain = f"{account.dataset}: {account.budget}; the chain of {many} is sound"
    said += [f"{thing}:", f"{'pass' if kept else 'FAIL'}  {chain}, and {found}"]
    said += [f"      {each}" for each in budget.balance(account)]
    return {"thing": thing, "ok": kept, "dataset": account.dataset, "spent": account.spent, "left": account.left(),
            "entries": len(account.entries), "head": account.head.hash}  # fmt: skip


def export(thing: str, out_: Path, *, with_: Words, set_: Words) -> Output:
    """With xlsx a workbook comes too, with sheet a privacy sheet, with registry an entry for the public registry, whose
    curator, curator_type, region and sector are given by --set; with parquet the numbers are Parquet files.

    Example: dpbayes export published/1 public --with sheet
    """
    from dpbayes.report.folder import save
    from dpbayes.report.registry import Deployment

    accounts = _ledger_in(thing)
    if accounts is not None:
        useless("a ledger", "with_", "set_")
        return _export_ledger(accounts, out_)
    said = {name: str(value) for name, value in map(key_value, set_)}
    if unknown := set(said) - {"curator", "curator_type", "region", "sector"}:
        known = "curator, curator_type, region, sector"
        raise InvalidArgument(f"export: there is no key {min(unknown)!r}. There is {known}.")
    deployment = None
    if "registry" not in with_:
        useless("a release without --with registry", "set_")
    else:
        if not {"curator", "curator_type", "region"} <= set(said):
            raise InvalidArgument("export: expected --set curator=…, curator_type=… and region=… with --with registry.")
        deployment = Deployment(**said)  # type: ignore[arg-type]  # checked there
    if unknown := set(with_) - {"xlsx", "sheet", "registry", "parquet"}:
        raise InvalidArgument(f"export: expected --with xlsx, sheet, registry or parquet, got {min(unknown)!r}.")
    also: Any = [each for each in with_ if each != "parquet"]
    numbers: Any = "parquet" if "parquet" in with_ else "csv"
    paths = save(Release.load(thing), out_, numbers=numbers, also=also, deployment=deployment)
    said_to = f"Written to {out_}: {', '.join(path.name for path in paths)}."
    return Output([str(path) for path in paths], lambda: tell_people(said_to))


def _export_ledger(accounts: list[Account], out: Path) -> Output:
    """All entries: mechanisms, times, remarks and hashes, nothing private."""
    from dpbayes.ledger.history import lines

    fresh(out)
    text = "".join(f"{line}\n" for account in accounts for line in lines(account))
    try:
        write(out, text)
    except OSError as problem:
        raise LedgerError(f"Ledger: {out} cannot be written. Check the folder and the disk.") from problem
    said = f"Written to {out}: {plural(text.count(chr(10)), 'line')}. Anyone can check it: dpbayes verify {out}"
    return Output([str(out)], lambda: tell_people(said))


def keys(name: Path) -> Output:
    """Example: dpbayes keys office"""
    secret, public = new_key(name)
    text = public.read_text(encoding="utf-8").splitlines()[1]

    def people() -> None:
        tell(f"Written: {secret}, which only you can read, and {public}.")
        tell(f"Anyone can check your signatures with: dpbayes verify RELEASE --key {text}")

    return Output({"secret": str(secret), "public": str(public), "key": text}, people)


def sign(release: Path, *, key: str, about: Text) -> Output:
    """Example: dpbayes sign published/1 --key office.key"""
    Release.load(release)
    made = signed(release, Path(key), comment=about or "")
    return Output(str(made), lambda: tell(f"Written: {made}"))
