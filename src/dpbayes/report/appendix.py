"""The end of the report: what the promise means, what is spent, how the release was made, and how to check it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from dpbayes.domain.marginal import Marginal
from dpbayes.domain.markup import Html, table, tag
from dpbayes.errors import DpbayesError
from dpbayes.privacy.target import guarantee_from_record
from dpbayes.release.format import Release, Table
from dpbayes.report import words
from dpbayes.report.figures import gauge

MOST_RECORDS = 20
"""Mechanisms that are printed; release.json has all of them."""


def appendix(release: Release) -> Html:
    """Everything that a careful reader needs, and a busy one does not."""
    parts = [tag("h2", "Appendix")]
    if not release.seeded:
        parts += [tag("h3", "What the promise means"), _points(words.meaning(release)[1:])]
        parts += [tag("h3", "What it does not mean"), _points(words.limits(release))]
    parts += [tag("h3", "What is spent"), *_spent(release)]
    parts += [tag("h3", "How it was made"), *_method(release)]
    parts += [tag("h3", "Check it yourself"), *_check(release)]
    return tag("section", *parts, id="appendix", class_="appendix")


def _points(points: Sequence[str]) -> Html:
    return tag("ul", *(tag("li", point) for point in points))


def _spent(release: Release) -> list[Html]:
    if release.spending is None:
        reason = "It was not charged to a ledger" + (", because it is not private." if release.seeded else ".")
        warning = "" if release.seeded else " So nobody counts what this and other releases reveal together."
        return [tag("p", reason + warning, class_=None if release.seeded else "warning")]
    spent = release.spending
    try:
        budget = guarantee_from_record(spent.budget)
    except DpbayesError:
        return [tag("p", "The record of the budget cannot be read.", class_="warning")]
    sentence = words.spending(spent, budget)
    return [
        tag("p", f"The budget of this data set is {budget}. {sentence}"),
        gauge(spent.spent / budget.size, sentence),
        tag("p", f"Entry {spent.serial} of the ledger, ", tag("code", spent.hash), class_="faint"),
    ]


def _method(release: Release) -> list[Html]:
    unit = release.unit
    moved = unit.sensitivity
    records = f"{release.records:,}, public" if release.records is not None else "private, not published"
    change = "one person's rows are replaced" if unit.replaces else "one person's rows are added or removed"
    facts = [
        ("guarantee", f"{release.promise}"),
        ("adjacency", f"{unit.adjacency}: {change}"),
        ("rows of one person", f"at most {unit.max_rows}"),
        ("how far counts move", f"ℓ₁ = {moved.l1:g}, ℓ₂² = {moved.l2_squared:g}, ℓ∞ = {moved.linf:g}"),
        ("number of records", records),
        ("tables priced together", str(sum(each.kind != "derived" for each in release.tables))),
        ("choice of the mechanism", release.choice),
    ]
    facts += _mechanisms(release)
    used = {name for each in release.asked for name in each.marginal.names}
    facts += [
        (f"levels of {axis.name}", f"{len(axis.levels)}: {listed(axis.levels)}{_source(axis.source)}")
        for axis in release.schema.attributes
        if axis.name in used
    ]
    return [table("The release and its public parameters", ("what", "value"), facts, class_="facts")]


def _source(source: str) -> str:
    """Where a list of levels comes from."""
    return f". Source: {source.rstrip('.')}." if source else ""


def _mechanisms(release: Release) -> list[tuple[str, str]]:
    """The parameters of each mechanism with the tables that it drew, and then the laws, each once."""
    facts, laws = [], {}
    for place, paid in enumerate(release.paid[:MOST_RECORDS]):
        record = paid.mechanism.record()
        name = str(record.get("mechanism"))
        drew = [(number, each) for number, each in enumerate(release.tables, start=1) if each.by == place]
        helping = [words.title(each) for _, each in drew if not each.asked]
        which = _numbers([number for number, each in drew if each.asked])
        if helping:
            which = f"{which}{', and ' if which else ''}measured besides: {'; '.join(helping)}"
        if drew:
            laws[name] = words.law(drew[0][1], record)
        named = {key: value for key, value in record.items() if key not in ("mechanism", "unit")}
        said = ", ".join(f"{words.PARAMETERS.get(key, key)} {words.parameter(value)}" for key, value in named.items())
        facts.append((which or "mechanism", f"{name}: {said}"))
    if len(release.paid) > MOST_RECORDS:
        facts.append(("more mechanisms", f"{len(release.paid) - MOST_RECORDS}, in release.json"))
    return facts + [(f"law of {name}", law) for name, law in laws.items()]


def _numbers(numbers: list[int]) -> str:
    """Numbers of tables, with runs joined: ``Tables 1–4 and 6``."""
    if not numbers:
        return ""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    said = words.listed_and([f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs])
    return f"Table{'s' if len(numbers) > 1 else ''} {said}"


def listed(levels: Sequence[str], most: int = 40) -> str:
    """The first ones, and where the others are."""
    return ", ".join(levels[:most]) + (f", and {len(levels) - most} more in release.json" if len(levels) > most else "")


def _check(release: Release) -> list[Html]:
    records = [{"times": paid.times, **paid.mechanism.record()} for paid in release.paid[:MOST_RECORDS]]
    return [
        tag(
            "p",
            "The file release.json has all the numbers. With it, everyone can price the mechanisms again, see that "
            "the promise holds, and recompute the estimates from the released values: ",
            tag("code", "dpbayes verify release.json"),
            ". These are the mechanisms, as the ledger keeps them; ",
            tag("code", "dpbayes cost --from FILE"),
            " prices such a list in every notion of privacy:",
        ),
        tag("pre", tag("code", "[" + ",\n ".join(json.dumps(record) for record in records) + "]")),
    ]


def file_stem(marginal: Marginal) -> str:
    """A file name for a table, of letters and digits.

    >>> file_stem(Marginal.parse("income|sex,age group"))
    'income-by-sex-age-group'
    """
    said = "-by-".join("-".join(side) for side in (marginal.of, marginal.given) if side)
    return re.sub(r"\W+", "-", said).strip("-")[:40] or "table"


def file_names(release: Release) -> list[str]:
    """The file of numbers of each table that was asked for, without its ending."""
    return [f"{number}-{file_stem(each.marginal)}" for number, each in enumerate(release.asked, start=1)]


def numbered_files(release: Release, numbers: str) -> dict[str, Table]:
    """The files of numbers, and the table in each; a long table that only helped has one too, to keep its values."""
    found = {
        f"{name}.{'parquet' if table.long else numbers}": table
        for name, table in zip(file_names(release), release.asked, strict=True)
    }
    besides = (table for table in release.tables if not table.asked and table.long)
    return found | {f"{at}-measured-{file_stem(table.marginal)}.parquet": table for at, table in enumerate(besides, 1)}
