"""``dpbayes ask``: answers from everything published; nothing is charged."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

from dpbayes.base.codec import to_record
from dpbayes.base.display import nearest, plural
from dpbayes.base.errors import DpbayesError, InvalidArgument, ReleaseError, SchemaError
from dpbayes.base.files import write
from dpbayes.cli.command import Output, fresh, now, useless
from dpbayes.cli.options import File, Words
from dpbayes.cli.output import SHOWN_CELLS, plain, print_table, show_release, tell_people, warn
from dpbayes.inference.question import read
from dpbayes.release.estimates import NOISY, Posterior, standing
from dpbayes.release.format import Release
from dpbayes.schema.labels import labels, places
from dpbayes.schema.marginal import Marginal

PARTS = ("counts", "records", "population")
"""What is estimated of a table: counts, shares of these records, shares of the population."""

STATE = ".wide"


def ask(source: Path, questions: Words = (), *, also: Words, population: bool, level: float, out: File) -> Output:
    """All tables agree and sharpen each other. Without a question every published table is estimated.

    Example: dpbayes ask published 'income|sex' "share(income='80k and over' | sex='male')"
    """
    if source.suffix == STATE:
        useless("a wide state", "also", "population", "level")
        return _ask_state(source, questions, out)
    posterior = Posterior(of_one_data_set([*found(source), *(each for path in also for each in found(Path(path)))]))
    tables, formulas = [], []
    for question in questions or _published(posterior):
        row = _row(question, posterior)
        tables.append(row) if row else formulas.append(question)
    shown = [_table(posterior, *each, level) for each in tables]
    answers = [posterior.ask(each, level=level, target="population" if population else "records") for each in formulas]
    said = [release.statement() for release in posterior.releases]
    statement = " ".join([*said, "Their losses add up."] if len(said) > 1 else said)
    result = {"dataset": posterior.schema.id, "statement": statement, "level": level,
              "tables": shown, "answers": [to_record(each) for each in answers]}  # fmt: skip
    if out is not None:
        _write(out, result, "population" if population else "records")

    def people() -> None:
        for each in shown:
            _print(each, "population" if population else "records", level)
        if answers:
            rows = [(each.question, *each.rounded()) for each in answers]
            notes = dict.fromkeys(note for each in answers for note in each.notes)
            print_table("Answers", ("question", "estimate", f"{100 * level:g} % from", "to"), rows, notes=notes)
        tell_people(statement)
        if out is not None:
            tell_people(f"Written to {out}.")

    return Output(result, people)


def homes(path: Path) -> list[Path]:
    """Where a release is, or all that lie in a folder, the first ones first."""
    if not path.is_dir() or (path / "release.json").is_file():
        return [path]
    inside = [each.parent for each in path.glob("**/release.json")]
    if not inside:
        raise ReleaseError(f"Release: there is no release in {str(path)!r}.")
    return sorted(inside, key=lambda at: [(len(part), part) if part.isdecimal() else (0, part) for part in at.parts])


def found(path: Path) -> list[Release]:
    """The releases that lie there."""
    return [Release.load(each) for each in homes(path)]


def of_one_data_set(releases: list[Release]) -> list[Release]:
    """Releases that can be asked together, without those that others of them supersede."""
    given, releases = releases, list(standing(releases))
    if left_out := [release.id for release in given if release not in releases]:
        warn(now(), f"A newer release supersedes {', '.join(left_out)}, which is left out.")
    if len({release.dataset for release in releases}) > 1:
        counted = Counter(release.dataset for release in releases)
        listed = ", ".join(f"{name!r} ({plural(many, 'release')})" for name, many in counted.items())
        raise ReleaseError(f"Release: there are several data sets: {listed}. Name the releases of one of them.")
    return releases


def _published(posterior: Posterior) -> list[str]:
    tables = (table for release in posterior.releases for table in release.tables)
    tables = (table for table in tables if table.asked and table.kind in (*NOISY, "derived"))
    return list(dict.fromkeys(str(table.marginal) for table in tables))


def _row(question: str, posterior: Posterior) -> tuple[Marginal, dict[str, str]] | None:
    """The table that is asked for, and the levels of one of its rows; None if it is a formula."""
    names = posterior.schema.names
    try:
        asked = Marginal.parse(question)
        if set(asked.names) <= set(names):
            return asked, {}
    except DpbayesError:
        asked = None
    if (row := one_row(question)) is not None:
        return row
    if asked is None or "(" in question:
        return None
    unknown = next(name for name in asked.names if name not in names)
    raise SchemaError(f"ask: there is no attribute {unknown!r} in what is published. {nearest(unknown, names)}")


def one_row(question: str) -> tuple[Marginal, dict[str, str]] | None:
    """One row of a table, as in ``income|sex='male',age='30 to 45'``.

    >>> one_row("income|sex='male'")
    (Marginal(of=('income',), given=('sex',)), {'sex': 'male'})
    """
    of, bar, given = question.partition("|")
    if not bar or "=" not in given or "(" in of:
        return None
    try:
        conditions = read(f"share({given})").of  # type: ignore[union-attr]  # an atom
        asked = Marginal.parse(of)
    except (DpbayesError, AttributeError):
        return None
    if any(each.excluded or len(each.levels) != 1 for each in conditions):
        raise InvalidArgument(f"ask: expected one level for each name, as in income|sex='male', got {question!r}.")
    where = {each.name: each.levels[0] for each in conditions}
    return Marginal(asked.of, tuple(where)), where


def _ask_state(state: Path, questions: tuple[str, ...], out: Path | None) -> Output:
    """A share or a table of shares from the one draw that was paid for. The same question has the same answer."""
    from dpbayes.jobs.wide import WideDistribution

    if len(questions) != 1:
        raise InvalidArgument(
            f"ask: expected one table of the wide release, such as age or \"age|sex='male'\", got {len(questions)}."
        )
    row = one_row(questions[0])
    marginal, where = row or (Marginal.parse(questions[0]), {})
    if marginal.given and not where:
        raise InvalidArgument("ask: expected a joint table such as sex,age, or one row such as \"age|sex='male'\".")
    answer = WideDistribution.load(state).answer(marginal.of, where)
    if out is not None:
        answer.save(out)

    def people() -> None:
        show_release(answer, out)
        if where:
            tell_people("These are shares of all records: divide by their sum for shares within the row.")

    return Output(answer.record(), people)


def _write(out: Path, result: dict[str, Any], shown: str) -> None:
    """The answers as CSV or JSON, in a new file."""
    if out.suffix not in (".csv", ".json"):
        raise InvalidArgument(f"ask: expected a file that ends in .csv or .json, got {out.name!r}.")
    fresh(out)
    if out.suffix == ".json":
        write(out, json.dumps(plain(result), indent=2, ensure_ascii=False))
        return
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow(("question", "cell", "what", "estimate", "lower", "upper"))
    for table in result["tables"]:
        for cell in table["cells"]:
            name = ", ".join(f"{key}={level}" for key, level in cell["levels"].items())
            for part in ("counts", shown):
                lines.writerow((table["table"], name, part, *cell[part].values()))
    for each in result["answers"]:
        lines.writerow((each["question"], "", shown, each["estimate"], each["lower"], each["upper"]))
    write(out, text.getvalue())


def _table(posterior: Posterior, marginal: Marginal, where: dict[str, str], level: float) -> dict[str, Any]:
    """The table, or one row of it, as a record: one entry a cell."""
    found = posterior.table(marginal, level=level)
    parts = {
        part: [getattr(getattr(found, part), end).ravel().tolist() for end in ("values", "lower", "upper")]
        for part in PARTS
    }
    cells = []
    axes = marginal.axes(posterior.schema)
    known = {axis.name: places(axis) for axis in axes}
    if lost := next((name for name, level in where.items() if level not in known[name]), None):
        raise SchemaError(f"ask: there is no row {lost}={where[lost]!r}. {nearest(where[lost], known[lost])}")
    chosen = {name: known[name][level] for name, level in where.items()}
    words = product(*map(labels, axes))
    for place, (levels, said) in enumerate(zip(product(*(axis.levels for axis in axes)), words, strict=True)):
        numbers = {part: dict(zip(("estimate", "lower", "upper"), (end[place] for end in ends), strict=True))
                   for part, ends in parts.items()}  # fmt: skip
        named = dict(zip(marginal.names, levels, strict=True))
        if all(known[name][named[name]] == at for name, at in chosen.items()):
            unreadable = bool(found.swallowed.ravel()[place])
            cells.append({"levels": named, "label": " · ".join(said), **numbers, "unreadable": unreadable})
    row = ",".join(f"{name}={level!r}" for name, level in where.items())
    return {
        "table": f"{Marginal(marginal.of)}|{row}" if where else str(marginal),
        "cells": cells,
        "note": found.population.note,
        "guarantee": found.counts.note,
    }


def _print(table: dict[str, Any], shown: str, level: float) -> None:
    rows, marked = [], any(cell["unreadable"] for cell in table["cells"][:SHOWN_CELLS])
    for cell in table["cells"][:SHOWN_CELLS]:
        counts, shares = cell["counts"], cell[shown]
        rows.append((
            cell["label"],
            f"{counts['estimate']:.1f}", f"{counts['lower']:.0f} to {counts['upper']:.0f}",
            f"{shares['estimate']:.4f}", f"{shares['lower']:.4f} to {shares['upper']:.4f}",
            *(["unreadable" if cell["unreadable"] else ""] if marked else []),
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
            *filter(None, [table["guarantee"]]),
        ],
    )
