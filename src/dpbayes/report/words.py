"""What the report says in sentences: the summary, the promise and its limits, the laws, small groups."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from dpbayes.domain.display import plural
from dpbayes.domain.unit import PrivacyUnit
from dpbayes.ledger.account import Spending
from dpbayes.privacy.guarantee import Guarantee, rounded_down, rounded_up
from dpbayes.release.format import Release, Table
from dpbayes.release.posterior import repeats
from dpbayes.release.words import chance
from dpbayes.report.rounding import step_of, text_of
from dpbayes.report.view import View

NOT_PRIVATE = (
    "Not private. This release was drawn with a seed. Whoever knows or guesses the seed can remove the noise. "
    "Use it for tests with data that is public already, and do not publish it."
)

LAWS = {
    "dirichlet-1": "z = Gamma(r·c + α, 1), independently for each cell with count c, rounded to the grid, "
    "at least one step",
    "dirichlet-2": "z = Gamma(r·c + α, 1), independently for each cell with count c, rounded to the grid and from 1 on "
    "to about √z/64, at least one step; drawn in doubles, exact in real arithmetic only",
    "pseudo-records": "records drawn one by one from y = Dirichlet(r·c + α), by Pólya's urn in whole numbers",
    "gaussian-1": "x = c + k for each cell with count c, k independent, P[k] ∝ exp(−k²/2σ²) on the whole numbers",
    "hellinger-1": "α + k, k drawn from all tables of the public size with P[k] ∝ exp(−a·H), H the Hellinger distance "
    "between the posteriors of k and of the counts; a is larger where a record moves that distance less",
    "posterior-exponential-1": "α + k, k drawn from all tables of the public size by the exponential mechanism",
    "posterior-laplace-1": "α + x, x = c + k for each cell but the last with count c, P[k] ∝ exp(−|k|/scale) on the "
    "whole numbers, if truncated cut to what is left of the public total; the last cell is the rest of it",
    "laplace-1": "x = c + k for each cell with count c, k independent, P[k] ∝ exp(−|k|/scale) on the whole numbers",
}

PARAMETERS = {
    "weight": "weight r",
    "concentration": "concentration α",
    "least_count": "public lower bound of every count",
    "sensitivity": "declared sensitivity",
    "grid": "grid",
    "records": "number of pseudo-records",
    "sigma": "standard deviation σ",
    "scale": "scale",
}

VALUES = {
    "gammas": "released gamma",
    "noisy-counts": "released noisy count",
    "parameters": "released parameter",
    "pseudo-records": "pseudo-records",
    "shares": "released share",
}


def title(table: Table) -> str:
    """What a table is about."""
    asked = table.marginal
    of = " × ".join(asked.of)
    return f"{of} for each {' × '.join(asked.given)}" if asked.given else of


def listed_and(items: Iterable[str], most: int = 8) -> str:
    """A list in a sentence.

    >>> listed_and(["a", "b", "c"]), listed_and("abcdefghij", most=2)
    ('a, b and c', 'a, b and 8 others')
    """
    found = list(items)
    if len(found) > most:
        found = [*found[:most], f"{len(found) - most} others"]
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}" if found else ""


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
            f"people, typically ± {points} percentage points."
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


def short_promise(release: Release) -> str:
    """The promise in one short sentence."""
    promise = release.promise
    epsilon, delta = promise.epsilon_delta or (math.inf, 0.0)
    if epsilon < 50:
        unless = f", except with probability {chance(delta)}" if delta else ""
        factor = rounded_up(math.exp(epsilon), 3)
        whether = "whatever a person answered" if release.unit.replaces else "whether or not a person took part"
        return f"It is private: {whether}, no outcome becomes more than {factor} times as likely{unless}."
    return f"It is private, within {promise}."


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


def law(table: Table, mechanism: Mapping[str, object]) -> str:
    """The law that the released values follow, given the counts."""
    name = str(mechanism.get("mechanism"))
    return LAWS.get(table.kind if table.kind == "pseudo-records" else name, "see the record below")


def meaning(release: Release) -> list[str]:
    """What the promise means, a point each."""
    unit, said = release.unit, [release.statement(), _in_practice(release.promise, release.unit)]
    rows = "one row" if unit.max_rows == 1 else f"{unit.max_rows} rows"
    changed = "had other answers" if unit.replaces else "was not in the data at all"
    said.append(
        f"It holds for everyone who has at most {rows} in the data, whatever a reader knows already. The comparison "
        f"is with the same data in which that person {changed}."
    )
    said.append(
        "Nothing that is computed from the published numbers weakens it. The estimates, intervals and figures of "
        "this report were made from them alone."
    )
    return said


def _in_practice(promise: Guarantee, unit: PrivacyUnit) -> str:
    epsilon, delta = promise.epsilon_delta or (math.inf, 0.0)
    if epsilon < 50:
        but = f", except with probability {chance(delta)}" if delta else ""
        # Under add-remove, two answers are two steps apart: removing one, adding the other.
        bet = "between two answers of a person" if unit.replaces else "on whether a person took part"
        return (
            f"In practice: reading this release improves the odds of someone who bets {bet} at most "
            f"{rounded_up(math.exp(epsilon), 3)}-fold{but}."
        )
    return promise.in_practice or "In practice, this is so weak that a reader may learn a person's answer."


def limits(release: Release) -> list[str]:
    """What the promise does not mean, a point each."""
    public = "the lists of categories" + (" and the number of records" if release.unit.fixed_size else "")
    return [
        "It is not about what is true of everyone. If the tables show that a region is poor, readers learn this about "
        "its people, including those who never took part.",
        f"It does not hide what was declared public: {public}.",
        "It covers this release only. Other releases of the same data add to what can be learned. The ledger keeps "
        "the total and refuses what would exceed the limit.",
        "It protects one person at a time. For a household of k people it is weaker, about k-fold.",
        "It fails if the randomness is repeated or known. A release that was drawn with a seed promises nothing.",
        "The intervals account for the noise that was added, not for wrong answers or for people who are not in the "
        "data.",
    ]


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
            "What an interval promises is said below its table. Released parameters carry the noise as it was drawn. "
            "Do not read them as a posterior."
        )
    return [
        first,
        "Percentages describe the people in the data. The files of numbers also have shares in the population that "
        f"these people come from; their intervals allow for sampling too. {repeats(release.schema).said}".rstrip(),
        "All tables were estimated together, so they agree wherever they overlap. A sum or a difference of cells has "
        "its own estimate (dpbayes estimate --ask), which may differ from the sum of printed cells.",
        "± is the longer side of an interval; lopsided ones are printed as such. Numbers are rounded to what their "
        "noise supports, and release.json has all digits.",
    ]


def spending(spent: Spending, budget: Guarantee) -> str:
    """How much of the budget is used up."""
    more = (
        f"One more release of up to ε={rounded_down(spent.left, 4)} at δ={rounded_down(budget.exception)} fits; "
        "(ε, δ) costs do not simply add."
        if budget.exception
        else f"{rounded_down(spent.left, 4)} is left."
    )
    return f"With this release, {rounded_up(spent.spent, 4)} of {budget.size:g} is spent. {more}"


def parameter(value: object) -> str:
    """A parameter for people, with six digits; the record has all of them."""
    if isinstance(value, list):
        return ", ".join(map(parameter, value)) if len(value) <= 8 else f"{len(value)} values, see the record below"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {parameter(item)}" for key, item in value.items())
    if isinstance(value, float):
        return f"{value:.6g}"
    return "none" if value is None else str(value)
