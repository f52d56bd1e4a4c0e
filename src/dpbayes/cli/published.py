"""What is published: estimated together, verified, exported, signed. Free."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dpbayes.base.codec import to_record
from dpbayes.base.display import plural
from dpbayes.base.errors import InvalidArgument, ReleaseError
from dpbayes.cli import options
from dpbayes.cli.output import SHOWN_CELLS, print_json, print_table, tell, tell_people
from dpbayes.release.estimates import NOISY, Posterior
from dpbayes.release.format import Release
from dpbayes.release.signature import new_key, sign
from dpbayes.schema.marginal import Marginal

PARTS = ("counts", "records", "population")
"""What is estimated of a table: counts, shares of these records, shares of the population."""


def estimate_command(
    releases: Annotated[
        list[Path], typer.Argument(help="Releases of one data set: files, folders, or a folder of such folders.")
    ],
    table: Annotated[
        list[str] | None, typer.Option(help="A table, such as income|sex, even if only a larger one is published.")
    ] = None,
    ask: Annotated[
        list[str] | None,
        typer.Option(help="A question, such as \"share(income='high' | sex='F') - share(income='high' | sex='M')\"."),
    ] = None,
    target: Annotated[
        Literal["records", "population"], typer.Option(help="Whether shares are of these records, or of all people.")
    ] = "records",
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    ledger: Annotated[
        str | None, typer.Option(help="Use only releases that this ledger was charged for, and say which are missing.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Estimate tables and answer questions from everything published about a data set. Free.

    All tables agree and sharpen each other. Without --table and --ask, every published table is estimated.

    Example: dpbayes estimate published --table 'income|sex' --ask "share(sex='female')"
    """
    found = [Release.load(path) for given in releases for path in _found(given)]
    missing = 0
    if ledger is not None:
        found, missing = _charged(found, ledger)
    posterior = Posterior(found)
    tables = table or ([] if ask else _published(posterior))
    estimated = [_table(posterior, each, level) for each in tables]
    answers = [posterior.ask(question, level=level, target=target) for question in ask or ()]
    if as_json:
        listed = [to_record(each) for each in answers]
        print_json({"dataset": posterior.schema.id, "statement": _statement(posterior), "level": level,
                    "tables": estimated, "answers": listed, "charged_elsewhere": missing})  # fmt: skip
        return
    for each in estimated:
        _print(each, "population" if target == "population" else "records", level)
    if answers:
        rows = [(each.question, each.estimate, each.lower, each.upper) for each in answers]
        notes = dict.fromkeys(note for each in answers for note in each.notes)
        print_table("Answers", ("question", "estimate", "from", "to"), rows, notes=notes)
    if missing:
        tell_people(
            f"{plural(missing, 'release')} that the ledger was charged for would sharpen this, but is not here."
        )
    tell_people(_statement(posterior))


def _charged(found: list[Release], address: str) -> tuple[list[Release], int]:
    """The releases that a ledger was charged for, and how many others of the data set it was charged for."""
    from dpbayes.ledger.ledger import Ledger

    book = Ledger(address)
    kept = []
    for release in found:
        locks = {charge.lock for charge in book.account(release.dataset).charges.values() if charge.state != "void"}
        if release.lock and release.lock in locks:
            kept.append(release)
    if not kept:
        raise ReleaseError("estimate: the ledger was charged for none of these releases. Name its own, or no ledger.")
    here = {release.lock for release in kept}
    charges = book.account(kept[0].dataset).charges.values()
    return kept, sum(charge.state == "drawn" and charge.lock not in here for charge in charges)


def _found(path: Path) -> list[Path]:
    """A release, or all that lie in a folder."""
    if not path.is_dir() or (path / "release.json").is_file():
        return [path]
    inside = sorted(each.parent for each in path.glob("**/release.json"))
    if not inside:
        raise ReleaseError(f"estimate: there is no release in {str(path)!r}.")
    return inside


def _published(posterior: Posterior) -> list[str]:
    tables = (table for release in posterior.releases for table in release.tables)
    tables = (table for table in tables if table.asked and table.kind in (*NOISY, "derived"))
    return list(dict.fromkeys(str(table.marginal) for table in tables))


def _statement(posterior: Posterior) -> str:
    return " ".join(dict.fromkeys(release.statement() for release in posterior.releases))


def _table(posterior: Posterior, asked: str, level: float) -> dict[str, Any]:
    """The table as a record: one entry a cell."""
    marginal = Marginal.of_text(asked)
    found = posterior.table(marginal, level=level)
    parts = {
        part: [getattr(getattr(found, part), end).ravel().tolist() for end in ("values", "lower", "upper")]
        for part in PARTS
    }
    cells = []
    for place, levels in enumerate(product(*(axis.levels for axis in marginal.axes(posterior.schema)))):
        numbers = {part: dict(zip(("estimate", "lower", "upper"), (end[place] for end in ends), strict=True))
                   for part, ends in parts.items()}  # fmt: skip
        swallowed = bool(found.swallowed.ravel()[place])
        cells.append({"levels": dict(zip(marginal.names, levels, strict=True)), **numbers, "swallowed": swallowed})
    return {"table": str(marginal), "cells": cells, "note": found.population.note, "promise": found.counts.note}


