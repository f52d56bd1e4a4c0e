"""The report: one HTML page without scripts that needs nothing but itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from dpbayes.errors import DpbayesError
from dpbayes.privacy.guarantee import guarantee_from_record
from dpbayes.release import Release, Table
from dpbayes.report import tables, words
from dpbayes.report.figures import gauge
from dpbayes.report.markup import Html, table, tag

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Whatever text gets into a page, browsers load nothing for it and run nothing."""


def report_html(release: Release) -> str:
    """A page for readers of a release: the promise, what was spent, the tables, and how to check it all.

    >>> from dpbayes import Adjacency, ApproxDP, Gaussian, PrivacyUnit
    >>> from dpbayes.release import Axis, Release, Table
    >>> unit = PrivacyUnit(adjacency=Adjacency.REPLACE_ONE)
    >>> drawn = Table(marginal={"of": ["sex"], "given": []}, axes=[Axis(name="sex", levels=["F", "M"])],
    ...               mechanism=Gaussian(sigma=4, unit=unit).record(), kind="noisy-counts", values=[52, 47])
    >>> page = report_html(Release(dpbayes="0.1.0", created="2025-01-31T12:00:00+00:00", dataset="survey",
    ...                            unit=unit.record(), guarantee=ApproxDP(epsilon=1, delta=1e-6).record(),
    ...                            accounting="exact", choice="asked for", records=100, seeded=False, tables=[drawn]))
    >>> page.startswith("<!doctype html>"), "<script" in page
    (True, False)
    """
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
    made = f"Drawn {release.created} by dpbayes {release.dpbayes}."
    yield tag("header", tag("h1", release.dataset, dir="auto"), tag("p", made, class_="faint"))
    if release.seeded:
        yield tag("p", words.NOT_PRIVATE, class_="danger", role="alert")
    yield _promise(release)
    yield _spent(release)
    for number, source in enumerate(release.tables, start=1):
        yield tables.section(number, source, release.level)
    yield _method(release)
    yield _check(release)


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
    if release.ledger is None:
        reason = "It was not charged to a ledger" + (", because it is not private." if release.seeded else ".")
        warning = "" if release.seeded else " So nobody counts what this and other releases reveal together."
        return tag("section", heading, tag("p", reason + warning, class_=None if release.seeded else "warning"))
    spent = release.ledger
    try:
        budget = guarantee_from_record(spent.budget)
    except DpbayesError:
        return tag("section", heading, tag("p", "The record of the budget cannot be read.", class_="warning"))
    sentence = words.spending(spent, budget)
    receipt = spent.receipt
    return tag(
        "section",
        heading,
        tag("p", f"The budget of this data set is {budget}."),
        gauge(spent.spent / spent.limit if spent.limit > 0 else 1.0, sentence),
        tag("p", sentence),
        tag(
            "p", f"Entry {receipt.get('serial')} of the ledger, ", tag("code", str(receipt.get("hash"))), class_="faint"
        ),
    )


def _method(release: Release) -> Html:
    unit = release.privacy_unit
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
        ("tables priced together", str(len(release.tables))),
        ("accounting", release.accounting),
        ("choice of the mechanism", release.choice),
    ]
    parts = [tag("h2", "How it was made"), table("The release", ("what", "value"), facts, class_="facts")]
    for number, source in enumerate(release.tables, start=1):
        caption = f"Table {number}: {words.title(source)}"
        parts.append(table(caption, ("what", "value"), _parameters(source), class_="facts"))
    return tag("section", *parts)


def _parameters(source: Table) -> list[tuple[str, str]]:
    record = source.mechanism
    facts = [("law", words.law(source)), ("mechanism", str(record.get("mechanism")))]
    named = {key: value for key, value in record.items() if key not in ("mechanism", "unit")}
    facts += [(words.PARAMETERS.get(key, key), words.parameter(value)) for key, value in named.items()]
    if source.grid is not None:
        facts.append(("grid", words.parameter(source.grid)))
    if source.row_records is not None:
        facts.append(("public totals of the groups", words.parameter(source.row_records)))
    if source.prior is not None:
        facts.append(("public prior, which guides the estimates", words.parameter(source.prior)))
    facts += [(f"levels of {axis.name}", f"{len(axis.levels)}: {_listed(axis.levels)}") for axis in source.axes]
    return facts


def _listed(levels: list[str], most: int = 40) -> str:
    return ", ".join(levels[:most]) + (f", and {len(levels) - most} more in release.json" if len(levels) > most else "")


def _check(release: Release) -> Html:
    merged: dict[str, int] = {}
    for source in release.tables:
        text = json.dumps(source.mechanism)
        merged[text] = merged.get(text, 0) + 1
    records = [{"times": times, **json.loads(text)} for text, times in merged.items()]
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
