"""What the report says in sentences: the promise and its limits, the laws, small groups."""

from __future__ import annotations

import math
from collections.abc import Mapping

from dpbayes.domain.unit import PrivacyUnit
from dpbayes.ledger.account import Spending
from dpbayes.privacy.adaptive import AdaptiveDP
from dpbayes.privacy.guarantee import RDP, TCDP, ZCDP, ApproxDP, Guarantee, PureDP, rounded_down, rounded_up
from dpbayes.release.format import Release, Table
from dpbayes.release.words import chance

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
    "pseudo-records": "pseudo-records",
    "shares": "released share",
}


def title(table: Table) -> str:
    """What a table is about."""
    asked = table.marginal
    of = " × ".join(asked.of)
    return f"{of} for each {' × '.join(asked.given)}" if asked.given else of


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
        "Nothing that is computed from the published numbers weakens it: the estimates, intervals and figures below "
        "were made from them alone."
    )
    return said


def _in_practice(promise: Guarantee, unit: PrivacyUnit) -> str:
    match promise:
        case PureDP(epsilon=epsilon) | ApproxDP(epsilon=epsilon) if epsilon < 50:
            but = f", except with probability {chance(promise.delta)}" if isinstance(promise, ApproxDP) else ""
            # Under add-remove, two answers are two steps apart: removing one, adding the other.
            bet = "between two answers of a person" if unit.replaces else "on whether a person took part"
            return (
                f"In practice: someone who bets {bet} cannot improve the odds by more than a "
                f"factor {rounded_up(math.exp(epsilon), 3)} by reading this release{but}."
            )
        case RDP():
            return (
                "In practice: the smaller ε is, the less the odds of any guess about a person can improve on average; "
                "the order says how heavily rare, large improvements weigh in that average."
            )
        case TCDP() | ZCDP():
            return (
                "In practice: what a reader learns about a person behaves like a small Gaussian fluctuation whose "
                "size grows with ρ" + (", for all but the rarest outcomes." if isinstance(promise, TCDP) else ".")
            )
    return "In practice, this is so much that a reader may learn a person's answer."


def limits(release: Release) -> list[str]:
    """What the promise does not mean, a point each."""
    public = "the lists of categories" + (" and the number of records" if release.unit.fixed_size else "")
    return [
        "It is not about what is true of everyone. If the tables show that a region is poor, readers learn this about "
        "its people, including those who never took part.",
        f"It does not hide what was declared public: {public}.",
        "It covers these tables only. Other releases of the same data add to what can be learned; the ledger keeps "
        "the total and refuses what would exceed the limit.",
        "It protects one person at a time. For a household of k people it is weaker, about k-fold.",
        "It is void when randomness is repeated or known. A release that was drawn with a seed promises nothing.",
        "The intervals account for the noise that was added, not for wrong answers or for people who are not in the "
        "data.",
    ]


def reading(release: Release) -> list[str]:
    """How to read estimates and their intervals, a point each; none without intervals, or for a file of 0.1.0."""
    if release.legacy or not any("counts" in table.products for table in release.tables):
        return []
    level = f"{100 * release.level:g}"
    return [
        f"An interval holds the true number in about {level} of 100 such releases, whatever that number is. This is "
        "about one cell at a time, not about all cells at once.",
        "Shares of the records describe the people in the data. Shares in the population describe where such people "
        "come from, so their intervals allow for sampling too. In a table for each group, shares are within the group.",
        "The tables were estimated together: they add up to the same totals wherever they overlap. An answer that is "
        "worked out from them, such as a sum or a difference, has its own estimate (dpbayes estimate --ask). It may "
        "differ from the sum of printed cells, each of which was drawn towards what its totals suggest.",
    ]


def spending(spent: Spending, budget: Guarantee) -> str:
    """How much of the budget is used up."""
    more = (
        f"One more release of up to ε={rounded_down(spent.left, 4)} at δ={rounded_down(budget.delta)} fits; "
        "(ε, δ) costs do not simply add."
        if isinstance(budget, (ApproxDP, AdaptiveDP))
        else f"{rounded_down(spent.left, 4)} is left."
    )
    return f"With this release, {rounded_up(spent.spent, 4)} of {budget.size:g} is spent. {more}"


def parameter(value: object) -> str:
    """A parameter for people, with all its digits."""
    if isinstance(value, list):
        return ", ".join(map(parameter, value)) if len(value) <= 8 else f"{len(value)} values, see the record below"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {parameter(item)}" for key, item in value.items())
    return "none" if value is None else str(value)
