"""The report: one HTML page without scripts that needs nothing but itself.

Results come first, for readers who decide; the promise follows in short, and an appendix has the rest.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpbayes.domain.display import plural
from dpbayes.domain.markup import Html, embedded, joined, style, tag
from dpbayes.release.format import Release
from dpbayes.report import appendix, tables, words
from dpbayes.report.view import View

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Whatever text gets into a page, browsers load nothing for it and run nothing."""

MOST_CELLS = 3000
"""Tables are shown in full until the page has this many cells; the contents name the rest."""

NOTEBOOK_TABLES = 6


def report_html(release: Release) -> str:
    """A page for readers of a release: a summary, the tables, the promise, and how to check it all."""
    kind = "not private" if release.seeded else "private release"
    return page(f"{title(release)}: {kind}", joined(_parts(release)))


def page(name: str, body: Html) -> str:
    """A self-contained page in the style of the report."""
    head = tag(
        "head",
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<meta name="color-scheme" content="light dark">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        tag("title", name),
        Html(f"<style>{style()}</style>"),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', tag('main', body)), lang='en')}\n"


def about(release: Release) -> dict[str, str]:
    """What the authors say of it: title, author, contact, purpose, and what it supersedes."""
    return release.about


def title(release: Release) -> str:
    """Its title, or the name of the data set."""
    return about(release).get("title") or release.dataset


def _parts(release: Release) -> Iterator[Html]:
    views = [View(release, source) for source in release.asked]
    shown = _shown(views)
    yield _header(release)
    if release.seeded:
        yield tag("p", words.NOT_PRIVATE, class_="danger", role="alert")
    yield tag("p", words.summary(release, views[:shown]), class_="summary")
    yield _contents(release, shown)
    numbers = appendix.file_names(release)
    for number, source in enumerate(release.asked[:shown], start=1):
        yield tables.section(number, release, source, file=numbers[number - 1])
    for number in range(1, len(release.answers) + 1):
        yield _answer(release, number)
    if points := words.reading(release):
        listed = tag("ul", *(tag("li", point) for point in points))
        yield tag("section", tag("h2", "How to read the numbers"), listed, id="reading")
    yield _promise(release)
    yield appendix.appendix(release)


def _shown(views: list[View]) -> int:
    """How many tables the page shows in full."""
    cells = 0
    for number, view in enumerate(views):
        cells += len(view.shown)
        if cells > MOST_CELLS and number:
            return number
    return len(views)


def _header(release: Release) -> Html:
    said = about(release)
    made = f"Drawn {_date(release.created)} by dpbayes {release.software.get('dpbayes', '')}."
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


def _date(created: str) -> str:
    day, _, clock = created.partition("T")
    return f"{day} at {clock[:5]} UTC" if clock else created


def _contents(release: Release, shown: int) -> Html:
    entries = [
        tag("li", tag("a", f"Table {number}. {words.title(source)}", href=f"#table-{number}", dir="auto"))
        for number, source in enumerate(release.asked[:shown], start=1)
    ]
    names = appendix.file_names(release)[shown:]
    for number, (source, name) in enumerate(zip(release.asked[shown:], names, strict=True), start=shown + 1):
        entries.append(tag("li", f"Table {number}. {words.title(source)}: in the file {name}"))
    for number, answer in enumerate(release.answers, start=1):
        entries.append(tag("li", tag("a", f"{answer.name[:1].upper()}{answer.name[1:]}", href=f"#answer-{number}")))
    others = [("#reading", "How to read the numbers")] if words.reading(release) else []
    others += [("#promise", "The promise"), ("#appendix", "Appendix: details, method, and how to check it")]
    links = [tag("li", tag("a", text, href=place)) for place, text in others]
    return tag("nav", tag("h2", "Contents"), tag("ul", *entries, *links), aria_label="Contents")


def fragment(release: Release) -> str:
    """What a notebook shows: the promise and the tables, without the page around them."""
    few = release.asked[:NOTEBOOK_TABLES]
    shown = [tables.section(number, release, source) for number, source in enumerate(few, start=1)]
    left = len(release.asked) - len(few)
    more = [tag("p", f"{plural(left, 'more table')}.")] if left else []
    answers = [_answer(release, number) for number in range(1, len(release.answers) + 1)]
    promise = words.NOT_PRIVATE if release.seeded else release.statement()
    head = [tag("p", tag("strong", repr(release))), tag("p", promise)]
    return embedded(joined([*head, *shown, *more, *answers]))


def _answer(release: Release, number: int) -> Html:
    """Something drawn that is no table."""
    answer = release.answers[number - 1]
    values = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in answer.values]
    heading = tag("h2", f"{answer.name[:1].upper()}{answer.name[1:]}", dir="auto")
    body = tag("p", appendix.listed(values))
    return tag("section", heading, body, id=f"answer-{number}")


def _promise(release: Release) -> Html:
    if release.seeded:
        return tag("section", tag("h2", "No promise"), tag("p", release.statement()), id="promise")
    heading = tag("h2", f"The promise: {release.promise}")
    return tag("section", heading, tag("p", release.statement()), id="promise")
