"""The report: one HTML page without scripts that needs nothing but itself.

Results come first, for readers who decide; the guarantee follows in short. An appendix has the rest: what the guarantee
means, what is spent, how the release was made, and how to check it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby

from dpbayes.base.display import Html, embed, joined, listed_and, page, plural, table, tag
from dpbayes.base.errors import DpbayesError
from dpbayes.plot.canvas import gauge
from dpbayes.privacy.calibrate import guarantee_from_record
from dpbayes.release.format import Answer, Release, Table
from dpbayes.report import tables
from dpbayes.schema.marginal import Marginal
from dpbayes.words import budget, promise
from dpbayes.words import report as words
from dpbayes.words.view import View

MOST_RECORDS = 20
"""Mechanisms that are printed; release.json has all of them."""


def report_html(release: Release) -> str:
    """A page for readers of a release: a summary, the tables, the guarantee, and how to check it all."""
    kind = "not private" if release.seeded else "private release"
    return page(f"{title(release)}: {kind}", joined(_parts(release)))


def title(release: Release) -> str:
    """Its title, or the name of the data set."""
    return release.about.get("title") or release.dataset


def _parts(release: Release) -> Iterator[Html]:
    views = [View(release, source) for source in release.asked]
    shown = _shown(views)
    yield _header(release)
    if release.seeded:
        yield tag("p", promise.NOT_PRIVATE, class_="danger", role="alert")
    yield tag("p", words.summary(release, views[:shown]), class_="summary")
    yield _contents(release, shown)
    for number, (source, file) in enumerate(zip(release.asked[:shown], file_names(release), strict=False), start=1):
        yield tables.section(number, release, source, file=file)
    yield from _answers(release)
    if points := words.reading(release):
        yield tag("section", tag("h2", "How to read the numbers"), _points(points), id="reading")
    heading = "No guarantee" if release.seeded else f"The guarantee: {release.promise}"
    yield tag("section", tag("h2", heading), tag("p", release.statement()), id="guarantee")
    yield appendix(release)


def _shown(views: list[View]) -> int:
    """How many tables the page shows in full: one or more, until it has 3,000 cells; the contents name the rest."""
    cells = accumulate(len(view.shown) for view in views)
    return max(sum(each <= 3000 for each in cells), min(len(views), 1))


def _header(release: Release) -> Html:
    said = release.about
    drawn = f"{release.created[:16].replace('T', ' at ')} UTC" if "T" in release.created else release.created
    made = f"Drawn {drawn} by dpbayes {release.software.get('dpbayes', '')}."
    by = ", ".join(said[key] for key in ("author", "contact") if key in said)
    lines = [tag("h1", title(release), dir="auto")]
    if by:
        lines.append(tag("p", by, class_="byline", dir="auto"))
    if "purpose" in said:
        lines.append(tag("p", said["purpose"], class_="purpose", dir="auto"))
    lines.append(tag("p", f"Data set {release.dataset}. {made}", class_="faint"))
    if "supersedes" in said:
        lines.append(tag("p", f"It supersedes the release {said['supersedes']}.", class_="faint"))
    return tag("header", *lines)


def _contents(release: Release, shown: int) -> Html:
    entries = []
    for number, (source, file) in enumerate(zip(release.asked, file_names(release), strict=True), start=1):
        name = f"Table {number}. {words.title(source.marginal)}"
        on_page = tag("a", name, href=f"#table-{number}", dir="auto")
        entries.append(tag("li", on_page if number <= shown else f"{name}: in the file {file}"))
    others = [(f"#answer-{number}", _heading(answer)) for number, answer in enumerate(release.answers, start=1)]
    others += [("#reading", "How to read the numbers")] if words.reading(release) else []
    others += [("#guarantee", "The guarantee"), ("#appendix", "Appendix: details, method, and how to check it")]
    entries += [tag("li", tag("a", text, href=place)) for place, text in others]
    return tag("nav", tag("h2", "Contents"), tag("ul", *entries), aria_label="Contents")


def fragment(release: Release) -> str:
    """What a notebook shows: the guarantee and the tables, without the page around them."""
    few = release.asked[:6]
    shown = [tables.section(number, release, source) for number, source in enumerate(few, start=1)]
    left = len(release.asked) - len(few)
    more = [tag("p", f"{plural(left, 'more table')}.")] if left else []
    promised = promise.NOT_PRIVATE if release.seeded else release.statement()
    head = [tag("p", tag("strong", repr(release))), tag("p", promised)]
    return embed(joined([*head, *shown, *more, *_answers(release)]))


def _answers(release: Release) -> Iterator[Html]:
    """What was drawn and is no table."""
    for number, answer in enumerate(release.answers, start=1):
        values = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in answer.values]
        yield tag("section", tag("h2", _heading(answer), dir="auto"), tag("p", listed(values)), id=f"answer-{number}")


def _heading(answer: Answer) -> str:
    return f"{answer.name[:1].upper()}{answer.name[1:]}"


def appendix(release: Release) -> Html:
    """Everything that a careful reader needs, and a busy one does not."""
    parts = [tag("h2", "Appendix")]
    if not release.seeded:
        parts += [tag("h3", "What the guarantee means"), _points(promise.meaning(release)[1:])]
        parts += [tag("h3", "What it does not mean"), _points(promise.limits(release))]
    parts += [tag("h3", "What is spent"), *_spent(release)]
    parts += [tag("h3", "How it was made"), *_method(release)]
    parts += [tag("h3", "Check it yourself"), *_check(release)]
    return tag("section", *parts, id="appendix", class_="appendix")


def _points(points: Sequence[str]) -> Html:
    return tag("ul", *(tag("li", point) for point in points))


def _spent(release: Release) -> list[Html]:
    if release.spending is None:
        reason = "It was not charged to a ledger" + (", because it is not private." if release.seeded else ".")
        warning = "" if release.seeded else " So nobody adds up what this and other releases reveal together."
        return [tag("p", reason + warning, class_=None if release.seeded else "warning")]
    spent = release.spending
    try:
        limit, sentence = guarantee_from_record(spent.budget), f"With this release, {budget.standing(spent)}"
    except DpbayesError:
        return [tag("p", "The record of the limit cannot be read.", class_="warning")]
    return [
        tag("p", f"The limit of this data set is {limit}. {sentence}"),
        gauge(spent.spent / limit.size, sentence),
        tag("p", f"Entry {spent.serial} of the ledger, ", tag("code", spent.hash), class_="faint"),
    ]


def _method(release: Release) -> list[Html]:
    unit = release.unit
    moved = unit.sensitivity
    unknown = "public, not in this release" if unit.fixed_size else "private, not published"
    records = unknown if release.records is None else f"{release.records:,}, public"
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
    for axis in release.schema.attributes:
        if axis.name in used:
            source = f". Source: {axis.source.rstrip('.')}." if axis.source else ""
            facts.append((f"levels of {axis.name}", f"{len(axis.levels)}: {listed(axis.levels)}{source}"))
    return [table("The release and its public parameters", ("what", "value"), facts, class_="facts")]


def _mechanisms(release: Release) -> list[tuple[str, str]]:
    """The parameters of each mechanism with the tables that it drew, and then the laws, each once."""
    facts, laws = [], {}
    for place, paid in enumerate(release.paid[:MOST_RECORDS]):
        record = paid.mechanism.record()
        name = str(record.get("mechanism"))
        drew = [(number, each) for number, each in enumerate(release.tables, start=1) if each.by == place]
        helping = [words.title(each.marginal) for _, each in drew if not each.asked]
        which = _numbers([number for number, each in drew if each.asked])
        if helping:
            which = f"{which}{', and ' if which else ''}measured besides: {'; '.join(helping)}"
        if drew:
            laws[name] = promise.law(drew[0][1], record)
        named = {key: value for key, value in record.items() if key not in ("mechanism", "unit")}
        said = ", ".join(
            f"{promise.PARAMETERS.get(key, key)} {promise.parameter(value)}" for key, value in named.items()
        )
        facts.append((which or "mechanism", f"{name}: {said}"))
    if len(release.paid) > MOST_RECORDS:
        facts.append(("more mechanisms", f"{len(release.paid) - MOST_RECORDS}, in release.json"))
    return facts + [(f"law of {name}", law) for name, law in laws.items()]


def _numbers(numbers: list[int]) -> str:
    """Numbers of tables, with runs joined: ``Tables 1–4 and 6``."""
    if not numbers:
        return ""
    runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), lambda each: each[1] - each[0])]
    said = listed_and([f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs])
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
            "the guarantee holds, and recompute the estimates from the released values: ",
            tag("code", "dpbayes verify release.json"),
            ". These are the mechanisms, as the ledger keeps them; ",
            tag("code", "dpbayes price FILE.json"),
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