def _print(table: dict[str, Any], shown: str, level: float) -> None:
    rows, marked = [], any(cell["swallowed"] for cell in table["cells"][:SHOWN_CELLS])
    for cell in table["cells"][:SHOWN_CELLS]:
        counts, shares = cell["counts"], cell[shown]
        rows.append((
            " · ".join(cell["levels"].values()),
            f"{counts['estimate']:.1f}", f"{counts['lower']:.0f} to {counts['upper']:.0f}",
            f"{shares['estimate']:.4f}", f"{shares['lower']:.4f} to {shares['upper']:.4f}",
            *(["swallowed by noise" if cell["swallowed"] else ""] if marked else []),
        ))  # fmt: skip
    interval = f"{100 * level:g} % interval"
    hidden = len(table["cells"]) - len(rows)
    of = "records" if shown == "records" else "the population"
    print_table(
        table["table"],
        (table["table"], "count", interval, f"share of {of}", interval, *([""] if marked else [])),
        rows,
        notes=[
            *([f"… and {hidden:,} more cells; --json has them all."] if hidden else []),
            *([table["note"]] if shown == "population" and table["note"] else []),
            *filter(None, [table["promise"]]),
        ],
    )


def verify_command(
    release: Annotated[Path, typer.Argument(help="A release: its file or folder; - reads standard input.")],
    ledger: Annotated[
        str | None, typer.Option(help="Check the charge too: a ledger file, or postgresql://user@host/database.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="Check the signature too: the publisher's public key, or its file.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Price a release of any kind again, and recompute its numbers, from its file alone.

    Example: dpbayes verify published --ledger survey.ledger --key office.pub
    """
    from dpbayes.release.format import Release
    from dpbayes.release.signature import SUFFIX
    from dpbayes.release.verify import verify

    piped = str(release) == "-"
    read = Release.from_json(typer.get_binary_stream("stdin").read()) if piped else Release.load(release)
    folder = None if piped else release if release.is_dir() else release.parent
    found = verify(read, ledger=ledger, folder=folder if read.files or key else None, key=key)
    if as_json:
        print_json(found.record())
    else:
        tell(str(found))
        tell(read.statement() if found.ok else "This release does not verify: do not rely on its promise.")
        if key is None and folder is not None and (folder / f"release.json{SUFFIX}").exists():
            tell("It is signed. To check by whom, give the publisher's public key with --key.")
    if not found.ok:
        raise typer.Exit(1)


def export_command(
    release: options.ReleaseFile,
    out: Annotated[Path, typer.Argument(help="New folder to write.")],
    also: Annotated[
        list[str] | None,
        typer.Option("--with", help="xlsx (a workbook), sheet (a privacy sheet) or registry (an entry); repeatable."),
    ] = None,
    numbers: Annotated[Literal["csv", "parquet"], typer.Option(help="Format of the numbers files.")] = "csv",
    curator: Annotated[str | None, typer.Option(help="Registry: who publishes, as an office or a company.")] = None,
    curator_type: Annotated[
        Literal["Government", "Industry", "Nonprofit"] | None, typer.Option(help="Registry: what kind of publisher.")
    ] = None,
    region: Annotated[str | None, typer.Option(help="Registry: which region the data describe.")] = None,
    sector: Annotated[
        Literal["Technology", "Healthcare", "Education", "Government", "Energy", "Finance"] | None,
        typer.Option(help="Registry: which sector the data describe."),
    ] = None,
) -> None:
    """Write a release once more, with everything that its readers need. It costs nothing.

    Example: dpbayes export published public --with xlsx --with sheet
    """
    from dpbayes.report.folder import save
    from dpbayes.report.registry import Deployment

    deployment = None
    if "registry" in (also or ()):
        if curator is None or curator_type is None or region is None:
            raise InvalidArgument("export: expected --curator, --curator-type and --region with --with registry.")
        deployment = Deployment(curator=curator, curator_type=curator_type, region=region, sector=sector)
    paths = save(Release.load(release), out, numbers=numbers, also=also or (), deployment=deployment)  # type: ignore[arg-type]
    tell(f"Written to {out}: {', '.join(path.name for path in paths)}.")


def keys_command(
    name: Annotated[Path, typer.Argument(help="Where to write: NAME.key and NAME.pub.")],
) -> None:
    """Make a key pair for signatures. Keep the .key file secret; publish the .pub file.

    Example: dpbayes keys office
    """
    secret, public = new_key(name)
    text = public.read_text(encoding="utf-8").splitlines()[1]
    tell(f"Written: {secret}, which only you can read, and {public}.")
    tell(f"Anyone can check your signatures with: dpbayes verify FOLDER --key {text}")


def sign_command(
    folder: options.ReleaseFile,
    key: Annotated[Path, typer.Option(help="Your secret key, as dpbayes keys or minisign -GW writes it.")],
    comment: Annotated[str, typer.Option(help="A line that is signed too.")] = "",
) -> None:
    """Sign a release and, through its hashes, all files beside it. Works offline.

    Example: dpbayes sign published --key office.key
    """
    Release.load(folder)
    tell(f"Written: {sign(folder, key, comment=comment)}")
