"""What is said about published tables: titles, captions, footnotes, the summary, small groups, how to read them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpbayes.base.display import listed_and, plural
from dpbayes.release.estimates import TableView, repeats
from dpbayes.release.format import Release
from dpbayes.schema.attribute import OTHER
from dpbayes.schema.marginal import Marginal
from dpbayes.words.promise import short_promise
from dpbayes.words.view import View, step_of, text_of

SWALLOWED = "†"
IMPOSSIBLE = "–"

VERDICTS = {"good": "readable", "fair": "rough", "poor": "mostly noise", "": "size unknown"}
"""What is expected of a table, from the best to what cannot be said."""

VALUES = {
    "gammas": "released gamma",
    "noisy-counts": "released noisy count",
    "parameters": "released parameter",
    "pseudo-records": "pseudo-records",
    "shares": "released share",
}


def title(table: Marginal) -> str:
    """What a table is about.

    >>> title(Marginal.parse("income|sex")), title(Marginal.parse("sex,age"))
    ('income for each sex', 'sex × age')
    """
    of = " × ".join(table.of)
    return f"{of} for each {' × '.join(table.given)}" if table.given else of


def summary(release: Release, views: Sequence[View]) -> str:
    """One paragraph for readers who read no further: what, about whom, how exact, and how private."""
    about = f"the {release.records:,} records" if release.records is not None else "the records"
    parts = [plural(len(release.asked), "table")] if release.asked else []
    parts += [f"the {answer.name}" for answer in release.answers]
    said = [f"This release publishes {listed_and(parts) or 'nothing yet'} about {about} of {release.dataset}."]
    estimated = [view for view in views if view.halves.size]
    if common := [each for view in views if (each := _most_common(view))][:3]:
        said.append(f"Most common: {'; '.join(common)}.")
    if estimated:
        halves = 100.0 * np.concatenate([view.halves[~view.swallowed] for view in estimated])
        points = text_of(float(np.median(halves)), step_of(float(np.median(halves)))) if halves.size else "50"
        said.append(
            f"Every number is an estimate with a {100 * release.level:g} % interval for the noise that protects "
            f"people; the median is ± {points} percentage points."
        )
        cells = sum(len(view.shown) for view in estimated)
        gone = sum(int(view.swallowed[view.shown].sum()) for view in estimated)
        if gone:
            said.append(f"{gone:,} of {plural(cells, 'cell')} hold too few records to say anything.")
    if release.seeded:
        said.append("It was drawn with a seed and is not private.")
    else:
        said.append(short_promise(release))
    return " ".join(said)


def _most_common(view: View) -> str:
    """The largest share of a table of one attribute."""
    if len(view.shape) > 1 or view.shares is None or not len(view.shown):
        return ""
    cell = max(view.shown, key=lambda each: float(view.shares.values[each]))  # type: ignore[union-attr]
    share = 100.0 * float(view.shares.values[cell])
    return f"{view.axes[0].name} {view.names(cell)[0]} ({text_of(share, 1.0)} %)"


def minorities(view: View) -> list[str]:
    """The warning of [tCDP] about minorities, where it applies."""
    said = []
    if view.small:
        said.append(
            f"Small groups: {listed_and(map(view.group, view.small))}. Noise is as large for few records as for many, "
            "and leaves intervals of twenty points and more here. Do not read a difference, or its absence, as a fact "
            "about a minority."
        )
    prior = [group for group in view.source.groups if group.prior_share >= 0.5]
    if prior and view.source.kind == "gammas":
        said.append(
            f"In {len(prior)} of {plural(view.rows, 'group')} more than half of the draw is prior. Draws of such "
            "groups look more even than the groups are. Use the estimate, which corrects for it, and its intervals."
        )
    return said


def reading(release: Release) -> list[str]:
    """How to read estimates and their intervals, a point each; none without intervals."""
    if not any("counts" in table.products for table in release.tables):
        return []
    level = f"{100 * release.level:g}"
    first = (
        f"An interval holds the true number in about {level} of 100 such releases, whatever that number is. This is "
        "about one cell at a time, not about all cells at once."
    )
    if any(table.kind == "parameters" for table in release.tables):
        first = (
            "The numbers are what the declared prior and the release say together, with the noise of the mechanism. "
            "What an interval guarantees is said below its table. Released parameters carry the noise as it was drawn. "
            "Do not read them as a posterior."
        )
    return [
        first,
        "Percentages describe the people in the data. The files of numbers also have shares in the population that "
        f"these people come from; their intervals allow for sampling too. {repeats(release.schema).said}".rstrip(),
        "All tables were estimated together, so they agree wherever they overlap. A sum or a difference of cells has "
        "its own estimate (dpbayes ask), which may differ from the sum of printed cells.",
        "± is the longer side of an interval; lopsided ones are printed as such. Numbers are rounded to what their "
        "noise supports, and release.json has all digits.",
    ]


def caption(view: View) -> str:
    """What the numbers of a table are."""
    if view.shares is None and view.source.kind == "derived":
        return "This table follows from the others and carries no estimate yet."
    if view.shares is None:
        return VALUES[view.source.kind].capitalize() + ". This table carries no estimate."
    if view.drawn_only:
        return "One draw from the posterior, in percent. The files of numbers have estimates with intervals too."
    if view.source.kind == "pseudo-records":
        return "Percent of the pseudo-records."
    if view.source.kind == "shares":
        return "Percent, from one draw of the distribution over the whole domain."
    within = listed_and(view.source.marginal.given)
    of = f"Percent of the records of each {within}" if within else "Percent of all records"
    return f"{of}, with {100 * view.level:g} % intervals."


def footnotes(view: View) -> list[str]:
    """What intervals of a released posterior guarantee, signs that the table uses, and undeclared levels left out."""
    said, shown = [], view.shown
    if view.source.kind == "parameters" and view.source.products:
        said.append(TableView(view.release, view.source).reading.promise(view.level))
    if view.swallowed[shown].any():
        said.append(
            f"{SWALLOWED} Too few to say: "
            + (
                "noise leaves half of all shares open, or more."
                if view.given
                else "noise alone could explain this number. The true one is probably below the figure shown."
            )
        )
    if view.impossible[shown].any():
        said.append(f"{IMPOSSIBLE} None: what is public rules it out.")
    folded = [
        f"{axis.name} “{words_of[level]}”"
        for axis, words_of, levels in zip(view.axes, view.labels, view.folded, strict=True)
        for level in levels
    ]
    if folded:
        said.append(f"Not shown, since none or too few to say: {listed_and(folded)}.")
    for axis, words_of in zip(view.axes, view.labels, strict=True):
        rest = axis.level_of_code[-1]
        if axis.levels == axis.declared and axis.levels[rest] != OTHER:
            said.append(f"{axis.name} is closed: whatever is not declared counts as “{words_of[rest]}”.")
    return said
