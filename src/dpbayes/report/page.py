"""The report: one HTML page without scripts that needs nothing but itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from dpbayes.domain.markup import Html, table, tag
from dpbayes.errors import DpbayesError
from dpbayes.privacy.guarantee import guarantee_from_record
from dpbayes.release.format import Answer, Release, Table
from dpbayes.report import tables, words
from dpbayes.report.figures import gauge

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Whatever text gets into a page, browsers load nothing for it and run nothing."""


def report_html(release: Release) -> str:
    """A page for readers of a release: the promise, what was spent, the tables, and how to check it all."""
    style = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    head = tag(
        "head",
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<meta name="color-scheme" content="light dark">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        tag("title", f"{release.dataset}: {'not private' if release.seeded else 'private release'}"),
        Html(f"<style>{style}</style>"),
    )
    body = tag("body", tag("main", *_parts(release)))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _parts(release: Release) -> Iterator[Html]:
    made = f"Drawn {release.created} by dpbayes {release.software.get('dpbayes', '')}."
    yield tag("header", tag("h1", release.dataset, dir="auto"), tag("p", made, class_="faint"))
    if release.seeded:
        yield tag("p", words.NOT_PRIVATE, class_="danger", role="alert")
    yield _promise(release)
    yield _spent(release)
    for number, source in enumerate(_asked(release), start=1):
        yield tables.section(number, release, source)
    if points := words.reading(release):
        heading = tag("h2", "How to read the numbers")
        yield tag("section", heading, tag("ul", *(tag("li", point) for point in points)))
    for answer in release.answers:
        yield _answer(answer)
    yield _method(release)
    yield _check(release)


def fragment(release: Release) -> str:
    """What a notebook shows: the promise and the tables, without the page around them."""
    shown = [tables.section(number, release, source) for number, source in enumerate(_asked(release)[:6], start=1)]
    return str(tag("div", tag("p", tag("strong", repr(release))), tag("p", release.statement()), *shown))


def _asked(release: Release) -> list[Table]:
    """The tables to show; those that were measured besides are in the file."""
    return [table for table in release.tables if table.asked]


def _answer(answer: Answer) -> Html:
    values = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in answer.values]
    return tag("section", tag("h2", answer.name, dir="auto"), tag("p", _listed(values)))


def _promise(release: Release) -> Html:
    if release.seeded:
        return tag("section", tag("h2", "No promise"), tag("p", release.statement()))
    return tag(
        "section",
        tag("h2", f"The promise: {release.promise}"),
        tag("ul", *(tag("li", point) for point in words.meaning(release))),
        tag("h3", "What it does not mean"),
        tag("ul", *(tag("li", point) for point in words.limits(release))),
    )


def _spent(release: Release) -> Html:
    heading = tag("h2", "What is spent")
    if release.spending is None:
        reason = "It was not charged to a ledger" + (", because it is not private." if release.seeded else ".")
        warning = "" if release.seeded else " So nobody counts what this and other releases reveal together."
        return tag("section", heading, tag("p", reason + warning, class_=None if release.seeded else "warning"))
    spent = release.spending
    try:
        budget = guarantee_from_record(spent.budget)
    except DpbayesError:
        return tag("section", heading, tag("p", "The record of the budget cannot be read.", class_="warning"))
    sentence = words.spending(spent, budget)
    return tag(
        "section",
        heading,
        tag("p", f"The budget of this data set is {budget}."),
        gauge(spent.spent / budget.size, sentence),
        tag("p", sentence),
        tag("p", f"Entry {spent.serial} of the ledger, ", tag("code", spent.hash), class_="faint"),
    )


def _method(release: Release) -> Html:
    unit = release.unit
    moved = unit.sensitivity
    records = f"{release.records:,}, public" if release.records is not None else "private, not published"
    facts = [
        ("guarantee", f"{release.promise}"),
        (
            "adjacency",
            f"{unit.adjacency}: "
            + ("one person's rows are replaced" if unit.replaces else "one person's rows are added or removed"),
        ),
        ("rows of one person", f"at most {unit.max_rows}"),
        ("how far counts move", f"ℓ₁ = {moved.l1:g}, ℓ₂² = {moved.l2_squared:g}, ℓ∞ = {moved.linf:g}"),
        ("number of records", records),
        ("tables priced together", str(sum(table.kind != "derived" for table in release.tables))),
        ("choice of the mechanism", release.choice),
    ]
    parts = [tag("h2", "How it was made"), table("The release", ("what", "value"), facts, class_="facts")]
    for number, source in enumerate(release.tables, start=1):
        caption = f"Table {number}: {words.title(source)}" + ("" if source.asked else ", measured besides")
        parts.append(table(caption, ("what", "value"), _parameters(release, source), class_="facts"))
    return tag("section", *parts)


def _parameters(release: Release, source: Table) -> list[tuple[str, str]]:
    if source.kind == "derived":
        return [("law", "not drawn: the other tables determine it, and its estimate comes from theirs")]
    record = release.paid[source.by].mechanism.record()
    facts = [("law", words.law(source, record)), ("mechanism", str(record.get("mechanism")))]
    named = {key: value for key, value in record.items() if key not in ("mechanism", "unit")}
    facts += [(words.PARAMETERS.get(key, key), words.parameter(value)) for key, value in named.items()]
    facts += [
        (f"levels of {axis.name}", f"{len(axis.levels)}: {_listed(axis.levels)}") for axis in release.axes(source)
    ]
    return facts


def _listed(levels: Sequence[str], most: int = 40) -> str:
    return ", ".join(levels[:most]) + (f", and {len(levels) - most} more in release.json" if len(levels) > most else "")


def _check(release: Release) -> Html:
    records = [{"times": paid.times, **paid.mechanism.record()} for paid in release.paid]
    return tag(
        "section",
        tag("h2", "Check it yourself"),
        tag(
            "p",
            "The file release.json has all the numbers. With it, everyone can price the mechanisms again, see "
            "that the promise holds, and recompute the estimates from the released values:",
        ),
        tag("pre", tag("code", "dpbayes verify release.json")),
        tag(
            "p",
            "These are the mechanisms, as the ledger keeps them; ",
            tag("code", "dpbayes cost --from FILE"),
            " prices such a list in every notion of privacy:",
        ),
        tag("pre", tag("code", json.dumps(records, indent=1))),
    )
